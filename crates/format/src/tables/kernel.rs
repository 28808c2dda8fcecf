//! Kernels: one row for each execution on a device.

use crate::ids::{Bytes, CorrelationId, GraphId, GraphNodeId, StackId, StringId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One execution of a kernel.
    Kernel, Kernels, KERNELS, times(start, end);
    /// The start on the device.
    1 start: Timestamp, delta;
    /// The end on the device.
    2 end: Timestamp, after(1 start);
    /// The end of the kernel and of all kernels it launched itself.
    3 completed: Timestamp, after(2 end);
    /// The time when the launch was put into the command buffer.
    4 queued: Timestamp, after(1 start);
    /// The time when the command buffer was submitted to the device.
    5 submitted: Timestamp, after(4 queued);
    /// The correlation ID of the launch.
    6 correlation: CorrelationId, delta;
    /// The driver's ID of the launch.
    7 grid_id: i64, delta;
    /// The graph node.
    8 graph_node: GraphNodeId, plain;
    /// The code that launched the kernel, or that captured its graph node.
    9 stack: StackId, plain;
    shared:
        /// The device and stream.
        32 place: Place;
        /// The kernel and its launch parameters.
        64 shape: KernelShape;
}

group! {
    /// A kernel and its launch parameters.
    // Wide members first: laid out so, the compiler compares two shapes in one go.
    KernelShape {
        /// Static shared memory.
        16 static_shared: Bytes,
        /// Dynamic shared memory.
        17 dynamic_shared: Bytes,
        /// Shared memory that a block used.
        18 shared_executed: Bytes,
        /// Local memory per thread.
        21 local_per_thread: Bytes,
        /// Local memory of the whole launch.
        22 local_total: Bytes,
        /// The graph.
        28 graph: GraphId,
        /// The mangled name.
        1 name: StringId,
        /// The demangled name.
        2 demangled: StringId,
        /// Grid size in blocks.
        3 grid_x: u32,
        /// Grid size in blocks.
        4 grid_y: u32,
        /// Grid size in blocks.
        5 grid_z: u32,
        /// Block size in threads.
        6 block_x: u32,
        /// Block size in threads.
        7 block_y: u32,
        /// Block size in threads.
        8 block_z: u32,
        /// Cluster size in blocks; 0 without clusters.
        9 cluster_x: u32,
        /// Cluster size in blocks; 0 without clusters.
        10 cluster_y: u32,
        /// Cluster size in blocks; 0 without clusters.
        11 cluster_z: u32,
        /// The most clusters that can run on the device at the same time.
        13 max_active_clusters: u32,
        /// The largest possible cluster size of the kernel.
        14 max_cluster_size: u32,
        /// The priority of the stream.
        27 priority: i32,
        /// Registers per thread.
        15 registers: u16,
        /// The cluster scheduling policy.
        12 cluster_policy: u8,
        /// The driver's code for the split of shared memory and cache.
        19 shared_config: u8,
        /// The requested shared memory carveout in percent; 255 is unknown.
        20 shared_carveout: u8,
        /// The requested cache configuration.
        23 cache_requested: u8,
        /// The cache configuration that was used.
        24 cache_executed: u8,
        /// How it was launched.
        25 launch: LaunchKind,
        /// True if the device launched it.
        26 device_launched: bool,
    }
}

codes! {
    /// How a kernel was launched.
    LaunchKind {
        /// An ordinary launch.
        REGULAR = 0 "regular",
        /// A cooperative launch: all blocks run at the same time and can synchronize.
        COOPERATIVE = 1 "cooperative",
        /// A cooperative launch on several devices.
        COOPERATIVE_MULTI_DEVICE = 2 "cooperative multi-device",
        /// A launch by a kernel on the device.
        FROM_DEVICE = 3 "from device",
    }
}
