//! Reading blocks for a picture: in the order of their first time, several at once, none of them kept.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::{Block, Decoder, Timestamp};

use super::cells::Overview;
use super::pieces::{Pieces, RowOwner};
use super::sweep::{Span, Sweep};
use super::{Doubtful, Nesting, RowKey, TimeSpan};
use crate::model::native::AnySource;
use crate::model::trace::Trace;
use crate::query::{Progress, Query, QueryRun};

/// Spans that may wait for blocks that are still to come: 48 MB of them. A trace in any usual order stays far below.
const MOST_WAITING: usize = 2 << 20;

/// Cells of all rows together in a picture: each takes some twenty bytes.
const MOST_CELLS: usize = 4 << 20;

/// First and last time on the trace's timeline, and the block.
pub(crate) type TimedBlock<'t> = (u64, u64, &'t Block);

/// The blocks that a query wants and that can be drawn, in the order of their first time. Those without any times hold
/// nothing to draw.
pub(crate) fn blocks<'t>(trace: &'t Trace, query: &Query) -> Vec<TimedBlock<'t>> {
    let mut blocks: Vec<TimedBlock<'t>> = trace
        .blocks()
        .iter()
        .filter(|block| block.header.last_time != 0 && query.wants_block(trace, block))
        .filter(|block| super::can_be_drawn(block.header.kind))
        .map(|block| {
            let (first, last) = trace.block_span(block);
            // A clock that runs backwards against the reference turns them round.
            (first.0.min(last.0), first.0.max(last.0), block)
        })
        .collect();
    blocks.sort_by_key(|(first, ..)| *first);
    blocks
}

/// What is needed of a block. One that cannot be read is left out, and the trace's health says so.
pub(crate) fn pieces_of(
    trace: &Trace,
    query: &Query,
    decoder: &mut Decoder<'_, AnySource>,
    block: &Block,
) -> Option<Pieces> {
    Pieces::read(decoder, block, trace, query)?
        .map_err(|error| trace.file.note(block, error))
        .ok()
}

impl Overview {
    /// Divides a window into cells and fills them with what a query finds. Of the query's own times only what lies within
    /// the window is seen. Where rows are very many, there are fewer cells: all rows together have four million at most.
    pub fn new<'q>(trace: &Trace, query: impl Into<QueryRun<'q>>, window: TimeSpan, cells: usize) -> Self {
        Self::bounded(trace, query, window, cells, MOST_CELLS)
    }

    /// The same with rows for each level of ranges and operators, or with one row for all of them. Levels count from what
    /// reaches into the window.
    pub fn with_nesting<'q>(
        trace: &Trace,
        query: impl Into<QueryRun<'q>>,
        window: TimeSpan,
        cells: usize,
        (nesting, most_of_all_rows): (Nesting, Option<usize>),
    ) -> Self {
        let empty = Overview {
            nesting,
            ..Overview::empty(window, cells.max(1))
        };
        let sweep = Sweep::new(empty, most_of_all_rows.unwrap_or(MOST_CELLS));
        Self::with_limit(trace, query.into(), window, sweep, MOST_WAITING)
    }

    /// A window of a picture of the whole, with cells of its own and the same levels.
    pub(super) fn part(&self, trace: &Trace, query: &Query, window: TimeSpan, cells: usize) -> Self {
        let empty = Overview {
            nesting: self.nesting,
            ..Overview::empty(window, cells.max(1))
        };
        let from = self.levels_from(window);
        let sweep = Sweep::new(empty, MOST_CELLS).with_levels(self.levels.open_at(from));
        Self::from_moment(trace, query.into(), (window, from), sweep, MOST_WAITING)
    }

    /// The same with another bound on the cells of all rows together: cells are put together two by two until they fit.
    /// Best started with a power of two.
    pub fn bounded<'q>(
        trace: &Trace,
        query: impl Into<QueryRun<'q>>,
        window: TimeSpan,
        cells: usize,
        most_of_all_rows: usize,
    ) -> Self {
        let sweep = Sweep::new(Overview::empty(window, cells.max(1)), most_of_all_rows);
        Self::with_limit(trace, query.into(), window, sweep, MOST_WAITING)
    }

    fn with_limit(
        trace: &Trace,
        query: QueryRun<'_>,
        window: TimeSpan,
        sweep: Sweep,
        most_waiting: usize,
    ) -> Self {
        Self::from_moment(trace, query, (window, window.from.0), sweep, most_waiting)
    }

    /// Ranges and operators are read from a moment before the window on, for their levels.
    fn from_moment(
        trace: &Trace,
        query: QueryRun<'_>,
        (window, levels_from): (TimeSpan, u64),
        mut sweep: Sweep,
        most_waiting: usize,
    ) -> Self {
        let blocks: Vec<TimedBlock<'_>> = blocks(trace, &query)
            .into_iter()
            .filter(|(first, last, _)| *last >= levels_from && *first <= window.to.0)
            .collect();
        let mut pass = Pass {
            trace,
            query,
            window,
            levels_from,
            nesting: sweep.nesting(),
            from: 0,
            to: u64::MAX,
        };
        loop {
            pass.run(&blocks, &mut sweep, most_waiting);
            if pass.to == u64::MAX {
                break;
            }
            (pass.from, pass.to) = (pass.to, u64::MAX);
        }
        query.note(Progress::Done);
        sweep.finish()
    }
}

/// One reading of the blocks: of what starts in a stretch of time. Usually there is one, and the stretch is all of it.
struct Pass<'a> {
    trace: &'a Trace,
    query: QueryRun<'a>,
    window: TimeSpan,
    levels_from: u64,
    nesting: Nesting,
    from: u64,
    to: u64,
}

impl Pass<'_> {
    fn run(&mut self, blocks: &[TimedBlock<'_>], sweep: &mut Sweep, most_waiting: usize) {
        let at_once = rayon::current_num_threads().max(1) * 2;
        for (number, batch) in blocks.chunks(at_once).enumerate() {
            let this: &Self = self;
            let parts: Vec<Option<Part>> = batch
                .par_iter()
                .filter(|(first, last, _)| *first < this.to && *last >= this.from)
                .map_init(
                    || this.trace.file.reader.decoder(),
                    |decoder, (.., block)| this.part(decoder, block),
                )
                .collect();
            for part in parts.into_iter().flatten() {
                sweep.doubt(part.doubtful);
                for (key, spans) in part.rows {
                    sweep.add(key, spans);
                }
            }
            let next = blocks.get((number + 1) * at_once);
            sweep.pass(next.map_or(self.to, |(first, ..)| (*first).min(self.to)));
            while sweep.waiting() > most_waiting
                && let Some(from) = sweep.let_go()
            {
                self.to = from;
            }
        }
        sweep.pass(self.to);
    }

    /// What one block adds.
    fn part(&self, decoder: &mut Decoder<'_, AnySource>, block: &Block) -> Option<Part> {
        self.query.note(Progress::Read(block.header.total_length()));
        let pieces = pieces_of(self.trace, &self.query, decoder, block)?;
        let mut rows = Rows::default();
        let lanes: Vec<Lanes> = pieces.spots().iter().map(|spot| rows.lanes(spot)).collect();
        let mut doubtful = Doubtful::default();
        let mut line = self.trace.clock_map.line(block.header.clock);
        for row in 0..pieces.start.len() {
            // What is not wanted is within others, too, and others are within it.
            let (whose, activity, count) = match pieces.what(row) {
                Some((whose, activity)) => (whose, activity, 1),
                None if self.nesting == Nesting::ByDepth => (RowOwner::Own, pieces.activity(row), 0),
                None => continue,
            };
            let lanes = &lanes[pieces.spot_number(row)];
            let Some(lane) = lanes.of(whose) else { continue };
            let [start, end] = [pieces.start[row], pieces.end[row]].map(|time| Timestamp(line.convert(time)));
            let is_nested = || {
                pieces.spots()[pieces.spot_number(row)]
                    .key(whose)
                    .is_some_and(RowKey::nests)
            };
            if count == 0 && !is_nested() {
                continue;
            }
            let mut unwanted = Doubtful::default();
            let doubts = if count == 0 { &mut unwanted } else { &mut doubtful };
            let count = match self.wants(start, end, doubts) {
                true => count,
                // Levels in the window depend on it.
                false if self.is_before(start, end) && is_nested() => 0,
                false => continue,
            };
            let span = Span {
                start: start.0,
                end: end.0.max(start.0),
                count,
                activity,
            };
            rows.spans[lane].push(span);
            if let Some(device) = lanes.device
                && activity.is_work()
            {
                rows.spans[device].push(span);
            }
        }
        for spans in &mut rows.spans {
            spans.sort_by_key(Span::order);
        }
        let rows = rows.keys.into_iter().zip(rows.spans);
        Some(Part {
            rows: rows.filter(|(_, spans)| !spans.is_empty()).collect(),
            doubtful,
        })
    }

    /// Whether a row starts in this pass and lies in the window; what is odd about its times is counted.
    fn wants(&self, start: Timestamp, end: Timestamp, doubtful: &mut Doubtful) -> bool {
        if !start.is_some() {
            // It belongs to no stretch of time: the first pass counts it.
            doubtful.without_time += u64::from(self.from == 0);
            return false;
        }
        let wanted = (self.from..self.to).contains(&start.0)
            && self.query.wants_time(start, end)
            && start <= self.window.to
            && end.max(start) >= self.window.from;
        if wanted && end < start {
            if end.is_some() {
                doubtful.backwards += 1;
            } else {
                doubtful.without_end += 1;
            }
        }
        wanted
    }

    /// Whether a row starts in this pass, and ends between where levels are read from and the window.
    fn is_before(&self, start: Timestamp, end: Timestamp) -> bool {
        let end = end.max(start);
        self.nesting == Nesting::ByDepth
            && start.is_some()
            && (self.from..self.to).contains(&start.0)
            && self.query.wants_time(start, end)
            && (self.levels_from..self.window.from.0).contains(&end.0)
    }
}

/// What one block adds to a picture.
struct Part {
    rows: Vec<(RowKey, Vec<Span>)>,
    doubtful: Doubtful,
}

/// Rows of the picture that a block has something of.
#[derive(Default)]
struct Rows {
    known: FxHashMap<RowKey, usize>,
    keys: Vec<RowKey>,
    spans: Vec<Vec<Span>>,
}

/// Where what happened at one place goes.
struct Lanes {
    own: Option<usize>,
    waits: Option<usize>,
    /// The row of the whole device.
    device: Option<usize>,
}

impl Lanes {
    fn of(&self, whose: RowOwner) -> Option<usize> {
        match whose {
            RowOwner::Own => self.own,
            RowOwner::Device => self.waits,
        }
    }
}

impl Rows {
    fn lanes(&mut self, spot: &super::pieces::RowKeys) -> Lanes {
        let own = spot.key(RowOwner::Own);
        let device = own
            .and_then(RowKey::device)
            .filter(|device| device.is_some())
            .map(|device| RowKey::Device { device });
        Lanes {
            own: own.map(|key| self.lane(key)),
            waits: spot.key(RowOwner::Device).map(|key| self.lane(key)),
            device: device.map(|key| self.lane(key)),
        }
    }

    fn lane(&mut self, key: RowKey) -> usize {
        *self.known.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.spans.push(Vec::new());
            self.keys.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::tables::{Kernel, Place};
    use tracesmith_format::{ClockId, StreamId, Writer, WriterOptions};

    /// Blocks that all reach from the begin to the end of the trace.
    fn crowded() -> Trace {
        let options = WriterOptions {
            rows_per_block: 50,
            ..WriterOptions::default()
        };
        let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
        for at in 0..2_000_u64 {
            let start = 1 + (at * 7_919) % 2_000 * 10;
            let kernel = Kernel {
                start: Timestamp(start),
                end: Timestamp(start + at % 40),
                place: Place {
                    stream: StreamId(at % 3),
                    ..Place::default()
                },
                ..Kernel::default()
            };
            writer.push(ClockId(1), &kernel).expect("memory takes all");
        }
        Trace::from_bytes(writer.finish().expect("memory takes all")).expect("it was just written")
    }

    #[test]
    fn a_crowded_trace_is_read_in_several_passes_with_the_same_result() {
        let trace = crowded();
        let query = Query::default();
        let window = TimeSpan::of(&trace, &query).expect("it has kernels");
        let sweep = || Sweep::new(Overview::empty(window, 60), usize::MAX);
        let at_once = Overview::with_limit(&trace, (&query).into(), window, sweep(), usize::MAX);
        for limit in [1, 7, 100, 1_500] {
            let parts = Overview::with_limit(&trace, (&query).into(), window, sweep(), limit);
            assert_eq!(parts.rows.len(), at_once.rows.len());
            for (part, whole) in parts.rows.iter().zip(&at_once.rows) {
                assert_eq!((part.key, part.events), (whole.key, whole.events));
                assert_eq!(
                    (&part.busy, &part.starts),
                    (&whole.busy, &whole.starts),
                    "limit {limit}"
                );
            }
        }
    }
}
