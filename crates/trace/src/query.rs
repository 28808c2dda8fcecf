//! Finding events: by kind, name, place and time, in file order, in time order, or the first few by some other order.
//!
//! Blocks are read one by one and let go again, so that memory does not grow with the trace. Only an order other than
//! time without a limit has to keep what it found.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::{ControlFlow, Deref};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tracesmith_format::{Block, BlockKind, Decoder, DeviceId, ProcessId, StreamId, Timestamp};

use crate::error::Error;
use crate::model::event::{Event, EventColumns, EventKind, EventName, read_events};
use crate::model::native::AnySource;
use crate::model::trace::Trace;
use crate::name_pattern::NamePattern;

/// Which events are wanted. What is `None` does not matter.
///
/// A query is plain data: it can be stored, compared and sent. [`Query::with_progress`] adds a callback for one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// Only these kinds.
    pub kinds: Option<Vec<EventKind>>,
    /// Only events whose name matches.
    pub name: Option<NamePattern>,
    /// Only work of these streams.
    pub streams: Option<Vec<StreamId>>,
    /// Only events of these devices.
    pub devices: Option<Vec<DeviceId>>,
    /// Only events of these processes.
    pub processes: Option<Vec<ProcessId>>,
    /// Only events that are not over before this time. Events without a time are left out.
    pub from: Option<Timestamp>,
    /// Only events that start before this time. Events without a time are left out.
    pub to: Option<Timestamp>,
}

/// How far a long read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many bytes more were read.
    Read(u64),
    /// All is read, and answers follow.
    Done,
}

/// Is called with the progress of a long read.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// One run of a query: the query, and what is called with the progress. A `&Query` converts to it.
#[derive(Clone, Copy)]
pub struct QueryRun<'q> {
    query: &'q Query,
    progress: Option<&'q ProgressFn>,
}

impl<'q> From<&'q Query> for QueryRun<'q> {
    fn from(query: &'q Query) -> Self {
        query.with_progress(None)
    }
}

impl Deref for QueryRun<'_> {
    type Target = Query;

    fn deref(&self) -> &Query {
        self.query
    }
}

impl QueryRun<'_> {
    pub(crate) fn note(&self, what: Progress) {
        if let Some(progress) = self.progress {
            progress(what);
        }
    }
}

/// An order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// Earliest first.
    Start,
    /// Longest first.
    Duration,
    /// Most bytes first.
    Bytes,
    /// By name.
    Name,
}

/// Rows of a sorted list that are in memory at once: some hundred bytes each.
const RANKED_AT_ONCE: usize = 1 << 20;

/// An event and the row that it is a view of.
pub struct Found<'a> {
    /// The event, its times on the trace's timeline.
    pub event: Event,
    /// The columns that it is in.
    pub columns: &'a dyn EventColumns,
    /// Its row there.
    pub row: usize,
}

impl Query {
    /// Calls `progress` with every block that is read.
    pub fn with_progress<'q>(&'q self, progress: impl Into<Option<&'q ProgressFn>>) -> QueryRun<'q> {
        QueryRun {
            query: self,
            progress: progress.into(),
        }
    }

    pub(crate) fn wants_block(&self, trace: &Trace, block: &Block) -> bool {
        let Some(kind) = EventKind::of_table(block.header.kind) else {
            return false;
        };
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&kind)) {
            return false;
        }
        if self.from.is_none() && self.to.is_none() {
            return true;
        }
        let (first, last) = trace.block_span(block);
        last.is_some() && self.from.is_none_or(|from| last >= from) && self.to.is_none_or(|to| first < to)
    }

    fn wants(&self, event: &Event) -> bool {
        self.wants_place(event.process, event.device, event.stream) && self.wants_time(event.start, event.end)
    }

    /// Whether events of this place are wanted.
    pub(crate) fn wants_place(&self, process: ProcessId, device: DeviceId, stream: Option<StreamId>) -> bool {
        let has_stream = |streams: &Vec<StreamId>| stream.is_some_and(|stream| streams.contains(&stream));
        self.streams.as_ref().is_none_or(has_stream)
            && self.devices.as_ref().is_none_or(|list| list.contains(&device))
            && self.processes.as_ref().is_none_or(|list| list.contains(&process))
    }

    /// Whether events at this time are wanted.
    pub(crate) fn wants_time(&self, start: Timestamp, end: Timestamp) -> bool {
        if self.from.is_none() && self.to.is_none() {
            return true;
        }
        start.is_some()
            && self.from.is_none_or(|from| end.max(start) >= from)
            && self.to.is_none_or(|to| start < to)
    }
}

/// Whether names match: each string is compared once.
struct Names<'q> {
    pattern: Option<&'q NamePattern>,
    known: FxHashMap<EventName, bool>,
}

impl<'q> Names<'q> {
    fn of(run: QueryRun<'q>) -> Self {
        Names {
            pattern: run.query.name.as_ref(),
            known: FxHashMap::default(),
        }
    }

    fn want(&mut self, trace: &Trace, event: &Event) -> bool {
        let Some(pattern) = self.pattern else { return true };
        *self
            .known
            .entry(event.name)
            .or_insert_with(|| pattern.matches(trace.event_name(event)))
    }
}

impl Trace {
    /// Calls `f` with every event that is wanted, in file order, until it says stop.
    pub fn for_each_event<'q>(
        &self,
        query: impl Into<QueryRun<'q>>,
        mut f: impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) {
        let query = query.into();
        let mut names = Names::of(query);
        let mut decoder = self.file.reader.decoder();
        for block in self
            .blocks()
            .iter()
            .filter(|block| query.wants_block(self, block))
        {
            query.note(Progress::Read(block.header.total_length()));
            let Some(columns) = self.read_block(&mut decoder, block) else {
                continue;
            };
            for row in 0..columns.rows() {
                let event = self.on_timeline(columns.event(row), block);
                if query.wants(&event)
                    && names.want(self, &event)
                    && f(&Found {
                        event,
                        columns: &*columns,
                        row,
                    })
                    .is_break()
                {
                    return;
                }
            }
        }
        query.note(Progress::Done);
    }

    /// Calls `f` with one row of a table, counted from 0. Only the block of the row is read: the others say in their headers
    /// how many rows they have, so that damage elsewhere does not change the number of a row.
    pub fn with_row<R>(
        &self,
        kind: EventKind,
        row: u64,
        f: impl FnOnce(&Found<'_>) -> R,
    ) -> Result<R, Error> {
        let table = kind.table().name().unwrap_or_default();
        let mut rows = 0;
        for block in self
            .blocks()
            .iter()
            .filter(|block| block.header.kind == kind.table())
        {
            let first = rows;
            rows += u64::from(block.header.rows);
            if row >= rows {
                continue;
            }
            let columns = self.read_block(&mut self.file.reader.decoder(), block);
            let at = usize::try_from(row - first).ok();
            let columns = columns.filter(|columns| at.is_some_and(|at| at < columns.rows()));
            let (Some(columns), Some(row_in_block)) = (columns, at) else {
                return Err(Error::DamagedRow { table, row });
            };
            return Ok(f(&Found {
                event: self.on_timeline(columns.event(row_in_block), block),
                columns: &*columns,
                row: row_in_block,
            }));
        }
        Err(Error::NoSuchRow { table, row, rows })
    }

    /// Events in the order of their start. Reads the blocks that overlap the current moment and no others.
    pub fn events<'t>(&'t self, query: impl Into<QueryRun<'t>>) -> impl Iterator<Item = Event> + 't {
        let mut walk = TimeWalk::new(self, query.into());
        std::iter::from_fn(move || walk.next().map(|(event, ..)| event))
    }

    /// Calls `f` with every event that is wanted, in the order of their start, until it says stop.
    pub fn for_each_event_by_time<'q>(
        &self,
        query: impl Into<QueryRun<'q>>,
        mut f: impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) {
        let mut walk = TimeWalk::new(self, query.into());
        while let Some((event, columns, row)) = walk.next() {
            if f(&Found {
                event,
                columns: &*columns,
                row,
            })
            .is_break()
            {
                return;
            }
        }
    }

    /// Calls `f` with the first `limit` events in an order; equal ones by time. Says how many there were in all.
    pub fn for_each_event_sorted<'q>(
        &self,
        query: impl Into<QueryRun<'q>>,
        key: SortKey,
        limit: usize,
        mut f: impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> u64 {
        // The worst of the kept ones is on top, to be pushed out by a better one.
        let mut kept: BinaryHeap<Ranked> = BinaryHeap::new();
        let mut total = 0;
        let query = query.into();
        let mut names = Names::of(query);
        let mut decoder = self.file.reader.decoder();
        for (at, block) in self
            .blocks()
            .iter()
            .enumerate()
            .filter(|(_, block)| query.wants_block(self, block))
        {
            query.note(Progress::Read(block.header.total_length()));
            let Some(columns) = self.read_block(&mut decoder, block) else {
                continue;
            };
            for row in 0..columns.rows() {
                let event = self.on_timeline(columns.event(row), block);
                if !query.wants(&event) || !names.want(self, &event) {
                    continue;
                }
                total += 1;
                let rank = Rank::of(self, &event, key);
                if kept.len() == limit {
                    if kept
                        .peek()
                        .is_none_or(|worst| (&rank, at, row) >= (&worst.rank, worst.block, worst.row))
                    {
                        continue;
                    }
                    kept.pop();
                }
                kept.push(Ranked { rank, block: at, row });
            }
        }
        query.note(Progress::Done);
        self.give_ranked(&kept.into_sorted_vec(), RANKED_AT_ONCE, &mut f);
        total
    }

    /// Reads the ranked rows again and calls `f` with them. Rows come from blocks in no order, so the rows of a batch are
    /// copied out of their blocks first: each block is read once for a batch. Says how many blocks were read.
    fn give_ranked(
        &self,
        ranked: &[Ranked],
        batch: usize,
        f: &mut impl FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> usize {
        let mut decoder = self.file.reader.decoder();
        let mut reads = 0;
        for ranked in ranked.chunks(batch) {
            let mut by_block: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (number, found) in ranked.iter().enumerate() {
                by_block.entry(found.block).or_default().push(number);
            }
            // Rows by table, and for each ranked row its table and its place there.
            let mut copied: FxHashMap<BlockKind, Box<dyn EventColumns>> = FxHashMap::default();
            let mut places: Vec<Option<(BlockKind, usize)>> = vec![None; ranked.len()];
            for (at, numbers) in by_block {
                let block = &self.blocks()[at];
                reads += 1;
                let Some(columns) = self.read_block(&mut decoder, block) else {
                    continue;
                };
                let kind = block.header.kind;
                let to = copied.entry(kind).or_insert_with(|| columns.empty());
                let first = to.rows();
                let rows: Vec<usize> = numbers.iter().map(|number| ranked[*number].row).collect();
                columns.copy_rows(&rows, &mut **to);
                for (place, number) in numbers.into_iter().enumerate() {
                    places[number] = Some((kind, first + place));
                }
            }
            for (found, place) in ranked.iter().zip(places) {
                let Some((kind, row)) = place else { continue };
                let columns = &*copied[&kind];
                let event = self.on_timeline(columns.event(row), &self.blocks()[found.block]);
                if f(&Found { event, columns, row }).is_break() {
                    return reads;
                }
            }
        }
        reads
    }

    fn read_block(
        &self,
        decoder: &mut Decoder<'_, AnySource>,
        block: &Block,
    ) -> Option<Box<dyn EventColumns>> {
        read_events(decoder, block)?
            .map_err(|error| self.file.note(block, error))
            .ok()
    }

    /// An event of a block, its times converted from the block's clock to the trace's timeline.
    pub fn on_timeline(&self, mut event: Event, block: &Block) -> Event {
        if block.header.clock != self.clock_map.reference() {
            event.start = self.clock_map.convert(block.header.clock, event.start).time;
            event.end = self.clock_map.convert(block.header.clock, event.end).time;
        }
        event
    }
}

/// What an event is ordered by, so that the first in the order is the smallest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    number: Reverse<u64>,
    text: String,
    start: Timestamp,
}

impl Rank {
    fn of(trace: &Trace, event: &Event, key: SortKey) -> Self {
        let number = match key {
            SortKey::Duration => event.duration(),
            SortKey::Bytes => event.bytes.0,
            SortKey::Start | SortKey::Name => 0,
        };
        let text = if key == SortKey::Name {
            trace.event_name(event).to_owned()
        } else {
            String::new()
        };
        Rank {
            number: Reverse(number),
            text,
            start: event.start,
        }
    }
}

struct Ranked {
    rank: Rank,
    block: usize,
    row: usize,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.rank, self.block, self.row).cmp(&(&other.rank, other.block, other.row))
    }
}

/// Walks events in the order of their start: a merge of the blocks that overlap the current moment.
struct TimeWalk<'t> {
    trace: &'t Trace,
    query: QueryRun<'t>,
    names: Names<'t>,
    decoder: Decoder<'t, AnySource>,
    /// Blocks still closed, the earliest last.
    closed: Vec<(Timestamp, usize)>,
    /// The next row of every open block.
    next: BinaryHeap<Reverse<(Timestamp, usize, usize)>>,
    open: FxHashMap<usize, OpenBlock>,
}

struct OpenBlock {
    columns: Rc<dyn EventColumns>,
    /// Wanted rows with the time that orders them, the earliest last.
    rows: Vec<(Timestamp, u32)>,
}

impl<'t> TimeWalk<'t> {
    fn new(trace: &'t Trace, query: QueryRun<'t>) -> Self {
        let mut closed: Vec<_> = trace
            .blocks()
            .iter()
            .enumerate()
            .filter(|(_, block)| query.wants_block(trace, block))
            .map(|(at, block)| (trace.block_span(block).0, at))
            .collect();
        closed.sort_unstable_by(|a, b| b.cmp(a));
        TimeWalk {
            trace,
            query,
            names: Names::of(query),
            decoder: trace.file.reader.decoder(),
            closed,
            next: BinaryHeap::new(),
            open: FxHashMap::default(),
        }
    }

    fn next(&mut self) -> Option<(Event, Rc<dyn EventColumns>, usize)> {
        // Equal times may come in any order: a block is opened only when it could come first, so that blocks without
        // a spread of times are not all open at once.
        while let Some(&(first, at)) = self.closed.last()
            && self.next.peek().is_none_or(|Reverse((time, ..))| *time > first)
        {
            self.closed.pop();
            self.open_block(at, first);
        }
        let Reverse((_, at, row)) = self.next.pop()?;
        let block = self.open.get_mut(&at)?;
        let columns = Rc::clone(&block.columns);
        match block.rows.pop() {
            Some((time, row)) => self.next.push(Reverse((time, at, row as usize))),
            None => drop(self.open.remove(&at)),
        }
        let event = self
            .trace
            .on_timeline(columns.event(row), &self.trace.blocks()[at]);
        Some((event, columns, row))
    }

    /// Events without a time stand where their block begins.
    fn open_block(&mut self, at: usize, first: Timestamp) {
        let block = &self.trace.blocks()[at];
        self.query.note(Progress::Read(block.header.total_length()));
        let Some(columns) = self.trace.read_block(&mut self.decoder, block) else {
            return;
        };
        let mut rows = Vec::new();
        for row in 0..columns.rows() {
            let event = self.trace.on_timeline(columns.event(row), block);
            if self.query.wants(&event) && self.names.want(self.trace, &event) {
                rows.push((event.start.max(first), row as u32));
            }
        }
        rows.sort_unstable_by(|a, b| b.cmp(a));
        if let Some((time, row)) = rows.pop() {
            self.next.push(Reverse((time, at, row as usize)));
            self.open.insert(
                at,
                OpenBlock {
                    columns: Rc::from(columns),
                    rows,
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::tables::{Kernel, MemorySet};
    use tracesmith_format::{ClockId, Writer, WriterOptions};

    /// Issue 26: beyond 64 blocks a block was read for every row.
    #[test]
    fn a_sorted_list_reads_each_block_once() {
        let options = WriterOptions {
            rows_per_block: 10,
            ..WriterOptions::default()
        };
        let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
        for at in 0..2_000_u64 {
            // Neighbours in the order of durations are in different blocks.
            let duration = 1 + at * 7_919 % 2_003;
            let (start, end) = (Timestamp(1 + at), Timestamp(1 + at + duration));
            let kernel = Kernel {
                start,
                end,
                ..Kernel::default()
            };
            let set = MemorySet {
                start,
                end: Timestamp(end.0 + 1),
                ..MemorySet::default()
            };
            writer.push(ClockId(1), &kernel).expect("memory takes all");
            writer.push(ClockId(1), &set).expect("memory takes all");
        }
        let trace =
            Trace::from_bytes(writer.finish().expect("memory takes all")).expect("it was just written");
        let mut decoder = trace.file.reader.decoder();
        let mut ranked: Vec<Ranked> = Vec::new();
        for (at, block) in trace.blocks().iter().enumerate() {
            let Some(columns) = trace.read_block(&mut decoder, block) else {
                continue;
            };
            ranked.extend((0..columns.rows()).map(|row| Ranked {
                rank: Rank::of(&trace, &columns.event(row), SortKey::Duration),
                block: at,
                row,
            }));
        }
        ranked.sort();
        let mut given = Vec::new();
        let reads = trace.give_ranked(&ranked, RANKED_AT_ONCE, &mut |found| {
            given.push((found.event.duration(), found.event.kind));
            ControlFlow::Continue(())
        });
        assert_eq!((given.len(), reads), (4_000, 400));
        assert!(given.is_sorted_by(|a, b| a.0 >= b.0));
        let mut in_batches = Vec::new();
        trace.give_ranked(&ranked, 130, &mut |found| {
            in_batches.push((found.event.duration(), found.event.kind));
            ControlFlow::Continue(())
        });
        assert_eq!(in_batches, given);
    }
}
