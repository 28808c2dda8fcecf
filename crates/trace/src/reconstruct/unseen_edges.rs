//! Waits of streams for each other that no row states.
//!
//! PyTorch's profiler writes no rows for waits for events unless it is configured to. Then only the times show that a
//! stream waited: its next op was launched long ago, the op before it was over, and it started right after an op of
//! another stream of its process and device ended.
//!
//! - A process whose trace has rows of such waits is left alone: its dependencies are known.
//! - If the trace has calls of `cudaStreamWaitEvent` without rows, one of them must stand between the two launches.
//! - The end of the other op must be no coincidence. A stream with many short ops always has one that ended just before.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::SyncKind;
use tracesmith_format::{DeviceId, ProcessId};

use super::activity::{Activity, StreamIndex};
use super::class::CallClass;
use super::dependencies::{Edge, EdgeWhy};
use super::ops::OpId;

/// A shorter wait is not looked at: from a launch to its start, and from one op to the next, a GPU takes some
/// microseconds.
const LONG: u64 = 25_000;

/// How soon after the end of an op the one that waited for it starts. On an H200 it took 2 µs to 4 µs.
const RELEASED: u64 = 5_000;

/// By how much the times of two streams may be off. Older profilers write whole microseconds.
const CLOCK_STEP: u64 = 1_000;

/// A coincidence must be less likely than one in this many.
const UNLIKELY: u64 = 5;

/// The edges that the times show. `known` are those that rows state, sorted by the one that waits.
pub(super) fn unseen_edges(activity: &Activity, known: &[Edge]) -> Vec<Edge> {
    let recorded: FxHashSet<ProcessId> = activity
        .syncs
        .iter()
        .filter(|sync| sync.kind == SyncKind::STREAM_WAIT_EVENT)
        .map(|sync| sync.lane.process)
        .collect();
    let mut neighbors: FxHashMap<(ProcessId, DeviceId), Vec<StreamIndex>> = FxHashMap::default();
    for id in activity.lane_ids() {
        let lane = activity.lane(id);
        if !recorded.contains(&lane.process) {
            neighbors.entry((lane.process, lane.device)).or_default().push(id);
        }
    }
    neighbors.retain(|_, lanes| lanes.len() > 1);
    if neighbors.is_empty() {
        return Vec::new();
    }
    let wait_calls = wait_calls(activity);
    let mut found = Vec::new();
    for ((process, _), lanes) in &neighbors {
        let calls = wait_calls.get(process).map(Vec::as_slice);
        for lane in lanes {
            for waiting in long_waits(activity, *lane, calls) {
                let edges = &known[known.partition_point(|edge| edge.to < waiting.op)..];
                let mut of_op = edges.iter().take_while(|edge| edge.to == waiting.op);
                let is_explained = of_op.any(|edge| activity.ops.end[edge.from.index()] > waiting.since);
                if is_explained {
                    continue;
                }
                let others = lanes.iter().copied().filter(|other| other != lane);
                found.extend(waiting.released_by(activity, others).map(|from| Edge {
                    to: waiting.op,
                    from,
                    why: EdgeWhy::Assumed,
                }));
            }
        }
    }
    found
}

/// When the calls began that make a stream wait for an event, by process and sorted.
fn wait_calls(activity: &Activity) -> FxHashMap<ProcessId, Vec<u64>> {
    let calls = &activity.calls;
    let mut of_process: FxHashMap<ProcessId, Vec<u64>> = FxHashMap::default();
    for thread in &calls.threads {
        let waits = thread
            .calls
            .clone()
            .filter(|at| calls.class(*at) == CallClass::StreamWait);
        let mut waits = waits.map(|at| calls.start[at]).peekable();
        if waits.peek().is_some() {
            of_process.entry(thread.process).or_default().extend(waits);
        }
    }
    of_process.values_mut().for_each(|starts| starts.sort_unstable());
    of_process
}

/// An op that could have started earlier, as far as its launch and its stream go.
struct Waiting {
    op: OpId,
    since: u64,
    launched: u64,
}

/// The ops of a stream that waited long. If there are calls that make streams wait, one must stand before the launch.
fn long_waits(activity: &Activity, lane: StreamIndex, wait_calls: Option<&[u64]>) -> Vec<Waiting> {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let (mut free, mut before) = (0, 0);
    let mut found = Vec::new();
    for op in activity.ops_of(lane) {
        let (start, call) = (ops.start[op.index()], ops.call[op.index()]);
        let end = ops.end[op.index()];
        if call.is_some() {
            let launched = calls.start[call.index()];
            let since = free.max(calls.end[call.index()]);
            let may_wait = || {
                wait_calls.is_none_or(|starts| {
                    let first = starts.partition_point(|start| *start < before);
                    starts.get(first).is_some_and(|start| *start < launched)
                })
            };
            if start >= since.saturating_add(LONG) && may_wait() {
                found.push(Waiting {
                    op: *op,
                    since,
                    launched,
                });
            }
            before = launched;
        }
        free = free.max(end);
    }
    found
}

impl Waiting {
    /// The op of other streams whose end released this one; none if it may be a coincidence.
    fn released_by(&self, activity: &Activity, lanes: impl Iterator<Item = StreamIndex>) -> Option<OpId> {
        let ops = &activity.ops;
        let start = ops.start[self.op.index()];
        let over = |op: &OpId| ops.end[op.index()];
        let mut last: Option<OpId> = None;
        let mut ended = 0;
        for lane in lanes {
            let of_lane = activity.ops_of(lane);
            let first = of_lane.partition_point(|op| over(op) <= self.since);
            let after =
                first + of_lane[first..].partition_point(|op| over(op) <= start.saturating_add(CLOCK_STEP));
            ended += (after - first) as u64;
            if let Some(op) = of_lane[first..after].last()
                && last.is_none_or(|last| over(op) > over(&last))
            {
                last = Some(*op);
            }
        }
        let last = last.filter(|op| start.saturating_sub(over(op)) <= RELEASED)?;
        let call = ops.call[last.index()];
        let is_before = !call.is_some() || activity.calls.start[call.index()] < self.launched;
        let is_unlikely = ended.saturating_mul(RELEASED * UNLIKELY) <= start.saturating_sub(self.since);
        (is_before && is_unlikely).then_some(last)
    }
}
