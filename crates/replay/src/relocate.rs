//! Memory that could not be had where it was.
//!
//! Then what holds an address has to change with it, and nothing says what does. Every word of eight bytes, at a multiple
//! of eight, that lies in the old range is taken for one: in parameters, in memory when it is restored, and in what copies
//! bring from the host. When memory is compared or shown, words in the new range are taken back. Addresses that are put
//! together otherwise (of halves, packed, or relative to one that is built into the code) are not found: it is the best
//! that can be done, and a verdict says that it was.

use std::ops::Range;

use crate::run::Replay;

impl Replay<'_> {
    /// Ranges of memory that lie elsewhere, and where.
    pub fn relocated(&self) -> Vec<(Range<u64>, u64)> {
        let shifted = self.stage.shifted().iter();
        shifted.map(|shifted| (shifted.was.clone(), shifted.is)).collect()
    }

    /// Content as it was recorded, for memory that begins at an address, becomes what it must be here.
    pub(crate) fn outward(&self, address: u64, content: &mut [u8]) {
        each_word(address, content, |word| self.stage.place(word));
    }

    /// Content as it is here becomes what it would be where memory was.
    pub(crate) fn homeward(&self, address: u64, content: &mut [u8]) {
        let shifted = self.stage.shifted();
        if shifted.is_empty() {
            return;
        }
        each_word(address, content, |word| {
            let found = shifted.iter().find(|shifted| {
                let bytes = shifted.was.end - shifted.was.start;
                word.wrapping_sub(shifted.is) < bytes
            });
            found.map_or(word, |shifted| shifted.was.start + (word - shifted.is))
        });
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
