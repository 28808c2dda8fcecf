//! What a device did.

use super::records;

records! {
    /// One execution of a kernel.
    10 Kernel {
        /// When it started, device clock.
        start: u64,
        /// When it ended, device clock.
        end: u64,
        /// When it and all that it launched had completed, device clock.
        completed: u64,
        /// When the launch was put into the command buffer, device clock.
        queued: u64,
        /// When the command buffer was handed to the device, device clock.
        submitted: u64,
        /// The driver's number of this launch.
        grid_id: i64,
        /// The graph node that it executed.
        graph_node: u64,
        /// Local memory of the launch, in bytes.
        local_total: u64,
        /// Joins the launching call.
        correlation: u64,
        /// The device, as this process numbers it.
        device: u32,
        /// The context.
        context: u32,
        /// The stream.
        stream: u32,
        /// The text with its mangled name.
        name: u32,
        /// The graph that it was part of.
        graph: u32,
        /// Blocks.
        grid: [u32; 3],
        /// Threads.
        block: [u32; 3],
        /// Blocks of a cluster, 0 without.
        cluster: [u32; 3],
        /// Shared memory declared in the code, in bytes.
        static_shared: u32,
        /// Shared memory requested at launch, in bytes.
        dynamic_shared: u32,
        /// Shared memory that a block took, in bytes.
        shared_executed: u32,
        /// Local memory of a thread, in bytes.
        local_per_thread: u32,
        /// Most clusters on the device at once.
        max_active_clusters: u32,
        /// Largest possible cluster.
        max_cluster_size: u32,
        /// Hardware channel.
        channel: u32,
        /// Priority of its stream.
        priority: i32,
        /// Registers of a thread.
        registers: u16,
        /// Kind of hardware channel.
        channel_kind: u8,
        /// How it was launched.
        launch: u8,
        /// Split of shared memory and cache, the driver's code.
        shared_config: u8,
        /// Requested carveout in percent; 255 is unknown.
        shared_carveout: u8,
        /// Requested cache preference.
        cache_requested: u8,
        /// Cache configuration used.
        cache_executed: u8,
        /// Cluster scheduling policy.
        cluster_policy: u8,
        /// 1 when the device launched it.
        device_launched: u8,
        /// Zero.
        reserved: [u8; 2],
        /// The stack that launched it, or that captured its graph node; 0 is
        /// none.
        stack: u32,
    }

    /// One copy of memory, also between devices.
    11 MemoryCopy {
        /// When it started, device clock.
        start: u64,
        /// When it ended, device clock.
        end: u64,
        /// How much.
        bytes: u64,
        /// The graph node that it executed.
        graph_node: u64,
        /// Single copies in the batch; 0 for an ordinary one.
        copies: u64,
        /// Joins the call.
        correlation: u64,
        /// The runtime call's correlation where it is another one.
        runtime_correlation: u64,
        /// The device.
        device: u32,
        /// The context.
        context: u32,
        /// The stream.
        stream: u32,
        /// The graph that it was part of.
        graph: u32,
        /// The device read from; meaningful with `peer`.
        source_device: u32,
        /// The context read from; meaningful with `peer`.
        source_context: u32,
        /// The device written to; meaningful with `peer`.
        destination_device: u32,
        /// The context written to; meaningful with `peer`.
        destination_context: u32,
        /// Hardware channel.
        channel: u32,
        /// The stack of the call that launched it; 0 is none.
        stack: u32,
        /// Kind of hardware channel.
        channel_kind: u8,
        /// From where to where: a code of the format.
        direction: u8,
        /// Kind of memory read: a code of the format.
        source_memory: u8,
        /// Kind of memory written: a code of the format.
        destination_memory: u8,
        /// 1 when the host went on meanwhile.
        asynchronous: u8,
        /// 1 if device code launched it.
        device_launched: u8,
        /// 1 when source and destination devices are stated.
        peer: u8,
        /// Zero.
        reserved: [u8; 1],
    }

    /// One filling of memory.
    12 MemorySet {
        /// When it started, device clock.
        start: u64,
        /// When it ended, device clock.
        end: u64,
        /// How much.
        bytes: u64,
        /// The graph node that it executed.
        graph_node: u64,
        /// Joins the call.
        correlation: u64,
        /// With what.
        value: u32,
        /// The device.
        device: u32,
        /// The context.
        context: u32,
        /// The stream.
        stream: u32,
        /// The graph that it was part of.
        graph: u32,
        /// Hardware channel.
        channel: u32,
        /// Kind of hardware channel.
        channel_kind: u8,
        /// Kind of memory: a code of the format.
        memory: u8,
        /// 1 when the host went on meanwhile.
        asynchronous: u8,
        /// 1 if device code launched it.
        device_launched: u8,
        /// The stack of the call that launched it; 0 is none.
        stack: u32,
    }

    /// One launch of a whole graph, when its nodes are not recorded one by one.
    13 GraphLaunch {
        /// When its first node started, device clock.
        start: u64,
        /// When its last node ended, device clock.
        end: u64,
        /// Joins the call.
        correlation: u64,
        /// The device of its first node.
        device: u32,
        /// The context of its first node.
        context: u32,
        /// The stream that it was launched into.
        stream: u32,
        /// The graph.
        graph: u32,
        /// The device of its last node.
        end_device: u32,
        /// The context of its last node.
        end_context: u32,
        /// The stack that launched it; 0 is none.
        stack: u32,
        /// Zero.
        reserved: u32,
    }
}
