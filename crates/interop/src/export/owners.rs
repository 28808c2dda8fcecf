//! Which processes a trace has events of, and whose an event without a process is.

use std::collections::BTreeSet;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::tables::Counters;
use tracesmith_format::{DeviceId, ProcessId};
use tracesmith_trace::Trace;

use crate::export::sweep::Rows;

/// The processes that a trace has events of, in the order of their IDs. Events without a process do not count.
pub fn processes_with_events(trace: &Trace) -> Vec<ProcessId> {
    let found: BTreeSet<ProcessId> = trace
        .blocks()
        .par_iter()
        .filter(|block| block.header.kind.is_events())
        .map_init(
            || trace.decoder(),
            |decoder, block| match Rows::read_processes(decoder, block) {
                Some(Ok(rows)) => (0..rows.len()).map(|row| rows.process(row)).collect(),
                Some(Err(error)) => {
                    trace.note_damage(block, error);
                    BTreeSet::new()
                }
                None => BTreeSet::new(),
            },
        )
        .reduce(BTreeSet::new, |mut all, some| {
            all.extend(some);
            all
        });
    found.into_iter().filter(|process| process.is_some()).collect()
}

/// The events of one process among those of several.
pub(super) struct Owned {
    process: ProcessId,
    /// The first process with a context on each device. Counters of a device belong to it.
    of_devices: FxHashMap<DeviceId, ProcessId>,
    /// The process that gets what is left.
    first: ProcessId,
}

impl Owned {
    pub(super) fn new(trace: &Trace, process: ProcessId) -> Self {
        let mut of_devices = FxHashMap::default();
        for context in trace.contexts.iter().filter(|context| context.device.is_some()) {
            of_devices.entry(context.device).or_insert(context.process);
        }
        Owned {
            process,
            of_devices,
            first: processes_with_events(trace).first().copied().unwrap_or(process),
        }
    }

    pub(super) fn has(&self, rows: &Rows, row: usize) -> bool {
        let process = rows.process(row);
        if process.is_some() {
            return process == self.process;
        }
        let device = match rows {
            Rows::Counter(rows) => device_of(rows, row),
            _ => DeviceId::NONE,
        };
        *self.of_devices.get(&device).unwrap_or(&self.first) == self.process
    }
}

fn device_of(rows: &Counters, row: usize) -> DeviceId {
    rows.track.get(row).device
}
