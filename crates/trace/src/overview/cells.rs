//! The picture itself: rows of cells, and the same picture with fewer cells.

use tracesmith_format::Timestamp;

use super::nesting::KeptLevels;
use super::{ActivityKind, Doubtful, Nesting, RowKey, TimeSpan};

/// A trace, or a part of it, divided into cells of time.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Where each cell begins, and behind the last one where it ends.
    pub(super) bounds: Vec<u64>,
    /// The rows, in the order in which they are shown.
    pub rows: Vec<OverviewRow>,
    /// What could not be shown as it is.
    pub doubtful: Doubtful,
    /// Whether levels of ranges and operators have rows of their own.
    pub(super) nesting: Nesting,
    /// Levels that do not follow from what is open where a cell begins.
    pub(super) levels: KeptLevels,
}

/// What one stream or thread did.
#[derive(Clone, Debug)]
pub struct OverviewRow {
    /// Which one.
    pub key: RowKey,
    /// Events in the window.
    pub events: u64,
    /// Busy time of each cell.
    pub(super) busy: Vec<u64>,
    /// Events that start in each cell. One that started before the window counts in the first.
    pub(super) starts: Vec<u32>,
    /// Time of each cell by what it was spent with, for what the row has at all. Sums can be more than the busy time.
    pub(super) by_activity: [Vec<u64>; ActivityKind::ALL.len()],
}

impl OverviewRow {
    pub(super) fn new(key: RowKey, cells: usize) -> Self {
        OverviewRow {
            key,
            events: 0,
            busy: vec![0; cells],
            starts: vec![0; cells],
            by_activity: Default::default(),
        }
    }

    /// Puts cells together two by two; an odd last one stays.
    pub(super) fn halve(&mut self) {
        let pairs = |cells: &[u64]| cells.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.busy = pairs(&self.busy);
        for cells in &mut self.by_activity {
            *cells = pairs(cells);
        }
        let starts = self.starts.chunks(2);
        self.starts = starts
            .map(|pair| pair.iter().fold(0, |sum: u32, count| sum.saturating_add(*count)))
            .collect();
    }

    /// Nanoseconds of a cell in which it was busy.
    pub fn busy_nanos_of(&self, cell: usize) -> u64 {
        self.busy[cell]
    }

    /// Nanoseconds in which it was busy.
    pub fn busy_nanos(&self) -> u64 {
        self.busy.iter().sum()
    }

    /// Events that start in a cell; one that started before the window counts in the first.
    pub fn starts(&self, cell: usize) -> u32 {
        self.starts[cell]
    }

    /// Nanoseconds of each cell that were spent with something; `None` when the row has nothing of it.
    pub fn cells_of(&self, activity: ActivityKind) -> Option<&[u64]> {
        let cells = &self.by_activity[activity as usize];
        (!cells.is_empty()).then_some(cells)
    }

    /// Nanoseconds that were spent with something.
    pub fn nanos_of(&self, activity: ActivityKind) -> u64 {
        self.by_activity[activity as usize].iter().sum()
    }

    /// Whether there is anything but waits.
    pub fn has_work(&self) -> bool {
        ActivityKind::ALL
            .into_iter()
            .any(|activity| activity.is_work() && self.cells_of(activity).is_some())
    }

    /// What most of a cell was spent with; work comes before waits. `None` for a cell without any time.
    pub fn activity(&self, cell: usize) -> Option<ActivityKind> {
        let nanos = |activity: ActivityKind| self.cells_of(activity).map_or(0, |cells| cells[cell]);
        ActivityKind::ALL
            .into_iter()
            .filter(|activity| nanos(*activity) > 0)
            // Of equals the first in the list.
            .max_by_key(|activity| (activity.is_work(), nanos(*activity), std::cmp::Reverse(*activity)))
    }
}

impl Overview {
    pub(super) fn empty(window: TimeSpan, cells: usize) -> Self {
        Overview {
            bounds: (0..=cells).map(|cell| window.cell_start(cell, cells)).collect(),
            ..Self::default()
        }
    }

    /// Puts cells together two by two, for those who do the same with the rows.
    pub(super) fn halve(&mut self) {
        let end = self.bounds.last().copied();
        let mut bounds: Vec<u64> = self.bounds.iter().step_by(2).copied().collect();
        if self.cells() % 2 == 1 {
            bounds.extend(end);
        }
        self.bounds = bounds;
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The stretch of time that is shown.
    pub fn window(&self) -> TimeSpan {
        let first = self.bounds.first().copied().unwrap_or(0);
        TimeSpan::new(
            Timestamp(first),
            Timestamp(self.bounds.last().copied().unwrap_or(first)),
        )
    }

    /// The stretch of time of one cell.
    pub fn cell(&self, cell: usize) -> (Timestamp, Timestamp) {
        (Timestamp(self.bounds[cell]), Timestamp(self.bounds[cell + 1]))
    }

    /// The cell that a moment lies in; the first or last one for a moment outside.
    pub fn cell_at(&self, time: Timestamp) -> usize {
        let behind = self.bounds.partition_point(|bound| *bound <= time.0);
        behind.clamp(1, self.cells().max(1)) - 1
    }

    /// The share of a cell in which a row was busy, from 0 to 1.
    pub fn share(&self, row: &OverviewRow, cell: usize) -> f64 {
        self.share_of(row.busy[cell], cell)
    }

    /// The share of a cell that some nanoseconds of it are, from 0 to 1. Cells shorter than a nanosecond have none.
    pub fn share_of(&self, nanos: u64, cell: usize) -> f64 {
        match self.bounds[cell + 1] - self.bounds[cell] {
            0 => 0.0,
            length => nanos as f64 / length as f64,
        }
    }

    /// The share of the whole window in which a row was busy, from 0 to 1.
    pub fn utilization(&self, row: &OverviewRow) -> f64 {
        row.busy_nanos() as f64 / self.window().nanos() as f64
    }

    /// The row with this key.
    pub fn row(&self, key: RowKey) -> Option<&OverviewRow> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// How many cells of this picture a window takes.
    pub fn cells_within(&self, window: TimeSpan) -> usize {
        let (first, last) = self.cells_of_window(window);
        last - first
    }

    /// The same picture with fewer cells, and of a part of it. Cells are put together whole: the window grows to their
    /// bounds, and no cell becomes busier than it is long.
    pub fn coarser(&self, window: TimeSpan, cells: usize) -> Self {
        let (first, last) = self.cells_of_window(window);
        let count = last - first;
        let cells = cells.clamp(1, count.max(1));
        let edges: Vec<usize> = (0..=cells).map(|cell| first + count * cell / cells).collect();
        let sums = |fine: &Vec<u64>| -> Vec<u64> {
            if fine.is_empty() {
                return Vec::new();
            }
            let parts = edges.windows(2).map(|edge| fine[edge[0]..edge[1]].iter().sum());
            parts.collect()
        };
        let rows = self.rows.iter().map(|row| {
            let starts = edges.windows(2).map(|edge| {
                let fine = &row.starts[edge[0]..edge[1]];
                fine.iter().fold(0, |sum: u32, count| sum.saturating_add(*count))
            });
            let by_activity = std::array::from_fn(|activity| sums(&row.by_activity[activity]));
            OverviewRow {
                key: row.key,
                events: row.starts[first..last]
                    .iter()
                    .map(|count| u64::from(*count))
                    .sum(),
                busy: sums(&row.busy),
                starts: starts.collect(),
                by_activity,
            }
        });
        Overview {
            bounds: edges.iter().map(|edge| self.bounds[*edge]).collect(),
            rows: rows.collect(),
            doubtful: self.doubtful,
            nesting: self.nesting,
            levels: KeptLevels::default(),
        }
    }

    /// Where a reader has to begin to know the levels of a window.
    pub(super) fn levels_from(&self, window: TimeSpan) -> u64 {
        let behind = self.bounds.partition_point(|bound| *bound <= window.from.0);
        let bound = behind.checked_sub(1).map(|cell| self.bounds[cell]);
        bound.unwrap_or(window.from.0)
    }

    /// The first of the cells that a window overlaps, and the one behind the last.
    fn cells_of_window(&self, window: TimeSpan) -> (usize, usize) {
        let first = self.cell_at(window.from);
        let last = self.bounds.partition_point(|bound| *bound < window.to.0);
        (first, last.clamp(first + 1, self.cells().max(first + 1)))
    }
}
