//! Where work happens: the two shared groups that most tables have.

use crate::ids::{ContextId, DeviceId, ProcessId, StreamId, ThreadId};
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
    }

    /// Who on the host did something.
    Caller {
        /// The process.
        1 process: ProcessId,
        /// The thread.
        2 thread: ThreadId,
    }
}
