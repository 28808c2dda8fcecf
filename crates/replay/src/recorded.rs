//! The recorded GPU time of each call.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{self, CommandKind};
use tracesmith_format::{CorrelationId, ProcessId, Reader, Timestamp};

use crate::contents::Input;
use crate::error::Error;
use crate::recording::{Command, rows, text};

/// A GPU operation: its correlation ID and name. All nodes of a graph have the same correlation ID. Kernels are
/// distinguished by name, and kernels with the same name by order.
type OpKey = (u64, String);

/// Sets the recorded time of each call.
pub(crate) fn fill_in(
    commands: &mut [Command],
    reader: &Reader<Input>,
    strings: &[String],
    process: ProcessId,
) -> Result<(), Error> {
    let mut found: Vec<(Timestamp, OpKey, Duration)> = Vec::new();
    let mut add = |correlation: CorrelationId, name: String, start: Timestamp, end: Timestamp| {
        let took = Duration::from_nanos(end.0.saturating_sub(start.0));
        found.push((start, (correlation.0, name), took));
    };
    for row in rows::<tables::Kernel>(reader)? {
        if row.place.process == process {
            add(row.correlation, text(strings, row.shape.name), row.start, row.end);
        }
    }
    for row in rows::<tables::MemoryCopy>(reader)? {
        if row.place.process == process {
            add(row.correlation, COPY.to_owned(), row.start, row.end);
        }
    }
    for row in rows::<tables::MemorySet>(reader)? {
        if row.place.process == process {
            add(row.correlation, SET.to_owned(), row.start, row.end);
        }
    }
    found.sort_by_key(|(start, ..)| *start);
    let mut times: FxHashMap<OpKey, VecDeque<Duration>> = FxHashMap::default();
    for (_, work, took) in found {
        times.entry(work).or_default().push_back(took);
    }
    for command in commands {
        let name = match command.kind {
            CommandKind::LAUNCH => command.function.clone(),
            CommandKind::COPY | CommandKind::COPY_PLANES => COPY.to_owned(),
            CommandKind::SET => SET.to_owned(),
            _ => continue,
        };
        let own = times.get_mut(&(command.correlation, name));
        command.recorded = own.and_then(VecDeque::pop_front);
    }
    Ok(())
}

/// No kernel has this name, because C and C++ names have no spaces.
const COPY: &str = "a copy";
const SET: &str = "a set";
