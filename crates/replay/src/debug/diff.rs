//! Where two contents of the same memory differ.

use std::ops::Range;

use super::memory::{Memory, Moment, chunks};
use super::number::Number;
use crate::error::Error;

/// Differences of a range of memory at two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// The element type.
    pub number: Number,
    /// Compared bytes.
    pub bytes: u64,
    /// Bytes that differ.
    pub different_bytes: u64,
    /// Elements that differ. An incomplete last element counts as one.
    pub different_elements: u64,
    /// The largest difference of two finite elements.
    pub largest: f64,
    /// The first runs of elements that differ: offsets from the start, in bytes.
    pub ranges: Vec<Range<u64>>,
    /// Number of runs.
    pub range_count: u64,
    /// The first elements that differ.
    pub first: Vec<ElementChange>,
    limits: DiffLimits,
    /// The end of the last run.
    open: Option<u64>,
}

/// An element that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementChange {
    /// Its offset, in bytes.
    pub offset: u64,
    /// Its bytes at the first moment.
    pub old: Vec<u8>,
    /// Its bytes at the second moment.
    pub new: Vec<u8>,
}

/// What is kept of differences. All are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLimits {
    /// Runs of elements.
    pub ranges: usize,
    /// Elements.
    pub elements: usize,
}

impl Diff {
    /// Nothing compared yet.
    pub fn new(number: Number, limits: DiffLimits) -> Self {
        Self {
            number,
            bytes: 0,
            different_bytes: 0,
            different_elements: 0,
            largest: 0.0,
            ranges: Vec::new(),
            range_count: 0,
            first: Vec::new(),
            limits,
            open: None,
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.different_bytes == 0
    }

    /// Counts bytes that are known to be equal.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Compares a chunk at an offset. Chunks must come in order, and start at multiples of 8.
    pub(super) fn add(&mut self, offset: u64, old: &[u8], new: &[u8]) {
        self.bytes += new.len() as u64;
        if old == new {
            return;
        }
        let width = self.number.bytes();
        for (index, (old, new)) in old.chunks(width).zip(new.chunks(width)).enumerate() {
            if old != new {
                self.add_element(offset + (index * width) as u64, old, new);
            }
        }
    }

    fn add_element(&mut self, offset: u64, old: &[u8], new: &[u8]) {
        self.different_elements += 1;
        self.different_bytes += old.iter().zip(new).filter(|(old, new)| old != new).count() as u64;
        let apart = self.number.distance(old, new);
        if apart.is_finite() {
            self.largest = self.largest.max(apart);
        }
        let end = offset + new.len() as u64;
        if self.open != Some(offset) {
            self.range_count += 1;
            if self.ranges.len() < self.limits.ranges {
                self.ranges.push(offset..end);
            }
        } else if self.range_count == self.ranges.len() as u64
            && let Some(last) = self.ranges.last_mut()
        {
            last.end = end;
        }
        self.open = Some(end);
        if self.first.len() < self.limits.elements {
            self.first.push(ElementChange {
                offset,
                old: old.to_vec(),
                new: new.to_vec(),
            });
        }
    }
}

/// Compares a range at two moments.
///
/// # Errors
///
/// If the contents are not known.
pub fn diff(
    memory: &mut impl Memory,
    moments: [Moment; 2],
    range: &Range<u64>,
    number: Number,
    limits: DiffLimits,
) -> Result<Diff, Error> {
    let mut diff = Diff::new(number, limits);
    for chunk in chunks(range) {
        let [old, new] = moments;
        let old = memory.contents(old, chunk.clone())?;
        let new = memory.contents(new, chunk.clone())?;
        diff.add(chunk.start - range.start, &old, &new);
    }
    Ok(diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DiffLimits = DiffLimits {
        ranges: 2,
        elements: 2,
    };

    #[test]
    fn neighbors_are_one_run_also_across_chunks() {
        let mut diff = Diff::new(Number::U16, LIMITS);
        diff.add(0, &[0; 8], &[0, 0, 0, 1, 0, 0, 1, 1]);
        diff.add(8, &[0; 8], &[1, 0, 0, 0, 0, 0, 0, 7]);
        diff.skip(8);
        assert_eq!(
            (diff.bytes, diff.different_bytes, diff.different_elements),
            (24, 5, 4)
        );
        // 2..4, 6..10, and one more that is only counted.
        assert_eq!((diff.ranges.clone(), diff.range_count), (vec![2..4, 6..10], 3));
        assert_eq!(diff.first.len(), 2);
        assert_eq!(diff.first[0].new, [0, 1]);
        assert_eq!(diff.largest, 1792.0);
    }

    #[test]
    fn a_run_that_is_only_counted_does_not_grow_another() {
        let mut diff = Diff::new(Number::U8, LIMITS);
        diff.add(0, &[0; 8], &[1, 0, 1, 0, 1, 1, 1, 0]);
        assert_eq!((diff.ranges.clone(), diff.range_count), (vec![0..1, 2..3], 3));
        assert!(!diff.is_empty());
    }
}
