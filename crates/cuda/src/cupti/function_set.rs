//! A set of callback IDs that threads read without a lock.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

use super::Switch;

/// A set of callback IDs of one domain. IDs of [`CAPACITY`](Self::CAPACITY) and above do not fit and are never stored.
pub struct FunctionSet([AtomicU64; FunctionSet::WORDS]);

impl FunctionSet {
    const WORDS: usize = if cfg!(loom) { 1 } else { 32 };

    /// How many IDs fit: more than CUDA 13 has in any domain.
    pub const CAPACITY: u32 = Self::WORDS as u32 * 64;

    /// An empty set.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Self::WORDS])
    }

    /// An empty set.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Whether the set contains an ID; none for one that does not fit.
    #[inline]
    pub fn get(&self, id: u32) -> Option<bool> {
        let word = self.0.get(id as usize / 64)?;
        Some(word.load(Ordering::Acquire) & (1 << (id % 64)) != 0)
    }

    /// Whether the set contains an ID. One that does not fit is not contained.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.get(id).unwrap_or(false)
    }

    /// Adds or removes an ID. Does nothing for one that does not fit.
    pub fn set(&self, id: u32, switch: Switch) {
        if let Some(word) = self.0.get(id as usize / 64) {
            match switch {
                Switch::On => word.fetch_or(1 << (id % 64), Ordering::AcqRel),
                Switch::Off => word.fetch_and(!(1 << (id % 64)), Ordering::AcqRel),
            };
        }
    }

    /// Adds or removes all IDs.
    pub fn set_all(&self, switch: Switch) {
        let word = match switch {
            Switch::On => u64::MAX,
            Switch::Off => 0,
        };
        for each in &self.0 {
            each.store(word, Ordering::Release);
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Acquire) == 0)
    }

    /// The IDs of the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().zip(0_u32..).flat_map(|(word, at)| {
            let bits = word.load(Ordering::Acquire);
            (0..64)
                .filter(move |bit| bits & (1 << bit) != 0)
                .map(move |bit| at * 64 + bit)
        })
    }
}

impl Default for FunctionSet {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ids_that_do_not_fit_are_not_stored() {
        let set = FunctionSet::new();
        set.set(307, Switch::On);
        set.set(FunctionSet::CAPACITY, Switch::On);
        assert_eq!(set.iter().collect::<Vec<_>>(), [307]);
        assert_eq!((set.get(307), set.get(308)), (Some(true), Some(false)));
        assert_eq!(set.get(FunctionSet::CAPACITY), None);
        assert!(!set.contains(FunctionSet::CAPACITY));
        set.set(307, Switch::Off);
        assert!(set.is_empty());
        set.set_all(Switch::On);
        assert_eq!(set.iter().count(), FunctionSet::CAPACITY as usize);
    }
}
