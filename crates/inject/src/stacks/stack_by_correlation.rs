//! From a call to its stack, by correlation ID.
//!
//! The calling thread writes. The thread that reads CUPTI's records reads, later.
//! CUPTI counts correlation IDs upwards, so their low bits are places in a ring. A
//! place is overwritten after that many calls.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// Calls whose records may be under way at once. CUPTI hands records out every
/// 100 milliseconds; a launch of PyTorch takes some 20 numbers in 10
/// microseconds, which are 200,000 in that time.
const PLACES: usize = 1 << 19;

#[derive(Default)]
pub(super) struct StackByCorrelation {
    /// The call above, its stack below.
    places: OnceLock<Box<[AtomicU64]>>,
    lost: AtomicU64,
}

impl StackByCorrelation {
    /// Allocates the ring, once.
    pub(super) fn prepare(&self) {
        self.places
            .get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
    }

    /// The call with this number will have one: its place, which someone else read
    /// last, is fetched for writing meanwhile.
    #[inline]
    pub(super) fn expect(&self, correlation: u32) {
        #[cfg(target_arch = "x86_64")]
        if let Some(place) = self.place(correlation) {
            // SAFETY: a hint. It reads and writes nothing, and a processor that does not know it does nothing.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = correlation;
    }

    /// The call with this number has this stack.
    #[inline]
    pub(super) fn put(&self, correlation: u32, stack: u32) {
        if let Some(place) = self.place(correlation) {
            place.store(u64::from(correlation) << 32 | u64::from(stack), Ordering::Release);
        }
    }

    /// The stack of the call with this number; 0 is none.
    #[inline]
    pub(super) fn get(&self, correlation: u32) -> u32 {
        let Some(joined) = self.place(correlation).map(|place| place.load(Ordering::Acquire)) else {
            return 0;
        };
        let call = (joined >> 32) as u32;
        if call == correlation {
            return joined as u32;
        }
        // Another that came later; one that came earlier means that ours took no stack.
        let is_later = call != 0 && call.wrapping_sub(correlation) < 1 << 31;
        if is_later {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        0
    }

    /// Records that came too late for their stack. It also counts those of calls
    /// that take none and came as late.
    pub(super) fn lost(&self) -> &AtomicU64 {
        &self.lost
    }

    #[inline]
    fn place(&self, correlation: u32) -> Option<&AtomicU64> {
        self.places.get()?.get(correlation as usize % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_comes_a_round_later_takes_the_place() {
        let by_correlation = StackByCorrelation::default();
        assert_eq!(by_correlation.get(7), 0, "nothing is wanted");
        by_correlation.prepare();
        by_correlation.put(7, 1);
        assert_eq!((by_correlation.get(7), by_correlation.get(8)), (1, 0));
        let later = 7 + PLACES as u32;
        assert_eq!(by_correlation.get(later), 0);
        assert_eq!(
            by_correlation.lost().load(Ordering::Relaxed),
            0,
            "that one took none"
        );
        by_correlation.put(later, 2);
        assert_eq!((by_correlation.get(7), by_correlation.get(later)), (0, 2));
        assert_eq!(by_correlation.lost().load(Ordering::Relaxed), 1);
    }
}
