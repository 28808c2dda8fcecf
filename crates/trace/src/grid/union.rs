//! The row of a whole device: what its streams did together, each moment counted once.
//!
//! Where several categories overlap, the first of them counts: compute hides communication, which hides copies, which hide
//! the rest. Shares of a cell add up to 1 at most. Waits are no work and are left out. There are no slices: a sweep
//! over those of the streams makes the cells.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::cell::{CATEGORIES, Sink, Tally, Window};
use super::shapes::Traits;
use super::slices::{Slice, Slices};

/// The rows of a device's streams.
#[derive(Debug)]
pub(super) struct Union {
    pub(super) rows: Vec<Arc<Slices>>,
}

impl Union {
    /// All slices together; waits are among them.
    pub(super) fn count(&self) -> usize {
        self.rows.iter().map(|row| row.count()).sum()
    }

    /// When the first slice starts and the last one ends.
    pub(super) fn reach(&self) -> Option<(u64, u64)> {
        let reaches = self.rows.iter().filter_map(|row| row.reach());
        reaches.reduce(|(start, end), (first, last)| (start.min(first), end.max(last)))
    }

    /// Whether there is anything but waits.
    pub(super) fn has_work(&self, traits: &Traits) -> bool {
        let mut slices = self.rows.iter().flat_map(|row| row.iter());
        slices.any(|slice| traits.is_work(slice.shape))
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Arc<Slices>>()
    }

    /// Counts all of it.
    pub(super) fn tally<S: Sink>(&self, tally: Tally<S>, origin: u64, traits: &Traits) -> Tally<S> {
        self.sweep(tally, (0, u64::MAX), origin, traits)
    }

    /// Counts what is in the cells of a window.
    pub(super) fn tally_window(&self, window: Window, origin: u64, traits: &Traits) -> Window {
        let times = window.times();
        let times = (times.start, times.end);
        let tally = Tally::new(window.level, window);
        self.sweep(tally, times, origin, traits).finish()
    }

    fn sweep<S: Sink>(
        &self,
        tally: Tally<S>,
        (from, to): (u64, u64),
        origin: u64,
        traits: &Traits,
    ) -> Tally<S> {
        let mut sweep = Sweep::new(tally, from, traits);
        let (first, last) = (from.saturating_add(origin), to.saturating_add(origin));
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| row.within(first, last).peekable())
            .collect();
        let heads = rows.iter_mut().enumerate();
        let mut heads: BinaryHeap<Reverse<(u64, usize)>> = heads
            .filter_map(|(row, slices)| Some(Reverse((slices.peek()?.start, row))))
            .collect();
        while let Some(Reverse((_, row))) = heads.pop() {
            // A stream often has many slices before another one has its next.
            let next = heads.peek().map_or((u64::MAX, usize::MAX), |next| next.0);
            let slices = &mut rows[row];
            while let Some(slice) = slices.next_if(|slice| (slice.start, row) <= next) {
                if traits.is_work(slice.shape) {
                    sweep.add(Slice {
                        start: slice.start - origin,
                        end: (slice.end - origin).min(to),
                        ..slice
                    });
                }
            }
            heads.extend(slices.peek().map(|slice| Reverse((slice.start, row))));
        }
        sweep.finish(to)
    }
}

/// Goes along time. At any moment the slice that counts is, of those of the first category that there is, the one that
/// ends last: that depends on nothing that is over, so that a sweep can begin anywhere.
struct Sweep<'t, S> {
    tally: Tally<S>,
    traits: &'t Traits,
    from: u64,
    now: u64,
    /// The slice of each category that ends last.
    open: [Open; CATEGORIES],
    /// What started at the present moment: it is counted once it is known what goes on there.
    started: Vec<Slice>,
    next_id: u64,
    /// The slice that counted last, and until when it did.
    latest: (u64, u64),
    /// The number of the stretch in which it did. One that is interrupted makes several.
    stretch: u64,
}

#[derive(Clone, Copy, Default)]
struct Open {
    end: u64,
    shape: u32,
    id: u64,
}

impl<'t, S: Sink> Sweep<'t, S> {
    fn new(tally: Tally<S>, from: u64, traits: &'t Traits) -> Self {
        Sweep {
            tally,
            traits,
            from,
            now: from,
            open: [Open::default(); CATEGORIES],
            started: Vec::new(),
            next_id: 0,
            latest: (u64::MAX, 0),
            stretch: 0,
        }
    }

    fn add(&mut self, slice: Slice) {
        self.advance(slice.start.max(self.from));
        let id = self.next_id;
        self.next_id += 1;
        if slice.start >= self.from {
            self.started.push(slice);
        }
        let open = &mut self.open[self.traits.category(slice.shape) as usize];
        if slice.end > slice.start && slice.end > open.end {
            *open = Open {
                end: slice.end,
                shape: slice.shape,
                id,
            };
        }
    }

    /// Counts everything before a moment.
    fn advance(&mut self, to: u64) {
        while self.now < to {
            let category = self.open.iter().position(|open| open.end > self.now);
            let counting = category.map(|category| (category, self.open[category]));
            match counting {
                Some((_, open)) if (open.id, self.now) == self.latest => self.tally.go_on(self.now),
                _ => self.stretch += 1,
            }
            self.count_started();
            let Some((category, open)) = counting else {
                self.now = to;
                return;
            };
            let end = open.end.min(to);
            let stretch = (self.stretch, open.shape);
            self.tally.cover(self.now, end, stretch, category as u8);
            self.latest = (open.id, end);
            self.now = end;
        }
    }

    fn count_started(&mut self) {
        for slice in self.started.drain(..) {
            self.tally.start(slice.start, self.stretch, slice.shape);
            if slice.start == slice.end {
                self.tally.instant(self.traits.category(slice.shape));
            }
        }
    }

    fn finish(mut self, to: u64) -> Tally<S> {
        self.advance(to);
        // What started at the very end.
        self.count_started();
        self.tally
    }
}
