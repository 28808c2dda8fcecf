//! Kernels.

use tracesmith_format::{
    Bytes, CorrelationId, GraphId, GraphNodeId, Timestamp,
    tables::{Kernel, KernelShape, LaunchKind},
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, RecordOutcome, TraceRows, process::OpLocation};

impl ProcessRows {
    #[inline]
    pub(super) fn kernel(
        &mut self,
        record: &wire::Kernel,
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
        let (Some(place), Some(name), Some(stack)) = (
            self.place(work, definitions),
            self.names(record.name, definitions),
            self.stack_id(record.stack, definitions),
        ) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = Kernel {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            completed: Timestamp(record.completed),
            queued: Timestamp(record.queued),
            submitted: Timestamp(record.submitted),
            correlation: CorrelationId(record.correlation),
            grid_id: record.grid_id,
            graph_node: GraphNodeId(record.graph_node),
            stack,
            place,
            shape: KernelShape {
                static_shared: Bytes(u64::from(record.static_shared)),
                dynamic_shared: Bytes(u64::from(record.dynamic_shared)),
                shared_executed: Bytes(u64::from(record.shared_executed)),
                local_per_thread: Bytes(u64::from(record.local_per_thread)),
                local_total: Bytes(record.local_total),
                graph: GraphId(u64::from(record.graph)),
                name: name.string,
                demangled: name.demangled,
                grid_x: record.grid[0],
                grid_y: record.grid[1],
                grid_z: record.grid[2],
                block_x: record.block[0],
                block_y: record.block[1],
                block_z: record.block[2],
                cluster_x: record.cluster[0],
                cluster_y: record.cluster[1],
                cluster_z: record.cluster[2],
                max_active_clusters: record.max_active_clusters,
                max_cluster_size: record.max_cluster_size,
                priority: record.priority,
                registers: record.registers,
                cluster_policy: record.cluster_policy,
                shared_config: record.shared_config,
                shared_carveout: record.shared_carveout,
                cache_requested: record.cache_requested,
                cache_executed: record.cache_executed,
                launch: LaunchKind(record.launch),
                device_launched: record.device_launched != 0,
            },
        };
        if record.graph == 0 {
            self.launches.kernel(record.correlation);
        }
        trace.counts.kernels += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }
}
