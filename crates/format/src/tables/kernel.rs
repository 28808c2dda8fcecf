//! Kernels: one row for each execution on a device.

use crate::ids::{Bytes, CorrelationId, GraphId, GraphNodeId, StackId, StringId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One execution of a kernel.
    Kernel, Kernels, KERNELS, times(start, end);
    /// When it started on the device.
    1 start: Timestamp, delta;
    /// When it ended on the device.
    2 end: Timestamp, after(1 start);
    /// When it and all work it launched itself had completed.
    3 completed: Timestamp, after(2 end);
    /// When the launch was put into the command buffer.
    4 queued: Timestamp, after(1 start);
    /// When the command buffer was handed to the device.
    5 submitted: Timestamp, after(4 queued);
    /// Joins the launching call.
    6 correlation: CorrelationId, delta;
    /// The driver's own number of this launch.
    7 grid_id: i64, delta;
    /// The graph node that it executed.
    8 graph_node: GraphNodeId, plain;
    /// The code that launched it, or that captured its graph node.
    9 stack: StackId, plain;
    shared:
        /// Where it ran.
        32 place: Place;
        /// What was launched, and how.
        64 shape: KernelShape;
}

group! {
    /// A kernel and the way it was launched.
    // Wide members first: laid out so, the compiler compares two shapes in one go.
    KernelShape {
        /// Shared memory declared in the code.
        16 static_shared: Bytes,
        /// Shared memory asked for at launch.
        17 dynamic_shared: Bytes,
        /// Shared memory that a block really took.
        18 shared_executed: Bytes,
        /// Local memory of a thread.
        21 local_per_thread: Bytes,
        /// Local memory of the launch.
        22 local_total: Bytes,
        /// The graph that it was part of.
        28 graph: GraphId,
        /// The kernel's name as the compiler mangled it.
        1 name: StringId,
        /// The name for people.
        2 demangled: StringId,
        /// Blocks in the grid.
        3 grid_x: u32,
        /// Blocks in the grid.
        4 grid_y: u32,
        /// Blocks in the grid.
        5 grid_z: u32,
        /// Threads in a block.
        6 block_x: u32,
        /// Threads in a block.
        7 block_y: u32,
        /// Threads in a block.
        8 block_z: u32,
        /// Blocks in a cluster; 0 without clusters.
        9 cluster_x: u32,
        /// Blocks in a cluster; 0 without clusters.
        10 cluster_y: u32,
        /// Blocks in a cluster; 0 without clusters.
        11 cluster_z: u32,
        /// Largest number of clusters that can be on the device at once.
        13 max_active_clusters: u32,
        /// Largest cluster that the kernel could have been launched with.
        14 max_cluster_size: u32,
        /// Priority of its stream.
        27 priority: i32,
        /// Registers of a thread.
        15 registers: u16,
        /// How clusters are scheduled.
        12 cluster_policy: u8,
        /// The driver's code for the split of shared memory and cache.
        19 shared_config: u8,
        /// Share of the memory asked for as shared memory, in percent; 255 is not known.
        20 shared_carveout: u8,
        /// Cache preference asked for.
        23 cache_requested: u8,
        /// Cache configuration used.
        24 cache_executed: u8,
        /// How it was launched.
        25 launch: LaunchKind,
        /// Whether the device launched it.
        26 device_launched: bool,
    }
}

codes! {
    /// How a kernel was launched.
    LaunchKind {
        /// The ordinary way.
        REGULAR = 0 "regular",
        /// All blocks at once, able to wait for each other.
        COOPERATIVE = 1 "cooperative",
        /// The same across devices.
        COOPERATIVE_MULTI_DEVICE = 2 "cooperative multi-device",
        /// By a kernel on the device.
        FROM_DEVICE = 3 "from device",
    }
}
