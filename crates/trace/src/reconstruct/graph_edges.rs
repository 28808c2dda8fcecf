//! The order that graphs impose on streams: between the nodes of a launch, and between a launch as a whole and what
//! stands before and behind it on its stream.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::{GraphId, GraphNodeId, ProcessId};

use super::activity::{Activity, StreamIndex};
use super::graphs::GraphWork;
use super::joins::last_to_end;
use super::ops::OpId;

/// One piece of work waits for another because of a graph: the one that is waited for, and the one that waits.
pub(super) type Pair = (OpId, OpId);

/// What graphs say of the order of work.
#[derive(Default)]
pub(super) struct GraphOrder {
    /// Work that waits for other work, also on the same stream.
    pub(super) pairs: Vec<Pair>,
    /// Launches on several streams whose nodes' order the trace does not know.
    pub(super) unordered: u64,
}

/// The ends of a launch: work that nothing in it stands before, and work that nothing in it stands behind.
#[derive(Default)]
struct Ends {
    first: Vec<OpId>,
    last: Vec<OpId>,
}

/// Ties between two launches up to which each first op waits for each last op. A graph on 16 streams has 256, eight times
/// as many as ops. Beyond this, the first op that starts waits for all, and the others for the op that ended last.
const MAX_TIES: usize = 16;

impl GraphOrder {
    /// Works it out.
    pub(super) fn of(activity: &Activity) -> Self {
        let graphs = &activity.graphs;
        let mut order = GraphOrder::default();
        let ends: Vec<Ends> = graphs
            .launches()
            .iter()
            .map(|launch| order.within(activity, launch))
            .collect();
        // A graph does not run beside itself.
        let mut last_of: FxHashMap<(ProcessId, GraphId), usize> = FxHashMap::default();
        for (number, launch) in graphs.launches().iter().enumerate() {
            let (before, behind) = beside(activity, launch);
            let mut waited: Vec<OpId> = Vec::new();
            if let Some(op) = before {
                match graphs.launch_of(op) {
                    Some(other) => waited.extend(&ends[other].last),
                    None => waited.push(op),
                }
            }
            let (_, op) = graphs.work_of(launch)[0];
            let graph = (activity.lane(launch.lane).process, activity.ops.kind(op).graph);
            if let Some(other) = last_of.insert(graph, number) {
                waited.extend(&ends[other].last);
            }
            waited.sort_unstable();
            waited.dedup();
            order.tie(activity, &waited, &ends[number].first);
            if let Some(to) = behind.filter(|op| graphs.launch_of(*op).is_none()) {
                order.tie(activity, &ends[number].last, &[to]);
            }
        }
        order
    }

    /// All of `to` wait for all of `from`.
    fn tie(&mut self, activity: &Activity, from: &[OpId], to: &[OpId]) {
        let is_many = from.len().saturating_mul(to.len()) > MAX_TIES;
        let last = last_to_end(&activity.ops, from.iter().copied());
        let first = to.iter().min().copied();
        for to in to {
            match last {
                Some(last) if is_many && Some(*to) != first => self.pairs.push((last, *to)),
                _ => self.pairs.extend(from.iter().map(|from| (*from, *to))),
            }
        }
    }

    /// The order of a launch's nodes. Where the trace does not know it, the first and the last work of each stream are
    /// its ends.
    fn within(&mut self, activity: &Activity, launch: &GraphWork) -> Ends {
        let graphs = &activity.graphs;
        let work = graphs.work_of(launch);
        let process = activity.lane(launch.lane).process;
        let mut pairs: Vec<Pair> = Vec::new();
        for (node, op) in work {
            let before = run_before(activity, process, work, *node, *op);
            pairs.extend(before.into_iter().map(|from| (from, *op)));
        }
        let held: FxHashSet<OpId> = pairs.iter().map(|(_, to)| *to).collect();
        let waited_for: FxHashSet<OpId> = pairs.iter().map(|(from, _)| *from).collect();
        self.pairs.extend(pairs);
        let mut of_lane: FxHashMap<StreamIndex, (OpId, OpId)> = FxHashMap::default();
        for (_, op) in work {
            let ends = of_lane.entry(activity.ops.lane[op.index()]).or_insert((*op, *op));
            *ends = (ends.0.min(*op), ends.1.max(*op));
        }
        if held.is_empty() && of_lane.len() > 1 {
            self.unordered += 1;
        }
        let mut ends = Ends::default();
        for (first, last) in of_lane.into_values() {
            if !held.contains(&first) {
                ends.first.push(first);
            }
            if !waited_for.contains(&last) {
                ends.last.push(last);
            }
        }
        ends.first.sort_unstable();
        ends.last.sort_unstable();
        ends
    }
}

/// The work of a launch that a node waits for: that of the nodes before it, and where one left none, of those before
/// that.
fn run_before(
    activity: &Activity,
    process: ProcessId,
    work: &[(GraphNodeId, OpId)],
    node: GraphNodeId,
    op: OpId,
) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut seen: FxHashSet<GraphNodeId> = FxHashSet::default();
    let mut open: Vec<GraphNodeId> = activity.graphs.before(process, node).collect();
    while let Some(before) = open.pop() {
        if !seen.insert(before) {
            continue;
        }
        // A node that runs more than once in a launch: the last time before this one.
        let first = work.partition_point(|(other, _)| *other < before);
        let times = work[first..].iter().take_while(|(other, _)| *other == before);
        match times.map(|(_, other)| *other).filter(|other| *other < op).last() {
            Some(other) => found.push(other),
            None => open.extend(activity.graphs.before(process, before)),
        }
    }
    found
}

/// The work right before and right behind a launch on its stream.
fn beside(activity: &Activity, launch: &GraphWork) -> (Option<OpId>, Option<OpId>) {
    let on_lane = || {
        let work = activity.graphs.work_of(launch).iter().map(|(_, op)| *op);
        work.filter(|op| activity.ops.lane[op.index()] == launch.lane)
    };
    let (Some(first), Some(last)) = (on_lane().min(), on_lane().max()) else {
        return (None, None);
    };
    let ops = activity.ops_of(launch.lane);
    let before = ops.partition_point(|op| *op < first);
    let behind = ops.partition_point(|op| *op <= last);
    (before.checked_sub(1).map(|at| ops[at]), ops.get(behind).copied())
}
