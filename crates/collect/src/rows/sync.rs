//! Waits of the host and of streams, and event records.

use tracesmith_format::{
    CorrelationId, Timestamp,
    tables::{SyncKind, SyncShape, Synchronization},
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, Taken, TraceRows, process::Work};

impl ProcessRows {
    pub(super) fn sync(
        &mut self,
        record: &wire::Synchronization,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> Taken {
        let work = Work {
            device: record.device,
            context: record.context,
            stream: record.stream,
            ..Work::default()
        };
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(stack)) = (self.place(work, definitions), stack) else {
            return Taken::NeedsDefinitions;
        };
        let row = Synchronization {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(u64::from(record.correlation)),
            event: u64::from(record.event),
            event_record: record.event_record,
            device_time: Timestamp(record.device_time),
            stack,
            place,
            shape: SyncShape {
                kind: SyncKind(u8::try_from(record.kind).unwrap_or(0)),
                result: record.result,
            },
            ..Synchronization::default()
        };
        trace.counts.syncs += 1;
        trace.push(self.clock, &row);
        Taken::Done
    }
}
