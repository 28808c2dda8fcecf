//! Sets of correlation numbers. They are dense in real files, a bit each; a file that spreads them out takes 64 bytes for
//! each, which is less than the event that brought it.

use rustc_hash::FxHashMap;

/// Words of a piece of the set: 512 numbers.
const WORDS: usize = 8;

/// A set of numbers.
#[derive(Debug, Default)]
pub(super) struct NumberSet {
    pieces: FxHashMap<u64, [u64; WORDS]>,
}

impl NumberSet {
    #[inline]
    pub(super) fn insert(&mut self, number: u64) {
        let (piece, word, bit) = place(number);
        self.pieces.entry(piece).or_default()[word] |= bit;
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let (piece, word, bit) = place(number);
        self.pieces
            .get(&piece)
            .is_some_and(|words| words[word] & bit != 0)
    }

    /// How many numbers of this set the other one lacks.
    pub(super) fn missing_in(&self, other: &NumberSet) -> u64 {
        let lacking = |(piece, words): (&u64, &[u64; WORDS])| -> u64 {
            let others = other.pieces.get(piece).copied().unwrap_or_default();
            let pairs = words.iter().zip(others);
            pairs
                .map(|(own, other)| u64::from((own & !other).count_ones()))
                .sum()
        };
        self.pieces.iter().map(lacking).sum()
    }
}

#[inline]
fn place(number: u64) -> (u64, usize, u64) {
    (number >> 9, (number >> 6) as usize % WORDS, 1 << (number & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_counted_once() {
        let (mut flows, mut rows) = (NumberSet::default(), NumberSet::default());
        for number in [0, 1, 63, 64, 511, 512, u64::MAX, u64::MAX] {
            flows.insert(number);
        }
        for number in [0, 64, 512, 7] {
            rows.insert(number);
        }
        assert_eq!(flows.missing_in(&rows), 4);
        assert_eq!(rows.missing_in(&flows), 1);
    }
}
