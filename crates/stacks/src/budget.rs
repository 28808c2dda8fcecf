//! A shared limit for the caches of all threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of entries that all threads share.
pub(crate) struct Budget {
    taken: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) const fn of(most: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            most,
        }
    }

    /// Reserves entries. Returns false, and reserves none, if not enough are left.
    pub(crate) fn take(&self, pieces: usize) -> bool {
        if self.taken.fetch_add(pieces, Ordering::Relaxed) + pieces <= self.most {
            return true;
        }
        self.release(pieces);
        false
    }

    pub(crate) fn release(&self, pieces: usize) {
        self.taken.fetch_sub(pieces, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let budget = Budget::of(10);
        assert!(budget.take(6) && !budget.take(5) && budget.take(4) && !budget.take(1));
        budget.release(4);
        assert!(budget.take(3) && budget.take(1) && !budget.take(1));
    }
}
