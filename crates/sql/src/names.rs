//! Views with the tables and columns that users of other tools know.

use tracesmith_trace::tables::catalog;

/// A view with a name that another tool uses.
pub struct ForeignView {
    /// Its name there.
    pub name: &'static str,
    /// The tool.
    pub tool: &'static str,
    pub(crate) select: &'static str,
}

impl ForeignView {
    /// The view's query, with a `trace` column if there are several traces.
    pub(crate) fn query(&self, trace: &str) -> String {
        let others = catalog().iter().find(|info| info.name == "kernels").map(|info| {
            let columns = info.columns.iter().map(|column| column.name.as_str());
            let others = columns.filter(|name| !["name", "readable_name"].contains(name));
            others
                .map(|name| format!("\"{name}\""))
                .collect::<Vec<_>>()
                .join(", ")
        });
        self.select
            .replace("{trace}", trace)
            .replace("{of}", trace)
            .replace("{others of kernels}", &others.unwrap_or_default())
    }
}

/// All such views. `{trace}` and `{of}` stand for the `trace` column, where there are several traces. `{others of kernels}` stands
/// for the columns of `kernels` that have the same name in the view.
pub static FOREIGN_VIEWS: &[ForeignView] = &[
    ForeignView {
        name: "kernel",
        tool: "tracesmith",
        select: "select {trace} readable_name as name, name as symbol, {others of kernels}, ts, dur from kernels",
    },
    // Nsight Systems, as `nsys export --type sqlite` names them.
    ForeignView {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        tool: "nsys",
        select: "select {trace} start, end, gpu_number({of} device) as deviceId, context as contextId, stream as streamId, \
                 correlation as correlationId, nsys_pid({of} process) as globalPid, readable_name as demangledName, \
                 name as mangledName, short_name as shortName, grid_x as gridX, grid_y as gridY, \
                 grid_z as gridZ, block_x as blockX, block_y as blockY, block_z as blockZ, \
                 registers as registersPerThread, static_shared as staticSharedMemory, \
                 dynamic_shared as dynamicSharedMemory, local_per_thread as localMemoryPerThread, \
                 graph as graphId, graph_node as graphNodeId, grid_id as gridId, queued, submitted, completed \
                 from kernels",
    },
    ForeignView {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        tool: "nsys",
        select: "select {trace} start, end, gpu_number({of} device) as deviceId, context as contextId, stream as streamId, \
                 correlation as correlationId, nsys_pid({of} process) as globalPid, bytes, direction as copyKind, \
                 source_memory as srcKind, destination_memory as dstKind from copies",
    },
    ForeignView {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        tool: "nsys",
        select: "select {trace} start, end, gpu_number({of} device) as deviceId, context as contextId, stream as streamId, \
                 correlation as correlationId, nsys_pid({of} process) as globalPid, bytes, value, memory as memKind from sets",
    },
    ForeignView {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        tool: "nsys",
        select: "select {trace} start, end, nsys_tid({of} process, thread) as globalTid, nsys_pid({of} process) as globalPid, \
                 correlation as correlationId, name as nameId, domain as eventClass, result as returnValue, \
                 stack as callchainId from api_calls",
    },
    ForeignView {
        name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        tool: "nsys",
        select: "select {trace} start, end, gpu_number({of} device) as deviceId, context as contextId, stream as streamId, \
                 correlation as correlationId, nsys_pid({of} process) as globalPid, kind as syncType from syncs",
    },
    ForeignView {
        name: "NVTX_EVENTS",
        tool: "nsys",
        select: "select {trace} start, end, name as text, domain as domainId, nsys_tid({of} process, thread) as globalTid, \
                 nsys_pid({of} process) as globalPid, category, color from markers",
    },
    ForeignView {
        name: "StringIds",
        tool: "nsys",
        select: "select {trace} distinct_name as id, distinct_name as value from \
                 (select {trace} readable_name as distinct_name from kernels \
                 union select {trace} short_name from kernels union select {trace} name from kernels \
                 union select {trace} name from api_calls) where distinct_name is not null",
    },
    ForeignView {
        name: "TARGET_INFO_GPU",
        tool: "nsys",
        select: "select {trace} ordinal as id, name, uuid, multiprocessors as smCount, memory as totalMemory from devices",
    },
    // Perfetto.
    ForeignView {
        name: "slice",
        tool: "perfetto",
        select: "select {trace} start as ts, duration as dur, name, class as category, stream as track_id, \
                 process as upid, op as id, stack as stack_id, 'gpu' as type from gpu_ops \
                 union all select {trace} start, end - start, name, 'api', thread, process, correlation, stack, 'thread' \
                 from api_calls \
                 union all select {trace} start, end - start, name, 'nvtx', thread, process, null, null, 'thread' from markers",
    },
    ForeignView {
        name: "gpu_slice",
        tool: "perfetto",
        select: "select {trace} op as id, start as ts, duration as dur, name, class as category, \
                 stream as track_id, gpu_number({of} device) as gpu_id, stream as hw_queue_id, context as context_id, process as upid \
                 from gpu_ops",
    },
    ForeignView {
        name: "thread",
        tool: "perfetto",
        select: "select {trace} thread as utid, thread as tid, name, process as upid from threads",
    },
    ForeignView {
        name: "process",
        tool: "perfetto",
        select: "select {trace} id as upid, pid, name, command as cmdline, started as start_ts, ended as end_ts, \
                 parent_pid as parent_upid from processes",
    },
    ForeignView {
        name: "counter",
        tool: "perfetto",
        select: "select {trace} time as ts, name as track_id, name, value, gpu_number({of} device) as gpu_id from counters",
    },
    ForeignView {
        name: "flow",
        tool: "perfetto",
        select: "select {trace} op as id, call, op as slice_in, call_start, start from launches",
    },
];
