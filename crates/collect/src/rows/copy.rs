//! Memcpys, memsets, and launches of whole graphs.

use tracesmith_format::{
    Bytes, ContextId, CorrelationId, GraphId, GraphNodeId, Timestamp,
    tables::{
        CopyDirection, CopyShape, GraphLaunch, GraphShape, MemoryCopy, MemoryKind, MemorySet, SetShape,
    },
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, RecordOutcome, TraceRows, process::OpLocation};

impl ProcessRows {
    pub(super) fn copy(
        &mut self,
        record: &wire::MemoryCopy,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            context: record.context,
            stream: record.stream,
            channel: record.channel,
            channel_kind: record.channel_kind,
        };
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(stack)) = (self.place(work, definitions), stack) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let mut shape = CopyShape {
            direction: CopyDirection(record.direction),
            source_memory: MemoryKind(record.source_memory),
            destination_memory: MemoryKind(record.destination_memory),
            asynchronous: record.asynchronous != 0,
            device_launched: record.device_launched != 0,
            graph: GraphId(u64::from(record.graph)),
            ..CopyShape::default()
        };
        if record.peer != 0 {
            let source = self.device_id(record.source_device, definitions);
            let destination = self.device_id(record.destination_device, definitions);
            let (Some(source), Some(destination)) = (source, destination) else {
                return RecordOutcome::NeedsDefinitions;
            };
            shape.source_device = source;
            shape.source_context = ContextId(record.source_context);
            shape.destination_device = destination;
            shape.destination_context = ContextId(record.destination_context);
        }
        let row = MemoryCopy {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            bytes: Bytes(record.bytes),
            correlation: CorrelationId(record.correlation),
            runtime_correlation: CorrelationId(record.runtime_correlation),
            graph_node: GraphNodeId(record.graph_node),
            copies: record.copies,
            stack,
            place,
            shape,
            ..MemoryCopy::default()
        };
        trace.counts.copies += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }

    pub(super) fn set(
        &mut self,
        record: &wire::MemorySet,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            context: record.context,
            stream: record.stream,
            channel: record.channel,
            channel_kind: record.channel_kind,
        };
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(stack)) = (self.place(work, definitions), stack) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = MemorySet {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            bytes: Bytes(record.bytes),
            value: record.value,
            correlation: CorrelationId(record.correlation),
            graph_node: GraphNodeId(record.graph_node),
            stack,
            place,
            shape: SetShape {
                memory: MemoryKind(record.memory),
                asynchronous: record.asynchronous != 0,
                device_launched: record.device_launched != 0,
                graph: GraphId(u64::from(record.graph)),
            },
            ..MemorySet::default()
        };
        trace.counts.copies += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }

    pub(super) fn graph_launch(
        &mut self,
        record: &wire::GraphLaunch,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let work = OpLocation {
            device: record.device,
            context: record.context,
            stream: record.stream,
            ..OpLocation::default()
        };
        let end_device = self.device_id(record.end_device, definitions);
        let stack = self.stack_id(record.stack, definitions);
        let (Some(place), Some(end_device), Some(stack)) = (self.place(work, definitions), end_device, stack)
        else {
            return RecordOutcome::NeedsDefinitions;
        };
        let mut shape = GraphShape {
            graph: GraphId(u64::from(record.graph)),
            ..GraphShape::default()
        };
        if (record.end_device, record.end_context) != (record.device, record.context) {
            shape.end_device = end_device;
            shape.end_context = ContextId(record.end_context);
        }
        let row = GraphLaunch {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(record.correlation),
            stack,
            place,
            shape,
        };
        trace.counts.graph_launches += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }
}
