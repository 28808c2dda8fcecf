//! The calls that each thread is in.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::{
    array,
    sync::{PoisonError, atomic::AtomicBool},
};

use super::Function;

/// Calls within calls that a thread can note. One within more of them is taken
/// to be in all functions.
pub(super) const DEEPEST: usize = if cfg!(loom) { 2 } else { 16 };

/// The calls that a thread is in. It has cache lines of its own. Other threads read
/// it when they switch a callback off.
#[repr(align(64))]
pub struct ThreadCallStack {
    depth: AtomicUsize,
    calls: [AtomicU32; DEEPEST],
    /// The correlation of the last call that is recorded once it ends.
    last: AtomicU32,
    is_taken: AtomicBool,
}

impl Default for ThreadCallStack {
    fn default() -> Self {
        Self {
            depth: AtomicUsize::new(0),
            calls: array::from_fn(|_| AtomicU32::new(0)),
            last: AtomicU32::new(0),
            is_taken: AtomicBool::new(true),
        }
    }
}

impl ThreadCallStack {
    /// Its thread begins a call.
    #[inline]
    pub(super) fn push(&self, function: Function) {
        let depth = self.depth.load(Ordering::Relaxed);
        if let Some(call) = self.calls.get(depth) {
            call.store(word(function), Ordering::Relaxed);
        }
        self.depth.store(depth + 1, Ordering::Release);
    }

    /// Its thread ends a call, in CUPTI's callback. A call whose beginning was not
    /// reported is not noted.
    #[inline]
    pub fn ends(&self, function: Function) {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth > DEEPEST {
            self.depth.store(depth - 1, Ordering::Release);
            return;
        }
        let begun = self.calls.iter().take(depth);
        if let Some(at) = begun
            .rev()
            .position(|call| call.load(Ordering::Relaxed) == word(function))
        {
            self.depth.store(depth - 1 - at, Ordering::Release);
        }
    }

    /// Its thread begins a call that is recorded once it ends.
    #[inline]
    pub fn set_last_recorded(&self, correlation: u32) {
        self.last.store(correlation, Ordering::Relaxed);
    }

    /// Whether its thread is in a call of a function.
    pub fn is_within(&self, function: Function) -> bool {
        let depth = self.depth.load(Ordering::Acquire);
        let mut begun = self.calls.iter().take(depth);
        depth > DEEPEST || begun.any(|call| call.load(Ordering::Relaxed) == word(function))
    }
}

#[inline]
fn word((domain, id): Function) -> u32 {
    ((domain as u32) << 31) | id
}

/// The stacks of all threads that were ever in a call. A thread that ends leaves its
/// stack to another.
static CALL_STACKS: std::sync::Mutex<Vec<&'static ThreadCallStack>> = std::sync::Mutex::new(Vec::new());

struct Own(&'static ThreadCallStack);

thread_local! {
    static OWN: Own = Own::claim();
}

impl Own {
    fn claim() -> Self {
        let mut stacks = CALL_STACKS.lock().unwrap_or_else(PoisonError::into_inner);
        let left = stacks
            .iter()
            .find(|stack| !stack.is_taken.swap(true, Ordering::Acquire));
        Self(left.copied().unwrap_or_else(|| {
            let stack: &'static ThreadCallStack = Box::leak(Box::default());
            stacks.push(stack);
            stack
        }))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.0.depth.store(0, Ordering::Release);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

/// The stack of the calling thread; none while the thread is torn down.
#[inline]
pub fn here() -> Option<&'static ThreadCallStack> {
    OWN.try_with(|own| own.0).ok()
}

/// Whether any thread is in a call of a function.
pub fn is_any_within(function: Function) -> bool {
    let stacks = CALL_STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    stacks.iter().any(|stack| stack.is_within(function))
}

/// The highest correlation of a call that was recorded or will be when it ends:
/// CUPTI counts upwards.
pub fn last_recorded() -> u32 {
    let stacks = CALL_STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    let last = stacks.iter().map(|stack| stack.last.load(Ordering::Relaxed));
    last.max().unwrap_or(0)
}
