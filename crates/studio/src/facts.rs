//! What is worked out of a trace when somebody first asks for it, and then kept as long as the trace is open.

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::{Frame, Symbol};
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::reconstruct::{CallId, Dependencies, Edge, Gap, OpId, Timeline, Window};
use tracesmith_trace::{EventStacks, Trace};

use crate::reply::Failure;

/// What was worked out of a trace.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    whole: OnceLock<Result<Arc<Whole>, Failure>>,
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
    pub(crate) fn whole(&self, trace: &Arc<Trace>) -> Result<&Arc<Whole>, Failure> {
        let whole = self.whole.get_or_init(|| {
            let analysis = Analysis::of(trace, Window::default())?;
            let mut gaps = Vec::new();
            Timeline::swept(&analysis.activity, &[], |gap| gaps.push(gap));
            gaps.sort_by_key(|gap| (gap.device, gap.from));
            Ok(Arc::new(Whole {
                analysis,
                gaps,
                ties: OnceLock::new(),
            }))
        });
        whole.as_ref().map_err(Clone::clone)
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
