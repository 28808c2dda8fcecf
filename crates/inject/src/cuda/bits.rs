//! Sets of functions and callbacks, by their numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use tracesmith_cuda::cupti::Switch;

/// A set of numbers that callbacks look into without a lock.
pub(super) struct Bits([AtomicU64; Bits::WORDS]);

impl Bits {
    pub(super) const WORDS: usize = 32;

    pub(super) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Self::WORDS])
    }

    pub(super) fn clear(&self) {
        self.set_all(Switch::Off);
    }

    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        self.0
            .get(number as usize / 64)
            .is_some_and(|word| word.load(Ordering::Acquire) & (1 << (number % 64)) != 0)
    }

    pub(super) fn set(&self, number: u32, switch: Switch) {
        if let Some(word) = self.0.get(number as usize / 64) {
            match switch {
                Switch::On => word.fetch_or(1 << (number % 64), Ordering::AcqRel),
                Switch::Off => word.fetch_and(!(1 << (number % 64)), Ordering::AcqRel),
            };
        }
    }

    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    pub(super) fn set_all(&self, switch: Switch) {
        let word = match switch {
            Switch::On => u64::MAX,
            Switch::Off => 0,
        };
        for each in &self.0 {
            each.store(word, Ordering::Relaxed);
        }
    }
}
