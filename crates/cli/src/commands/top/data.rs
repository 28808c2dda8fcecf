//! What the interactive view reads: a summary of the whole trace, made once, and parts of the file where it is not fine enough.

use tracesmith_format::{DeviceId, ProcessId, StreamId};
use tracesmith_trace::overview::{
    Direction, Named, Overview, Picked, Position, RowKey, Surroundings, TimeSpan, named_within,
};
use tracesmith_trace::{EventKind, NamePattern, Query, Trace};

use super::state::Line;
use crate::progress::{Bar, Progress};
use crate::timeline::Labels;

/// Cells of the summary; fewer where there are very many rows.
const SUMMARY_CELLS: usize = 1 << 16;
/// Cells of all rows together: each takes some twenty bytes.
const SUMMARY_CELLS_OF_ALL_ROWS: usize = 4 << 20;
/// A picture is drawn from the summary where that has so many cells for each of its own.
const SUMMARY_CELLS_EACH: usize = 4;
/// Events whose names are read for a picture.
const MOST_NAMED: usize = 5_000;

/// A trace that is looked at.
pub(super) struct Data<'t> {
    pub(super) trace: &'t Trace,
    query: Query,
    pub(super) summary: Overview,
    /// The same of what was searched for.
    matches: Option<(Query, Overview)>,
    filter: Filter,
}

/// What of a trace is shown; an empty list is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) kinds: Vec<EventKind>,
    pub(super) streams: Vec<StreamId>,
    pub(super) devices: Vec<DeviceId>,
    pub(super) processes: Vec<ProcessId>,
}

impl Filter {
    /// All of these kinds.
    pub(super) fn of_kinds(kinds: Vec<EventKind>) -> Self {
        Filter {
            kinds,
            streams: Vec::new(),
            devices: Vec::new(),
            processes: Vec::new(),
        }
    }

    fn query(&self) -> Query {
        fn bound<T: Clone>(list: &[T]) -> Option<Vec<T>> {
            (!list.is_empty()).then(|| list.to_vec())
        }
        Query {
            kinds: bound(&self.kinds),
            streams: bound(&self.streams),
            devices: bound(&self.devices),
            processes: bound(&self.processes),
            ..Query::default()
        }
    }
}

/// A stretch of time, ready to be drawn.
pub(super) struct Picture {
    pub(super) overview: Overview,
    /// What was searched for, in the same cells.
    pub(super) matches: Option<Overview>,
    /// Names, where there are few enough events to write them.
    pub(super) named: Vec<Named>,
}

/// What is known of the selected event beyond its own columns.
pub(super) struct Inspected {
    pub(super) around: Surroundings,
}

impl<'t> Data<'t> {
    /// Reads a trace once; `None` when it has nothing that can be drawn.
    pub(super) fn new(trace: &'t Trace, filter: Filter, bar: Bar) -> Option<Self> {
        let query = filter.query();
        let whole = TimeSpan::of(trace, &query)?;
        let progress = Progress::new("reading", trace.file_bytes(), bar).into_fn();
        let watched = query.with_progress(&progress);
        let summary = Overview::bounded(trace, watched, whole, SUMMARY_CELLS, SUMMARY_CELLS_OF_ALL_ROWS);
        (!summary.rows.is_empty()).then_some(Data {
            trace,
            query,
            summary,
            matches: None,
            filter,
        })
    }

    /// The rows, below what they belong to.
    pub(super) fn lines(&self) -> Vec<Line> {
        let labels = Labels::new(self.trace, &self.summary);
        let mut lines = Vec::new();
        let mut group = None;
        for row in &self.summary.rows {
            let name = labels.group(row.key);
            if group.as_ref() != Some(&name) {
                lines.push(Line::Group(name.clone()));
                group = Some(name);
            }
            lines.push(Line::Row {
                key: row.key,
                label: labels.row(row.key),
            });
        }
        lines
    }

    /// A stretch of time in so many cells: from the summary where that is fine enough, else from the file.
    pub(super) fn picture(&self, window: TimeSpan, cells: usize) -> Picture {
        let overview = self.cells_of(&self.query, &self.summary, window, cells);
        let matches = self
            .matches
            .as_ref()
            .map(|(query, summary)| self.cells_of(query, summary, window, cells));
        // Devices as a whole hold the events of their streams once more.
        let own = overview
            .rows
            .iter()
            .filter(|row| !matches!(row.key, RowKey::Device { .. }));
        let events: u64 = own.map(|row| row.events).sum();
        let named = if events <= MOST_NAMED as u64 {
            named_within(self.trace, &self.query, window, MOST_NAMED)
        } else {
            None
        };
        Picture {
            overview,
            matches,
            named: named.unwrap_or_default(),
        }
    }

    fn cells_of(&self, query: &Query, summary: &Overview, window: TimeSpan, cells: usize) -> Overview {
        if summary.cells_within(window) >= SUMMARY_CELLS_EACH * cells {
            summary.coarser(window, cells)
        } else {
            Overview::new(self.trace, query, window, cells)
        }
    }

    /// The event next to a position: of a row, or of those that were searched for.
    pub(super) fn seek(&self, key: Option<RowKey>, from: Position, direction: Direction) -> Option<Picked> {
        match (key, &self.matches) {
            (None, Some((query, matches))) => matches.seek(self.trace, query, None, from, direction),
            _ => self.summary.seek(self.trace, &self.query, key, from, direction),
        }
    }

    /// Looks for names; says how many events have such a one.
    pub(super) fn search(&mut self, pattern: &str) -> anyhow::Result<u64> {
        let query = Query {
            name: Some(NamePattern::new(pattern)?),
            ..self.filter.query()
        };
        let found = Overview::new(self.trace, &query, self.summary.window(), self.summary.cells());
        let own = found
            .rows
            .iter()
            .filter(|row| !matches!(row.key, RowKey::Device { .. }));
        let count = own.map(|row| row.events).sum();
        self.matches = (count > 0).then_some((query, found));
        Ok(count)
    }

    /// Nothing is searched for any more.
    pub(super) fn forget_search(&mut self) {
        self.matches = None;
    }

    /// What an event stands among.
    pub(super) fn inspect(&self, picked: &Picked) -> Inspected {
        Inspected {
            around: Surroundings::of(self.trace, &picked.event),
        }
    }
}
