//! Pictures of any part of a trace, fast enough to move around in.

use std::sync::Arc;

use tracesmith_format::Timestamp;

use super::counter_index::CounterIndex;
use super::find::named_by_depth;
use super::{
    CounterKey, CounterOverview, Direction, Labels, Named, Nesting, Overview, Picked, Position, RowKey,
    Surroundings, TimeSpan,
};
use crate::model::trace::Trace;
use crate::name_pattern::NamePattern;
use crate::query::{ProgressFn, Query};

/// Cells per row of the summary. There are fewer if the trace has very many rows.
const SUMMARY_CELLS: usize = 1 << 16;
/// Cells of all rows together. A cell takes about 20 bytes.
const SUMMARY_CELLS_OF_ALL_ROWS: usize = 4 << 20;
/// A picture is computed from the summary if the summary has at least this many cells per cell of the picture.
const SUMMARY_CELLS_EACH: usize = 4;
/// A picture has the names of its events if there are at most this many.
const MOST_NAMED: usize = 5_000;
/// Cells per counter of the summary. There are fewer if the trace has very many counters.
const COUNTER_CELLS: usize = 1 << 14;

/// A trace that somebody moves around in.
///
/// It reads the trace once and keeps a summary. Pictures of long time ranges are computed from the summary, others from
/// the blocks of their range. With a [`Viewport`](super::Viewport) this is all that a timeline needs.
#[derive(Debug)]
pub struct Browser {
    trace: Arc<Trace>,
    query: Query,
    summary: Overview,
    counters: CounterIndex,
    /// The search, and the same summary of the events that it found.
    matches: Option<(Query, Overview)>,
}

/// A row of a timeline, with its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabeledRow {
    /// What the row shows.
    pub key: RowKey,
    /// The GPU or process that it belongs to. Rows of a group follow each other.
    pub group: String,
    /// Its label within the group.
    pub label: String,
}

/// What a timeline shows of a time range.
#[derive(Debug)]
pub struct Picture {
    /// The rows with their cells.
    pub overview: Overview,
    /// The counters, in as many cells.
    pub counters: CounterOverview,
    /// The events that the search found, in the same cells.
    pub matches: Option<Overview>,
    /// The events with their names. Empty if there are more than 5,000.
    pub named: Vec<Named>,
}

impl Browser {
    /// Reads the events and counters that `query` selects. `None` if none of them can be drawn. The time range is that of
    /// the events, and that of the counters only if there are no events.
    pub fn new(trace: &Arc<Trace>, query: &Query, progress: Option<&ProgressFn>) -> Option<Self> {
        let whole = TimeSpan::of(trace, query).or_else(|| TimeSpan::of_counters(trace, query))?;
        let run = query.with_progress(progress);
        let counters = CounterIndex::read(trace, run, whole, COUNTER_CELLS);
        let how = (Nesting::ByDepth, Some(SUMMARY_CELLS_OF_ALL_ROWS));
        let summary = Overview::with_nesting(trace, run, whole, SUMMARY_CELLS, how);
        let has_rows = !summary.rows.is_empty() || !counters.summary().rows.is_empty();
        has_rows.then(|| Browser {
            trace: Arc::clone(trace),
            query: query.clone(),
            summary,
            counters,
            matches: None,
        })
    }

    /// The trace.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// All rows, and cells that span the whole trace.
    pub fn summary(&self) -> &Overview {
        &self.summary
    }

    /// All counters, and cells that span the whole trace.
    pub fn counters(&self) -> &CounterOverview {
        self.counters.summary()
    }

    /// The rows with their labels, from top to bottom. Counters that have no value in the time range have no row.
    pub fn rows(&self) -> Vec<LabeledRow> {
        let counters = self.counters().rows.iter();
        let labels =
            Labels::new(&self.trace, &self.summary).with_counters(counters.clone().map(|row| row.key));
        let with_values = counters.filter(|row| row.window().is_some());
        let mut keys: Vec<RowKey> = self.summary.rows.iter().map(|row| row.key).collect();
        keys.extend(with_values.map(|row| RowKey::Counter(row.key)));
        keys.sort_by_key(|key| key.rank());
        let rows = keys.into_iter().map(|key| LabeledRow {
            key,
            group: labels.group(key),
            label: labels.row(key),
        });
        rows.collect()
    }

    /// The value of a counter at a time. `None` before its first sample.
    pub fn counter_at(&self, key: CounterKey, time: Timestamp) -> Option<f64> {
        self.counters.value_at(&self.trace, &self.query, key, time)
    }

    /// A time range, divided into cells.
    pub fn picture(&self, window: TimeSpan, cells: usize) -> Picture {
        let overview = self.cells_of(&self.query, &self.summary, window, cells);
        let matches = self
            .matches
            .as_ref()
            .map(|(query, summary)| self.cells_of(query, summary, window, cells));
        let named = if events_of(&overview) <= MOST_NAMED as u64 {
            named_by_depth(&self.trace, &self.query, &self.summary, window, MOST_NAMED)
        } else {
            None
        };
        Picture {
            overview,
            counters: self.counters.picture(&self.trace, &self.query, window, cells),
            matches,
            named: named.unwrap_or_default(),
        }
    }

    fn cells_of(&self, query: &Query, summary: &Overview, window: TimeSpan, cells: usize) -> Overview {
        if summary.cells_within(window) >= SUMMARY_CELLS_EACH * cells {
            summary.coarser(window, cells)
        } else {
            summary.part(&self.trace, query, window, cells)
        }
    }

    /// The next event of a row, or the next sample of a counter. Without a row, the next event that the search found.
    pub fn seek(&self, key: Option<RowKey>, from: Position, direction: Direction) -> Option<Picked> {
        match (key, &self.matches) {
            (Some(RowKey::Counter(key)), _) => {
                self.counters.seek(&self.trace, &self.query, key, from, direction)
            }
            (None, Some((query, matches))) => matches.seek(&self.trace, query, None, from, direction),
            _ => self.summary.seek(&self.trace, &self.query, key, from, direction),
        }
    }

    /// Searches for events by name, and returns how many there are.
    pub fn search(&mut self, pattern: NamePattern) -> u64 {
        let query = Query {
            name: Some(pattern),
            ..self.query.clone()
        };
        let (window, cells) = (self.summary.window(), self.summary.cells());
        let found = Overview::with_nesting(&self.trace, &query, window, cells, (Nesting::ByDepth, None));
        let count = events_of(&found);
        self.matches = (count > 0).then_some((query, found));
        count
    }

    /// Ends the search.
    pub fn end_search(&mut self) {
        self.matches = None;
    }

    /// The call, the ranges and the stack of an event.
    pub fn surroundings(&self, picked: &Picked) -> Surroundings {
        Surroundings::of(&self.trace, &picked.event)
    }
}

/// The events of all rows. The row of a whole device repeats the events of its streams.
fn events_of(overview: &Overview) -> u64 {
    let own = overview
        .rows
        .iter()
        .filter(|row| !matches!(row.key, RowKey::Device { .. }));
    own.map(|row| row.events).sum()
}
