//! Waits on the host and in streams, and event records.

use tracesmith_format::{
    CorrelationId, Timestamp,
    tables::{SyncKind, SyncShape, Synchronization},
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, RecordOutcome, TraceRows, process::OpLocation};

/// Limit for records that wait until their context is known.
const MOST_AWAITING: usize = 1 << 16;

impl ProcessRows {
    /// A thread reports its waits immediately. CUPTI reports the context, which has the device, later with its
    /// buffers.
    pub(super) fn sync(
        &mut self,
        record: &wire::Synchronization,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        if self.contexts.contains_key(&record.context) || self.awaiting.len() >= MOST_AWAITING {
            return self.write_sync(record, definitions, trace);
        }
        self.awaiting.push(*record);
        RecordOutcome::Done
    }

    /// Writes the stored records of contexts that are known now.
    #[cold]
    pub(super) fn settle_syncs(&mut self, trace: &mut TraceRows) {
        let is_known = |record: &wire::Synchronization| self.contexts.contains_key(&record.context);
        let (known, unknown) = std::mem::take(&mut self.awaiting).into_iter().partition(is_known);
        self.awaiting = unknown;
        self.write_syncs(known, trace);
    }

    /// Writes all stored records.
    pub(super) fn end_syncs(&mut self, trace: &mut TraceRows) {
        let kept = std::mem::take(&mut self.awaiting);
        self.write_syncs(kept, trace);
    }

    fn write_syncs(&mut self, records: Vec<wire::Synchronization>, trace: &mut TraceRows) {
        for record in records {
            let taken = self.write_sync(&record, Definitions::Complete, trace);
            debug_assert_eq!(taken, RecordOutcome::Done, "nothing is awaited any more");
        }
    }

    fn write_sync(
        &mut self,
        record: &wire::Synchronization,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            context: record.context,
            stream: record.stream,
            ..OpLocation::default()
        };
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(stack)) = (self.place(work, definitions), stack) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = Synchronization {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(record.correlation),
            event: u64::from(record.event),
            event_record: record.event_record,
            device_time: Timestamp(record.device_time),
            stack,
            place,
            shape: SyncShape {
                kind: SyncKind(record.kind),
                result: record.result,
            },
            ..Synchronization::default()
        };
        trace.counts.syncs += 1;
        trace.push(self.clock_of(record.clock), &row);
        RecordOutcome::Done
    }
}
