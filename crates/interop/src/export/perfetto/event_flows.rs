//! Arrows from events to those who wait for them.
//!
//! A wait has the times of the call that asked for it, which is most often over before the device passes the event. So an
//! arrow that begins where the device does would point backwards; it begins at the call that records the event, from which
//! another arrow leads to the device. That call does not say which event it records: the device's row does, and these
//! rows are read once before all others. Memory grows with them, by 32 bytes each.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ApiCall, SyncKind, Synchronization};
use tracesmith_format::{Columns, CorrelationId, ProcessId, Projection, Table};
use tracesmith_trace::Trace;

use super::argument::{FlowSpace, flow_id};

/// The flows of events.
#[derive(Default)]
pub(super) struct EventFlows {
    /// By the calls that record the events; `None` when the trace has no calls.
    by_call: Option<FxHashMap<(ProcessId, CorrelationId), u64>>,
}

impl EventFlows {
    pub(super) fn new(trace: &Trace) -> Self {
        let has_calls = trace
            .blocks()
            .iter()
            .any(|block| block.header.kind == ApiCall::KIND);
        if !has_calls {
            return EventFlows::default();
        }
        let mut by_call = FxHashMap::default();
        let mut decoder = trace.decoder();
        let syncs = trace.blocks().iter();
        for block in syncs.filter(|block| block.header.kind == Synchronization::KIND) {
            // A block that cannot be read is noted when its rows are to be written.
            let Ok(rows) = decoder.read::<Synchronization>(block, &Projection::all()) else {
                continue;
            };
            for row in 0..rows.len() {
                if rows.shape.get(row).kind == SyncKind::EVENT_RECORD
                    && let Some(flow) = flow_of(
                        rows.place.get(row).process,
                        rows.event[row],
                        rows.event_record[row],
                    )
                    && rows.correlation[row].is_some()
                {
                    by_call.insert((rows.place.get(row).process, rows.correlation[row]), flow);
                }
            }
        }
        EventFlows {
            by_call: Some(by_call),
        }
    }

    /// The flow that begins at a call.
    #[inline]
    pub(super) fn of_call(&self, process: ProcessId, correlation: CorrelationId) -> Option<u64> {
        let by_call = self.by_call.as_ref().filter(|calls| !calls.is_empty())?;
        by_call.get(&(process, correlation)).copied()
    }

    /// The flow that a synchronisation is part of. The record of an event is, where no call could be.
    pub(super) fn of_sync(&self, kind: SyncKind, process: ProcessId, event: u64, record: u64) -> Option<u64> {
        match kind {
            SyncKind::EVENT_RECORD if self.by_call.is_some() => None,
            _ => flow_of(process, event, record),
        }
    }
}

fn flow_of(process: ProcessId, event: u64, record: u64) -> Option<u64> {
    (event != 0).then(|| flow_id(FlowSpace::Event, process, event << 24 ^ record))
}
