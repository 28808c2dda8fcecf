//! Counters seen from afar: for each cell of time the mean, the least and the greatest value of each counter.
//!
//! A value holds until the next sample of its counter. A cell before the first sample is empty. A sample that is not a
//! finite number is a hole: the counter has no value until its next sample.

use tracesmith_format::{DeviceId, ProcessId, StringId, ThreadId, Timestamp};

use super::counter_index::CounterIndex;
use super::{RowKey, TimeSpan};
use crate::model::trace::Trace;
use crate::query::{Progress, QueryRun};

/// Cells of all counters together. A cell takes 32 bytes.
pub(super) const MOST_CELLS: usize = 1 << 20;

/// What distinguishes a counter from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey {
    /// The device that it belongs to, if any.
    pub device: DeviceId,
    /// The process that it belongs to, if any.
    pub process: ProcessId,
    /// The thread that it belongs to, if any.
    pub thread: ThreadId,
    /// Its name.
    pub name: StringId,
    /// Distinguishes counters of the same name.
    pub instance: u32,
    /// Its unit.
    pub unit: StringId,
}

/// The values of a counter in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterValues {
    /// The mean, weighted by time.
    pub mean: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// How long the counter had a value.
    pub nanos: u64,
}

impl CounterValues {
    /// One value for so long.
    fn constant(value: f64, nanos: u64) -> Self {
        CounterValues {
            mean: value,
            min: value,
            max: value,
            nanos,
        }
    }

    fn add(&mut self, other: Self) {
        if other.nanos == 0 {
            return;
        }
        if self.nanos == 0 {
            *self = other;
            return;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let nanos = self.nanos.saturating_add(other.nanos);
        // Shares of a mean cannot overflow, as a sum of values times nanoseconds could.
        let share = other.nanos as f64 / nanos as f64;
        self.mean = (self.mean * (1.0 - share) + other.mean * share).clamp(self.min, self.max);
        self.nanos = nanos;
    }

    fn sum<'a>(cells: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for cell in cells {
            sum.add(*cell);
        }
        sum
    }

    fn if_any(self) -> Option<Self> {
        (self.nanos > 0).then_some(self)
    }
}

/// One counter.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterRow {
    /// Which one.
    pub key: CounterKey,
    cells: Vec<CounterValues>,
}

impl CounterRow {
    /// The values in a cell. `None` if it has none there.
    pub fn cell(&self, cell: usize) -> Option<CounterValues> {
        self.cells.get(cell)?.if_any()
    }

    /// The values in the whole window. `None` if it has none there.
    pub fn window(&self) -> Option<CounterValues> {
        CounterValues::sum(&self.cells).if_any()
    }
}

/// The counters of a trace, or of a part of it, divided into cells of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterOverview {
    /// Where each cell begins, and after the last one where it ends.
    bounds: Vec<u64>,
    /// The counters, in the order in which they are shown.
    pub rows: Vec<CounterRow>,
    /// Counters beyond the first 1,000, which are not in `rows`. Counting ends at 65,536.
    pub left_out: usize,
}

impl CounterOverview {
    /// Divides a window into cells and fills them with the counters that a query selects. Times outside those of the query
    /// have no values. All counters together have a million cells at most: if there are many, there are fewer cells.
    ///
    /// This reads all blocks of counters up to the end of the window, because any of them can have the value that a
    /// counter has at its start. A [`Browser`](super::Browser) reads them once, and then only blocks in the window.
    pub fn new<'q>(trace: &Trace, query: impl Into<QueryRun<'q>>, window: TimeSpan, cells: usize) -> Self {
        let query = query.into();
        let overview = CounterIndex::read(trace, query, window, cells).into_summary();
        query.note(Progress::Done);
        overview
    }

    pub(super) fn empty(window: TimeSpan, cells: usize) -> Self {
        CounterOverview {
            bounds: (0..=cells).map(|cell| window.cell_start(cell, cells)).collect(),
            ..Self::default()
        }
    }

    /// How many cells a row has.
    pub fn cells(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// When a cell begins and ends.
    pub fn cell(&self, cell: usize) -> (Timestamp, Timestamp) {
        (Timestamp(self.bounds[cell]), Timestamp(self.bounds[cell + 1]))
    }

    /// The row of a counter.
    pub fn row(&self, key: CounterKey) -> Option<&CounterRow> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// Adds a row and returns its number. Cells are put together two by two until all rows have at most `most_cells`.
    pub(super) fn add_row(&mut self, key: CounterKey, most_cells: usize) -> usize {
        while (self.rows.len() + 1) * self.cells() > most_cells && self.cells() > 1 {
            self.halve();
        }
        self.rows.push(CounterRow {
            key,
            cells: vec![CounterValues::default(); self.cells()],
        });
        self.rows.len() - 1
    }

    fn halve(&mut self) {
        for row in &mut self.rows {
            row.cells = row.cells.chunks(2).map(CounterValues::sum).collect();
        }
        let is_odd = self.cells() % 2 == 1;
        let end = self.bounds.last().copied().filter(|_| is_odd);
        let pairs = self.bounds.iter().copied().step_by(2);
        self.bounds = pairs.chain(end).collect();
    }

    /// The counter of a row has a value from one time to another.
    pub(super) fn hold(&mut self, row: usize, from: u64, to: u64, value: f64) {
        if !value.is_finite() || from >= to {
            return;
        }
        let after = self.bounds.partition_point(|bound| *bound <= from);
        let first = after.saturating_sub(1);
        let cells = self.rows[row].cells.iter_mut();
        for (cell, bounds) in cells.zip(self.bounds.windows(2)).skip(first) {
            if bounds[0] >= to {
                break;
            }
            let (begin, end) = (bounds[0].max(from), bounds[1].min(to));
            cell.add(CounterValues::constant(value, end.saturating_sub(begin)));
        }
    }

    pub(super) fn sort(&mut self) {
        self.rows.sort_by_key(|row| RowKey::Counter(row.key).rank());
    }

    /// How many cells of this picture a window takes.
    pub(super) fn cells_within(&self, window: TimeSpan) -> usize {
        let (first, last) = self.cells_of_window(window);
        last - first
    }

    /// The same picture with fewer cells, and of a part of it. Cells are put together whole: the window grows to their
    /// bounds.
    pub(super) fn coarser(&self, window: TimeSpan, cells: usize) -> Self {
        let (first, last) = self.cells_of_window(window);
        let count = last - first;
        let cells = cells.clamp(1, count.max(1));
        let edges: Vec<usize> = (0..=cells).map(|cell| first + count * cell / cells).collect();
        let rows = self.rows.iter().map(|row| {
            let parts = edges
                .windows(2)
                .map(|edge| CounterValues::sum(&row.cells[edge[0]..edge[1]]));
            CounterRow {
                key: row.key,
                cells: parts.collect(),
            }
        });
        CounterOverview {
            bounds: edges.iter().map(|edge| self.bounds[*edge]).collect(),
            rows: rows.collect(),
            left_out: self.left_out,
        }
    }

    /// The first of the cells that a window overlaps, and the one after the last.
    fn cells_of_window(&self, window: TimeSpan) -> (usize, usize) {
        let most = self.cells();
        let after = self.bounds.partition_point(|bound| *bound <= window.from.0);
        let first = after.clamp(1, most.max(1)) - 1;
        let last = self.bounds.partition_point(|bound| *bound < window.to.0);
        (first, last.clamp(first + 1, most.max(first + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(cells: usize) -> CounterOverview {
        let window = TimeSpan::new(Timestamp(100), Timestamp(200));
        let mut overview = CounterOverview::empty(window, cells);
        overview.add_row(CounterKey::default(), usize::MAX);
        overview
    }

    #[test]
    fn a_mean_is_weighted_by_time_and_stays_finite() {
        let mut one = overview(1);
        one.hold(0, 100, 190, 1.0);
        one.hold(0, 190, 200, 11.0);
        let values = one.rows[0].window().expect("it has values");
        assert!((values.mean - 2.0).abs() < 1e-12, "{values:?}");
        let mut great = overview(1);
        great.hold(0, 100, 150, f64::MAX);
        great.hold(0, 150, 199, f64::MAX);
        great.hold(0, 199, 200, f64::MIN);
        let values = great.rows[0].window().expect("it has values");
        assert!(values.mean.is_finite() && values.mean > 0.0, "{values:?}");
    }

    #[test]
    fn fewer_cells_have_the_same_extremes() {
        let mut fine = overview(10);
        fine.hold(0, 115, 135, -3.0);
        fine.hold(0, 135, 136, 8.0);
        fine.hold(0, 136, 200, 1.0);
        let whole = fine.rows[0].window().expect("it has values");
        assert_eq!((whole.min, whole.max, whole.nanos), (-3.0, 8.0, 85));
        let coarse = fine.coarser(TimeSpan::new(Timestamp(100), Timestamp(200)), 3);
        assert_eq!(coarse.bounds, [100, 130, 160, 200]);
        assert_eq!(coarse.rows[0].cell(0), Some(CounterValues::constant(-3.0, 15)));
        fine.add_row(CounterKey::default(), 10);
        assert_eq!(fine.bounds, [100, 120, 140, 160, 180, 200]);
        let halved = fine.rows[0].window().expect("it has values");
        assert_eq!((halved.min, halved.max, halved.nanos), (-3.0, 8.0, 85));
        fine.add_row(CounterKey::default(), 10);
        assert_eq!(fine.bounds, [100, 140, 180, 200]);
    }
}
