//! The memory that CUPTI fills.
//!
//! Buffers are mapped and touched when the first window opens, so that a thread
//! of the program that is asked for one takes it off a list. They are never
//! freed: CUPTI may hold one until the process ends.

use std::{
    ptr::{self, NonNull},
    sync::Mutex,
};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::guard::lock;

/// Bytes of one buffer: about 4,800 kernels.
pub(super) const BUFFER_BYTES: usize = 1 << 20;

/// Buffers in all.
const BUFFERS: usize = 16;

/// Memory that the buffers take.
pub(crate) const POOL_BYTES: u64 = (BUFFER_BYTES * BUFFERS) as u64;

static POOL: Mutex<Pool> = Mutex::new(Pool {
    mapped: 0,
    free: Vec::new(),
    missed: 0,
});

struct Pool {
    mapped: usize,
    free: Vec<Buffer>,
    missed: u64,
}

/// One buffer that nobody uses.
struct Buffer(NonNull<u8>);

// SAFETY: memory that is ours alone while it is in the list.
unsafe impl Send for Buffer {}

/// Maps what is missing of the pool. Less memory than wanted is no error: CUPTI
/// then drops records, and counts them.
pub(super) fn fill() {
    let mut pool = lock(&POOL);
    pool.free.reserve(BUFFERS);
    while pool.mapped < BUFFERS {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no
        // memory that exists.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), BUFFER_BYTES, access, flags) };
        let Some(buffer) = mapped.ok().and_then(|address| NonNull::new(address.cast::<u8>())) else {
            return;
        };
        pool.mapped += 1;
        pool.free.push(Buffer(buffer));
    }
}

/// A free buffer, or none: then it is counted.
pub(super) fn take() -> Option<NonNull<u8>> {
    let mut pool = lock(&POOL);
    let buffer = pool.free.pop();
    if buffer.is_none() {
        pool.missed += 1;
    }
    buffer.map(|buffer| buffer.0)
}

/// Gives a buffer back.
pub(super) fn give_back(buffer: NonNull<u8>) {
    let mut pool = lock(&POOL);
    // There is room: it was taken out of this list.
    pool.free.push(Buffer(buffer));
}

/// How often there was none since the last question.
pub(super) fn missed() -> u64 {
    std::mem::take(&mut lock(&POOL).missed)
}
