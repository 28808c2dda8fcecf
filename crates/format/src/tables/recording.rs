//! Replay recordings: the calls of a window, and the contents of the memory that they use.
//!
//! Contents are split into pieces. Each distinct piece is stored once, under its hash. A buffer at the beginning or end of
//! a window is a list of pieces. So is the data that a call copies from the host.

use crate::blob::Blob;
use crate::ids::{Address, Bytes, ContextId, CorrelationId, ProcessId, StringId, ThreadId, Timestamp, codes};
use crate::table::table;
use crate::tables::copy::MemoryKind;

table! {
    /// One call of a replay recording, in program order.
    Command, Commands, COMMANDS, times();
    /// The number of the call in its process, counted from 1.
    1 number: u64, delta;
    /// The time of the call, on the host's clock.
    2 time: Timestamp, delta;
    /// The process.
    3 process: ProcessId, plain;
    /// The context.
    4 context: ContextId, plain;
    /// The calling thread.
    5 thread: ThreadId, plain;
    /// The correlation ID.
    6 correlation: CorrelationId, delta;
    /// What the call does.
    7 kind: CommandKind, plain;
    /// The program's stream handle. 0 and 1 are the default stream, 2 is the default stream of the thread.
    8 stream: u64, plain;
    /// The program's handle of an event, a graph or another object.
    9 object: u64, plain;
    /// The kernel, or the function if the call cannot be replayed.
    10 function: StringId, plain;
    /// The module of the kernel: an ID of the recorder, or the program's handle in older files.
    11 module: u64, plain;
    /// Why the call cannot be replayed.
    12 reason: StringId, plain;
    /// Grid size in blocks.
    13 grid_x: u32, plain;
    /// Grid size in blocks.
    14 grid_y: u32, plain;
    /// Grid size in blocks.
    15 grid_z: u32, plain;
    /// Block size in threads.
    16 block_x: u32, plain;
    /// Block size in threads.
    17 block_y: u32, plain;
    /// Block size in threads.
    18 block_z: u32, plain;
    /// Dynamic shared memory in bytes.
    19 shared: u32, plain;
    /// The kernel parameters, as laid out in the parameter space. For other calls, see "Recorded calls".
    20 parameters: Blob, plain;
    /// The launch attributes: 8 bytes of ID and 64 bytes of value for each.
    21 attributes: Blob, plain;
    /// The destination address. If rows are set, `source` is the pitch and `object` the number of rows.
    22 destination: Address, delta;
    /// The source address.
    23 source: Address, delta;
    /// The size in bytes.
    24 bytes: Bytes, plain;
    /// The memset value, the flags of a call, or the target of a host wait: 0 everything, 1 `stream`, 2 the event in
    /// `object`.
    25 value: u64, plain;
    /// The element size of a memset in bytes.
    26 width: u8, plain;
    /// For a graph node: the number of the call that launched the graph. Otherwise 0.
    27 graph: u64, delta;
    /// For a graph node: the numbers of the nodes it depends on, 8 bytes each.
    28 follows: Blob, plain;
}

table! {
    /// Memory that a recorded window can reach, at its beginning or end.
    Buffer, Buffers, BUFFERS, times();
    /// The process.
    1 process: ProcessId, plain;
    /// Whether the row describes the beginning or the end.
    2 moment: Moment, plain;
    /// The address.
    3 address: Address, delta;
    /// The size in bytes.
    4 bytes: Bytes, plain;
    /// The kind of memory.
    5 memory: MemoryKind, plain;
    /// The context.
    6 context: ContextId, plain;
    /// The name of the module global, if the memory is one.
    7 variable: StringId, plain;
    /// The module of the global, as in `commands`.
    8 module: u64, plain;
}

table! {
    /// A piece of a buffer's content, or of the data that a call copies from the host.
    Piece, Pieces, PIECES, times();
    /// The process.
    1 process: ProcessId, plain;
    /// When the buffer had this content, or that it belongs to a call.
    2 moment: Moment, plain;
    /// The number of the call, if it belongs to one.
    3 command: u64, delta;
    /// The address of the piece.
    4 address: Address, delta;
    /// The size in bytes.
    5 bytes: Bytes, plain;
    /// The first half of the hash of the content (XXH3, 128 bits).
    6 hash_high: u64, plain;
    /// The second half of the hash.
    7 hash_low: u64, plain;
}

table! {
    /// The bytes of a piece.
    Content, Contents, CONTENTS, times();
    /// The first half of the hash of the bytes (XXH3, 128 bits).
    1 hash_high: u64, plain;
    /// The second half of the hash.
    2 hash_low: u64, plain;
    /// The bytes.
    3 data: Blob, plain;
}

codes! {
    /// What a recorded call does.
    CommandKind {
        /// A call that cannot be replayed; `reason` says why.
        REFUSED = 0 "refused",
        /// Launches a kernel.
        LAUNCH = 1 "launch",
        /// Copies between addresses. Bytes that come from host memory are stored.
        COPY = 2 "copy",
        /// Sets memory.
        SET = 3 "set",
        /// Allocates memory.
        ALLOCATE = 4 "allocate",
        /// Frees memory.
        FREE = 5 "free",
        /// Records an event in a stream.
        RECORD_EVENT = 6 "record event",
        /// Makes a stream wait for an event.
        WAIT_EVENT = 7 "wait for event",
        /// Makes the host wait for the device, a stream or an event.
        SYNCHRONIZE = 8 "synchronize",
        /// Sets an attribute of a kernel.
        ATTRIBUTE = 9 "attribute",
        /// Describes a stream: `value` is its flags, `object` its priority.
        STREAM = 10 "stream",
        /// A host function in a stream. Its changes to pinned memory are stored.
        HOST_FUNCTION = 11 "host function",
        /// Launches a graph. Its nodes follow; `bytes` is their number.
        GRAPH = 12 "graph",
        /// Copies rows or planes. See "Recorded calls" for `parameters`.
        COPY_PLANES = 13 "copy of planes",
        /// Describes a texture (`value` 0) or a surface (1) with the handle `object`. See "Recorded calls" for
        /// `parameters`.
        TEXTURE = 14 "texture",
        /// Describes an array, which has no address. See "Recorded calls" for `destination` and `parameters`.
        ARRAY = 15 "array",
    }

    /// The time of a piece of content.
    Moment {
        /// The beginning of the window, or the first time that a call could reach the buffer.
        BEGIN = 0 "begin",
        /// The end of the window.
        END = 1 "end",
        /// The data of a call.
        CALL = 2 "call",
    }
}
