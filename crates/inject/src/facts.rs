//! Facts about this process, for the collector.

use tracesmith_wire::record::{ProcessFact, ProcessStart};

use crate::{clock, sink::Sink};

/// Sends the IDs of this process and its parent.
pub(crate) fn send_process_start(sink: &Sink) {
    let start = ProcessStart {
        time: clock::now(),
        process: std::process::id(),
        parent: rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get().unsigned_abs()),
        ..ProcessStart::default()
    };
    sink.define(&start);
}

/// Sends one fact.
pub(crate) fn send_process_fact(sink: &Sink, key: &str, value: &str) {
    let fact = ProcessFact {
        key_bytes: key.len() as u32,
        reserved: 0,
    };
    sink.define_with(&fact, format!("{key}{value}").as_bytes());
}
