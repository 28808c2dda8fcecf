//! Memory at other addresses than recorded: module globals, and memory whose address is not available.
//!
//! Pointers into this memory must be rewritten, but the recording has no types. So every aligned 8-byte word in the
//! old range counts as a pointer: in parameters, in restored memory, and in data copied from the host. When memory is
//! compared or shown, pointers into the new range are converted back.
//!
//! Some pointers are not found: those that are split into halves, packed, or relative to an address in the module.
//! Pointers to device functions are not found either, because the driver does not report their addresses. A kernel
//! that calls a function through memory fails or has other results. So it is never reported as the same.

use std::ops::Range;

use crate::run::Replay;

impl Replay<'_> {
    /// Relocated memory ranges, with their new addresses.
    pub fn relocated(&self) -> Vec<(Range<u64>, u64)> {
        let shifted = self.stage.shifted().iter();
        shifted.map(|shifted| (shifted.was.clone(), shifted.is)).collect()
    }

    /// Whether any memory is relocated.
    pub(crate) fn has_moved_memory(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Converts recorded contents at an address for this process.
    pub(crate) fn to_replay_addresses(&self, address: u64, content: &mut [u8]) {
        if self.has_moved_memory() {
            each_word(address, content, |word| self.moves.to_replay_addresses(word));
        }
    }

    /// Converts contents of this process to the recorded addresses.
    pub(crate) fn to_recorded_addresses(&self, address: u64, content: &mut [u8]) {
        if self.has_moved_memory() {
            each_word(address, content, |word| self.moves.to_recorded_addresses(word));
        }
    }
}

/// Old and new addresses of relocated memory. Lookups are fast in both directions, because every word of all memory
/// is looked up.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// By recorded address.
    out: Vec<(Range<u64>, u64)>,
    /// By address in this process.
    home: Vec<(Range<u64>, u64)>,
}

impl Moves {
    /// From recorded ranges and their new start addresses.
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

/// Translates a word that lies in one of the sorted ranges.
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

/// Applies `change` to all 8-byte aligned words.
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
