//! Graph launches and collectives, each as a whole.

use crate::ids::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, GraphId, Ordinal, StackId, StringId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One launch of a graph, from its first to its last node.
    GraphLaunch, GraphLaunches, GRAPH_LAUNCHES, times(start, end);
    /// The start of the first node.
    1 start: Timestamp, delta;
    /// The end of the last node.
    2 end: Timestamp, after(1 start);
    /// The correlation ID of the launch.
    3 correlation: CorrelationId, delta;
    /// The code that launched it.
    4 stack: StackId, plain;
    shared:
        /// The device and stream of the launch.
        32 place: Place;
        /// The graph.
        64 shape: GraphShape;
}

group! {
    /// A graph and how it was launched.
    GraphShape {
        /// The graph.
        1 graph: GraphId,
        /// The executable graph.
        2 executable: GraphId,
        /// The number of nodes; 0 is unknown.
        3 nodes: u32,
        /// The device where the graph ended, if it differs.
        4 end_device: DeviceId,
        /// The context where the graph ended, if it differs.
        5 end_context: ContextId,
        /// True if the device launched it.
        6 device_launched: bool,
        /// The driver's code for a launch from the device.
        7 launch_mode: u8,
    }
}

table! {
    /// One collective or point-to-point operation of one rank.
    Collective, Collectives, COLLECTIVES, times(start, end);
    /// The start: on the device if known, otherwise on the host.
    1 start: Timestamp, delta;
    /// The end time.
    2 end: Timestamp, after(1 start);
    /// The time when the host enqueued it.
    3 enqueued: Timestamp, after(1 start);
    /// The sequence number in the communicator. All ranks of an operation have the same number.
    4 sequence: u64, delta;
    /// The number of elements.
    5 count: u64, plain;
    /// The number of bytes.
    6 bytes: Bytes, plain;
    /// The correlation ID of the launch.
    7 correlation: CorrelationId, delta;
    /// The code that made the call.
    8 stack: StackId, plain;
    /// The send buffer.
    9 send_buffer: Address, plain;
    /// The receive buffer.
    10 receive_buffer: Address, plain;
    shared:
        /// The device and stream.
        32 place: Place;
        /// The operation.
        64 shape: CollectiveShape;
}

group! {
    /// A kind of collective.
    CollectiveShape {
        /// The operation, such as AllReduce.
        1 name: StringId,
        /// The kind of row.
        2 kind: CollectiveKind,
        /// The communicator. All ranks have the same value.
        3 communicator: u64,
        /// The communicator's name.
        4 communicator_name: StringId,
        /// This rank in the communicator, if known.
        5 rank: Ordinal,
        /// The number of ranks.
        6 ranks: u32,
        /// The root, or the peer of a point-to-point operation, if any.
        7 root: Ordinal,
        /// The type of the elements.
        8 datatype: StringId,
        /// The reduction operation.
        9 reduction: StringId,
        /// The algorithm.
        10 algorithm: StringId,
        /// The protocol.
        11 protocol: StringId,
        /// The number of channels.
        12 channels: u32,
        /// The number of warps per channel.
        13 warps: u32,
    }
}

codes! {
    /// A kind of communication row.
    CollectiveKind {
        /// An operation of all ranks.
        COLLECTIVE = 0 "collective",
        /// A send to one rank.
        SEND = 1 "send",
        /// A receive from one rank.
        RECEIVE = 2 "receive",
        /// Several operations that were started together.
        GROUP = 3 "group",
        /// A step of the network proxy.
        PROXY = 4 "proxy",
        /// One channel's kernel.
        CHANNEL = 5 "channel",
    }
}
