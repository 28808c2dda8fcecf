//! One cell of time while it is counted, and the form in which cells are kept and sent.
//!
//! Sums are exact: nanoseconds in 64 bits. Only the kept form is rounded, to shares of 255. A coarser cell is joined
//! from the two exact cells below it, so that no error adds up.

use std::ops::Range;

/// Categories that a track can have.
pub const CATEGORIES: usize = 4;
/// The shape of a cell that has none.
pub const NO_SHAPE: u16 = u16::MAX;
/// The shape of a cell whose shape has a number that does not fit.
pub const UNNUMBERED_SHAPE: u16 = u16::MAX - 1;

/// A part of a slice, or of the union of several rows, within one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Distinguishes it from its neighbors.
    id: u64,
    nanos: u64,
    shape: u32,
}

impl Stretch {
    const NONE: Self = Stretch {
        id: u64::MAX,
        nanos: 0,
        shape: 0,
    };

    fn is_some(&self) -> bool {
        self.id != u64::MAX
    }

    /// The longer one; the first of equals.
    fn longer(self, later: Self) -> Self {
        if !self.is_some() || later.is_some() && later.nanos > self.nanos {
            later
        } else {
            self
        }
    }

    /// The same stretch in this cell and the next one.
    fn and(self, next: Self) -> Self {
        Stretch {
            nanos: self.nanos + next.nanos,
            ..self
        }
    }
}

/// What is known of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Nanoseconds of each category.
    busy: [u64; CATEGORIES],
    /// The categories that have to be visible, one bit each.
    present: u8,
    /// Slices that start in it.
    count: u64,
    longest: Stretch,
    /// The stretch that was there before the cell.
    entering: Stretch,
    /// The stretch that goes on after it.
    leaving: Stretch,
}

impl Cell {
    pub(super) const EMPTY: Self = Cell {
        busy: [0; CATEGORIES],
        present: 0,
        count: 0,
        longest: Stretch::NONE,
        entering: Stretch::NONE,
        leaving: Stretch::NONE,
    };

    fn is_empty(&self) -> bool {
        !self.longest.is_some()
    }

    /// This cell and the one after it as one cell.
    pub(super) fn join(&self, next: &Self) -> Self {
        let goes_on = self.leaving.is_some() && self.leaving.id == next.entering.id;
        let crossing = match goes_on {
            true => self.leaving.and(next.entering),
            false => Stretch::NONE,
        };
        let fills_this = goes_on && self.entering.id == self.leaving.id;
        let fills_next = goes_on && next.entering.id == next.leaving.id;
        Cell {
            busy: std::array::from_fn(|category| self.busy[category] + next.busy[category]),
            present: self.present | next.present,
            count: self.count + next.count,
            longest: self.longest.longer(crossing).longer(next.longest),
            entering: if fills_this { crossing } else { self.entering },
            leaving: if fills_next { crossing } else { next.leaving },
        }
    }

    /// The number of the shape that covers most of it.
    fn shape(&self) -> u16 {
        if self.is_empty() {
            return NO_SHAPE;
        }
        match u16::try_from(self.longest.shape) {
            Ok(shape) if shape < UNNUMBERED_SHAPE => shape,
            _ => UNNUMBERED_SHAPE,
        }
    }

    /// The share of each category in 255ths of a cell of `2^level` nanoseconds. Together they are 255 at most, and what
    /// is there has one at least.
    fn shares(&self, level: u8) -> [u8; CATEGORIES] {
        let half = (1_u128 << level) >> 1;
        let (mut sum, mut given) = (0_u128, 0);
        // Each is the difference of two rounded sums: their total is rounded, too, and not their errors added.
        let mut shares = self.busy.map(|nanos| {
            sum += u128::from(nanos);
            let rounded = ((sum * 255 + half) >> level).min(255) as u8;
            let share = rounded - given;
            given = rounded;
            share
        });
        for category in 0..CATEGORIES {
            if self.present & (1 << category) == 0 || shares[category] > 0 {
                continue;
            }
            shares[category] = 1;
            if given < 255 {
                given += 1;
            } else if let Some(largest) = (0..CATEGORIES).max_by_key(|other| shares[*other]) {
                shares[largest] -= 1;
            }
        }
        shares
    }

    fn log2_count(&self) -> u8 {
        self.count.checked_ilog2().map_or(0, |log| log as u8 + 1)
    }
}

/// Takes cells that are counted, in the order of time. Empty ones are left out.
pub(super) trait Sink {
    fn put(&mut self, cell: u64, counted: &Cell);
}

/// Counts slices into the cells of a level. What it gets is in the order of time.
pub(super) struct Tally<S> {
    level: u8,
    /// The open cell and its end.
    at: u64,
    end: u64,
    open: Cell,
    /// The latest stretch, as far as it is in the open cell.
    current: Stretch,
    sink: S,
}

impl<S: Sink> Tally<S> {
    pub(super) fn new(level: u8, sink: S) -> Self {
        Tally {
            level,
            at: 0,
            end: cell_start(1, level),
            open: Cell::EMPTY,
            current: Stretch::NONE,
            sink,
        }
    }

    /// A slice starts.
    #[inline]
    pub(super) fn start(&mut self, time: u64, id: u64, shape: u32) {
        self.go_to(time);
        self.open.count += 1;
        let nothing_yet = Stretch { id, nanos: 0, shape };
        self.open.longest = self.open.longest.longer(nothing_yet);
    }

    /// A slice without length was started.
    pub(super) fn instant(&mut self, category: u8) {
        self.open.present |= 1 << category;
    }

    /// A stretch covers the time between two moments. It may be told in several parts, which follow each other.
    #[inline]
    pub(super) fn cover(&mut self, mut from: u64, to: u64, (id, shape): (u64, u32), category: u8) {
        match self.current.id == id {
            true => self.go_on(from),
            false => {
                self.go_to(from);
                self.current = Stretch { id, nanos: 0, shape };
            }
        }
        while from < to {
            let end = to.min(self.end);
            self.current.nanos += end - from;
            self.open.busy[category as usize] += end - from;
            self.open.present |= 1 << category;
            self.open.longest = match self.open.longest.id == id {
                true => self.current,
                false => self.open.longest.longer(self.current),
            };
            if self.open.entering.id == id {
                self.open.entering = self.current;
            }
            from = end;
            if end < to {
                self.go_on(end);
            }
        }
    }

    /// The latest stretch goes on at a moment, and other slices may start there.
    pub(super) fn go_on(&mut self, time: u64) {
        if time < self.end {
            return;
        }
        self.open.leaving = self.current;
        self.go_to(time);
        self.current.nanos = 0;
        self.open.entering = self.current;
    }

    #[inline]
    fn go_to(&mut self, time: u64) {
        if time < self.end {
            return;
        }
        self.put_open();
        self.at = time >> self.level;
        self.end = cell_start(self.at.saturating_add(1), self.level);
    }

    fn put_open(&mut self) {
        if !self.open.is_empty() {
            self.sink.put(self.at, &self.open);
            self.open = Cell::EMPTY;
        }
    }

    pub(super) fn finish(mut self) -> S {
        self.put_open();
        self.sink
    }
}

/// When a cell begins; the end of all times for one that begins later.
pub(super) fn cell_start(cell: u64, level: u8) -> u64 {
    if cell > u64::MAX >> level {
        u64::MAX
    } else {
        cell << level
    }
}

/// Cells of a row that has slices, in planes: one vector for each property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanCells {
    /// The shape that covers most of each cell, [`NO_SHAPE`] or [`UNNUMBERED_SHAPE`].
    pub shapes: Vec<u16>,
    /// For each category, its share of each cell in 255ths.
    pub shares: [Vec<u8>; CATEGORIES],
    /// Slices that start in each cell: 0 for none, else 1 and the logarithm to base 2, rounded down.
    pub counts: Vec<u8>,
}

impl SpanCells {
    /// Cells without anything.
    pub(super) fn empty(cells: usize) -> Self {
        SpanCells {
            shapes: vec![NO_SHAPE; cells],
            shares: std::array::from_fn(|_| vec![0; cells]),
            counts: vec![0; cells],
        }
    }

    pub(super) fn set(&mut self, cell: usize, counted: &Cell, level: u8) {
        self.shapes[cell] = counted.shape();
        for (plane, share) in self.shares.iter_mut().zip(counted.shares(level)) {
            plane[cell] = share;
        }
        self.counts[cell] = counted.log2_count();
    }
}

/// Cells of a level that were asked for.
pub(super) struct Window {
    pub(super) level: u8,
    pub(super) first: u64,
    pub(super) cells: SpanCells,
}

impl Window {
    pub(super) fn new(level: u8, first: u64, cells: usize) -> Self {
        Window {
            level,
            first,
            cells: SpanCells::empty(cells),
        }
    }

    /// The time that the cells take, as far as it can be told in 64 bits.
    pub(super) fn times(&self) -> Range<u64> {
        let last = self.first.saturating_add(self.cells.shapes.len() as u64);
        cell_start(self.first, self.level)..cell_start(last, self.level)
    }
}

impl Sink for Window {
    fn put(&mut self, cell: u64, counted: &Cell) {
        let at = cell
            .checked_sub(self.first)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(at) = at.filter(|at| *at < self.cells.shapes.len()) {
            self.cells.set(at, counted, self.level);
        }
    }
}

/// Cells of one level that are kept. Planes of categories that never occur are empty, and all end with what is in them.
#[derive(Debug, Default)]
pub(super) struct KeptLevel {
    first: u64,
    shapes: Vec<u16>,
    shares: [Vec<u8>; CATEGORIES],
    counts: Vec<u8>,
}

impl KeptLevel {
    pub(super) fn new(first: u64, cells: usize) -> Self {
        KeptLevel {
            first,
            shapes: Vec::with_capacity(cells),
            shares: Default::default(),
            counts: Vec::with_capacity(cells),
        }
    }

    pub(super) fn push(&mut self, cell: u64, counted: &Cell, level: u8) {
        let at = (cell - self.first) as usize;
        self.shapes.resize(at, NO_SHAPE);
        self.counts.resize(at, 0);
        self.shapes.push(counted.shape());
        self.counts.push(counted.log2_count());
        for (plane, share) in self.shares.iter_mut().zip(counted.shares(level)) {
            if share == 0 && plane.is_empty() {
                continue;
            }
            if plane.capacity() == 0 {
                plane.reserve_exact(self.shapes.capacity());
            }
            plane.resize(at, 0);
            plane.push(share);
        }
    }

    pub(super) fn read(&self, first: u64, cells: usize) -> SpanCells {
        let mut read = SpanCells::empty(cells);
        copy_plane(&self.shapes, self.first, &mut read.shapes, first);
        copy_plane(&self.counts, self.first, &mut read.counts, first);
        for (kept, plane) in self.shares.iter().zip(&mut read.shares) {
            copy_plane(kept, self.first, plane, first);
        }
        read
    }

    pub(super) fn bytes(&self) -> usize {
        let shares: usize = self.shares.iter().map(Vec::capacity).sum();
        self.shapes.capacity() * size_of::<u16>() + shares + self.counts.capacity()
    }
}

/// Copies what two planes have in common. The first cells of both are given.
pub(super) fn copy_plane<T: Copy>(kept: &[T], kept_first: u64, plane: &mut [T], first: u64) {
    let skipped = kept_first.saturating_sub(first).min(plane.len() as u64) as usize;
    let begin = first.saturating_sub(kept_first).min(kept.len() as u64) as usize;
    let count = (kept.len() - begin).min(plane.len() - skipped);
    plane[skipped..skipped + count].copy_from_slice(&kept[begin..begin + count]);
}
