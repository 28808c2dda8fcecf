//! Time in which a host thread did nothing for its program: the profiler's own work, and device code that is loaded
//! or compiled in the middle of a call.
//!
//! CUPTI and the profilers that use it write both as rows of overhead. A row without a known thread counts for all
//! threads of its process, and one without a known process for all threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracesmith_format::tables::{HostCall, HostCallKind};
use tracesmith_format::{ProcessId, Projection, StringId, ThreadId};

use super::calls::HostThread;
use super::ops::times_on;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::selection::Selected;

/// What a thread did instead of its program's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverheadKind {
    /// The profiler requested or flushed a buffer, or instrumented code.
    Profiler,
    /// The driver loaded or compiled device code.
    Module,
}

impl OverheadKind {
    /// The kind of a row by its name; `None` for what is neither, such as a full command buffer.
    fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if has(&["command buffer full"]) {
            None
        } else if has(&["lazy", "module load", "compil"]) {
            Some(Self::Module)
        } else {
            Some(Self::Profiler)
        }
    }
}

/// One stretch of overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overhead {
    /// Where it starts.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// What it is.
    pub kind: OverheadKind,
}

/// The overhead of every thread: sorted stretches that do not overlap. Threads without rows of their own share a list.
#[derive(Clone, Debug, Default)]
pub struct Overheads {
    of_thread: Vec<Arc<[Overhead]>>,
}

impl Overheads {
    /// Reads the overhead of the selected processes, for these threads.
    pub(super) fn read(trace: &Trace, selected: &Selected, threads: &[HostThread]) -> Result<Self, Error> {
        let wanted = Projection::of::<HostCall>(&["start", "end", "caller", "shape.name", "shape.kind"])?;
        let kind_of = |name: StringId, kind: HostCallKind| match kind {
            HostCallKind::OVERHEAD => OverheadKind::of_name(trace.string(name)),
            HostCallKind::COMPILE => Some(OverheadKind::Module),
            _ => None,
        };
        let mut rows: BTreeMap<(ProcessId, ThreadId), Vec<Overhead>> = BTreeMap::new();
        trace.host_calls.stream_wanted(
            &wanted,
            |block, rows| {
                let kinds: Vec<Option<OverheadKind>> = rows
                    .shape
                    .values
                    .iter()
                    .map(|shape| kind_of(shape.name, shape.kind))
                    .collect();
                if kinds.iter().all(Option::is_none) {
                    return Vec::new();
                }
                let (start, end) = times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
                (0..start.len())
                    .filter(|row| start[*row] != 0 && end[*row] > start[*row])
                    .filter_map(|row| {
                        let kind = kinds[rows.shape.index[row] as usize]?;
                        let overhead = Overhead {
                            start: start[row],
                            end: end[row],
                            kind,
                        };
                        Some((*rows.caller.get(row), overhead))
                    })
                    .collect()
            },
            |found| {
                for (caller, overhead) in found {
                    if !selected.wants_process(caller.process) {
                        continue;
                    }
                    let has_process = |thread: &HostThread| thread.process == caller.process;
                    let is_it = |thread: &HostThread| has_process(thread) && thread.thread == caller.thread;
                    let key = if threads.iter().any(is_it) {
                        (caller.process, caller.thread)
                    } else if caller.thread.0 != 0 && threads.iter().any(has_process) {
                        // A thread that never calls CUDA, as the one that CUPTI flushes on, holds nobody up.
                        continue;
                    } else if threads.iter().any(has_process) {
                        (caller.process, ThreadId(0))
                    } else {
                        (ProcessId(0), ThreadId(0))
                    };
                    rows.entry(key).or_default().push(overhead);
                }
            },
        );
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let list = |keys: &[(ProcessId, ThreadId)]| -> Vec<Overhead> {
            let lists = keys.iter().filter_map(|key| rows.get(key));
            lists.flatten().copied().collect()
        };
        let mut shared: BTreeMap<ProcessId, Arc<[Overhead]>> = BTreeMap::new();
        let of_thread = threads.iter().map(|thread| {
            let all = (ProcessId(0), ThreadId(0));
            let (process, own) = ((thread.process, ThreadId(0)), (thread.process, thread.thread));
            match rows.contains_key(&own) {
                true => apart(list(&[all, process, own])),
                false => Arc::clone(
                    shared
                        .entry(thread.process)
                        .or_insert_with(|| apart(list(&[all, process]))),
                ),
            }
        });
        Ok(Overheads {
            of_thread: of_thread.collect(),
        })
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.of_thread.is_empty()
    }

    /// Splits a stretch of a thread (a place among the threads with calls): passes each part with the overhead that it
    /// was spent with, if any.
    pub fn split(
        &self,
        thread: usize,
        from: u64,
        to: u64,
        mut take: impl FnMut(Option<OverheadKind>, u64, u64),
    ) {
        let all = self.of_thread.get(thread).map(|list| &**list).unwrap_or_default();
        let first = all.partition_point(|overhead| overhead.end <= from);
        let mut at = from;
        for overhead in all[first..].iter().take_while(|overhead| overhead.start < to) {
            if overhead.start > at {
                take(None, at, overhead.start);
                at = overhead.start;
            }
            let end = overhead.end.min(to);
            take(Some(overhead.kind), at, end);
            at = end;
        }
        if to > at {
            take(None, at, to);
        }
    }

    /// Nanoseconds of a stretch that were the profiler's, of the thread that it held up longest.
    pub fn most_profiler_nanos(&self, from: u64, to: u64) -> u64 {
        let threads = 0..self.of_thread.len();
        let nanos = threads.map(|thread| self.profiler_nanos(thread, from, to));
        nanos.max().unwrap_or(0)
    }

    /// Nanoseconds of a stretch of a thread that were the profiler's.
    pub fn profiler_nanos(&self, thread: usize, from: u64, to: u64) -> u64 {
        let mut nanos = 0;
        self.split(thread, from, to, |kind, from, to| {
            if kind == Some(OverheadKind::Profiler) {
                nanos += to - from;
            }
        });
        nanos
    }
}

/// In the order of time. Of two that overlap, the second starts where the first ends.
fn apart(mut overheads: Vec<Overhead>) -> Arc<[Overhead]> {
    overheads.sort_unstable();
    let mut until = 0;
    overheads.retain_mut(|overhead| {
        overhead.start = overhead.start.max(until);
        until = until.max(overhead.end);
        overhead.end > overhead.start
    });
    overheads.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_split_at_overhead() {
        let overhead = |start, end, kind| Overhead { start, end, kind };
        let list = apart(vec![
            overhead(50, 60, OverheadKind::Module),
            overhead(10, 20, OverheadKind::Profiler),
            overhead(15, 30, OverheadKind::Profiler),
        ]);
        let overheads = Overheads {
            of_thread: vec![list],
        };
        let mut parts = Vec::new();
        overheads.split(0, 18, 55, |kind, from, to| parts.push((kind, from, to)));
        assert_eq!(
            parts,
            [
                (Some(OverheadKind::Profiler), 18, 20),
                (Some(OverheadKind::Profiler), 20, 30),
                (None, 30, 50),
                (Some(OverheadKind::Module), 50, 55),
            ]
        );
        assert_eq!(overheads.profiler_nanos(0, 0, 100), 20);
        assert_eq!(
            overheads.profiler_nanos(7, 0, 100),
            0,
            "a thread that is not known"
        );
    }

    #[test]
    fn loading_code_is_not_the_profilers_work() {
        let kind = OverheadKind::of_name;
        for name in [
            "Activity Buffer Request",
            "CUPTI buffer flush",
            "CUPTI instrumentation",
            "Resource",
        ] {
            assert_eq!(kind(name), Some(OverheadKind::Profiler), "{name}");
        }
        for name in [
            "Lazy Function Loading",
            "driver compiler",
            "module loading by the runtime",
        ] {
            assert_eq!(kind(name), Some(OverheadKind::Module), "{name}");
        }
        assert_eq!(kind("command buffer full"), None);
    }
}
