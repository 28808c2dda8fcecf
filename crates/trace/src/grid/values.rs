//! A row of values over time: a counter, or the bytes of a pool of memory.
//!
//! A value holds until the next sample, and the last one until the end of the trace. Before the first sample there is
//! none, and a sample that is not a finite number begins a hole. Of samples of one moment only the last one counts.

use super::cell::{cell_start, copy_plane};
use super::levels::LAST_LEVEL;

/// Cells of a row of values, in planes. A cell without a value has NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueCells {
    /// The least value in each cell.
    pub min: Vec<f32>,
    /// The greatest one.
    pub max: Vec<f32>,
    /// The value at the end of each cell.
    pub last: Vec<f32>,
}

impl ValueCells {
    fn new(cells: usize) -> Self {
        ValueCells {
            min: vec![f32::NAN; cells],
            max: vec![f32::NAN; cells],
            last: vec![f32::NAN; cells],
        }
    }

    fn set(&mut self, cell: usize, (min, max, last): Extremes) {
        (self.min[cell], self.max[cell], self.last[cell]) = (min, max, last);
    }

    fn get(&self, cell: usize) -> Option<Extremes> {
        Some((*self.min.get(cell)?, self.max[cell], self.last[cell]))
    }
}

/// The least, the greatest and the last value.
type Extremes = (f32, f32, f32);

/// Samples that a cell of the base level has on average, at least.
const SAMPLES_A_CELL: u64 = 4;
/// A row with fewer samples has no levels.
const FEWEST_SAMPLES: u64 = 2_048;

/// The samples of a row.
#[derive(Debug)]
pub(super) struct Values {
    /// Relative to the origin, each later than the one before.
    times: Vec<u64>,
    values: Vec<f64>,
    /// The last moment of the trace.
    end: u64,
    base: u8,
    /// Each with its first cell.
    levels: Vec<(u64, ValueCells)>,
}

impl Values {
    /// A row of samples in the order of their times, which are relative to the origin, of a trace that ends at `end`.
    pub(super) fn new(samples: impl Iterator<Item = (u64, f64)>, end: u64) -> Self {
        let (mut times, mut values): (Vec<u64>, Vec<f64>) = Default::default();
        for (time, value) in samples {
            match (times.last(), values.last_mut()) {
                (Some(last), Some(known)) if *last == time => *known = value,
                _ => {
                    times.push(time);
                    values.push(value);
                }
            }
        }
        times.shrink_to_fit();
        values.shrink_to_fit();
        let mut row = Values {
            times,
            values,
            end,
            base: 0,
            levels: Vec::new(),
        };
        row.make_levels();
        row
    }

    pub(super) fn count(&self) -> u64 {
        self.times.len() as u64
    }

    /// The least and the greatest value.
    pub(super) fn extremes(&self) -> Option<(f64, f64)> {
        let finite = self.values.iter().filter(|value| value.is_finite());
        let pairs = finite.map(|value| (*value, *value));
        pairs.reduce(|(min, max), (value, _)| (min.min(value), max.max(value)))
    }

    fn make_levels(&mut self) {
        let (Some(first), Some(last)) = (self.times.first().copied(), self.times.last().copied()) else {
            return;
        };
        if self.count() < FEWEST_SAMPLES {
            return;
        }
        let fits = |level: &u8| (last >> *level) - (first >> *level) < self.count() / SAMPLES_A_CELL;
        self.base = (0..LAST_LEVEL).find(fits).unwrap_or(LAST_LEVEL);
        let mut level = self.base;
        let mut begin = first >> level;
        let mut cells = self.count_cells(level, begin, ((last >> level) - begin + 1) as usize);
        while cells.last.len() > 1 && level < LAST_LEVEL {
            let coarser = coarser(begin, &cells);
            self.levels.push((begin, std::mem::replace(&mut cells, coarser)));
            begin >>= 1;
            level += 1;
        }
        self.levels.push((begin, cells));
    }

    /// Cells of a level.
    pub(super) fn read(&self, level: u8, first: u64, cells: usize) -> ValueCells {
        let Some(number) = level.checked_sub(self.base).filter(|_| !self.levels.is_empty()) else {
            return self.count_cells(level, first, cells);
        };
        let mut read = ValueCells::new(cells);
        let coarsest = self.levels.len() - 1;
        let after = match self.levels.get(usize::from(number)) {
            Some((kept_first, kept)) => {
                copy_plane(&kept.min, *kept_first, &mut read.min, first);
                copy_plane(&kept.max, *kept_first, &mut read.max, first);
                copy_plane(&kept.last, *kept_first, &mut read.last, first);
                kept_first + kept.last.len() as u64
            }
            None => {
                let (kept_first, kept) = &self.levels[coarsest];
                let only = kept_first >> (usize::from(number) - coarsest);
                let at = only.checked_sub(first).filter(|at| *at < cells as u64);
                if let (Some(at), Some(extremes)) = (at, kept.get(0)) {
                    read.set(at as usize, extremes);
                }
                only + 1
            }
        };
        if let Some(last) = self.values.last().copied().map(rounded) {
            let skipped = after.saturating_sub(first).min(cells as u64) as usize;
            for cell in skipped..cells {
                if cell_start(first + cell as u64, level) > self.end {
                    break;
                }
                read.set(cell, (last, last, last));
            }
        }
        read
    }

    /// Cells of a level, from the samples.
    fn count_cells(&self, level: u8, first: u64, cells: usize) -> ValueCells {
        let mut counted = ValueCells::new(cells);
        let begin = cell_start(first, level);
        let mut next = self.times.partition_point(|time| *time < begin);
        let mut held = match next.checked_sub(1) {
            Some(last) => rounded(self.values[last]),
            None => f32::NAN,
        };
        for at in 0..cells {
            let cell = first.saturating_add(at as u64);
            let start = cell_start(cell, level);
            if start > self.end || cell > u64::MAX >> level {
                break;
            }
            let starts_with_sample = self.times.get(next) == Some(&start);
            let mut extremes = match starts_with_sample {
                true => (f32::NAN, f32::NAN, held),
                false => (held, held, held),
            };
            while let Some(time) = self.times.get(next).filter(|time| **time >> level == cell) {
                debug_assert!(*time >= start);
                held = rounded(self.values[next]);
                extremes = (extremes.0.min(held), extremes.1.max(held), held);
                next += 1;
            }
            counted.set(at, extremes);
        }
        counted
    }

    pub(super) fn bytes(&self) -> usize {
        let cells: usize = self.levels.iter().map(|(_, cells)| cells.last.capacity()).sum();
        size_of::<Self>()
            + self.times.capacity() * size_of::<u64>()
            + self.values.capacity() * size_of::<f64>()
            + cells * size_of::<Extremes>()
    }
}

/// A value as it is drawn: NaN for a hole.
fn rounded(value: f64) -> f32 {
    if value.is_finite() {
        (value as f32).clamp(f32::MIN, f32::MAX)
    } else {
        f32::NAN
    }
}

/// Cells that are twice as long. The first one may have a single part.
fn coarser(first: u64, cells: &ValueCells) -> ValueCells {
    let last = first + cells.last.len() as u64 - 1;
    let mut joined = ValueCells::new(((last >> 1) - (first >> 1) + 1) as usize);
    for (at, cell) in (first..=last).enumerate() {
        let (min, max, end) = (cells.min[at], cells.max[at], cells.last[at]);
        let into = ((cell >> 1) - (first >> 1)) as usize;
        // The least of a number and NaN is the number.
        let extremes = (joined.min[into].min(min), joined.max[into].max(max), end);
        joined.set(into, extremes);
    }
    joined
}
