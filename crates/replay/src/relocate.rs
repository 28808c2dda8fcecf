//! Memory that does not lie where it was: variables of device code, which lie where the code is loaded, and memory that
//! could not be had at its address.
//!
//! What holds an address has to change with it, and nothing says what does. Every word of eight bytes, at a multiple of
//! eight, that lies in the old range is taken for an address: in parameters, in memory when it is restored, and in what
//! copies bring from the host. When memory is compared or shown, words in the new range are changed to the old ones.
//! Addresses that are put together otherwise (of halves, packed, or relative to one that is built into the code) are not
//! found. Nor are those of device functions, for which the driver has no names: a kernel that calls one through memory
//! fails or leaves something else, and so is never reported as the same.

use std::ops::Range;

use crate::run::Replay;

impl Replay<'_> {
    /// Ranges of memory that lie elsewhere, and where.
    pub fn relocated(&self) -> Vec<(Range<u64>, u64)> {
        let shifted = self.stage.shifted().iter();
        shifted.map(|shifted| (shifted.was.clone(), shifted.is)).collect()
    }

    /// Whether some memory does not lie where it was.
    pub(crate) fn has_moved_memory(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Content as it was recorded, for memory that begins at an address, becomes what it must be here.
    pub(crate) fn to_replay_addresses(&self, address: u64, content: &mut [u8]) {
        if self.has_moved_memory() {
            each_word(address, content, |word| self.moves.to_replay_addresses(word));
        }
    }

    /// Content as it is here becomes what it would be where memory was.
    pub(crate) fn to_recorded_addresses(&self, address: u64, content: &mut [u8]) {
        if self.has_moved_memory() {
            each_word(address, content, |word| self.moves.to_recorded_addresses(word));
        }
    }
}

/// Where memory was and where it is, to be found quickly in both directions: every word of all memory is looked up.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// By where it was.
    out: Vec<(Range<u64>, u64)>,
    /// By where it is.
    home: Vec<(Range<u64>, u64)>,
}

impl Moves {
    /// Of ranges and where they begin now.
    pub(crate) fn new(moved: impl Iterator<Item = (Range<u64>, u64)>) -> Self {
        let mut out: Vec<(Range<u64>, u64)> = moved.filter(|(was, is)| was.start != *is).collect();
        let mut home: Vec<(Range<u64>, u64)> = out
            .iter()
            .map(|(was, is)| (*is..is + (was.end - was.start), was.start))
            .collect();
        out.sort_by_key(|(range, _)| range.start);
        home.sort_by_key(|(range, _)| range.start);
        Self { out, home }
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn to_replay_addresses(&self, word: u64) -> u64 {
        translated(&self.out, word)
    }

    fn to_recorded_addresses(&self, word: u64) -> u64 {
        translated(&self.home, word)
    }
}

/// A word that lies in one of some sorted ranges, moved to where that one begins now.
fn translated(ranges: &[(Range<u64>, u64)], word: u64) -> u64 {
    let (Some((first, _)), Some((last, _))) = (ranges.first(), ranges.last()) else {
        return word;
    };
    if word < first.start || word >= last.end {
        return word;
    }
    let after = ranges.partition_point(|(range, _)| range.start <= word);
    match ranges.get(after.wrapping_sub(1)) {
        Some((range, to)) if range.contains(&word) => to + (word - range.start),
        _ => word,
    }
}

/// Changes words at multiples of eight.
fn each_word(address: u64, content: &mut [u8], change: impl Fn(u64) -> u64) {
    let first = (address.next_multiple_of(8) - address) as usize;
    let whole = content.get_mut(first..).unwrap_or_default();
    for bytes in whole.as_chunks_mut::<8>().0 {
        *bytes = change(u64::from_le_bytes(*bytes)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_translated_there_and_back() {
        let moves =
            Moves::new([(0x1000..0x1008, 0x9000), (0x100..0x104, 0x8000), (0x5..0x9, 0x5)].into_iter());
        let there = [0x0FF, 0x100, 0x103, 0x104, 0x1007, 0x1008].map(|word| moves.to_replay_addresses(word));
        assert_eq!(there, [0x0FF, 0x8000, 0x8003, 0x104, 0x9007, 0x1008]);
        assert_eq!(
            [0x8003, 0x9000, 0x9008].map(|word| moves.to_recorded_addresses(word)),
            [0x103, 0x1000, 0x9008]
        );
        assert!(Moves::new([(0x5..0x9, 0x5)].into_iter()).is_empty());
    }

    #[test]
    fn words_lie_at_multiples_of_eight() {
        let mut content: Vec<u8> = (0..20).collect();
        each_word(0x1004, &mut content, |_| 0);
        assert_eq!(content[..4], [0, 1, 2, 3]);
        assert!(content[4..20].iter().all(|byte| *byte == 0));
        let mut short = [7; 3];
        each_word(0x1001, &mut short, |_| 0);
        assert_eq!(short, [7; 3]);
    }
}
