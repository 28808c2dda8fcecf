//! Per-thread values without a destructor. When a program exits, the destructors of thread-local values run before its exit
//! handlers; those may still call CUDA, and so do the handlers of profilers.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::thread::LocalKey;

/// A value that is never dropped: what it holds is lost with its thread.
pub(crate) struct Kept<T>(ManuallyDrop<RefCell<T>>);

impl<T> Kept<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(ManuallyDrop::new(RefCell::new(value)))
    }
}

/// The borrowing that `LocalKey` offers for a plain `RefCell`.
pub(crate) trait KeptKey<T> {
    fn with_borrow<R>(&'static self, look: impl FnOnce(&T) -> R) -> R;
    fn with_borrow_mut<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> KeptKey<T> for LocalKey<Kept<T>> {
    fn with_borrow<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        self.with(|kept| look(&kept.0.borrow()))
    }

    fn with_borrow_mut<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R {
        self.with(|kept| change(&mut kept.0.borrow_mut()))
    }
}
