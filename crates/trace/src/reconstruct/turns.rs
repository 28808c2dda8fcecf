//! The order in which the nodes of an execution graph are added.

use rustc_hash::FxHashMap;

use super::activity::Activity;
use super::dependencies::Dependencies;
use super::execution_graph::{Node, time_of};
use super::order::order_by;

/// How often delays of ops may delay calls and the other way round. Clocks that differ by a constant need two rounds.
const ROUNDS: usize = 4;

/// When ops and calls enter the graph, where that is not the order of their times.
///
/// Where the clocks of host and device differ, an op may start before its launch, and a wait may end before the op that it
/// is for starts. Each enters after what it is linked to, and what follows it on its stream or thread enters after it.
#[derive(Default)]
pub(super) struct Turns {
    /// The ops in the order of their turns; none for the order of starts.
    pub(super) order: Option<Vec<u32>>,
    /// The turn of each op; empty for the starts.
    of_op: Vec<u64>,
    /// The turns of nodes of the host that enter later than their time.
    delayed: FxHashMap<Node, u64>,
}

impl Turns {
    /// Works them out for the nodes of each thread.
    pub(super) fn of(activity: &Activity, dependencies: &Dependencies, calls: &[Vec<Node>]) -> Self {
        let mut turns = Turns::default();
        for _ in 0..ROUNDS {
            turns.delay_ops(activity);
            let delayed = delayed(activity, dependencies, calls, &turns);
            if delayed == turns.delayed {
                break;
            }
            turns.delayed = delayed;
        }
        if !turns.of_op.is_empty() {
            turns.order = order_by(activity.ops.len(), |at| turns.of_op[at]);
        }
        turns
    }

    pub(super) fn of_op(&self, activity: &Activity, op: usize) -> u64 {
        self.of_op.get(op).copied().unwrap_or(activity.ops.start[op])
    }

    pub(super) fn of_host(&self, activity: &Activity, node: Node) -> u64 {
        let time = time_of(activity, node);
        match self.delayed.is_empty() {
            true => time,
            false => self.delayed.get(&node).copied().unwrap_or(time),
        }
    }

    /// Delays ops until their launches, and what follows them on their streams.
    fn delay_ops(&mut self, activity: &Activity) {
        let ops = &activity.ops;
        let launched = |at: usize| match ops.call[at] {
            call if call.is_some() => self.of_host(activity, Node::Launch(call)),
            _ => 0,
        };
        if (0..ops.len()).all(|at| launched(at) <= ops.start[at]) {
            return;
        }
        let mut of_lane = vec![0u64; activity.lanes.len()];
        let of_op = (0..ops.len()).map(|at| {
            let last = &mut of_lane[ops.lane[at].index()];
            *last = ops.start[at].max(launched(at)).max(*last);
            *last
        });
        self.of_op = of_op.collect();
    }
}

/// The nodes of the host that must enter later than their time: waits after what they are for, and all that follows
/// them on their threads.
fn delayed(
    activity: &Activity,
    dependencies: &Dependencies,
    calls: &[Vec<Node>],
    turns: &Turns,
) -> FxHashMap<Node, u64> {
    let mut delayed = FxHashMap::default();
    for nodes in calls {
        let mut last = 0;
        for node in nodes {
            let time = time_of(activity, *node);
            if let Node::Wait(call) = *node {
                for wait in dependencies.waits_of(call) {
                    last = last.max(turns.of_op(activity, wait.op.index()));
                }
            }
            if last > time {
                delayed.insert(*node, last);
            }
            last = last.max(time);
        }
    }
    delayed
}
