//! Allocations and frees of device memory and of host memory for devices.

use crate::ids::{Address, Bytes, CorrelationId, StackId, StringId, ThreadId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::copy::MemoryKind;
use crate::tables::place::Place;

table! {
    /// One allocation, one free, or one change of a memory pool.
    Allocation, Allocations, ALLOCATIONS, times(time, time);
    /// The time.
    1 time: Timestamp, delta;
    /// The address of the memory.
    2 address: Address, delta;
    /// The size in bytes.
    3 bytes: Bytes, plain;
    /// The correlation ID of the call.
    4 correlation: CorrelationId, delta;
    /// The code that made the call.
    5 stack: StackId, plain;
    /// The pool of the memory.
    6 pool: Address, plain;
    /// The size of the pool after the operation.
    7 pool_size: Bytes, delta;
    /// The bytes of the pool in use after the operation.
    8 pool_used: Bytes, delta;
    /// The code address of the call, if no stack was captured.
    9 code_address: Address, plain;
    shared:
        /// The device and stream.
        32 place: Place;
        /// The operation.
        64 shape: AllocationShape;
}

group! {
    /// The kind of an allocation or free.
    AllocationShape {
        /// The operation.
        1 operation: MemoryOperation,
        /// The kind of memory.
        2 memory: MemoryKind,
        /// True if the operation is stream-ordered.
        3 asynchronous: bool,
        /// The calling thread.
        4 thread: ThreadId,
        /// The allocator or library.
        5 allocator: StringId,
        /// The purpose that a framework states: activation, gradient, parameter and so on.
        6 category: StringId,
        /// The name of the module global, if the memory is one.
        7 name: StringId,
        /// The kind of pool, as a number of the driver.
        8 pool_kind: u8,
        /// The release threshold of the pool in bytes.
        9 pool_threshold: Bytes,
    }
}

codes! {
    /// An operation on memory.
    MemoryOperation {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// Memory was allocated.
        ALLOCATE = 1 "allocate",
        /// Memory was freed.
        FREE = 2 "free",
        /// A pool was created.
        POOL_CREATE = 3 "pool create",
        /// A pool was destroyed.
        POOL_DESTROY = 4 "pool destroy",
        /// A pool released memory.
        POOL_TRIM = 5 "pool trim",
        /// Addresses were reserved.
        RESERVE = 6 "reserve",
        /// Reserved addresses were released.
        UNRESERVE = 7 "unreserve",
        /// Physical memory was created.
        CREATE = 8 "create",
        /// Physical memory was released.
        RELEASE = 9 "release",
        /// Physical memory was mapped to addresses.
        MAP = 10 "map",
        /// A mapping was removed.
        UNMAP = 11 "unmap",
        /// Host memory was pinned.
        REGISTER = 12 "register",
        /// Host memory was unpinned.
        UNREGISTER = 13 "unregister",
    }
}
