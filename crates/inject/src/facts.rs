//! What the collector should know of this process.

use tracesmith_wire::record::{ProcessFact, ProcessStart};

use crate::{clock, sink::Sink};

/// Says who this is.
pub(crate) fn send_process_start(sink: &Sink) {
    let start = ProcessStart {
        time: clock::now(),
        process: std::process::id(),
        parent: rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get().unsigned_abs()),
        ..ProcessStart::default()
    };
    sink.define(&start);
}

/// Says one thing.
pub(crate) fn send_process_fact(sink: &Sink, key: &str, value: &str) {
    let fact = ProcessFact {
        key_bytes: key.len() as u32,
        reserved: 0,
    };
    sink.define_with(&fact, format!("{key}{value}").as_bytes());
}
