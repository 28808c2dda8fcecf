//! Memcpy and memset operations.

use crate::ids::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, GraphId, GraphNodeId, StackId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One memcpy.
    MemoryCopy, MemoryCopies, COPIES, times(start, end);
    /// The start time.
    1 start: Timestamp, delta;
    /// The end time.
    2 end: Timestamp, after(1 start);
    /// The number of bytes copied.
    3 bytes: Bytes, plain;
    /// The correlation ID of the call.
    4 correlation: CorrelationId, delta;
    /// The correlation ID of the runtime call, if the driver reports a second one.
    5 runtime_correlation: CorrelationId, delta;
    /// The graph node.
    6 graph_node: GraphNodeId, plain;
    /// The code that made the call.
    7 stack: StackId, plain;
    /// The source address, if recorded.
    8 source: Address, plain;
    /// The destination address, if recorded.
    9 destination: Address, plain;
    /// The number of copies in a batch; 0 for an ordinary copy.
    10 copies: u64, plain;
    shared:
        /// The device and stream.
        32 place: Place;
        /// The kind of copy.
        64 shape: CopyShape;
}

group! {
    /// The kind of a copy.
    CopyShape {
        /// The direction.
        1 direction: CopyDirection,
        /// The kind of memory that was read.
        2 source_memory: MemoryKind,
        /// The kind of memory that was written.
        3 destination_memory: MemoryKind,
        /// True if the call was asynchronous.
        4 asynchronous: bool,
        /// The source device, if it differs.
        5 source_device: DeviceId,
        /// The source context, if it differs.
        6 source_context: ContextId,
        /// The destination device, if it differs.
        7 destination_device: DeviceId,
        /// The destination context, if it differs.
        8 destination_context: ContextId,
        /// True if the device launched it.
        9 device_launched: bool,
        /// The graph.
        10 graph: GraphId,
    }
}

table! {
    /// One memset.
    MemorySet, MemorySets, SETS, times(start, end);
    /// The start time.
    1 start: Timestamp, delta;
    /// The end time.
    2 end: Timestamp, after(1 start);
    /// The number of bytes set.
    3 bytes: Bytes, plain;
    /// The value.
    4 value: u32, plain;
    /// The correlation ID of the call.
    5 correlation: CorrelationId, delta;
    /// The graph node.
    6 graph_node: GraphNodeId, plain;
    /// The code that made the call.
    7 stack: StackId, plain;
    /// The address, if recorded.
    8 address: Address, plain;
    shared:
        /// The device and stream.
        32 place: Place;
        /// The kind of memset.
        64 shape: SetShape;
}

group! {
    /// The kind of a memset.
    SetShape {
        /// The kind of memory that was set.
        1 memory: MemoryKind,
        /// True if the call was asynchronous.
        2 asynchronous: bool,
        /// True if the device launched it.
        3 device_launched: bool,
        /// The graph.
        4 graph: GraphId,
    }
}

codes! {
    /// The direction of a memcpy.
    CopyDirection {
        /// Unknown.
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
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// Ordinary host memory.
        PAGEABLE = 1 "pageable",
        /// Pinned host memory.
        PINNED = 2 "pinned",
        /// Device memory.
        DEVICE = 3 "device",
        /// An array in device memory.
        ARRAY = 4 "array",
        /// Managed memory.
        MANAGED = 5 "managed",
        /// A global of a module in device memory.
        DEVICE_STATIC = 6 "device static",
        /// A managed global of a module.
        MANAGED_STATIC = 7 "managed static",
    }
}
