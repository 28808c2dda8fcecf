//! From events to cells: a sweep along time that counts what overlaps once.
//!
//! Blocks come in the order of their first time, and rows within them in any order. What starts before everything that is
//! still to come can be counted at once; the rest waits. What waits is bounded: where too much of it gathers, the later
//! half is let go, and whoever reads the blocks comes back for it.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::cells::{Overview, OverviewRow};
use super::nesting::{KeptLevels, OpenSpans};
use super::{ActivityKind, Nesting, RowKey};

/// An event, or several of one kind that start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    /// Not before the start.
    pub(super) end: u64,
    pub(super) count: u32,
    pub(super) activity: ActivityKind,
}

impl Span {
    /// Spans are counted in this order: one that is within another comes after it.
    pub(super) fn order(&self) -> (u64, Reverse<u64>) {
        (self.start, Reverse(self.end))
    }
}

/// Streams and threads that a picture has at most: a row takes half a kilobyte beside its cells.
const MOST_ROWS: usize = 1 << 16;

/// A picture while it is made.
pub(super) struct Sweep {
    overview: Overview,
    lanes: Vec<RowSweep>,
    known: FxHashMap<RowKey, usize>,
    waiting: usize,
    /// Cells that all rows may have together.
    most_cells: usize,
    /// Levels of what is open where the reading begins.
    known_levels: KeptLevels,
}

struct RowSweep {
    row: OverviewRow,
    waiting: Vec<Span>,
    /// What is open, in the outermost row of a thread.
    open: OpenSpans,
    /// The cell in which the last event started.
    cell: usize,
    /// Up to where it is counted as busy.
    until: u64,
    /// The same for each activity.
    until_of: [u64; ActivityKind::ALL.len()],
}

impl Sweep {
    pub(super) fn new(overview: Overview, most_cells: usize) -> Self {
        Sweep {
            overview,
            lanes: Vec::new(),
            known: FxHashMap::default(),
            waiting: 0,
            most_cells,
            known_levels: KeptLevels::default(),
        }
    }

    /// Begins with what is known of levels.
    pub(super) fn with_levels(self, known_levels: KeptLevels) -> Self {
        Sweep { known_levels, ..self }
    }

    /// How many spans wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes spans of a row. Rows beyond the most that a picture has are left out.
    pub(super) fn add(&mut self, key: RowKey, spans: Vec<Span>) {
        let Some(number) = self.lane(key) else {
            return;
        };
        self.waiting += spans.len();
        let lane = &mut self.lanes[number];
        if lane.waiting.is_empty() {
            lane.waiting = spans;
        } else {
            lane.waiting.extend(spans);
        }
    }

    /// The row with a key, made where it is new. `None` when a picture has no more rows.
    fn lane(&mut self, key: RowKey) -> Option<usize> {
        if !self.known.contains_key(&key) {
            let rows = self.lanes.len() + 1;
            if rows > MOST_ROWS {
                self.overview.doubtful.has_more_rows = true;
                return None;
            }
            while rows.saturating_mul(self.overview.cells()) > self.most_cells && self.overview.cells() > 1 {
                self.halve();
            }
        }
        let cells = self.overview.cells();
        Some(*self.known.entry(key).or_insert_with(|| {
            let open = self.known_levels.open_spans(key);
            self.lanes.push(RowSweep::new(key, cells, open));
            self.lanes.len() - 1
        }))
    }

    /// Whether levels have rows of their own.
    pub(super) fn nesting(&self) -> Nesting {
        self.overview.nesting
    }

    /// Counts a span in the row of its level.
    fn count_nested(&mut self, outermost: usize, span: &Span) {
        let lane = &mut self.lanes[outermost];
        let level = lane.open.level(span.start, span.end);
        let key = lane.row.key.at_depth(level.depth);
        if !level.follows {
            let bounds = &self.overview.bounds;
            let next = bounds.get(bounds.partition_point(|bound| *bound <= span.start));
            // Readers begin where a cell does.
            if next.is_some_and(|bound| *bound <= span.end) {
                let times = (span.start, span.end);
                self.overview.levels.keep(lane.row.key, times, level.depth);
            }
        }
        if span.count > 0
            && let Some(number) = self.lane(key)
        {
            self.lanes[number].count(span, &self.overview.bounds);
        }
    }

    /// Puts cells together two by two.
    fn halve(&mut self) {
        for lane in &mut self.lanes {
            lane.row.halve();
            lane.cell /= 2;
        }
        self.overview.halve();
    }

    /// Counts what starts before a moment, and all of it at the end of times. Nothing that starts earlier may come afterwards.
    pub(super) fn pass(&mut self, moment: u64) {
        for number in 0..self.lanes.len() {
            let lane = &mut self.lanes[number];
            if lane.waiting.is_empty() {
                continue;
            }
            // Most come in order; then this is a mere look at them.
            lane.waiting.sort_by_key(Span::order);
            let ready = lane
                .waiting
                .partition_point(|span| span.start < moment || moment == u64::MAX);
            let mut spans = std::mem::take(&mut lane.waiting);
            if self.overview.nesting == Nesting::ByDepth && lane.row.key.nests() {
                for span in &spans[..ready] {
                    self.count_nested(number, span);
                }
            } else {
                for span in &spans[..ready] {
                    lane.count(span, &self.overview.bounds);
                }
            }
            spans.drain(..ready);
            self.lanes[number].waiting = spans;
            self.waiting -= ready;
        }
    }

    /// Lets go of the later half of what waits and says where it starts, so that it can be read again. `None` when all of
    /// it starts at one moment: then it was put together, and takes little.
    pub(super) fn let_go(&mut self) -> Option<u64> {
        let nesting = self.overview.nesting;
        for lane in &mut self.lanes {
            lane.waiting.sort_by_key(|span| (span.start, span.activity));
            // What is within something else stays apart from it.
            if nesting == Nesting::ByDepth && lane.row.key.nests() {
                continue;
            }
            lane.waiting.dedup_by(|later, kept| {
                let together = later.start == kept.start && later.activity == kept.activity;
                if together {
                    kept.end = kept.end.max(later.end);
                    kept.count = kept.count.saturating_add(later.count);
                }
                together
            });
        }
        let starts = || {
            self.lanes
                .iter()
                .flat_map(|lane| &lane.waiting)
                .map(|span| span.start)
        };
        let mut all: Vec<u64> = starts().collect();
        let earliest = starts().min()?;
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let from = if *median > earliest {
            *median
        } else {
            starts()
                .filter(|start| *start > earliest)
                .min()
                .unwrap_or(u64::MAX)
        };
        self.waiting = 0;
        for lane in &mut self.lanes {
            let kept = lane.waiting.partition_point(|span| span.start < from);
            lane.waiting.truncate(kept);
            self.waiting += kept;
        }
        (from < u64::MAX).then_some(from)
    }

    /// The picture.
    pub(super) fn finish(mut self) -> Overview {
        self.pass(u64::MAX);
        let rows = self.lanes.into_iter().map(|lane| lane.row);
        // The outermost row of a thread may only have led to those within it.
        self.overview.rows = rows.filter(|row| row.events > 0).collect();
        self.overview.rows.sort_by_key(|row| row.key.rank());
        self.overview
    }

    /// Notes events that cannot be shown as they are.
    pub(super) fn doubt(&mut self, doubtful: super::Doubtful) {
        self.overview.doubtful.add(doubtful);
    }
}

impl RowSweep {
    fn new(key: RowKey, cells: usize, open: OpenSpans) -> Self {
        RowSweep {
            row: OverviewRow::new(key, cells),
            waiting: Vec::new(),
            open,
            cell: 0,
            until: 0,
            until_of: Default::default(),
        }
    }

    fn count(&mut self, span: &Span, bounds: &[u64]) {
        let cells = bounds.len() - 1;
        if bounds[self.cell + 1] <= span.start && self.cell + 1 < cells {
            // The next one or two, or far away.
            self.cell += 1;
            if bounds[self.cell + 1] <= span.start {
                let behind = bounds.partition_point(|bound| *bound <= span.start);
                self.cell = behind.clamp(1, cells) - 1;
            }
        }
        self.row.events += u64::from(span.count);
        let starts = &mut self.row.starts[self.cell];
        *starts = starts.saturating_add(span.count);
        if span.activity.is_work() {
            let begin = span.start.max(self.until);
            add(&mut self.row.busy, bounds, self.cell, begin, span.end);
            self.until = self.until.max(span.end);
        }
        let of = span.activity as usize;
        if self.row.by_activity[of].is_empty() {
            self.row.by_activity[of] = vec![0; cells];
        }
        let begin = span.start.max(self.until_of[of]);
        add(&mut self.row.by_activity[of], bounds, self.cell, begin, span.end);
        self.until_of[of] = self.until_of[of].max(span.end);
    }
}

/// Adds a stretch of time to the cells that it overlaps, as far as it lies within them. It begins in the cell `near` or
/// behind it.
fn add(busy: &mut [u64], bounds: &[u64], near: usize, begin: u64, end: u64) {
    let cells = busy.len();
    let (mut begin, end) = (begin.max(bounds[0]), end.min(bounds[cells]));
    if begin >= end {
        return;
    }
    let mut cell = near;
    if bounds[cell + 1] <= begin {
        cell = bounds.partition_point(|bound| *bound <= begin).clamp(1, cells) - 1;
    }
    while begin < end {
        let next = bounds[cell + 1].min(end);
        busy[cell] += next - begin;
        begin = next;
        cell += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::TimeSpan;
    use super::*;
    use tracesmith_format::{ProcessId, ThreadId, Timestamp};

    const KEY: RowKey = RowKey::Thread {
        process: ProcessId(1),
        thread: ThreadId(1),
        role: super::super::ThreadRole::Calls,
        depth: 0,
    };

    fn sweep(from: u64, to: u64, cells: usize) -> Sweep {
        let window = TimeSpan::new(Timestamp(from), Timestamp(to));
        Sweep::new(Overview::empty(window, cells), usize::MAX)
    }

    fn span(start: u64, end: u64, activity: ActivityKind) -> Span {
        Span {
            start,
            end,
            count: 1,
            activity,
        }
    }

    fn kernel(start: u64, end: u64) -> Span {
        span(start, end, ActivityKind::Kernel)
    }

    #[test]
    fn overlaps_count_once_and_cells_never_overflow() {
        let mut sweep = sweep(100, 200, 10);
        sweep.add(
            KEY,
            vec![
                kernel(120, 135),
                kernel(110, 130),
                kernel(125, 128),
                kernel(50, 105),
            ],
        );
        sweep.add(KEY, vec![kernel(190, 900), span(130, 138, ActivityKind::Copy)]);
        let overview = sweep.finish();
        let row = &overview.rows[0];
        assert_eq!(row.busy, [5, 10, 10, 8, 0, 0, 0, 0, 0, 10]);
        assert_eq!(row.nanos_of(ActivityKind::Kernel), 5 + 25 + 10);
        assert_eq!(row.nanos_of(ActivityKind::Copy), 8);
        assert_eq!(row.starts, [1, 1, 2, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!((row.events, row.busy_nanos()), (6, 43));
        assert_eq!(
            row.activity(3),
            Some(ActivityKind::Copy),
            "8 of the cell against 5"
        );
        assert!((overview.utilization(row) - 0.43).abs() < 1e-12);
    }

    #[test]
    fn waits_are_no_work() {
        let mut sweep = sweep(0, 40, 4);
        sweep.add(KEY, vec![span(0, 30, ActivityKind::Sync), kernel(10, 12)]);
        let overview = sweep.finish();
        let row = &overview.rows[0];
        assert_eq!(row.busy_nanos(), 2);
        assert_eq!(
            (0..4).map(|cell| row.activity(cell)).collect::<Vec<_>>(),
            [
                Some(ActivityKind::Sync),
                Some(ActivityKind::Kernel),
                Some(ActivityKind::Sync),
                None
            ]
        );
    }

    #[test]
    fn moments_take_no_time_and_the_last_one_has_a_cell() {
        let mut sweep = sweep(10, 20, 2);
        sweep.add(KEY, vec![kernel(20, 20), kernel(12, 12)]);
        let overview = sweep.finish();
        let row = &overview.rows[0];
        assert_eq!((row.busy_nanos(), &row.starts[..]), (0, &[1, 1][..]));
        assert_eq!(row.activity(0), None);
    }

    #[test]
    fn cells_shorter_than_a_nanosecond_add_up_to_the_whole() {
        let mut sweep = sweep(5, 8, 10);
        sweep.add(KEY, vec![kernel(5, 7)]);
        let overview = sweep.finish();
        let row = &overview.rows[0];
        assert_eq!(row.busy_nanos(), 2);
        for cell in 0..10 {
            assert!(overview.share(row, cell) <= 1.0);
        }
    }

    #[test]
    fn what_was_let_go_is_counted_when_it_comes_again() {
        let spans: Vec<Span> = (0..100).map(|at| kernel(at * 10, at * 10 + 15)).collect();
        let whole = {
            let mut sweep = sweep(0, 1_000, 7);
            sweep.add(KEY, spans.clone());
            sweep.finish()
        };
        let mut sweep = sweep(0, 1_000, 7);
        sweep.add(KEY, spans.clone());
        let from = sweep.let_go().unwrap();
        assert_eq!((from, sweep.waiting()), (500, 50));
        sweep.pass(u64::MAX);
        let rest = spans.into_iter().filter(|span| span.start >= from).collect();
        sweep.add(KEY, rest);
        let parts = sweep.finish();
        assert_eq!(parts.rows[0].busy, whole.rows[0].busy);
        assert_eq!(parts.rows[0].starts, whole.rows[0].starts);
    }

    #[test]
    fn what_starts_at_one_moment_is_put_together() {
        let mut sweep = sweep(0, 100, 1);
        sweep.add(KEY, (0..1_000).map(|at| kernel(5, 5 + at % 50)).collect());
        assert_eq!(sweep.let_go(), None);
        assert_eq!(sweep.waiting(), 1);
        let overview = sweep.finish();
        assert_eq!(
            (overview.rows[0].busy_nanos(), overview.rows[0].events),
            (49, 1_000)
        );
    }

    #[test]
    fn many_rows_have_fewer_cells_and_the_same_time() {
        let key = |number| RowKey::Thread {
            process: ProcessId(1),
            thread: ThreadId(number),
            role: super::super::ThreadRole::Calls,
            depth: 0,
        };
        for cells in [16, 21] {
            let window = TimeSpan::new(Timestamp(0), Timestamp(1_000));
            let mut sweep = Sweep::new(Overview::empty(window, cells), 40);
            for number in 0..9 {
                sweep.add(key(number), vec![kernel(number * 100, number * 100 + 50)]);
                sweep.pass(number * 100);
            }
            let overview = sweep.finish();
            assert!(
                overview.cells() * 9 <= 40 && overview.cells() >= 2,
                "{}",
                overview.cells()
            );
            assert_eq!(overview.window(), window);
            for row in &overview.rows {
                assert_eq!((row.busy_nanos(), row.events), (50, 1));
                assert!((0..overview.cells()).all(|cell| overview.share(row, cell) <= 1.0));
            }
        }
    }

    #[test]
    fn a_coarser_picture_holds_the_same_time() {
        let mut sweep = sweep(0, 1_003, 64);
        sweep.add(KEY, (0..90).map(|at| kernel(at * 11, at * 11 + 7)).collect());
        let fine = sweep.finish();
        for cells in [1, 3, 10, 64, 500] {
            let coarse = fine.coarser(fine.window(), cells);
            assert_eq!(coarse.cells(), cells.min(64));
            assert_eq!(coarse.rows[0].busy_nanos(), fine.rows[0].busy_nanos());
            assert_eq!(coarse.rows[0].events, 90);
            assert!((0..coarse.cells()).all(|cell| coarse.share(&coarse.rows[0], cell) <= 1.0));
        }
        let part = fine.coarser(TimeSpan::new(Timestamp(100), Timestamp(200)), 2);
        assert!(part.window().from.0 <= 100 && part.window().to.0 >= 200);
        assert!(part.window().nanos() < 100 + 2 * 16);
    }
}
