//! Where work happens: the two shared groups that most tables have.

use crate::ids::{ContextId, DeviceId, ProcessId, StreamId, ThreadId, codes};
use crate::table::group;

group! {
    /// Where device work ran.
    Place {
        /// The process that asked for it.
        1 process: ProcessId,
        /// The device that did it.
        2 device: DeviceId,
        /// The context it belonged to.
        3 context: ContextId,
        /// The stream it was ordered in.
        4 stream: StreamId,
        /// Hardware channel.
        5 channel: u32,
        /// Kind of hardware channel.
        6 channel_kind: ChannelKind,
    }

    /// Who on the host did something.
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
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// Compute.
        COMPUTE = 1 "compute",
        /// An asynchronous copy engine.
        COPY = 2 "copy",
        /// Decompression.
        DECOMPRESS = 3 "decompress",
    }
}
