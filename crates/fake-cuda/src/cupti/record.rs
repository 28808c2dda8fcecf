//! Activity records, each as the newest CUPTI lays it out. An older CUPTI's record is a prefix of that, so a version is
//! a length; `length` knows all of them.
//!
//! Layouts were read from the headers of CUPTI 12.4, 12.9, 13.0 and 13.4; the assertions hold them.

use std::mem::offset_of;

use super::activity;
use crate::config::{CUPTI_12_6, CUPTI_12_8, CUPTI_13_0, CUPTI_13_2, CUPTI_13_4, CuptiVersion};

/// Numbers of `CUpti_ActivityKind`.
pub(crate) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const KERNEL: u32 = 3;
    pub(crate) const DRIVER: u32 = 4;
    pub(crate) const RUNTIME: u32 = 5;
    pub(crate) const DEVICE: u32 = 8;
    pub(crate) const CONTEXT: u32 = 9;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    pub(crate) const MARKER: u32 = 12;
    pub(crate) const MARKER_DATA: u32 = 13;
    pub(crate) const OVERHEAD: u32 = 17;
    pub(crate) const MEMCPY2: u32 = 22;
    pub(crate) const CUDA_EVENT: u32 = 36;
    pub(crate) const STREAM: u32 = 37;
    pub(crate) const SYNCHRONIZATION: u32 = 38;
    pub(crate) const EXTERNAL_CORRELATION: u32 = 39;
    pub(crate) const MEMORY2: u32 = 49;
    pub(crate) const MEMORY_POOL: u32 = 50;
    pub(crate) const GRAPH_TRACE: u32 = 51;
    /// One more than the greatest kind of the newest version.
    pub(crate) const END: u32 = 64;
}

/// A record that can be written into a buffer.
///
/// # Safety
///
/// The type is `repr(C)`, has no padding that is not a field, and starts with its kind.
#[allow(unsafe_code, reason = "the bytes of implementors are copied to C")]
pub(crate) unsafe trait Record: Copy + Default + Send + 'static {
    /// Puts in when the work began and ended; records of a moment take the end.
    fn set_times(&mut self, start: u64, end: u64);
}

/// Bytes of a record of this kind in a version of CUPTI; None for a kind that this crate does not make.
pub(crate) fn length(kind: u32, version: CuptiVersion) -> Option<usize> {
    let since = |from: CuptiVersion| version >= from;
    Some(match kind {
        kind::KERNEL | kind::CONCURRENT_KERNEL if since(CUPTI_13_4) => 248,
        kind::KERNEL | kind::CONCURRENT_KERNEL if since(CUPTI_13_0) => 216,
        kind::KERNEL | kind::CONCURRENT_KERNEL => 208,
        kind::MEMCPY if since(CUPTI_13_4) => 112,
        kind::MEMCPY if since(CUPTI_12_8) => 96,
        kind::MEMCPY => 88,
        kind::MEMCPY2 => 96,
        kind::MEMSET if since(CUPTI_13_4) => 104,
        kind::MEMSET => 88,
        kind::DRIVER | kind::RUNTIME => 40,
        kind::DEVICE if since(CUPTI_13_2) => 192,
        kind::DEVICE => 184,
        kind::CONTEXT if since(CUPTI_13_2) => 40,
        kind::CONTEXT if since(23) => 32,
        kind::CONTEXT => 24,
        kind::STREAM => 24,
        kind::SYNCHRONIZATION | kind::CUDA_EVENT if since(CUPTI_12_8) => 56,
        kind::SYNCHRONIZATION => 40,
        kind::CUDA_EVENT => 24,
        kind::MEMORY2 if since(CUPTI_12_6) => 128,
        kind::MEMORY2 => 120,
        kind::MEMORY_POOL if since(CUPTI_13_0) => 80,
        kind::MEMORY_POOL => 72,
        kind::OVERHEAD | kind::GRAPH_TRACE | kind::MARKER => 56,
        kind::EXTERNAL_CORRELATION => 24,
        kind::MARKER_DATA if since(CUPTI_13_0) => 40,
        kind::MARKER_DATA => 32,
        _ => return None,
    })
}

/// Declares a record: its fields, its whole length and where some fields must lie.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident, $size:literal {
        $($field:ident: $type:ty,)*
    } at { $($checked:ident $offset:literal),* $(,)? } times($this:ident, $start:ident, $end:ident) $times:block) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Default)]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            assert!(align_of::<$name>() <= 8);
            $(assert!(offset_of!($name, $checked) == $offset);)*
        };

        #[allow(unsafe_code, reason = "promises the layout that the assertions above check")]
        // SAFETY: `repr(C)`, and all padding is spelled out: the sizes of the fields add up to the whole.
        unsafe impl Record for $name {
            fn set_times(&mut self, $start: u64, $end: u64) {
                let $this = self;
                $times
            }
        }
    };
}

record! {
    /// A kernel: `CUpti_ActivityKernel13`, whose prefixes are Kernel9 to Kernel12.
    Kernel, 248 {
        kind: u32, cache_config: u8, shared_memory_config: u8, registers_per_thread: u16,
        partitioned_requested: u32, partitioned_executed: u32,
        start: u64, end: u64, completed: u64,
        device_id: u32, context_id: u32, stream_id: u32,
        grid: [u32; 3], block: [u32; 3],
        static_shared_memory: u32, dynamic_shared_memory: u32,
        local_memory_per_thread: u32, local_memory_total: u32, correlation_id: u32,
        grid_id: u64, name: u64, reserved0: u64, queued: u64, submitted: u64,
        launch_type: u8, carveout_requested: u8, carveout: u8, pad0: u8, shared_memory_executed: u32,
        graph_node_id: u64, shared_limit_config: u32, graph_id: u32, access_policy_window: u64,
        channel_id: u32, channel_type: u32, cluster: [u32; 3], cluster_scheduling: u32,
        local_memory_total_wide: u64, max_potential_cluster: u32, max_active_clusters: u32,
        is_device_launched: u8, pad1: [u8; 7], priority: i32, pad2: u32, execution_model: u32, pad3: u32,
        source_graph_id: u32, pad4: u32, source_graph_node_id: u64,
    } at {
        registers_per_thread 6, start 16, end 24, completed 32, device_id 40, stream_id 48, grid 52, block 64,
        static_shared_memory 76, correlation_id 92, grid_id 96, name 104, queued 120, submitted 128, launch_type 136,
        shared_memory_executed 140, graph_node_id 144, graph_id 156, channel_id 168, cluster 176,
        local_memory_total_wide 192, max_active_clusters 204, is_device_launched 208, priority 216,
        execution_model 224, source_graph_id 232, source_graph_node_id 240,
    } times(this, start, end) { (this.start, this.end, this.completed) = (start, end, end); }
}

record! {
    /// A copy: `CUpti_ActivityMemcpy7`, whose prefixes are Memcpy5 and Memcpy6.
    Memcpy, 112 {
        kind: u32, copy_kind: u8, source_kind: u8, destination_kind: u8, flags: u8,
        bytes: u64, start: u64, end: u64,
        device_id: u32, context_id: u32, stream_id: u32, correlation_id: u32,
        runtime_correlation_id: u32, pad0: u32, reserved0: u64,
        graph_node_id: u64, graph_id: u32, channel_id: u32, channel_type: u32,
        is_device_launched: u8, pad1: [u8; 3], copy_count: u64,
        source_graph_id: u32, pad2: u32, source_graph_node_id: u64,
    } at {
        copy_kind 4, bytes 8, start 16, end 24, device_id 32, context_id 36, stream_id 40, correlation_id 44,
        graph_node_id 64, graph_id 72, channel_id 76, is_device_launched 84, copy_count 88, source_graph_id 96,
    } times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// A copy between devices: `CUpti_ActivityMemcpyPtoP4`.
    MemcpyPeer, 96 {
        kind: u32, copy_kind: u8, source_kind: u8, destination_kind: u8, flags: u8,
        bytes: u64, start: u64, end: u64,
        device_id: u32, context_id: u32, stream_id: u32,
        source_device_id: u32, source_context_id: u32, destination_device_id: u32, destination_context_id: u32,
        correlation_id: u32, reserved0: u64, graph_node_id: u64,
        graph_id: u32, channel_id: u32, channel_type: u32, pad0: u32,
    } at {
        bytes 8, start 16, device_id 32, source_device_id 44, destination_context_id 56, correlation_id 60,
        graph_node_id 72, graph_id 80, channel_id 84,
    } times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// Memory being set: `CUpti_ActivityMemset5`, whose prefix is Memset4.
    Memset, 104 {
        kind: u32, value: u32, bytes: u64, start: u64, end: u64,
        device_id: u32, context_id: u32, stream_id: u32, correlation_id: u32,
        flags: u16, memory_kind: u16, pad0: u32, reserved0: u64, graph_node_id: u64,
        graph_id: u32, channel_id: u32, channel_type: u32, is_device_launched: u8, pad1: [u8; 3],
        source_graph_id: u32, pad2: u32, source_graph_node_id: u64,
    } at {
        value 4, bytes 8, start 16, end 24, device_id 32, correlation_id 44, flags 48, memory_kind 50,
        graph_node_id 64, graph_id 72, channel_id 76, is_device_launched 84, source_graph_id 88,
    } times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// A call of the driver or runtime: `CUpti_ActivityAPI`.
    Api, 40 {
        kind: u32, cbid: u32, start: u64, end: u64,
        process_id: u32, thread_id: u32, correlation_id: u32, return_value: u32,
    } at { cbid 4, start 8, end 16, process_id 24, thread_id 28, correlation_id 32, return_value 36 }
    times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// A launch of a whole graph: `CUpti_ActivityGraphTrace2`.
    GraphTrace, 56 {
        kind: u32, correlation_id: u32, start: u64, end: u64,
        device_id: u32, graph_id: u32, context_id: u32, stream_id: u32,
        reserved0: u64, end_device_id: u32, end_context_id: u32,
    } at { start 8, device_id 24, graph_id 28, context_id 32, stream_id 36, end_device_id 48, end_context_id 52 }
    times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// What a client pushed when a call was made: `CUpti_ActivityExternalCorrelation`.
    ExternalCorrelation, 24 {
        kind: u32, external_kind: u32, external_id: u64, correlation_id: u32, reserved: u32,
    } at { external_kind 4, external_id 8, correlation_id 16 }
    times(_this, _start, _end) {}
}

record! {
    /// A GPU: `CUpti_ActivityDevice6`, whose prefix is Device5.
    DeviceRecord, 192 {
        kind: u32, flags: u32, memory_bandwidth: u64, memory_size: u64,
        constant_memory: u32, l2_size: u32, warp_size: u32, core_clock: u32, copy_engines: u32,
        multiprocessors: u32, max_ipc: u32, max_warps: u32, max_blocks: u32,
        shared_per_multiprocessor: u32, registers_per_multiprocessor: u32, registers_per_block: u32,
        shared_per_block: u32, threads_per_block: u32, max_block: [u32; 3], max_grid: [u32; 3],
        capability: [u32; 2], id: u32, ecc_enabled: u32, uuid: [u8; 16], name: u64,
        is_cuda_visible: u8, is_mig_enabled: u8, reserved: [u8; 6],
        gpu_instance_id: u32, compute_instance_id: u32, mig_uuid: [u8; 16],
        is_numa_node: u32, numa_id: u32, tpcs: u32, pad0: u32,
    } at {
        memory_size 16, core_clock 36, multiprocessors 44, threads_per_block 76, max_grid 92, capability 104, id 112,
        uuid 120, name 136, is_cuda_visible 144, gpu_instance_id 152, is_numa_node 176, tpcs 184,
    } times(_this, _start, _end) {}
}

record! {
    /// A context: `CUpti_ActivityContext4`, whose prefixes are Context2 and Context3.
    ContextRecord, 40 {
        kind: u32, context_id: u32, device_id: u32, compute_api: u16, null_stream_id: u16,
        parent_context_id: u32, is_green: u8, pad0: u8, multiprocessors: u16,
        cig_mode: u32, pad1: u32, process_id: u64,
    } at { device_id 8, null_stream_id 14, parent_context_id 16, multiprocessors 22, cig_mode 24, process_id 32 }
    times(_this, _start, _end) {}
}

record! {
    /// A stream: `CUpti_ActivityStream`.
    StreamRecord, 24 {
        kind: u32, context_id: u32, stream_id: u32, priority: u32, flag: u32, correlation_id: u32,
    } at { stream_id 8, priority 12, flag 16, correlation_id 20 }
    times(_this, _start, _end) {}
}

record! {
    /// A wait: `CUpti_ActivitySynchronization2`, whose prefix is the first version.
    Synchronization, 56 {
        kind: u32, wait: u32, start: u64, end: u64, correlation_id: u32, context_id: u32, stream_id: u32,
        event_id: u32, event_sync_id: u64, return_value: u32, pad0: u32,
    } at { wait 4, start 8, end 16, correlation_id 24, stream_id 32, event_id 36, event_sync_id 40, return_value 48 }
    times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// An event being recorded: `CUpti_ActivityCudaEvent2`, whose prefix is the first version.
    EventRecord, 56 {
        kind: u32, correlation_id: u32, context_id: u32, stream_id: u32, event_id: u32, pad0: u32,
        device_id: u32, pad1: u32, reserved0: u64, device_timestamp: u64, event_sync_id: u64,
    } at { correlation_id 4, stream_id 12, event_id 16, device_id 24, device_timestamp 40, event_sync_id 48 }
    times(this, _start, end) { this.device_timestamp = if activity::has_event_times() { end } else { 0 }; }
}

record! {
    /// An allocation or its end: `CUpti_ActivityMemory4`, whose prefix is Memory3.
    MemoryRecord, 128 {
        kind: u32, operation: u32, memory_kind: u32, correlation_id: u32,
        address: u64, bytes: u64, timestamp: u64, pc: u64,
        process_id: u32, device_id: u32, context_id: u32, stream_id: u32, name: u64, is_async: u32, pad0: u32,
        pool_type: u32, pad1: u32, pool_address: u64, pool_release_threshold: u64, pool_process_or_size: u64,
        pool_utilized: u64, source: u64,
    } at {
        operation 4, memory_kind 8, correlation_id 12, address 16, bytes 24, timestamp 32, process_id 48,
        stream_id 60, name 64, is_async 72, pool_type 80, source 120,
    } times(this, _start, end) { this.timestamp = end; }
}

record! {
    /// A memory pool: `CUpti_ActivityMemoryPool3`, whose prefix is MemoryPool2.
    MemoryPoolRecord, 80 {
        kind: u32, operation: u32, pool_type: u32, correlation_id: u32, process_id: u32, device_id: u32,
        min_bytes: u64, address: u64, size: u64, release_threshold: u64, timestamp: u64, utilized: u64,
        is_managed: u8, pad0: [u8; 7],
    } at { pool_type 8, device_id 20, address 32, size 40, timestamp 56, utilized 64, is_managed 72 }
    times(this, _start, end) { this.timestamp = end; }
}

record! {
    /// Time that profiling itself took: `CUpti_ActivityOverhead3`.
    Overhead, 56 {
        kind: u32, overhead: u32, object_kind: u32, object: [u32; 3], start: u64, end: u64,
        correlation_id: u32, reserved0: u32, data: u64,
    } at { overhead 4, object_kind 8, object 12, start 24, end 32, correlation_id 40, data 48 }
    times(this, start, end) { (this.start, this.end) = (start, end); }
}

record! {
    /// A moment that the program marked: `CUpti_ActivityMarker2`.
    Marker, 56 {
        kind: u32, flags: u32, timestamp: u64, id: u32, object_kind: u32, object: [u32; 3], pad0: u32,
        name: u64, domain: u64,
    } at { flags 4, timestamp 8, id 16, object_kind 20, object 24, name 40, domain 48 }
    times(this, _start, end) { this.timestamp = end; }
}

record! {
    /// More about a marked moment: `CUpti_ActivityMarkerData2`, whose prefix is the first version.
    MarkerData, 40 {
        kind: u32, flags: u32, id: u32, payload_kind: u32, payload: u64, color: u32, category: u32,
        domain_id: u32, pad0: u32,
    } at { id 8, payload_kind 12, payload 16, color 24, category 28, domain_id 32 }
    times(_this, _start, _end) {}
}
