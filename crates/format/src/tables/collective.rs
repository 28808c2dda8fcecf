//! Graph launches and collectives: work of many parts seen as a whole.

use crate::ids::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, GraphId, Ordinal, StackId, StringId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One launch of a graph, from its first to its last node.
    GraphLaunch, GraphLaunches, GRAPH_LAUNCHES, times(start, end);
    /// When its first node started.
    1 start: Timestamp, delta;
    /// When its last node ended.
    2 end: Timestamp, after(1 start);
    /// Joins the launching call.
    3 correlation: CorrelationId, delta;
    /// The code that launched it.
    4 stack: StackId, plain;
    shared:
        /// Where it was launched.
        32 place: Place;
        /// What was launched.
        64 shape: GraphShape;
}

group! {
    /// A graph and the way it was launched.
    GraphShape {
        /// The graph.
        1 graph: GraphId,
        /// The executable graph.
        2 executable: GraphId,
        /// Its nodes; 0 when not known.
        3 nodes: u32,
        /// The device where it ended, when it is another one.
        4 end_device: DeviceId,
        /// The context where it ended, when it is another one.
        5 end_context: ContextId,
        /// Whether the device launched it.
        6 device_launched: bool,
        /// The driver's code for a launch by the device.
        7 launch_mode: u8,
    }
}

table! {
    /// One collective or point-to-point operation as one rank saw it.
    Collective, Collectives, COLLECTIVES, times(start, end);
    /// When it started: on the device where that is known, else on the host.
    1 start: Timestamp, delta;
    /// When it ended.
    2 end: Timestamp, after(1 start);
    /// When the host enqueued it.
    3 enqueued: Timestamp, after(1 start);
    /// The communicator's own count: the same on all ranks of one operation.
    4 sequence: u64, delta;
    /// Elements.
    5 count: u64, plain;
    /// Bytes.
    6 bytes: Bytes, plain;
    /// Joins the launching call.
    7 correlation: CorrelationId, delta;
    /// The code that asked for it.
    8 stack: StackId, plain;
    /// What was sent from.
    9 send_buffer: Address, plain;
    /// What was received into.
    10 receive_buffer: Address, plain;
    shared:
        /// Where it ran.
        32 place: Place;
        /// What was done.
        64 shape: CollectiveShape;
}

group! {
    /// A kind of collective.
    CollectiveShape {
        /// The operation, such as AllReduce.
        1 name: StringId,
        /// What kind of row this is.
        2 kind: CollectiveKind,
        /// The communicator, the same on all ranks.
        3 communicator: u64,
        /// The communicator's name.
        4 communicator_name: StringId,
        /// This rank in it; may be none.
        5 rank: Ordinal,
        /// Ranks in it.
        6 ranks: u32,
        /// The root, or the peer of a point-to-point operation; may be none.
        7 root: Ordinal,
        /// Type of the elements.
        8 datatype: StringId,
        /// How elements are combined.
        9 reduction: StringId,
        /// The algorithm chosen.
        10 algorithm: StringId,
        /// The protocol chosen.
        11 protocol: StringId,
        /// Channels used.
        12 channels: u32,
        /// Warps used for each channel.
        13 warps: u32,
    }
}

codes! {
    /// A kind of communication row.
    CollectiveKind {
        /// Among all ranks.
        COLLECTIVE = 0 "collective",
        /// To one rank.
        SEND = 1 "send",
        /// From one rank.
        RECEIVE = 2 "receive",
        /// Several operations started together.
        GROUP = 3 "group",
        /// A step of the network proxy.
        PROXY = 4 "proxy",
        /// One channel's kernel.
        CHANNEL = 5 "channel",
    }
}
