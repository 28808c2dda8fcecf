//! Layouts of records of what the device did.

use crate::cupti::layout::layout;

layout! {
    /// `CUpti_ActivityKernel9`, which later kernels begin with.
    Kernel[208] {
        /// Cache configuration: executed in the upper half, requested in the lower.
        cache_config: u8 = 4,
        /// Shared memory configuration.
        shared_config: u8 = 5,
        /// Registers of a thread.
        registers: u16 = 6,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// When it and its children had completed.
        completed: u64 = 32,
        /// The device.
        device: u32 = 40,
        /// The context.
        context: u32 = 44,
        /// The stream.
        stream: u32 = 48,
        /// Blocks.
        grid_x: u32 = 52,
        /// Blocks.
        grid_y: u32 = 56,
        /// Blocks.
        grid_z: u32 = 60,
        /// Threads.
        block_x: u32 = 64,
        /// Threads.
        block_y: u32 = 68,
        /// Threads.
        block_z: u32 = 72,
        /// Static shared memory.
        static_shared: u32 = 76,
        /// Dynamic shared memory.
        dynamic_shared: u32 = 80,
        /// Local memory of a thread.
        local_per_thread: u32 = 84,
        /// Joins the launch.
        correlation: u32 = 92,
        /// The driver's number of the launch.
        grid_id: i64 = 96,
        /// Where the name is.
        name_address: usize = 104,
        /// When it was queued.
        queued: u64 = 120,
        /// When it was submitted.
        submitted: u64 = 128,
        /// How it was launched.
        launch: u8 = 136,
        /// Whether the program requested the carveout.
        carveout_requested: u8 = 137,
        /// The carveout in percent.
        carveout: u8 = 138,
        /// Shared memory that was set aside.
        shared_executed: u32 = 140,
        /// The graph node.
        graph_node: u64 = 144,
        /// The graph.
        graph: u32 = 156,
        /// The channel.
        channel: u32 = 168,
        /// Its kind.
        channel_kind: u32 = 172,
        /// Blocks of a cluster.
        cluster_x: u32 = 176,
        /// Blocks of a cluster.
        cluster_y: u32 = 180,
        /// Blocks of a cluster.
        cluster_z: u32 = 184,
        /// How clusters are scheduled.
        cluster_policy: u32 = 188,
        /// Local memory of the launch.
        local_total: u64 = 192,
        /// Largest possible cluster.
        max_cluster_size: u32 = 200,
        /// Most clusters at once.
        max_active_clusters: u32 = 204,
    }

    /// What CUDA 13.0 added to a kernel.
    KernelFrom13_0[216] {
        /// Whether the device launched it.
        device_launched: u8 = 208,
    }

    /// What CUDA 13.1 added to a kernel.
    KernelFrom13_1[224] {
        /// Its priority.
        priority: i32 = 216,
    }

    /// `CUpti_ActivityMemcpy5`.
    Copy[88] {
        /// From where to where.
        direction: u8 = 4,
        /// Memory read.
        source_memory: u8 = 5,
        /// Memory written.
        destination_memory: u8 = 6,
        /// Whether the host went on: bit 0.
        flags: u8 = 7,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// Joins the call.
        correlation: u32 = 44,
        /// Joins the runtime call.
        runtime_correlation: u32 = 48,
        /// The graph node.
        graph_node: u64 = 64,
        /// The graph.
        graph: u32 = 72,
        /// The channel.
        channel: u32 = 76,
        /// Its kind.
        channel_kind: u32 = 80,
        /// Whether device code launched it. Always 0 before CUPTI 13.0.
        device_launched: u8 = 84,
    }

    /// What CUDA 12.8 added to a copy.
    CopyFrom12_8[96] {
        /// Copies in the batch.
        copies: u64 = 88,
    }

    /// `CUpti_ActivityMemcpyPtoP4`.
    PeerCopy[96] {
        /// From where to where.
        direction: u8 = 4,
        /// Memory read.
        source_memory: u8 = 5,
        /// Memory written.
        destination_memory: u8 = 6,
        /// Whether the host went on: bit 0.
        flags: u8 = 7,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// The device read from.
        source_device: u32 = 44,
        /// The context read from.
        source_context: u32 = 48,
        /// The device written to.
        destination_device: u32 = 52,
        /// The context written to.
        destination_context: u32 = 56,
        /// Joins the call.
        correlation: u32 = 60,
        /// The graph node.
        graph_node: u64 = 72,
        /// The graph.
        graph: u32 = 80,
        /// The channel.
        channel: u32 = 84,
        /// Its kind.
        channel_kind: u32 = 88,
    }

    /// `CUpti_ActivityMemset4`.
    Set[88] {
        /// With what.
        value: u32 = 4,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// Joins the call.
        correlation: u32 = 44,
        /// Whether the host went on: bit 0.
        flags: u16 = 48,
        /// Memory filled.
        memory: u16 = 50,
        /// The graph node.
        graph_node: u64 = 64,
        /// The graph.
        graph: u32 = 72,
        /// The channel.
        channel: u32 = 76,
        /// Its kind.
        channel_kind: u32 = 80,
        /// Whether device code launched it. Always 0 before CUPTI 13.0.
        device_launched: u8 = 84,
    }

    /// `CUpti_ActivityGraphTrace2`.
    GraphTrace[56] {
        /// Joins the call.
        correlation: u32 = 4,
        /// When the first node started.
        start: u64 = 8,
        /// When the last node ended.
        end: u64 = 16,
        /// The first node's device.
        device: u32 = 24,
        /// The graph.
        graph: u32 = 28,
        /// The first node's context.
        context: u32 = 32,
        /// The stream.
        stream: u32 = 36,
        /// The last node's device.
        end_device: u32 = 48,
        /// The last node's context.
        end_context: u32 = 52,
    }
}
