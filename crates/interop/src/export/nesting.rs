//! What a thread was in the midst of when it asked for device work.
//!
//! Without stacks, the ranges that a program marked and the calls that a framework recorded still say where a launch comes
//! from. A walk in the order of time keeps what is open on each thread, and notes it for every call that has a correlation.
//! Calls outside all ranges need no note where only the path is asked for. Notes and the work that looks for them are put
//! in the same order, outside of memory where there are many, and read side by side.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{HostCall, HostCallKind, Marker, MarkerKind};
use tracesmith_format::{ProcessId, ThreadId, Timestamp};
use tracesmith_trace::{EventKind, EventName, Found, Query, Trace};

use crate::error::Error;
use crate::export::row_value::RowValue;
use crate::export::spill::{Sorted, Spill};

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
    calls: Spill<CALL_WORDS>,
    seen: u64,
    keep: Keep,
}

/// Process, correlation, which of all calls it is, thread, time and path.
const CALL_WORDS: usize = 6;

/// Work by the call that asked for it. Rows begin with their process and correlation.
pub(super) struct Asked<const N: usize> {
    calls: Sorted<CALL_WORDS>,
    work: Sorted<N>,
    /// The last call that was passed.
    call: Option<[u64; CALL_WORDS]>,
}

/// A piece of work, and where it was asked for, if that is known.
type Placed<const N: usize> = ([u64; N], Option<Launch>);

impl<const N: usize> Asked<N> {
    /// The next piece of work.
    pub(super) fn next(&mut self) -> Result<Option<Placed<N>>, Error> {
        let Some(work) = self.work.next()? else {
            return Ok(None);
        };
        // Of several calls with one number, the last: a call of the runtime is followed by those that it makes.
        while let Some(call) = self.calls.next_if(|call| call[..2] <= work[..2])? {
            self.call = Some(call);
        }
        let call = self.call.filter(|call| call[..2] == work[..2]);
        let launch = call.map(|[_, _, _, thread, time, path]| Launch {
            thread: ThreadId(thread),
            time: Timestamp(time),
            path: PathId(path as u32),
        });
        Ok(Some((work, launch)))
    }
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
            calls: Spill::default(),
            seen: 0,
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
        nesting
    }

    /// Joins work with the calls that asked for it, once.
    pub(super) fn asked<const N: usize>(&mut self, work: Spill<N>) -> Result<Asked<N>, Error> {
        Ok(Asked {
            calls: std::mem::take(&mut self.calls).sorted()?,
            work: work.sorted()?,
            call: None,
        })
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
                self.seen += 1;
                self.calls.push([
                    u64::from(event.process.0),
                    event.correlation.0,
                    self.seen,
                    event.thread.0,
                    event.start.0,
                    u64::from(here.0),
                ]);
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
