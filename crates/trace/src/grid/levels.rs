//! The levels of a row: cells of 2, 4, 8… times the length of the base level's, each made from two of the level below.
//!
//! They are made in one pass along time. Of each level only one cell is open, so nothing but the result takes memory.

use super::cell::{Cell, KeptLevel, Sink, SpanCells, Tally};

/// The coarsest level: longer cells would begin after the end of all times.
pub(super) const LAST_LEVEL: u8 = 63;
/// Slices that a base cell has on average, at least.
const SLICES_A_CELL: u64 = 4;
/// A row with fewer slices has no levels: going through all of them takes a few microseconds.
const FEWEST_SLICES: u64 = 2_048;

/// The kept levels of a row, from the base level to that of a single cell.
#[derive(Debug)]
pub(super) struct Levels {
    base: u8,
    kept: Vec<KeptLevel>,
    /// The number of the coarsest level's last cell, and what is in it.
    top: (u64, Cell),
}

impl Levels {
    /// Levels of a row with so many slices between two moments. `None` when it needs none.
    pub(super) fn plan(slices: u64, first: u64, last: u64) -> Option<Tally<Cascade>> {
        if slices < FEWEST_SLICES {
            return None;
        }
        let fits = |level: &u8| (last >> *level) - (first >> *level) < slices / SLICES_A_CELL;
        let base = (0..LAST_LEVEL).find(fits).unwrap_or(LAST_LEVEL);
        let is_last = |level: &u8| last >> *level == first >> *level;
        let top = (base..LAST_LEVEL).find(is_last).unwrap_or(LAST_LEVEL);
        let kept = (base..=top).map(|level| {
            let cells = (last >> level) - (first >> level) + 1;
            KeptLevel::new(first >> level, cells as usize)
        });
        let cascade = Cascade {
            levels: Levels {
                base,
                kept: kept.collect(),
                top: (0, Cell::EMPTY),
            },
            open: vec![None; usize::from(top - base) + 1],
        };
        Some(Tally::new(base, cascade))
    }

    /// Cells of a level; `None` for one that is finer than those that are kept.
    pub(super) fn read(&self, level: u8, first: u64, cells: usize) -> Option<SpanCells> {
        let number = usize::from(level.checked_sub(self.base)?);
        if let Some(kept) = self.kept.get(number) {
            return Some(kept.read(first, cells));
        }
        let top = self.base + (self.kept.len() - 1) as u8;
        let mut read = SpanCells::empty(cells);
        let only = self.top.0 >> (level - top);
        if let Some(at) = only.checked_sub(first).filter(|at| *at < cells as u64) {
            read.set(at as usize, &self.top.1, level);
        }
        Some(read)
    }

    pub(super) fn bytes(&self) -> usize {
        let kept: usize = self.kept.iter().map(KeptLevel::bytes).sum();
        size_of::<Self>() + self.kept.capacity() * size_of::<KeptLevel>() + kept
    }
}

/// Makes all levels from the cells of the base level.
pub(super) struct Cascade {
    levels: Levels,
    /// The open cell of each level but the base.
    open: Vec<Option<(u64, Cell)>>,
}

impl Cascade {
    /// A cell of the level with a number is complete.
    fn close(&mut self, number: usize, cell: u64, counted: &Cell) {
        let level = self.levels.base + number as u8;
        self.levels.kept[number].push(cell, counted, level);
        if number + 1 == self.levels.kept.len() {
            self.levels.top = (cell, *counted);
            return;
        }
        let parent = cell >> 1;
        match self.open[number + 1].take() {
            Some((open, first)) if open == parent => {
                self.open[number + 1] = Some((parent, first.join(counted)));
            }
            earlier => {
                if let Some((open, complete)) = earlier {
                    self.close(number + 1, open, &complete);
                }
                self.open[number + 1] = Some((parent, *counted));
            }
        }
    }

    /// The levels, once all slices are counted.
    pub(super) fn finish(mut self) -> Levels {
        for number in 1..self.open.len() {
            if let Some((open, complete)) = self.open[number].take() {
                self.close(number, open, &complete);
            }
        }
        self.levels
    }
}

impl Sink for Cascade {
    fn put(&mut self, cell: u64, counted: &Cell) {
        self.close(0, cell, counted);
    }
}
