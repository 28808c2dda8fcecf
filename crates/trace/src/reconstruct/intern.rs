//! Small numbers for values that repeat.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Gives out numbers for values, counted from 0 in the order of their first appearance.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    pub(crate) values: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The value's number.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            self.values.len() as u32 - 1
        })
    }

    /// Whether the value has a number.
    pub(crate) fn has(&self, value: &T) -> bool {
        self.numbers.contains_key(value)
    }

    /// The numbers of a block's distinct values, so that its rows need no look-up of their own.
    pub(crate) fn numbers(&mut self, values: impl IntoIterator<Item = T>) -> Vec<u32> {
        values.into_iter().map(|value| self.number(value)).collect()
    }
}
