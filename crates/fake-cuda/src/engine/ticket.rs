//! Something that will have happened: the end of a piece of work, which others can wait for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Cheap to copy; all copies speak of the same piece of work.
#[derive(Clone, Default)]
pub(crate) struct Ticket(Arc<State>);

#[derive(Default)]
struct State {
    is_done: AtomicBool,
    done_nanos: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Ticket {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::Acquire)
    }

    /// When the work ended, on the clock of the records; 0 before.
    pub(crate) fn done_nanos(&self) -> u64 {
        self.0.done_nanos.load(Ordering::Acquire)
    }

    pub(crate) fn set_done(&self, nanos: u64) {
        self.0.done_nanos.store(nanos, Ordering::Release);
        let _guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.is_done.store(true, Ordering::Release);
        self.0.changed.notify_all();
    }

    pub(crate) fn wait(&self) {
        if self.is_done() {
            return;
        }
        let mut guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_done() {
            guard = self.0.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
