//! What a recording needs to run again: the calls of its window, and the contents of the memory that they work on.
//!
//! Contents are cut into pieces, and each distinct piece is stored once, under its hash. A buffer at the beginning or the
//! end of a window, and the bytes that a call brings from the host, are lists of pieces.

use crate::blob::Blob;
use crate::ids::{Address, Bytes, ContextId, CorrelationId, ProcessId, StringId, ThreadId, Timestamp, codes};
use crate::table::table;
use crate::tables::copy::MemoryKind;

table! {
    /// One call of a recorded window, in the order in which the program made them.
    Command, Commands, COMMANDS, times();
    /// Its place among those of its process, counted from 1.
    1 number: u64, delta;
    /// When it was made, on the host's clock.
    2 time: Timestamp, delta;
    /// The process.
    3 process: ProcessId, plain;
    /// The context.
    4 context: ContextId, plain;
    /// The thread that made it.
    5 thread: ThreadId, plain;
    /// Joins the call and its work.
    6 correlation: CorrelationId, delta;
    /// What it does.
    7 kind: CommandKind, plain;
    /// The program's handle of the stream; 0 and 1 are the default stream, 2 that of the thread.
    8 stream: u64, plain;
    /// The program's handle of what it is about: an event, a graph.
    9 object: u64, plain;
    /// The kernel, or the call where it cannot be run again.
    10 function: StringId, plain;
    /// The module that holds the kernel: a number of the recorder's, or, in older files, the program's handle.
    11 module: u64, plain;
    /// Why it cannot be run again.
    12 reason: StringId, plain;
    /// Blocks in the grid.
    13 grid_x: u32, plain;
    /// Blocks in the grid.
    14 grid_y: u32, plain;
    /// Blocks in the grid.
    15 grid_z: u32, plain;
    /// Threads in a block.
    16 block_x: u32, plain;
    /// Threads in a block.
    17 block_y: u32, plain;
    /// Threads in a block.
    18 block_z: u32, plain;
    /// Shared memory that was asked for with the launch, in bytes.
    19 shared: u32, plain;
    /// The kernel's parameters, as they lie in its parameter space.
    20 parameters: Blob, plain;
    /// The launch's attributes: 8 bytes of number and 64 of value for each.
    21 attributes: Blob, plain;
    /// Where it writes. When rows are set, `source` holds the bytes from row to row and `object` how many there are.
    22 destination: Address, delta;
    /// Where it reads.
    23 source: Address, delta;
    /// How much.
    24 bytes: Bytes, plain;
    /// What memory is set to, the flags of a call, or what the host waits for: 0 for all work, 1 for `stream`, 2 for the
    /// event in `object`.
    25 value: u64, plain;
    /// Bytes of one element that is set.
    26 width: u8, plain;
    /// The number of the call that launched the graph of which this is a node; 0 of what the program called itself.
    27 graph: u64, delta;
    /// Numbers of the nodes of that graph which come before, 8 bytes each.
    28 follows: Blob, plain;
}

table! {
    /// Memory that a recorded window can reach, at its beginning or its end.
    Buffer, Buffers, BUFFERS, times();
    /// The process.
    1 process: ProcessId, plain;
    /// When.
    2 moment: Moment, plain;
    /// Where it lies.
    3 address: Address, delta;
    /// How much.
    4 bytes: Bytes, plain;
    /// What kind of memory it is.
    5 memory: MemoryKind, plain;
    /// The context that it belongs to.
    6 context: ContextId, plain;
    /// The variable of device code that it is; none of memory that was taken.
    7 variable: StringId, plain;
    /// The module that holds the variable, as in the commands.
    8 module: u64, plain;
}

table! {
    /// A piece of a buffer's content, or of what a call brings from the host.
    Piece, Pieces, PIECES, times();
    /// The process.
    1 process: ProcessId, plain;
    /// When the buffer had it, or that it is a call's.
    2 moment: Moment, plain;
    /// The call's number, when it is one's.
    3 command: u64, delta;
    /// Where it lies or goes.
    4 address: Address, delta;
    /// How much.
    5 bytes: Bytes, plain;
    /// First half of the hash of the content.
    6 hash_high: u64, plain;
    /// Second half of it.
    7 hash_low: u64, plain;
}

table! {
    /// The bytes of a piece.
    Content, Contents, CONTENTS, times();
    /// First half of their hash (XXH3, 128 bits).
    1 hash_high: u64, plain;
    /// Second half of it.
    2 hash_low: u64, plain;
    /// The bytes.
    3 data: Blob, plain;
}

codes! {
    /// What a recorded call does.
    CommandKind {
        /// One that cannot be run again, for the reason given.
        REFUSED = 0 "refused",
        /// Launches a kernel.
        LAUNCH = 1 "launch",
        /// Copies between addresses; from the host's memory its bytes are stored.
        COPY = 2 "copy",
        /// Sets memory.
        SET = 3 "set",
        /// Takes memory.
        ALLOCATE = 4 "allocate",
        /// Gives memory back.
        FREE = 5 "free",
        /// Records an event in a stream.
        RECORD_EVENT = 6 "record event",
        /// Lets a stream wait for an event.
        WAIT_EVENT = 7 "wait for event",
        /// The host waits, for the device, a stream or an event.
        SYNCHRONIZE = 8 "synchronize",
        /// Sets an attribute of a kernel.
        ATTRIBUTE = 9 "attribute",
        /// Says how a stream was made: `value` holds its flags, `object` its priority.
        STREAM = 10 "stream",
        /// A function of the host within a stream; what it changed in page-locked memory is stored.
        HOST_FUNCTION = 11 "host function",
        /// Launches a graph; its nodes stand behind it, as many as `bytes` says.
        GRAPH = 12 "graph",
        /// Copies rows or planes. `parameters` holds nine words: for the source and then for the destination where it
        /// begins, bytes from row to row and rows from plane to plane; then bytes of a row, rows and planes. What comes
        /// from the host is stored row upon row.
        COPY_PLANES = 13 "copy of planes",
        /// There is a texture (`value` 0) or a surface (1) with the handle `object`. `parameters` holds the driver's
        /// descriptions one behind the other: the resource's 144 bytes, and of a texture 104 of how it is read and, if it
        /// shows a part, 112 of which. Where the resource names an array stands where that one's bytes begin.
        TEXTURE = 14 "texture",
        /// There is an array. It has no address; its bytes stand at `destination`, where no memory is, row upon row and
        /// level upon level. `parameters` holds seven words: width, height, depth, format, channels and flags as the
        /// driver has them, and how many levels of detail it has, 0 when it is a plain one.
        ARRAY = 15 "array",
    }

    /// A moment of a recording.
    Moment {
        /// Its beginning, or when a buffer was first reached.
        BEGIN = 0 "begin",
        /// Its end.
        END = 1 "end",
        /// That of a call.
        CALL = 2 "call",
    }
}
