//! Links between calls and ops. A call and the ops that it launched carry one correlation.
//!
//! Both sides can be several, so there are two questions:
//!
//! - **Which call launched an op?** The outermost one. A runtime call and the driver calls within it may share a
//!   correlation, and the program made the runtime call. [`outermost`] decides it for analysis ([`Joins`]) and for
//!   display ([`Surroundings`](crate::overview::Surroundings)).
//! - **Which ops did a call launch?** All ops whose `call` it is; a graph launch has hundreds. A wait or a dependency
//!   needs the op that ends last ([`last_to_end`]), since the others are over by then. Display starts with the first.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tracesmith_format::{CorrelationId, ProcessId};

use super::calls::{CallId, HostThread};
use super::ops::{OpId, Ops};

/// Orders calls with one correlation by their start and end: the least is the outermost, which launched the op.
#[inline]
pub(crate) fn outermost(start: u64, end: u64) -> impl Ord + Copy {
    (start, Reverse(end))
}

/// The op that ends last, which a wait for all of them waits for; of equal ones the one that starts last.
pub(super) fn last_to_end(ops: &Ops, of: impl Iterator<Item = OpId>) -> Option<OpId> {
    of.max_by_key(|op| (ops.end[op.index()], *op))
}

/// Finds the call of a correlation, which is unique within its process.
pub(super) struct Joins {
    by_process: FxHashMap<ProcessId, ProcessJoins>,
}

/// Correlations are counted up by the runtime, so a plain list from the lowest to the highest is small. Numbers of
/// another kind are kept in a map.
enum ProcessJoins {
    List { lowest: u64, calls: Vec<u32> },
    Map(FxHashMap<u64, u32>),
}

/// Entries of a list for each call: beyond that, a map is smaller.
const LIST_ENTRIES_PER_CALL: u64 = 8;

impl Joins {
    /// Joins calls, given in columns: the correlation of each, and when each began and ended.
    pub(super) fn new(threads: &[HostThread], correlations: &[u64], (start, end): (&[u64], &[u64])) -> Self {
        let mut ranges: FxHashMap<ProcessId, (u64, u64, u64)> = FxHashMap::default();
        for thread in threads {
            let range = ranges.entry(thread.process).or_insert((u64::MAX, 0, 0));
            for correlation in correlations[thread.calls.clone()]
                .iter()
                .filter(|number| **number != 0)
            {
                *range = (range.0.min(*correlation), range.1.max(*correlation), range.2 + 1);
            }
        }
        let mut by_process: FxHashMap<ProcessId, ProcessJoins> = ranges
            .into_iter()
            .filter(|(_, (.., count))| *count > 0)
            .map(|(process, (lowest, highest, count))| {
                let entries = highest - lowest;
                let joins = if entries < count.saturating_mul(LIST_ENTRIES_PER_CALL) {
                    let calls = vec![u32::MAX; entries as usize + 1];
                    ProcessJoins::List { lowest, calls }
                } else {
                    ProcessJoins::Map(FxHashMap::default())
                };
                (process, joins)
            })
            .collect();
        let is_outer = |at: u32, known: u32| {
            let rank = |call: u32| outermost(start[call as usize], end[call as usize]);
            known == u32::MAX || rank(at) < rank(known)
        };
        for thread in threads {
            let Some(joins) = by_process.get_mut(&thread.process) else {
                continue;
            };
            for at in thread.calls.clone().filter(|at| correlations[*at] != 0) {
                let entry = match joins {
                    ProcessJoins::List { lowest, calls } => &mut calls[(correlations[at] - *lowest) as usize],
                    ProcessJoins::Map(map) => map.entry(correlations[at]).or_insert(u32::MAX),
                };
                if is_outer(at as u32, *entry) {
                    *entry = at as u32;
                }
            }
        }
        Joins { by_process }
    }

    /// The call with this correlation.
    #[inline]
    pub(super) fn find(&self, process: ProcessId, correlation: CorrelationId) -> CallId {
        if !correlation.is_some() {
            return CallId::NONE;
        }
        let found = match self.by_process.get(&process) {
            Some(ProcessJoins::List { lowest, calls }) => correlation
                .0
                .checked_sub(*lowest)
                .and_then(|at| calls.get(usize::try_from(at).ok()?))
                .copied(),
            Some(ProcessJoins::Map(map)) => map.get(&correlation.0).copied(),
            None => None,
        };
        found.map_or(CallId::NONE, CallId)
    }
}
