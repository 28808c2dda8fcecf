//! Allocations, frees and memory pools.

use tracesmith_format::{
    Address, Bytes, CorrelationId, ThreadId, Timestamp,
    tables::{Allocation, AllocationShape, MemoryKind, MemoryOperation},
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, RecordOutcome, TraceRows, process::OpLocation};

impl ProcessRows {
    pub(super) fn allocation(
        &mut self,
        record: &wire::Allocation,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            context: record.context,
            stream: record.stream,
            ..OpLocation::default()
        };
        let name = self.string(record.name, definitions);
        let allocator = self.string(record.source, definitions);
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(name), Some(allocator), Some(stack)) =
            (self.place(work, definitions), name, allocator, stack)
        else {
            return RecordOutcome::NeedsDefinitions;
        };
        let caller = self.caller(record.thread, trace);
        let row = Allocation {
            time: Timestamp(record.time),
            address: Address(record.address),
            bytes: Bytes(record.bytes),
            correlation: CorrelationId(record.correlation),
            stack,
            pool: Address(record.pool),
            pool_size: Bytes(record.pool_size),
            pool_used: Bytes(record.pool_used),
            code_address: Address(record.code_address),
            place,
            shape: AllocationShape {
                operation: MemoryOperation(record.operation),
                memory: MemoryKind(record.memory),
                asynchronous: record.asynchronous != 0,
                thread: caller.thread,
                allocator,
                name,
                pool_kind: record.pool_kind,
                pool_threshold: Bytes(record.pool_threshold),
                ..AllocationShape::default()
            },
        };
        trace.counts.allocations += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }

    pub(super) fn pool(
        &mut self,
        record: &wire::Pool,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            stream: u32::MAX,
            ..OpLocation::default()
        };
        let Some(place) = self.place(work, definitions) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = Allocation {
            time: Timestamp(record.time),
            bytes: Bytes(record.min_bytes_to_keep),
            correlation: CorrelationId(record.correlation),
            pool: Address(record.pool),
            pool_size: Bytes(record.size),
            pool_used: Bytes(record.used),
            place,
            shape: AllocationShape {
                operation: MemoryOperation(record.operation),
                memory: MemoryKind::DEVICE,
                thread: ThreadId::NONE,
                pool_kind: record.pool_kind,
                pool_threshold: Bytes(record.threshold),
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        trace.counts.allocations += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }
}
