//! The slices of one row: in order, never overlapping, found by binary search.

use super::cell::{Sink, Tally, Window};
use super::lanes::Lane;
use super::packed::Packed;
use crate::overview::Direction;

/// The slices of a row.
#[derive(Debug)]
pub(super) struct Slices {
    chunks: Vec<Vec<Packed>>,
    /// How many slices come before each chunk.
    before: Vec<usize>,
    /// Start and length of those that are longer than 4.29 s.
    long: Vec<(u64, u64)>,
    count: usize,
    end: u64,
}

/// A slice with both its times, on the trace's timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) shape: u32,
}

impl Slices {
    pub(super) fn new(lane: Lane) -> Self {
        let mut count = 0;
        let before = lane.chunks.iter().map(|chunk| {
            count += chunk.len();
            count - chunk.len()
        });
        let before = before.collect();
        let mut slices = Slices {
            chunks: lane.chunks,
            before,
            long: lane.long,
            count,
            end: 0,
        };
        slices.end = count.checked_sub(1).map_or(0, |last| slices.get(last).end);
        slices
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// When the first one starts and the last one ends; `None` if there are none.
    pub(super) fn reach(&self) -> Option<(u64, u64)> {
        let first = self.chunks.first()?.first()?;
        Some((first.start, self.end))
    }

    fn get(&self, number: usize) -> Slice {
        let chunk = self.before.partition_point(|before| *before <= number) - 1;
        self.unpack(self.chunks[chunk][number - self.before[chunk]])
    }

    #[inline]
    fn unpack(&self, packed: Packed) -> Slice {
        let nanos = packed.nanos().unwrap_or_else(|| {
            let place = self.long.partition_point(|(start, _)| *start < packed.start);
            self.long[place].1
        });
        Slice {
            start: packed.start,
            end: packed.start + nanos,
            shape: packed.shape,
        }
    }

    /// How many slices start before a moment.
    fn before(&self, moment: u64) -> usize {
        let chunk = self.chunks.partition_point(|chunk| chunk[0].start < moment);
        let Some(chunk) = chunk.checked_sub(1) else {
            return 0;
        };
        self.before[chunk] + self.chunks[chunk].partition_point(|slice| slice.start < moment)
    }

    /// The first slice that ends after a moment or starts at it.
    fn first_at(&self, moment: u64) -> usize {
        let after = self.before(moment);
        match after.checked_sub(1) {
            Some(previous) if self.get(previous).end > moment => previous,
            _ => after,
        }
    }

    /// The slices from a number on.
    fn iter_from(&self, number: usize) -> impl Iterator<Item = Slice> {
        let after = self.before.partition_point(|before| *before <= number);
        let chunk = after.saturating_sub(1);
        let skipped = number - self.before.get(chunk).copied().unwrap_or(number);
        let mut chunks = self.chunks[chunk.min(self.chunks.len())..].iter();
        let first = chunks
            .next()
            .map_or(&[][..], |chunk| &chunk[skipped.min(chunk.len())..]);
        let packed = first.iter().chain(chunks.flatten());
        packed.map(|packed| self.unpack(*packed))
    }

    /// All slices.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slice> {
        self.iter_from(0)
    }

    /// The slices that overlap a stretch of time, those without length in it among them.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Slice> {
        // Nothing starts after the end of all times.
        self.iter_from(self.first_at(from))
            .take_while(move |slice| slice.start < to || to == u64::MAX)
    }

    /// The slice that starts next to a moment, of one shape if that is given.
    pub(super) fn neighbor(&self, moment: u64, direction: Direction, shape: Option<u32>) -> Option<Slice> {
        let is_meant = |slice: &Slice| shape.is_none_or(|shape| slice.shape == shape);
        match direction {
            Direction::Forward => {
                let first = self.before(moment.checked_add(1)?);
                self.iter_from(first).find(is_meant)
            }
            Direction::Back => {
                let numbers = (0..self.before(moment)).rev();
                numbers.map(|number| self.get(number)).find(is_meant)
            }
        }
    }

    /// Counts all slices.
    pub(super) fn tally<S: Sink>(&self, tally: &mut Tally<S>, origin: u64, category: impl Fn(u32) -> u8) {
        for (id, slice) in self.iter().enumerate() {
            let (start, end) = (slice.start - origin, slice.end - origin);
            let category = category(slice.shape);
            tally.start(start, id as u64, slice.shape);
            if start == end {
                tally.instant(category);
            } else {
                tally.cover(start, end, (id as u64, slice.shape), category);
            }
        }
    }

    /// Counts what is in the cells of a window.
    pub(super) fn tally_window(&self, window: Window, origin: u64, category: impl Fn(u32) -> u8) -> Window {
        let times = window.times();
        let (from, to) = (
            times.start.saturating_add(origin),
            times.end.saturating_add(origin),
        );
        let mut tally = Tally::new(window.level, window);
        for (id, slice) in self.within(from, to).enumerate() {
            let (start, end) = (slice.start.max(from) - origin, slice.end.min(to) - origin);
            let category = category(slice.shape);
            if slice.start >= from {
                tally.start(start, id as u64, slice.shape);
            }
            if slice.start == slice.end {
                tally.instant(category);
            } else {
                tally.cover(start, end, (id as u64, slice.shape), category);
            }
        }
        tally.finish()
    }

    pub(super) fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        size_of::<Self>()
            + chunks * size_of::<Packed>()
            + self.chunks.capacity() * size_of::<Vec<Packed>>()
            + self.before.capacity() * size_of::<usize>()
            + self.long.capacity() * size_of::<(u64, u64)>()
    }
}
