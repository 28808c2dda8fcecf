//! Reading counters: all of them once, and then only the blocks of a window.
//!
//! A counter's value at the start of a window can come from any earlier block. The index has the last sample of each
//! counter in each block, so that no block before the window is read again.

use tracesmith_format::Timestamp;

use super::counter_scan::{BlockPlace, Limits, Numbers, Samples, Scan, Tail, places};
use super::counters::{CounterKey, CounterOverview, MOST_CELLS};
use super::find::{Direction, Picked, Position, pick};
use super::{RowKey, TimeSpan};
use crate::model::trace::Trace;
use crate::query::{Query, QueryRun};

/// A picture is computed from the summary if the summary has at least this many cells per cell of the picture.
const SUMMARY_CELLS_EACH: usize = 4;

/// The counters of a trace and where their samples are.
#[derive(Debug)]
pub(super) struct CounterIndex {
    /// In the order of their first time.
    blocks: Vec<IndexedBlock>,
    numbers: Numbers,
    window: TimeSpan,
    summary: CounterOverview,
}

#[derive(Debug)]
struct IndexedBlock {
    place: BlockPlace,
    /// The last sample of each counter that the block has.
    tails: Vec<Tail>,
}

impl CounterIndex {
    /// Reads all counters that a query selects, up to the end of a window, and divides the window into cells.
    pub(super) fn read(trace: &Trace, query: QueryRun<'_>, window: TimeSpan, cells: usize) -> Self {
        Self::bounded(trace, query, window, cells, Limits::default())
    }

    fn bounded(trace: &Trace, query: QueryRun<'_>, window: TimeSpan, cells: usize, limits: Limits) -> Self {
        let places = places(trace, &query);
        let places: Vec<BlockPlace> = places
            .into_iter()
            // A sample at the very end has no time left, but it can be gone to.
            .filter(|place| place.first <= window.to.0)
            .collect();
        let mut scan = Scan::new(trace, query, window, cells, limits);
        let mut tails: Vec<Option<Vec<Tail>>> = vec![None; places.len()];
        scan.run(&places, |number, found| tails[number] = Some(found));
        let blocks = places.into_iter().zip(tails).map(|(place, tails)| IndexedBlock {
            place,
            tails: tails.unwrap_or_default(),
        });
        let (mut summary, numbers) = scan.finish();
        summary.sort();
        CounterIndex {
            blocks: blocks.collect(),
            numbers,
            window,
            summary,
        }
    }

    /// The whole window in fine cells.
    pub(super) fn summary(&self) -> &CounterOverview {
        &self.summary
    }

    pub(super) fn into_summary(self) -> CounterOverview {
        self.summary
    }

    /// A part of the window, divided into cells. Reads only the blocks that overlap it, and none for a long one.
    pub(super) fn picture(
        &self,
        trace: &Trace,
        query: &Query,
        window: TimeSpan,
        cells: usize,
    ) -> CounterOverview {
        if self.summary.cells_within(window) >= SUMMARY_CELLS_EACH * cells {
            return self.summary.coarser(window, cells);
        }
        let mut scan = Scan::new(trace, query.into(), window, cells, Limits::default());
        scan.numbers = self.numbers.clone();
        scan.open = vec![None; self.numbers.keys.len()];
        let (before, others): (Vec<&IndexedBlock>, Vec<&IndexedBlock>) = self
            .blocks
            .iter()
            .partition(|block| block.place.last < window.from.0);
        for tail in before.iter().flat_map(|block| &block.tails) {
            let known = &mut scan.open[tail.counter];
            if known.is_none_or(|(known, _)| known < tail.position) {
                *known = Some((tail.position, tail.value));
            }
        }
        for key in &self.numbers.keys {
            scan.overview.add_row(*key, MOST_CELLS);
        }
        let places: Vec<BlockPlace> = others
            .into_iter()
            .map(|block| block.place)
            .filter(|place| place.first < window.to.0)
            .collect();
        scan.run(&places, |_, _| {});
        let (mut overview, _) = scan.finish();
        overview.sort();
        overview
    }

    /// The sample of a counter next to a position, as far as it is in the window.
    pub(super) fn seek(
        &self,
        trace: &Trace,
        query: &Query,
        key: CounterKey,
        from: Position,
        direction: Direction,
    ) -> Option<Picked> {
        let (position, _) = self.nearest(trace, query, key, from, direction)?;
        let is_inside = (self.window.from..=self.window.to).contains(&position.start);
        let key = RowKey::Counter(key);
        is_inside.then(|| pick(trace, (position, key)))?
    }

    /// The value of a counter at a time. `None` before its first sample and in holes.
    pub(super) fn value_at(
        &self,
        trace: &Trace,
        query: &Query,
        key: CounterKey,
        time: Timestamp,
    ) -> Option<f64> {
        let found = self.nearest(trace, query, key, Position::behind(time), Direction::Back)?;
        Some(found.1).filter(|value| value.is_finite())
    }

    fn nearest(
        &self,
        trace: &Trace,
        query: &Query,
        key: CounterKey,
        from: Position,
        direction: Direction,
    ) -> Option<(Position, f64)> {
        let counter = *self.numbers.known.get(&key)?;
        let with_tail = |block: &IndexedBlock| {
            let tail = block.tails.iter().find(|tail| tail.counter == counter)?;
            Some((block.place, *tail))
        };
        let mut blocks: Vec<(BlockPlace, Tail)> = self.blocks.iter().filter_map(with_tail).collect();
        match direction {
            Direction::Forward => blocks.retain(|(_, tail)| tail.position > from),
            Direction::Back => {
                blocks.retain(|(place, _)| place.first <= from.start.0);
                blocks.sort_by_key(|(_, tail)| std::cmp::Reverse(tail.position));
            }
        }
        let mut decoder = trace.file.reader.decoder();
        let mut best: Option<(Position, f64)> = None;
        for (place, tail) in blocks {
            let found = match (best, direction) {
                (Some((best, _)), Direction::Forward) if place.first > best.start.0 => break,
                (Some((best, _)), Direction::Back) if tail.position < best => break,
                (_, Direction::Back) if tail.position < from => Some((tail.position, tail.value)),
                _ => {
                    let block = &trace.blocks()[place.number];
                    let samples = Samples::read(trace, query, &mut decoder, block);
                    samples.and_then(|samples| samples.nearest(block, key, from, direction))
                }
            };
            let Some(found) = found else { continue };
            if best.is_none_or(|best| direction.is_nearer(found.0, best.0)) {
                best = Some(found);
            }
        }
        best
    }
}

impl TimeSpan {
    /// From the first to the last sample of the counters that a query selects. `None` when there are none.
    pub(super) fn of_counters(trace: &Trace, query: &Query) -> Option<Self> {
        let places = places(trace, query);
        let first = places.first()?.first;
        let last = places.iter().map(|place| place.last).max()?;
        Some(Self::new(
            query.from.unwrap_or(Timestamp(first)),
            query.to.unwrap_or(Timestamp(last)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracesmith_format::tables::{Counter, CounterTrack};
    use tracesmith_format::{ClockId, StringId, Writer, WriterOptions};

    /// Blocks that all reach from the begin to the end of the trace.
    fn crowded() -> Trace {
        let options = WriterOptions {
            rows_per_block: 50,
            ..WriterOptions::default()
        };
        let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
        for at in 0..2_000_u64 {
            let sample = Counter {
                time: Timestamp(1 + (at * 7_919) % 2_000 * 10),
                value: at as f64,
                track: CounterTrack {
                    name: StringId(u32::try_from(at % 3).expect("it is small")),
                    ..CounterTrack::default()
                },
            };
            writer.push(ClockId(1), &sample).expect("memory takes all");
        }
        Trace::from_bytes(writer.finish().expect("memory takes all")).expect("it was just written")
    }

    #[test]
    fn a_crowded_trace_is_read_in_several_passes_with_the_same_result() {
        let trace = crowded();
        let query = Query::default();
        let window = TimeSpan::of_counters(&trace, &query).expect("it has counters");
        let read = |waiting| {
            let limits = Limits {
                waiting,
                ..Limits::default()
            };
            CounterIndex::bounded(&trace, (&query).into(), window, 60, limits).into_summary()
        };
        let at_once = read(usize::MAX);
        assert_eq!(at_once.rows.len(), 3);
        for waiting in [1, 7, 100, 1_500] {
            assert_eq!(read(waiting), at_once, "at most {waiting} wait");
        }
    }
}
