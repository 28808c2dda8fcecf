//! What a recorded window needs to run again.

use super::records;

records! {
    /// One call; the kernel's or function's name, the parameters, the attributes
    /// and the reason stand behind it, in this order.
    70 Command {
        /// Its place among those of the process, counted from 1.
        number: u64,
        /// When it was made, host clock.
        time: u64,
        /// The stream's handle.
        stream: u64,
        /// The handle of what it is about.
        object: u64,
        /// The handle of the module that holds the kernel.
        module: u64,
        /// Where it writes.
        destination: u64,
        /// Where it reads.
        source: u64,
        /// How much.
        bytes: u64,
        /// What is set, or flags.
        value: u64,
        /// The number of the launch of the graph whose node it is, or 0.
        graph: u64,
        /// Joins the call and its work.
        correlation: u64,
        /// Blocks in the grid.
        grid: [u32; 3],
        /// Threads in a block.
        block: [u32; 3],
        /// Requested shared memory, in bytes.
        shared: u32,
        /// Its context.
        context: u32,
        /// The thread.
        thread: u32,
        /// Bytes of the name behind.
        name_bytes: u32,
        /// Bytes of the parameters behind that.
        parameter_bytes: u32,
        /// Bytes of the attributes behind those.
        attribute_bytes: u32,
        /// Bytes of the numbers of nodes that come before, behind those.
        follows_bytes: u32,
        /// What it does: a code of the format.
        kind: u8,
        /// Bytes of one element that is set.
        width: u8,
        /// Zero.
        reserved: [u8; 2],
    }

    /// Memory that the window can reach; a variable's name stands behind it.
    71 Buffer {
        /// Where it lies.
        address: u64,
        /// How much.
        bytes: u64,
        /// The module whose variable it is, or 0.
        module: u64,
        /// Its context.
        context: u32,
        /// A moment: a code of the format.
        moment: u8,
        /// A kind of memory: a code of the format.
        memory: u8,
        /// Zero.
        reserved: [u8; 2],
    }

    /// A piece of a buffer's content, or of what a call brings from the host;
    /// the bytes stand behind it.
    72 Piece {
        /// Where it lies or goes.
        address: u64,
        /// The call's number, when it is one's.
        command: u64,
        /// A moment: a code of the format.
        moment: u32,
        /// Zero.
        reserved: u32,
    }

    /// A piece of a module's code; the bytes stand behind it.
    73 Code {
        /// Hash of the whole, first half.
        hash_high: u64,
        /// Hash of the whole, second half.
        hash_low: u64,
        /// Where the piece begins.
        offset: u64,
        /// Bytes of the whole.
        size: u64,
        /// Its context.
        context: u32,
        /// The module's number.
        module: u32,
    }

    /// The handle by which the program knows a module.
    74 ModuleHandle {
        /// The handle.
        handle: u64,
        /// Its context.
        context: u32,
        /// The module's number.
        module: u32,
    }

    /// A window begins that is to be recorded.
    76 ReplayCaptureBegin {
        /// When, host clock.
        time: u64,
        /// Bytes of memory that the program has, and the window may reach.
        bytes: u64,
    }

    /// A window is recorded whole, or broken off.
    75 ReplayCaptureEnd {
        /// When, host clock.
        time: u64,
        /// Commands in it.
        commands: u64,
        /// Bytes of memory that were read for it.
        bytes: u64,
        /// Time that the program stood still for that, in nanoseconds.
        nanos: u64,
        /// 1 when something is missing; the reason stands behind.
        broken: u32,
        /// Zero.
        reserved: u32,
    }
}
