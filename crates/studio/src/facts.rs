//! What is computed from a trace on first use. Most of it is kept while the trace is open; the
//! rebuilt trace, which takes most memory, only while somebody asks about it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::{Frame, Symbol};
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::reconstruct::{CallId, Dependencies, Edge, Gap, OpId, Timeline, Window};
use tracesmith_trace::{EventStacks, Trace};

use crate::reply::Failure;

/// The rebuilt trace is dropped after this time without a request.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Of so many kernels and calls it takes little memory, and is kept.
const KEPT_EVENTS: u64 = 500_000;

/// Results computed from a trace.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    whole: Mutex<Option<(Arc<Whole>, Instant)>>,
    building: Mutex<()>,
    stacks: OnceLock<Result<EventStacks, Failure>>,
    sources: OnceLock<FxHashSet<String>>,
}

/// The whole trace, rebuilt.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) analysis: Analysis,
    /// When devices did nothing, by device and time.
    pub(crate) gaps: Vec<Gap>,
    ties: OnceLock<Ties>,
}

/// Who waits for whom, from both sides.
#[derive(Debug)]
pub(crate) struct Ties {
    pub(crate) dependencies: Arc<Dependencies>,
    /// Sorted by the one that is waited for.
    from: Vec<Edge>,
    ops_of: FxHashMap<CallId, Vec<OpId>>,
    /// Calls of the host that waited for an op, sorted by the op.
    waiting: Vec<(OpId, CallId)>,
}

impl Facts {
    /// The whole trace, rebuilt.
    pub(crate) fn whole(&self, trace: &Arc<Trace>) -> Result<Arc<Whole>, Failure> {
        if let Some(whole) = self.known_whole() {
            return Ok(whole);
        }
        let _alone = self.build_alone();
        if let Some(whole) = self.known_whole() {
            return Ok(whole);
        }
        let analysis = Analysis::of(trace, Window::default())?;
        let mut gaps = Vec::new();
        Timeline::swept(&analysis.activity, &[], |gap| gaps.push(gap));
        gaps.sort_by_key(|gap| (gap.device, gap.from));
        let whole = Arc::new(Whole {
            analysis,
            gaps,
            ties: OnceLock::new(),
        });
        *self.lock_whole() = Some((Arc::clone(&whole), Instant::now()));
        Ok(whole)
    }

    /// A lock for rebuilding the trace or a part of it. A page asks for several analyses at once: each would take the
    /// memory of all.
    pub(crate) fn build_alone(&self) -> MutexGuard<'_, ()> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a large trace that was rebuilt and that nobody has asked about for a while.
    pub(crate) fn forget_unused(&self, trace: &Trace) {
        if trace.kernels.rows() + trace.api_calls.rows() > KEPT_EVENTS {
            self.forget(trace, KEPT_FOR);
        }
    }

    fn forget(&self, trace: &Trace, unused: Duration) {
        let forgotten = self.lock_whole().take_if(|(_, used)| used.elapsed() >= unused);
        // Not under the lock: this takes a while.
        drop(forgotten);
        Analysis::forget_unused(trace, unused);
    }

    fn known_whole(&self) -> Option<Arc<Whole>> {
        let mut whole = self.lock_whole();
        let (whole, used) = whole.as_mut()?;
        *used = Instant::now();
        Some(Arc::clone(whole))
    }

    fn lock_whole(&self) -> MutexGuard<'_, Option<(Arc<Whole>, Instant)>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stacks of events.
    pub(crate) fn stacks(&self, trace: &Trace) -> Result<&EventStacks, Failure> {
        let stacks = self.stacks.get_or_init(|| Ok(EventStacks::of(trace)?));
        stacks.as_ref().map_err(Clone::clone)
    }

    /// The source files that stacks name. No others are shown.
    pub(crate) fn names_source(&self, trace: &Trace, file: &str) -> bool {
        let sources = self.sources.get_or_init(|| {
            let frames = trace.rows::<Frame>().into_iter().map(|frame| frame.file);
            let symbols = trace.rows::<Symbol>().into_iter().map(|symbol| symbol.file);
            let files: FxHashSet<_> = frames.chain(symbols).filter(|file| file.is_some()).collect();
            files
                .into_iter()
                .map(|file| trace.string(file).to_owned())
                .collect()
        });
        !file.is_empty() && sources.contains(file)
    }
}

impl Whole {
    /// Who waits for whom.
    pub(crate) fn ties(&self) -> &Ties {
        self.ties.get_or_init(|| {
            let dependencies = self.analysis.dependencies();
            let mut from = dependencies.edges.clone();
            from.sort_unstable_by_key(|edge| (edge.from, edge.to));
            let ops = &self.analysis.activity.ops;
            let mut ops_of: FxHashMap<CallId, Vec<OpId>> = FxHashMap::default();
            for op in ops.ids() {
                let call = ops.get(op).call;
                if call.is_some() {
                    ops_of.entry(call).or_default().push(op);
                }
            }
            let waits = dependencies.host_waits.iter();
            let mut waiting: Vec<(OpId, CallId)> = waits.map(|wait| (wait.op, wait.call)).collect();
            waiting.sort_unstable();
            Ties {
                dependencies,
                from,
                ops_of,
                waiting,
            }
        })
    }
}

impl Ties {
    /// What waits for an op.
    pub(crate) fn edges_from(&self, op: OpId) -> &[Edge] {
        let first = self.from.partition_point(|edge| edge.from < op);
        let count = self.from[first..]
            .iter()
            .take_while(|edge| edge.from == op)
            .count();
        &self.from[first..first + count]
    }

    /// The ops that a call launched.
    pub(crate) fn ops_of(&self, call: CallId) -> &[OpId] {
        self.ops_of.get(&call).map_or(&[], Vec::as_slice)
    }

    /// The calls in which the host waited for an op.
    pub(crate) fn calls_that_wait_for(&self, op: OpId) -> impl Iterator<Item = CallId> {
        let first = self.waiting.partition_point(|(other, _)| *other < op);
        let of_op = self.waiting[first..]
            .iter()
            .take_while(move |(other, _)| *other == op);
        of_op.map(|(_, call)| *call)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_rebuilt_trace_is_forgotten_when_it_is_not_used() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/train-h200.sbt");
        let trace = Arc::new(Trace::open(Path::new(path)).unwrap());
        let facts = Facts::default();
        let whole = facts.whole(&trace).unwrap();
        let gaps = whole.gaps.clone();
        facts.forget(&trace, KEPT_FOR);
        let again = facts.whole(&trace).unwrap();
        assert!(Arc::ptr_eq(&whole, &again));
        let activity = Arc::downgrade(&whole.analysis.activity);
        drop((whole, again));
        assert!(activity.upgrade().is_some(), "it is kept");
        facts.forget(&trace, Duration::ZERO);
        assert!(activity.upgrade().is_none(), "it is forgotten");
        assert_eq!(facts.whole(&trace).unwrap().gaps, gaps);
    }

    #[test]
    fn those_who_ask_at_once_get_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/train-h200.sbt");
        let trace = Arc::new(Trace::open(Path::new(path)).unwrap());
        let facts = Facts::default();
        let all: Vec<_> = std::thread::scope(|scope| {
            let askers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| facts.whole(&trace).unwrap()))
                .collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).collect()
        });
        assert!(all.iter().all(|whole| Arc::ptr_eq(whole, &all[0])));
    }
}
