//! The memory of CUPTI's tables of callbacks.
//!
//! `cuptiSubscribe` tells the threads of the program that there is a client, and only then allocates the table that they
//! look into, which takes 5 µs of page faults: one that makes a graph ready meanwhile reads through a null pointer and
//! dies. `cuptiUnsubscribe` frees the table before it tells them that there is no client. (Read in CUPTI 13.0, 13.2 and
//! 13.4; seen on an H200.) So while we do either, CUPTI gets memory that is ready, in some 40 ns, and what it gives back
//! is kept: from the second time on it looks at the table of the last time, which is still there.
//!
//! This is the most intrusive code that we load into programs: for some microseconds libcupti calls our functions as its
//! `calloc` and `free`. It was weighed against doing without (issue 26), by subscribing once and for good:
//!
//! - Without it 2 of 60 programs that make graphs all the time died in their first window. With it none of 760 did. So
//!   without it a first window would kill with 3 %, times the share of its time in which a program makes graphs: next to
//!   nothing for most programs, and far too much while one captures its graphs. No fault of this code was ever seen; 760
//!   runs bound its own risk by 0.4 %, whatever the program does.
//! - To never unsubscribe would leave one such moment in a process. It would also keep every client out for good that
//!   does not come through us (`--no-preload`), and unsubscribing for a client of the other interface has the moment
//!   still.
//! - What can go wrong is contained. The two functions compare and hand on, so they may be called at any time and by any
//!   thread, also for good: should the system refuse to write the words again, libcupti works as before. A library that
//!   gets memory in another way is left as it is ([`Calls::find`]).

use std::ffi::c_void;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::imports::{self, Slot};
use crate::threads::thread_id;

/// A table has such a word for each callback: CUPTI 13.0 has 1,411.
const WORD: usize = 4;

/// Fewer or more words are no table.
const WORDS: RangeInclusive<usize> = 1024..=4096;

const BLOCK: usize = *WORDS.end() * WORD;

type Allocate = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// Memory for a client's table and for the one of all clients.
static BLOCKS: [Block; 2] = [const { Block::new() }; 2];

static CALLS: OnceLock<Option<Calls>> = OnceLock::new();

/// One piece of memory, of the allocator that CUPTI uses, so that CUPTI can also free it.
struct Block {
    memory: AtomicPtr<c_void>,
    /// [`ABSENT`], [`IN_STOCK`] or [`LENT`].
    state: AtomicUsize,
}

const ABSENT: usize = 0;
const IN_STOCK: usize = 1;
const LENT: usize = 2;

impl Block {
    const fn new() -> Self {
        Self {
            memory: AtomicPtr::new(ptr::null_mut()),
            state: AtomicUsize::new(ABSENT),
        }
    }

    /// Has it ready, empty and touched, unless CUPTI has it.
    fn prepare(&self, allocate: Allocate) {
        if self.state.load(Ordering::Acquire) == LENT {
            return;
        }
        let mut memory = self.memory.load(Ordering::Acquire);
        if memory.is_null() {
            // SAFETY: the allocator's function.
            memory = unsafe { allocate(1, BLOCK) };
            if memory.is_null() {
                return;
            }
            self.memory.store(memory, Ordering::Release);
        }
        // SAFETY: memory of this size that CUPTI does not write to any more.
        unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, BLOCK) };
        self.state.store(IN_STOCK, Ordering::Release);
    }

    fn take(&self) -> Option<*mut c_void> {
        let state = &self.state;
        let taken = state.compare_exchange(IN_STOCK, LENT, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok().then(|| self.memory.load(Ordering::Acquire))
    }

    /// What CUPTI has not given back to us is its own: whoever gets that memory next is not mistaken for it.
    fn forget_if_lent(&self) {
        if self.state.load(Ordering::Acquire) == LENT {
            self.memory.store(ptr::null_mut(), Ordering::Release);
            self.state.store(ABSENT, Ordering::Release);
        }
    }

    /// Whether it was this, which is kept.
    fn put_back(&self, memory: *mut c_void) -> bool {
        let is_this = !memory.is_null() && self.memory.load(Ordering::Acquire) == memory;
        let state = &self.state;
        is_this
            && state
                .compare_exchange(LENT, IN_STOCK, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }
}

/// How CUPTI gets memory.
struct Calls {
    slots: [Slot; 2],
    allocate: Allocate,
    free: Free,
}

impl Calls {
    /// None where CUPTI does not do it in this way.
    fn find(function: *const c_void) -> Option<Self> {
        let [Some(allocates), Some(frees)] = imports::slots(function, ["calloc", "free"]) else {
            return None;
        };
        let allocate = allocates.bound().map_or(libc::calloc as Allocate, |bound| {
            // SAFETY: what CUPTI calls as calloc.
            unsafe { std::mem::transmute::<*const c_void, Allocate>(bound) }
        });
        let free = frees.bound().map_or(libc::free as Free, |bound| {
            // SAFETY: what CUPTI calls as free.
            unsafe { std::mem::transmute::<*const c_void, Free>(bound) }
        });
        Some(Self {
            slots: [allocates, frees],
            allocate,
            free,
        })
    }
}

/// Runs what ends CUPTI's tables; `function` is one of CUPTI's.
pub(super) fn ending<T>(function: *const c_void, act: impl FnOnce() -> T) -> T {
    let done = with_preallocated_tables(function, act);
    for block in &BLOCKS {
        block.forget_if_lent();
    }
    done
}

/// The thread that ends the tables of another client.
static KEEPER: AtomicUsize = AtomicUsize::new(0);

/// Runs what ends the tables of a client that came before us. They were not allocated by us: what CUPTI frees meanwhile
/// is kept for good, some 12 KB, so that a thread that looks into it finds it as it was.
pub(super) fn ending_anothers<T>(function: *const c_void, act: impl FnOnce() -> T) -> T {
    let Some(calls) = CALLS.get_or_init(|| Calls::find(function)) else {
        return act();
    };
    let [_, frees] = &calls.slots;
    KEEPER.store(thread_id() as usize, Ordering::Release);
    let done = frees.divert(keep as *const c_void, act);
    KEEPER.store(0, Ordering::Release);
    done
}

/// What CUPTI calls instead of free while it ends another's tables.
unsafe extern "C" fn keep(memory: *mut c_void) {
    if KEEPER.load(Ordering::Acquire) != thread_id() as usize {
        // SAFETY: called as CUPTI called us.
        unsafe { free(memory) };
    }
}

/// Runs what makes them.
pub(super) fn with_preallocated_tables<T>(function: *const c_void, act: impl FnOnce() -> T) -> T {
    let Some(calls) = CALLS.get_or_init(|| Calls::find(function)) else {
        return act();
    };
    for block in &BLOCKS {
        block.prepare(calls.allocate);
    }
    warm_up_allocator();
    let [allocates, frees] = &calls.slots;
    frees.divert(free as *const c_void, || {
        allocates.divert(allocate as *const c_void, act)
    })
}

/// What takes long the first time is done before it matters.
fn warm_up_allocator() {
    // SAFETY: as calloc.
    let memory = unsafe { allocate(*WORDS.end(), WORD) };
    // SAFETY: the same memory, which nobody has.
    unsafe { free(memory) };
}

/// What CUPTI calls instead of calloc.
unsafe extern "C" fn allocate(count: usize, size: usize) -> *mut c_void {
    if size == WORD
        && WORDS.contains(&count)
        && let Some(memory) = BLOCKS.iter().find_map(Block::take)
    {
        return memory;
    }
    let real = CALLS.get().and_then(Option::as_ref);
    let real = real.map_or(libc::calloc as Allocate, |calls| calls.allocate);
    // SAFETY: called as CUPTI called us.
    unsafe { real(count, size) }
}

/// What CUPTI calls instead of free.
unsafe extern "C" fn free(memory: *mut c_void) {
    if BLOCKS.iter().any(|block| block.put_back(memory)) {
        return;
    }
    let real = CALLS.get().and_then(Option::as_ref);
    let real = real.map_or(libc::free as Free, |calls| calls.free);
    // SAFETY: called as CUPTI called us.
    unsafe { real(memory) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_kept_and_what_does_not_is_forgotten() {
        let block = Block::new();
        assert!(block.take().is_none());
        block.prepare(libc::calloc);
        let memory = block.take().unwrap();
        assert!(block.take().is_none());
        assert!(!block.put_back(ptr::null_mut()) && block.put_back(memory));
        assert!(!block.put_back(memory), "it is freed twice");
        block.prepare(libc::calloc);
        assert_eq!(block.take(), Some(memory), "the same as before");
        block.forget_if_lent();
        assert!(
            !block.put_back(memory),
            "CUPTI has freed it, and got the address again"
        );
        block.prepare(libc::calloc);
        assert_ne!(block.take().unwrap(), memory);
        // SAFETY: of calloc, and nobody's.
        unsafe { libc::free(memory) };
    }
}
