//! Copies and sets: memory moved or filled by a device.

use crate::ids::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, GraphId, GraphNodeId, StackId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One copy of memory.
    MemoryCopy, MemoryCopies, COPIES, times(start, end);
    /// When it started.
    1 start: Timestamp, delta;
    /// When it ended.
    2 end: Timestamp, after(1 start);
    /// How much was copied.
    3 bytes: Bytes, plain;
    /// Joins the call that asked for it.
    4 correlation: CorrelationId, delta;
    /// The correlation of the runtime call, where the driver reports a second one.
    5 runtime_correlation: CorrelationId, delta;
    /// The graph node that it executed.
    6 graph_node: GraphNodeId, plain;
    /// The code that asked for it.
    7 stack: StackId, plain;
    /// Where the bytes came from, when recorded.
    8 source: Address, plain;
    /// Where they went, when recorded.
    9 destination: Address, plain;
    /// Single copies that this batch stands for; 0 for an ordinary copy.
    10 copies: u64, plain;
    shared:
        /// Where it ran.
        32 place: Place;
        /// What kind of copy it was.
        64 shape: CopyShape;
}

group! {
    /// The kind of a copy.
    CopyShape {
        /// From where to where.
        1 direction: CopyDirection,
        /// Kind of memory read.
        2 source_memory: MemoryKind,
        /// Kind of memory written.
        3 destination_memory: MemoryKind,
        /// Whether the host could go on meanwhile.
        4 asynchronous: bool,
        /// The device read from, when it is another one.
        5 source_device: DeviceId,
        /// The context read from, when it is another one.
        6 source_context: ContextId,
        /// The device written to, when it is another one.
        7 destination_device: DeviceId,
        /// The context written to, when it is another one.
        8 destination_context: ContextId,
        /// Whether the device asked for it.
        9 device_launched: bool,
        /// The graph that it was part of.
        10 graph: GraphId,
    }
}

table! {
    /// One filling of memory.
    MemorySet, MemorySets, SETS, times(start, end);
    /// When it started.
    1 start: Timestamp, delta;
    /// When it ended.
    2 end: Timestamp, after(1 start);
    /// How much was filled.
    3 bytes: Bytes, plain;
    /// With what.
    4 value: u32, plain;
    /// Joins the call that asked for it.
    5 correlation: CorrelationId, delta;
    /// The graph node that it executed.
    6 graph_node: GraphNodeId, plain;
    /// The code that asked for it.
    7 stack: StackId, plain;
    /// Where, when recorded.
    8 address: Address, plain;
    shared:
        /// Where it ran.
        32 place: Place;
        /// What kind of set it was.
        64 shape: SetShape;
}

group! {
    /// The kind of a set.
    SetShape {
        /// Kind of memory filled.
        1 memory: MemoryKind,
        /// Whether the host could go on meanwhile.
        2 asynchronous: bool,
        /// Whether the device asked for it.
        3 device_launched: bool,
        /// The graph that it was part of.
        4 graph: GraphId,
    }
}

codes! {
    /// From where to where a copy goes.
    CopyDirection {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// Host to device.
        HOST_TO_DEVICE = 1 "host to device",
        /// Device to host.
        DEVICE_TO_HOST = 2 "device to host",
        /// Host to an array on the device.
        HOST_TO_ARRAY = 3 "host to array",
        /// An array on the device to the host.
        ARRAY_TO_HOST = 4 "array to host",
        /// Array to array.
        ARRAY_TO_ARRAY = 5 "array to array",
        /// Array to plain device memory.
        ARRAY_TO_DEVICE = 6 "array to device",
        /// Plain device memory to array.
        DEVICE_TO_ARRAY = 7 "device to array",
        /// Within one device.
        DEVICE_TO_DEVICE = 8 "device to device",
        /// Within the host.
        HOST_TO_HOST = 9 "host to host",
        /// From one device to another.
        PEER = 10 "peer to peer",
    }

    /// A kind of memory.
    MemoryKind {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// Ordinary host memory.
        PAGEABLE = 1 "pageable",
        /// Page-locked host memory.
        PINNED = 2 "pinned",
        /// Device memory.
        DEVICE = 3 "device",
        /// An array in device memory.
        ARRAY = 4 "array",
        /// Managed memory.
        MANAGED = 5 "managed",
        /// A managed variable of the device code.
        DEVICE_STATIC = 6 "device static",
        /// A managed variable.
        MANAGED_STATIC = 7 "managed static",
    }
}
