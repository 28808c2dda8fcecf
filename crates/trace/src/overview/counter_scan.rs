//! Reading blocks of counters into cells, in the order of their samples.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::Counter;
use tracesmith_format::{Block, BlockKind, Decoder, Projection, Timestamp};

use super::TimeSpan;
use super::counters::{CounterKey, CounterOverview, MOST_CELLS};
use super::find::{Direction, Position};
use crate::model::native::AnySource;
use crate::model::trace::Trace;
use crate::query::{Progress, Query, QueryRun};

/// Counters that are shown at most.
const MOST_COUNTERS: usize = 1_000;
/// Counters that are not shown are counted up to this number.
const MOST_LEFT_OUT: usize = 1 << 16;
/// Samples that may wait for blocks that are still to come: 40 MB. Only blocks that overlap in time make samples wait.
const MOST_WAITING: usize = 1 << 20;

/// A block of counters with its times on the trace's timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Its number among the blocks of the trace.
    pub(crate) number: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) counter: usize,
    pub(super) position: Position,
    pub(super) value: f64,
}

/// The blocks of counters, in the order of their first time. The query's times do not matter: an earlier block can have the
/// value at the start.
pub(crate) fn places(trace: &Trace, query: &Query) -> Vec<BlockPlace> {
    let always = Query {
        from: None,
        to: None,
        ..query.clone()
    };
    let mut places: Vec<BlockPlace> = trace
        .blocks()
        .iter()
        .enumerate()
        .filter(|(_, block)| block.header.kind == BlockKind::COUNTERS && block.header.last_time != 0)
        .filter(|(_, block)| always.wants_block(trace, block))
        .map(|(number, block)| {
            let (first, last) = trace.block_span(block);
            // A clock that runs backwards against the reference turns them round.
            BlockPlace {
                first: first.0.min(last.0),
                last: first.0.max(last.0),
                number,
            }
        })
        .collect();
    places.sort_by_key(|place| place.first);
    places
}

/// The last sample of each counter of a block.
type LastSamples = Vec<Option<(Position, f64)>>;

/// What is needed of a block.
pub(crate) struct Samples {
    /// The distinct counters of the block. `None` for those that the query does not select.
    keys: Vec<Option<CounterKey>>,
    /// Which of them each row has.
    key_of: Vec<u32>,
    /// On the trace's timeline; 0 if it is unknown.
    times: Vec<u64>,
    values: Vec<f64>,
}

impl Samples {
    /// Reads a block. One that cannot be read is left out, and the trace's health shows it.
    pub(crate) fn read(
        trace: &Trace,
        query: &Query,
        decoder: &mut Decoder<'_, AnySource>,
        block: &Block,
    ) -> Option<Self> {
        let columns = Projection::of::<Counter>(&[
            "time",
            "value",
            "track.name",
            "track.unit",
            "track.process",
            "track.device",
            "track.thread",
            "track.instance",
        ])
        .expect("the table has these columns");
        let columns = decoder
            .read::<Counter>(block, &columns)
            .map_err(|error| trace.file.note(block, error))
            .ok()?; // the error is in the trace's health now
        let keys = columns.track.values.iter().map(|track| {
            let is_named = |name: &crate::NamePattern| name.matches(trace.string(track.name));
            let is_wanted = query.wants_place(track.process, track.device, None)
                && query.name.as_ref().is_none_or(is_named);
            is_wanted.then_some(CounterKey {
                device: track.device,
                process: track.process,
                thread: track.thread,
                name: track.name,
                instance: track.instance,
                unit: track.unit,
            })
        });
        let keys = keys.collect();
        let mut line = trace.clock_map.line(block.header.clock);
        Some(Samples {
            keys,
            key_of: columns.track.index,
            times: columns.time.into_iter().map(|time| line.convert(time)).collect(),
            values: columns.value,
        })
    }

    /// The distinct counters of the block. `None` for those that the query does not select.
    pub(crate) fn keys(&self) -> &[Option<CounterKey>] {
        &self.keys
    }

    /// Rows that have a time and a counter that is selected: its number in the block, its place and its value.
    pub(crate) fn rows<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = (usize, Position, f64)> + 'a {
        let rows = self.times.iter().zip(&self.values).zip(&self.key_of).enumerate();
        rows.map(|(row, ((time, value), key))| {
            let position = Position::of_row(Timestamp(*time), block, row);
            (*key as usize, position, *value)
        })
        .filter(|(key, position, _)| position.start.is_some() && self.keys[*key].is_some())
    }

    /// The last sample of each counter of the block.
    fn last(&self, block: &Block) -> LastSamples {
        let mut last: LastSamples = vec![None; self.keys.len()];
        for (key, position, value) in self.rows(block) {
            if last[key].is_none_or(|(known, _)| known < position) {
                last[key] = Some((position, value));
            }
        }
        last
    }

    pub(super) fn nearest(
        &self,
        block: &Block,
        wanted: CounterKey,
        from: Position,
        direction: Direction,
    ) -> Option<(Position, f64)> {
        let mut best: Option<(Position, f64)> = None;
        for (key, position, value) in self.rows(block) {
            if self.keys[key] == Some(wanted)
                && direction.is_nearer(from, position)
                && best.is_none_or(|(best, _)| direction.is_nearer(position, best))
            {
                best = Some((position, value));
            }
        }
        best
    }
}

/// Bounds of memory.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) counters: usize,
    pub(super) cells: usize,
    pub(super) waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            counters: MOST_COUNTERS,
            cells: MOST_CELLS,
            waiting: MOST_WAITING,
        }
    }
}

/// The counters by number, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pub(super) keys: Vec<CounterKey>,
    pub(super) known: FxHashMap<CounterKey, usize>,
    left_out: FxHashSet<CounterKey>,
}

/// One reading of blocks into cells.
pub(super) struct Scan<'a> {
    trace: &'a Trace,
    query: QueryRun<'a>,
    /// What has values: the window, as far as the query's times reach.
    from: u64,
    to: u64,
    limits: Limits,
    pub(super) overview: CounterOverview,
    pub(super) numbers: Numbers,
    /// The last sample of each counter so far.
    pub(super) open: Vec<Option<(Position, f64)>>,
    /// Samples that are not in the cells yet: blocks that are still to come can have earlier ones.
    waiting: Vec<(Position, usize, f64)>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        query: QueryRun<'a>,
        window: TimeSpan,
        cells: usize,
        limits: Limits,
    ) -> Self {
        Scan {
            trace,
            query,
            from: query.from.map_or(window.from, |from| from.max(window.from)).0,
            to: query.to.map_or(window.to, |to| to.min(window.to)).0,
            limits,
            overview: CounterOverview::empty(window, cells.max(1)),
            numbers: Numbers::default(),
            open: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Reads blocks, which are in the order of their first time. `tails` gets the last samples of each of them.
    ///
    /// Usually they are read once. Where very many overlap, the latest samples are dropped, and a further reading finds
    /// them again.
    pub(super) fn run(&mut self, places: &[BlockPlace], mut tails: impl FnMut(usize, Vec<Tail>)) {
        let (mut from, mut to) = (0, u64::MAX);
        loop {
            let at_once = rayon::current_num_threads().max(1) * 2;
            for (batch_number, batch) in places.chunks(at_once).enumerate() {
                let (trace, query, most) = (self.trace, self.query, to);
                let parts: Vec<Option<(Samples, LastSamples)>> = batch
                    .par_iter()
                    .map_init(
                        || trace.file.reader.decoder(),
                        |decoder, place| {
                            if place.first >= most || place.last < from {
                                return None;
                            }
                            let block = &trace.blocks()[place.number];
                            query.note(Progress::Read(block.header.total_length()));
                            let samples = Samples::read(trace, &query, decoder, block)?;
                            let last = samples.last(block);
                            Some((samples, last))
                        },
                    )
                    .collect();
                for (number, part) in parts.into_iter().enumerate() {
                    let Some((samples, last)) = part else { continue };
                    let block = &self.trace.blocks()[batch[number].number];
                    let found = self.add(&samples, &last, block, from..to);
                    tails(batch_number * at_once + number, found);
                }
                let next = places.get((batch_number + 1) * at_once);
                self.pass(next.map_or(to, |place| place.first.min(to)));
                while self.waiting.len() > self.limits.waiting
                    && let Some(time) = self.let_go()
                {
                    to = time;
                }
            }
            self.pass(to);
            if to == u64::MAX {
                return;
            }
            (from, to) = (to, u64::MAX);
        }
    }

    /// Adds the samples of a block that are in a stretch of time. Returns the last one of each counter.
    fn add(
        &mut self,
        samples: &Samples,
        last: &[Option<(Position, f64)>],
        block: &Block,
        times: std::ops::Range<u64>,
    ) -> Vec<Tail> {
        let keys = samples.keys.iter().zip(last);
        let numbers: Vec<Option<usize>> = keys
            .map(|(key, last)| last.and(*key).and_then(|key| self.number(key)))
            .collect();
        let rows = samples
            .rows(block)
            .filter(|(_, position, _)| times.contains(&position.start.0));
        let rows = rows.filter_map(|(key, position, value)| Some((position, numbers[key]?, value)));
        self.waiting.extend(rows);
        let mut tails: Vec<Tail> = Vec::new();
        for (counter, last) in numbers.into_iter().zip(last) {
            let (Some(counter), Some((position, value))) = (counter, *last) else {
                continue;
            };
            tails.push(Tail {
                counter,
                position,
                value,
            });
        }
        // Tracks that differ only in their kind are one counter.
        tails.sort_by_key(|tail| (tail.counter, std::cmp::Reverse(tail.position)));
        tails.dedup_by_key(|tail| tail.counter);
        tails
    }

    fn number(&mut self, key: CounterKey) -> Option<usize> {
        if let Some(number) = self.numbers.known.get(&key) {
            return Some(*number);
        }
        if self.numbers.keys.len() >= self.limits.counters {
            if self.numbers.left_out.len() < MOST_LEFT_OUT {
                self.numbers.left_out.insert(key);
            }
            return None;
        }
        let number = self.overview.add_row(key, self.limits.cells);
        self.numbers.keys.push(key);
        self.numbers.known.insert(key, number);
        self.open.push(None);
        Some(number)
    }

    /// All samples before a time are known.
    fn pass(&mut self, time: u64) {
        self.waiting.sort_unstable_by_key(|(position, ..)| *position);
        let count = self
            .waiting
            .partition_point(|(position, ..)| position.start.0 < time);
        for (position, counter, value) in self.waiting.drain(..count) {
            match self.open[counter] {
                // A block before the window has a later one.
                Some((known, _)) if known > position => continue,
                Some((known, held)) => {
                    let (from, to) = (known.start.0.max(self.from), position.start.0.min(self.to));
                    self.overview.hold(counter, from, to, held);
                }
                None => {}
            }
            self.open[counter] = Some((position, value));
        }
    }

    /// Drops the later half of the waiting samples and returns the time of the first of them. `None` if all have one time.
    fn let_go(&mut self) -> Option<u64> {
        let first = self.waiting.first()?.0.start.0;
        let middle = self.waiting[self.waiting.len() / 2].0.start.0;
        let time = middle.max(first.saturating_add(1));
        let kept = self
            .waiting
            .partition_point(|(position, ..)| position.start.0 < time);
        (kept < self.waiting.len()).then(|| {
            self.waiting.truncate(kept);
            time
        })
    }

    pub(super) fn finish(mut self) -> (CounterOverview, Numbers) {
        for (counter, open) in self.open.iter().enumerate() {
            if let Some((known, held)) = open {
                self.overview
                    .hold(counter, known.start.0.max(self.from), self.to, *held);
            }
        }
        self.overview.left_out = self.numbers.left_out.len();
        (self.overview, self.numbers)
    }
}
