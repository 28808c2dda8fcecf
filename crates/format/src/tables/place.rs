//! The two shared groups of most tables: where an operation ran, and who called.

use crate::ids::{ContextId, DeviceId, ProcessId, StreamId, ThreadId, codes};
use crate::table::group;

group! {
    /// Where a GPU operation ran.
    Place {
        /// The process that launched the operation.
        1 process: ProcessId,
        /// The device.
        2 device: DeviceId,
        /// The context.
        3 context: ContextId,
        /// The stream.
        4 stream: StreamId,
        /// The hardware channel.
        5 channel: u32,
        /// The kind of hardware channel.
        6 channel_kind: ChannelKind,
    }

    /// The process and thread of a host event.
    Caller {
        /// The process.
        1 process: ProcessId,
        /// The thread.
        2 thread: ThreadId,
    }
}

codes! {
    /// A kind of hardware channel.
    ChannelKind {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// Compute.
        COMPUTE = 1 "compute",
        /// An asynchronous copy engine.
        COPY = 2 "copy",
        /// Decompression.
        DECOMPRESS = 3 "decompress",
    }
}
