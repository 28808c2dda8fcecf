//! The memory that CUPTI fills.
//!
//! Buffers are mapped and touched when the first window opens. A thread of the
//! program that needs one takes it off a list. They are never freed: CUPTI may
//! keep one until the process ends.

use std::{
    ptr::{self, NonNull},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
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
    incomplete: Vec::new(),
    lent: Vec::new(),
    lent_count: 0,
    missed: 0,
});

/// How many forced flushes run now. They return buffers before CUPTI has written
/// all records in them.
static FORCING: AtomicU32 = AtomicU32::new(0);

struct Pool {
    mapped: usize,
    free: Vec<Buffer>,
    /// Returned before their work had ended, oldest first. They are reused last:
    /// CUPTI may still write the end times into them.
    incomplete: Vec<Buffer>,
    /// What CUPTI has, and the value of `lent_count` when it got it.
    lent: Vec<(NonNull<u8>, u64)>,
    /// How many buffers were lent so far.
    lent_count: u64,
    missed: u64,
}

/// One buffer that nobody uses.
struct Buffer(NonNull<u8>);

// SAFETY: buffers in the lists of free ones are memory that is ours alone, and
// of lent ones only the address is compared.
unsafe impl Send for Pool {}

/// Maps what is missing of the pool. Less memory than wanted is no error: CUPTI
/// then drops records, and counts them.
pub(super) fn fill() {
    let mut pool = lock(&POOL);
    // No list grows on a thread of the program.
    pool.free.reserve(BUFFERS);
    pool.incomplete.reserve(BUFFERS);
    pool.lent.reserve(BUFFERS);
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
    let Some(Buffer(buffer)) = pool.take() else {
        pool.missed += 1;
        return None;
    };
    pool.lent_count += 1;
    let number = pool.lent_count;
    pool.lent.push((buffer, number));
    Some(buffer)
}

/// Lends a buffer that is not of the pool. It joins the pool when it comes back.
pub(super) fn lend(buffer: NonNull<u8>) {
    let mut pool = lock(&POOL);
    pool.lent_count += 1;
    let number = pool.lent_count;
    pool.lent.push((buffer, number));
}

/// Whether CUPTI has this buffer from us. One that another client lent can come back late.
pub(super) fn is_lent(buffer: NonNull<u8>) -> bool {
    lock(&POOL).lent.iter().any(|(address, _)| *address == buffer)
}

impl Pool {
    fn take(&mut self) -> Option<Buffer> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        if self.incomplete.is_empty() {
            return None;
        }
        let buffer = self.incomplete.remove(0);
        clear(&buffer, BUFFER_BYTES);
        Some(buffer)
    }
}

/// Puts a buffer back, of which `used` bytes were written. They are cleared
/// here, on CUPTI's thread: CUPTI would clear the whole of it on a thread of the
/// program.
pub(super) fn put_back(buffer: NonNull<u8>, used: usize) {
    let given = Buffer(buffer);
    clear(&given, used);
    let is_forced = FORCING.load(Ordering::Relaxed) > 0;
    let mut pool = lock(&POOL);
    pool.lent.retain(|(address, _)| *address != buffer);
    // There is room: it was taken out of these lists.
    if is_forced {
        pool.incomplete.push(given);
    } else {
        pool.free.push(given);
    }
}

fn clear(buffer: &Buffer, used: usize) {
    // SAFETY: a buffer of the pool, and nobody's but ours now.
    unsafe { ptr::write_bytes(buffer.0.as_ptr(), 0, used.min(BUFFER_BYTES)) };
}

/// How many buffers were lent so far. Pass it to [`has_outstanding_buffer`] later.
pub(super) fn lent_count() -> u64 {
    lock(&POOL).lent_count
}

/// Whether CUPTI still has one of the first `count` buffers that it was lent.
pub(super) fn has_outstanding_buffer(count: u64) -> bool {
    lock(&POOL).lent.iter().any(|(_, number)| *number <= count)
}

/// Buffers that come back within `flush` may not be written to the end.
pub(super) fn forced<T>(flush: impl FnOnce() -> T) -> T {
    FORCING.fetch_add(1, Ordering::Relaxed);
    let flushed = flush();
    FORCING.fetch_sub(1, Ordering::Relaxed);
    flushed
}

/// How often there was none since the last call.
pub(super) fn missed() -> u64 {
    std::mem::take(&mut lock(&POOL).missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_too_early_is_used_again_last_and_clean() {
        fill();
        let before = lent_count();
        let first = take().unwrap();
        let second = take().unwrap();
        assert!(!has_outstanding_buffer(before) && has_outstanding_buffer(lent_count()));
        forced(|| put_back(first, 100));
        let after_first = lent_count();
        forced(|| put_back(second, 100));
        assert!(!has_outstanding_buffer(after_first));
        // CUPTI writes the end of some work late.
        // SAFETY: a buffer of the pool that nobody uses.
        unsafe { first.write(7) };
        let others: Vec<NonNull<u8>> = (0..BUFFERS - 2).map(|_| take().unwrap()).collect();
        assert!(!others.contains(&first) && !others.contains(&second));
        assert_eq!((take(), take(), take()), (Some(first), Some(second), None));
        assert_eq!((missed(), missed()), (1, 0));
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 0);
        put_back(second, 0);
        assert_eq!(take(), Some(second), "one that came back in time is at hand");
    }
}
