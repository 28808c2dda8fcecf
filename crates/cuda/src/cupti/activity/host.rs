//! Layouts of records of what the host did: calls, waits, memory, overhead.

use crate::cupti::layout::layout;

layout! {
    /// `CUpti_ActivityAPI`.
    Api[40] {
        /// The callback number of the function.
        function: u32 = 4,
        /// When it was entered.
        start: u64 = 8,
        /// When it was left.
        end: u64 = 16,
        /// The thread.
        thread: u32 = 28,
        /// Joins the work.
        correlation: u32 = 32,
        /// What it gave back.
        result: i32 = 36,
    }

    /// `CUpti_ActivitySynchronization`.
    Synchronization[40] {
        /// What was waited for.
        sync_kind: u32 = 4,
        /// When it began.
        start: u64 = 8,
        /// When it was over.
        end: u64 = 16,
        /// Joins the call.
        correlation: u32 = 24,
        /// The context.
        context: u32 = 28,
        /// The stream, or all ones.
        stream: u32 = 32,
        /// The event, or all ones.
        event: u32 = 36,
    }

    /// What CUDA 12.8 added to a synchronisation.
    SynchronizationFrom12_8[56] {
        /// Which record of the event.
        event_record: u64 = 40,
        /// What the call gave back.
        result: i32 = 48,
    }

    /// `CUpti_ActivityCudaEvent`.
    Event[24] {
        /// Joins the call.
        correlation: u32 = 4,
        /// The context.
        context: u32 = 8,
        /// The stream.
        stream: u32 = 12,
        /// The event.
        event: u32 = 16,
    }

    /// What CUDA 12.8 added to an event.
    EventFrom12_8[56] {
        /// The device.
        device: u32 = 24,
        /// When the device passed it.
        device_time: u64 = 40,
        /// Which record of the event.
        event_record: u64 = 48,
    }

    /// `CUpti_ActivityMemory3`.
    Memory[120] {
        /// Whether memory was allocated or freed.
        operation: u32 = 4,
        /// Kind of memory.
        memory: u32 = 8,
        /// Joins the call.
        correlation: u32 = 12,
        /// Which memory.
        address: u64 = 16,
        /// How much.
        bytes: u64 = 24,
        /// When.
        time: u64 = 32,
        /// Where in the program.
        code_address: u64 = 40,
        /// The device.
        device: u32 = 52,
        /// The context.
        context: u32 = 56,
        /// The stream, when ordered in one.
        stream: u32 = 60,
        /// Where the variable's name is.
        name_address: usize = 64,
        /// Whether it is ordered in a stream.
        asynchronous: u32 = 72,
        /// The pool's kind.
        pool_kind: u32 = 80,
        /// The pool.
        pool: u64 = 88,
        /// Bytes that the pool keeps.
        pool_threshold: u64 = 96,
        /// Bytes of the pool, or the process that owns it.
        pool_size: u64 = 104,
        /// Bytes of the pool in use.
        pool_used: u64 = 112,
    }

    /// What CUDA 12.6 added to an allocation.
    MemoryFrom12_6[128] {
        /// Where the name of the library that asked is.
        source_address: usize = 120,
    }

    /// `CUpti_ActivityMemoryPool2`.
    Pool[72] {
        /// Made, destroyed or trimmed.
        operation: u32 = 4,
        /// The pool's kind.
        pool_kind: u32 = 8,
        /// Joins the call.
        correlation: u32 = 12,
        /// The device.
        device: u32 = 20,
        /// What a trim keeps.
        min_bytes_to_keep: u64 = 24,
        /// The pool.
        pool: u64 = 32,
        /// Bytes of the pool.
        size: u64 = 40,
        /// Bytes that the pool keeps.
        threshold: u64 = 48,
        /// When.
        time: u64 = 56,
        /// Bytes in use.
        used: u64 = 64,
    }

    /// `CUpti_ActivityOverhead`.
    Overhead[40] {
        /// What for.
        overhead: u32 = 4,
        /// What it is tied to.
        object_kind: u32 = 8,
        /// The thread, when tied to one.
        thread: u32 = 16,
        /// When it began.
        start: u64 = 24,
        /// When it ended.
        end: u64 = 32,
    }

    /// What CUDA 12.3 added to overhead.
    OverheadFrom12_3[48] {
        /// Joins a call.
        correlation: u32 = 40,
    }

    /// `CUpti_ActivityJit2`.
    Jit[72] {
        /// From what to what.
        entry: u32 = 4,
        /// What was done.
        operation: u32 = 8,
        /// The device.
        device: u32 = 12,
        /// When it began.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// Joins a call.
        correlation: u32 = 32,
        /// Bytes.
        bytes: u64 = 48,
        /// The thread.
        thread: u32 = 68,
    }
}
