//! What a thread was in the midst of when it asked for device work.
//!
//! Without stacks, the ranges that a program marked and the calls that a framework recorded still say where a launch comes
//! from. A walk in the order of time keeps what is open on each thread, and notes it for every call that has a correlation:
//! 32 bytes a call, and each distinct path once. Calls outside all ranges need no note where only the path is asked for.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{HostCall, HostCallKind, Marker, MarkerKind};
use tracesmith_format::{CorrelationId, ProcessId, ThreadId, Timestamp};

use crate::export::row_value::RowValue;
use crate::model::event::{EventKind, EventName};
use crate::model::trace::Trace;
use crate::query::{Found, Query};

/// A path of names, the outermost first; 0 is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PathId(u32);

/// A call that may have asked for device work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    /// The thread that called.
    pub(super) thread: ThreadId,
    /// When.
    pub(super) time: Timestamp,
    /// What the thread was in the midst of.
    pub(super) path: PathId,
}

/// What was open on the host when work was asked for.
pub(super) struct Nesting {
    /// Each path's parent and last name.
    paths: Vec<(PathId, EventName)>,
    known: FxHashMap<(PathId, EventName), PathId>,
    /// By process, in the order of correlations once all are there.
    calls: FxHashMap<ProcessId, Vec<(CorrelationId, Launch)>>,
    keep: Keep,
}

/// Which calls are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All, for their threads and times.
    All,
    /// Those within ranges, for their paths.
    InRanges,
}

/// A thread's open ranges: when each ends, and the path down to it.
type Open = FxHashMap<(ProcessId, ThreadId), Vec<(Timestamp, PathId)>>;

impl Nesting {
    /// Walks over all that the host did.
    pub(super) fn of(trace: &Trace, keep: Keep) -> Self {
        let mut nesting = Nesting {
            paths: Vec::new(),
            known: FxHashMap::default(),
            calls: FxHashMap::default(),
            keep,
        };
        let query = Query {
            kinds: Some(vec![EventKind::ApiCall, EventKind::HostCall, EventKind::Marker]),
            ..Query::default()
        };
        let nests = Nests::new();
        let mut open = Open::default();
        trace.for_each_event_by_time(&query, |found| {
            nesting.add(&mut open, found, &nests);
            ControlFlow::Continue(())
        });
        for calls in nesting.calls.values_mut() {
            calls.sort_by_key(|(correlation, _)| *correlation);
        }
        nesting
    }

    /// Where a piece of device work was asked for, if that is known.
    pub(super) fn launch(&self, process: ProcessId, correlation: CorrelationId) -> Option<Launch> {
        let calls = self.calls.get(&process)?;
        // Of several with one number, the last: a call of the runtime is followed by those that it makes.
        let behind = calls.partition_point(|(other, _)| *other <= correlation);
        let (found, launch) = calls.get(behind.checked_sub(1)?)?;
        (*found == correlation).then_some(*launch)
    }

    /// The names of a path, the outermost first.
    pub(super) fn names(&self, path: PathId) -> Vec<EventName> {
        let mut names = Vec::new();
        let mut at = path;
        while let Some(index) = at.0.checked_sub(1) {
            let (parent, name) = self.paths[index as usize];
            names.push(name);
            at = parent;
        }
        names.reverse();
        names
    }

    fn add(&mut self, open: &mut Open, found: &Found<'_>, nests: &Nests) {
        let event = &found.event;
        let thread = open.entry((event.process, event.thread)).or_default();
        while thread.last().is_some_and(|(end, _)| *end <= event.start) {
            thread.pop();
        }
        let here = thread.last().map_or(PathId::default(), |(_, path)| *path);
        if event.kind == EventKind::ApiCall {
            if event.correlation.is_some() && (self.keep == Keep::All || here != PathId::default()) {
                let launch = Launch {
                    thread: event.thread,
                    time: event.start,
                    path: here,
                };
                let calls = self.calls.entry(event.process).or_default();
                calls.push((event.correlation, launch));
            }
        } else if event.start.is_some() && nests.has_parts(found) {
            let end = if event.end.is_some() {
                event.end
            } else {
                Timestamp(u64::MAX)
            };
            let path = self.child(here, event.name);
            thread.push((end, path));
        }
    }

    fn child(&mut self, parent: PathId, name: EventName) -> PathId {
        let paths = &mut self.paths;
        *self.known.entry((parent, name)).or_insert_with(|| {
            paths.push((parent, name));
            PathId(paths.len() as u32)
        })
    }
}

/// Tells what other events can be part of.
pub(super) struct Nests {
    marker_kind: RowValue,
    host_kind: RowValue,
}

impl Nests {
    pub(super) fn new() -> Self {
        Nests {
            marker_kind: RowValue::of::<Marker>("shape.kind"),
            host_kind: RowValue::of::<HostCall>("shape.kind"),
        }
    }

    /// Whether what happens on the same thread meanwhile is part of it.
    pub(super) fn has_parts(&self, found: &Found<'_>) -> bool {
        let is_one_of = |kind: Option<u64>, codes: &[u8]| {
            kind.is_some_and(|kind| codes.iter().any(|code| u64::from(*code) == kind))
        };
        match found.event.kind {
            EventKind::ApiCall => true,
            EventKind::Marker => is_one_of(
                self.marker_kind.number(found),
                &[MarkerKind::NESTED_RANGE.0, MarkerKind::OPEN_NESTED_RANGE.0],
            ),
            EventKind::HostCall => !is_one_of(self.host_kind.number(found), &[HostCallKind::SAMPLE.0]),
            _ => false,
        }
    }
}
