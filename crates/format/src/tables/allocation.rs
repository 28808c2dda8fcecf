//! Memory taken and given back, on devices and for them.

use crate::ids::{Address, Bytes, CorrelationId, StackId, StringId, ThreadId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::copy::MemoryKind;
use crate::tables::place::Place;

table! {
    /// One allocation, release or change of a pool.
    Allocation, Allocations, ALLOCATIONS, times(time, time);
    /// When.
    1 time: Timestamp, delta;
    /// Which memory.
    2 address: Address, delta;
    /// How much.
    3 bytes: Bytes, plain;
    /// Joins the call.
    4 correlation: CorrelationId, delta;
    /// The code that asked for it.
    5 stack: StackId, plain;
    /// The pool that it came from.
    6 pool: Address, plain;
    /// Bytes that the pool holds afterwards.
    7 pool_size: Bytes, delta;
    /// Bytes of the pool in use afterwards.
    8 pool_used: Bytes, delta;
    /// Where in the program, when no stack was taken.
    9 code_address: Address, plain;
    shared:
        /// For which device and stream.
        32 place: Place;
        /// What was done.
        64 shape: AllocationShape;
}

group! {
    /// The kind of an allocation or release.
    AllocationShape {
        /// What was done.
        1 operation: MemoryOperation,
        /// With what kind of memory.
        2 memory: MemoryKind,
        /// Whether it was ordered in a stream.
        3 asynchronous: bool,
        /// The thread that asked for it.
        4 thread: ThreadId,
        /// The allocator or library that asked for it.
        5 allocator: StringId,
        /// What a framework says it is for (activation, gradient, parameter…).
        6 category: StringId,
        /// The name of the device variable, if it is one.
        7 name: StringId,
        /// What kind of pool it is.
        8 pool_kind: u8,
        /// Bytes that the pool keeps before it gives memory back.
        9 pool_threshold: Bytes,
    }
}

codes! {
    /// What was done with memory.
    MemoryOperation {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// Taken.
        ALLOCATE = 1 "allocate",
        /// Given back.
        FREE = 2 "free",
        /// A pool was made.
        POOL_CREATE = 3 "pool create",
        /// A pool was destroyed.
        POOL_DESTROY = 4 "pool destroy",
        /// A pool gave memory back.
        POOL_TRIM = 5 "pool trim",
        /// Addresses were reserved.
        RESERVE = 6 "reserve",
        /// Reserved addresses were given back.
        UNRESERVE = 7 "unreserve",
        /// Physical memory was made.
        CREATE = 8 "create",
        /// Physical memory was given back.
        RELEASE = 9 "release",
        /// Physical memory was mapped to addresses.
        MAP = 10 "map",
        /// A mapping was removed.
        UNMAP = 11 "unmap",
        /// Host memory was page-locked.
        REGISTER = 12 "register",
        /// Host memory was unlocked.
        UNREGISTER = 13 "unregister",
    }
}
