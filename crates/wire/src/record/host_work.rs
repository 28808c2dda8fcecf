//! What the host did: calls, waits, memory.

use super::records;

/// [`ApiCall::clock`] and [`Synchronization::clock`]: times are the vendor library's.
pub const DEVICE_CLOCK: u8 = 0;
/// [`ApiCall::clock`] and [`Synchronization::clock`]: times are the host's.
pub const HOST_CLOCK: u8 = 1;

records! {
    /// One call of a runtime or driver function.
    20 ApiCall {
        /// When it was entered.
        start: u64,
        /// When it came back.
        end: u64,
        /// Links the call to the work that it launched.
        correlation: u64,
        /// The calling thread, as the operating system numbers it.
        thread: u32,
        /// The text with the function's name.
        name: u32,
        /// What it gave back.
        result: i32,
        /// The stack that called; 0 is none.
        stack: u32,
        /// The interface's number of the function.
        function: u16,
        /// Which interface: a code of the format.
        domain: u8,
        /// [`DEVICE_CLOCK`] or [`HOST_CLOCK`].
        clock: u8,
        /// Zero.
        reserved: [u8; 4],
    }

    /// One synchronisation, event record or stream wait.
    21 Synchronization {
        /// When it began.
        start: u64,
        /// When it was over.
        end: u64,
        /// When the device passed a recorded event, device clock.
        device_time: u64,
        /// Tells the records of one event apart.
        event_record: u64,
        /// Joins the call.
        correlation: u64,
        /// The event.
        event: u32,
        /// The device; `u32::MAX` is that of the context.
        device: u32,
        /// The context.
        context: u32,
        /// The stream; `u32::MAX` is none.
        stream: u32,
        /// What the call gave back.
        result: i32,
        /// The stack of the call that launched it; 0 is none.
        stack: u32,
        /// What was done: a code of the format.
        kind: u8,
        /// [`DEVICE_CLOCK`] or [`HOST_CLOCK`].
        clock: u8,
        /// Zero.
        reserved: [u8; 6],
    }

    /// One allocation or release.
    22 Allocation {
        /// When, device clock.
        time: u64,
        /// Which memory.
        address: u64,
        /// How much.
        bytes: u64,
        /// The pool that it came from.
        pool: u64,
        /// Bytes that the pool holds afterwards.
        pool_size: u64,
        /// Bytes of the pool in use afterwards.
        pool_used: u64,
        /// Bytes that the pool keeps.
        pool_threshold: u64,
        /// Where in the program.
        code_address: u64,
        /// Joins the call.
        correlation: u64,
        /// The process's number of the device.
        device: u32,
        /// The context.
        context: u32,
        /// The stream that it is ordered in; `u32::MAX` is none.
        stream: u32,
        /// The text with the name of the device variable.
        name: u32,
        /// The ID of the text with the library that requested it.
        source: u32,
        /// The thread that asked, where it is known.
        thread: u32,
        /// What was done: a code of the format.
        operation: u8,
        /// With what kind of memory: a code of the format.
        memory: u8,
        /// 1 when it is ordered in a stream.
        asynchronous: u8,
        /// The kind of pool, the driver's code.
        pool_kind: u8,
        /// The stack of the call that launched it; 0 is none.
        stack: u32,
    }

    /// One change of a memory pool.
    23 Pool {
        /// When, device clock.
        time: u64,
        /// The pool.
        pool: u64,
        /// Bytes that it holds afterwards.
        size: u64,
        /// Bytes in use afterwards.
        used: u64,
        /// Bytes that it keeps.
        threshold: u64,
        /// The least that a trim keeps.
        min_bytes_to_keep: u64,
        /// Joins the call.
        correlation: u64,
        /// The process's number of the device.
        device: u32,
        /// What was done: a code of the format.
        operation: u8,
        /// The kind of pool, the driver's code.
        pool_kind: u8,
        /// Zero.
        reserved: [u8; 2],
    }

    /// The vendor library's own work.
    24 Overhead {
        /// When it began, device clock.
        start: u64,
        /// When it ended, device clock.
        end: u64,
        /// Joins a call, where it does.
        correlation: u64,
        /// The thread; 0 when it belongs to no thread.
        thread: u32,
        /// The text that says what it was.
        name: u32,
    }

    /// One compilation of device code at run time.
    25 Compile {
        /// When it began, device clock.
        start: u64,
        /// When it ended, device clock.
        end: u64,
        /// Bytes that came out or were found in the cache.
        bytes: u64,
        /// Joins a call.
        correlation: u64,
        /// The thread.
        thread: u32,
        /// The process's number of the device.
        device: u32,
        /// The text that says what was done.
        name: u32,
        /// Zero.
        reserved: u32,
    }
}
