//! Waits of the host that no call states.
//!
//! - A launch blocks when its stream's queue is full. It returns when an operation at the front of the queue ends.
//! - A program may wait without a call, by reading memory that a kernel writes. Then its thread goes on right after its
//!   GPU work ends, again and again.

use rustc_hash::{FxHashMap, FxHashSet};

use super::activity::Activity;
use super::calls::CallId;
use super::class::CallClass;
use super::dependencies::HostWait;
use super::ops::OpId;

/// A shorter launch is not looked at, nor is a shorter time without a call.
const LONG: u64 = 50_000;

/// This many unfinished launches fill a queue. On an H100, launches blocked with 1,135 or more before them.
const FULL_QUEUE: usize = 500;

/// At most this many operations of a queue are counted. A graph has many for one launch.
const COUNTED: usize = 4_096;

/// How soon after the end of GPU work a blocked thread goes on. On an H100, most blocked launches returned within this time,
/// and those of some milliseconds within a twentieth of their own time.
const RESUMED: u64 = 20_000;

/// By how much the clock of a GPU may be ahead of the host's: the work seems to end after the wait for it.
pub(super) const CLOCK_ERROR: u64 = 100_000;

/// So many times must a thread go on right after its GPU work, and in this share of all cases, to be taken to wait for it.
const MANY: usize = 10;
const NEARLY_ALWAYS: f64 = 0.9;

/// Waits of the host that no call states, sorted by call.
#[derive(Clone, Debug, Default)]
pub(super) struct UnseenWaits {
    /// Launches that returned when an operation ended, and that operation.
    pub(super) blocked_launches: Vec<HostWait>,
    /// Launches before which a thread waited without a call, and the operation that it waited for.
    pub(super) without_call: Vec<HostWait>,
}

impl UnseenWaits {
    /// Finds them.
    pub(super) fn of(activity: &Activity) -> Self {
        let mut blocked_launches = blocked_launches(activity);
        blocked_launches.sort_unstable_by_key(|wait| wait.call);
        blocked_launches.dedup_by_key(|wait| wait.call);
        let mut without_call = waits_without_call(activity);
        without_call.sort_unstable_by_key(|wait| wait.call);
        UnseenWaits {
            blocked_launches,
            without_call,
        }
    }
}

/// The launches that returned when an operation ended, sorted.
pub(crate) fn launches_into_full_queues(activity: &Activity) -> Vec<CallId> {
    let mut calls: Vec<CallId> = blocked_launches(activity).iter().map(|wait| wait.call).collect();
    calls.sort_unstable();
    calls
}

/// The wait of a call in a list that is sorted by call.
pub(super) fn wait_of(waits: &[HostWait], call: CallId) -> Option<OpId> {
    let at = waits.binary_search_by_key(&call, |wait| wait.call).ok()?;
    Some(waits[at].op)
}

fn blocked_launches(activity: &Activity) -> Vec<HostWait> {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let mut blocked = Vec::new();
    for lane in activity.lane_ids() {
        let of_lane = activity.ops_of(lane);
        let mut last = CallId::NONE;
        for (place, op) in of_lane.iter().enumerate() {
            let call = ops.call[op.index()];
            // A graph has many ops of one call, one after the other.
            let is_known = std::mem::replace(&mut last, call) == call;
            if !call.is_some() || is_known || ops.start[op.index()] < calls.end[call.index()] {
                continue;
            }
            let queue = &of_lane[..place];
            if let Some((front, op)) = released_by(activity, call.index(), queue)
                && launches_in(activity, &queue[front..]) >= FULL_QUEUE
            {
                blocked.push(HostWait { call, op });
            }
        }
    }
    let behind_the_end = launches_without_ops(activity, &blocked);
    blocked.extend(behind_the_end);
    blocked
}

/// The trace may end before the operations of a full queue do. Later launches of a thread that was blocked are taken to be
/// blocked for the same reason.
fn launches_without_ops(activity: &Activity, blocked: &[HostWait]) -> Vec<HostWait> {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let mut found = Vec::new();
    let mut last_of_thread: FxHashMap<usize, HostWait> = FxHashMap::default();
    for wait in blocked {
        let last = last_of_thread.entry(calls.thread_of(wait.call)).or_insert(*wait);
        if last.call < wait.call {
            *last = *wait;
        }
    }
    if last_of_thread.is_empty() {
        return found;
    }
    let with_ops: FxHashSet<CallId> = ops.call.iter().copied().collect();
    for (thread, wait) in last_of_thread {
        let queue = activity.ops_of(ops.lane[wait.op.index()]);
        // Launches before the one of the last op would have ops, unless they are captured into a graph.
        let Some(last) = queue.iter().rev().find(|op| ops.call[op.index()].is_some()) else {
            continue;
        };
        let launched = calls.start[ops.call[last.index()].index()];
        for at in wait.call.index() + 1..calls.threads[thread].calls.end {
            let call = CallId(at as u32);
            let is_launch = matches!(
                calls.class(at),
                CallClass::Launch | CallClass::GraphLaunch | CallClass::Copy | CallClass::Set
            );
            if is_launch
                && calls.start[at] > launched
                && !calls.is_nested(at)
                && !with_ops.contains(&call)
                && let Some((_, op)) = released_by(activity, at, queue)
            {
                found.push(HostWait { call, op });
            }
        }
    }
    found
}

/// The operation of a queue whose end let a call return, and the place of the queue's front when the call began.
fn released_by(activity: &Activity, call: usize, queue: &[OpId]) -> Option<(usize, OpId)> {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let (start, end) = (calls.start[call], calls.end[call]);
    if end - start < LONG || calls.class(call) == CallClass::Sync {
        return None;
    }
    let over = |op: &OpId| ops.end[op.index()];
    let front = queue.partition_point(|op| over(op) <= start);
    let returned = front + queue[front..].partition_point(|op| over(op) <= end);
    let last = *queue[front..returned].last()?;
    (end - over(&last) <= RESUMED.max((end - start) / 20)).then_some((front, last))
}

/// How many launches the operations of a queue come from, of the first few.
fn launches_in(activity: &Activity, queue: &[OpId]) -> usize {
    let call = |op: &OpId| activity.ops.call[op.index()];
    let counted = &queue[..queue.len().min(COUNTED)];
    let changes = counted.windows(2).filter(|pair| {
        let (first, second) = (call(&pair[0]), call(&pair[1]));
        first != second || !first.is_some()
    });
    changes.take(FULL_QUEUE).count() + usize::from(!counted.is_empty())
}

fn waits_without_call(activity: &Activity) -> Vec<HostWait> {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let mut last_of_call: Vec<OpId> = vec![OpId::NONE; calls.len()];
    for op in ops.ids() {
        let call = ops.call[op.index()];
        if call.is_some() {
            let last = &mut last_of_call[call.index()];
            if !last.is_some() || ops.end[last.index()] < ops.end[op.index()] {
                *last = op;
            }
        }
    }
    let mut found = Vec::new();
    for thread in &calls.threads {
        // The operation of the thread that ends last, of those that it has launched so far.
        let mut last = OpId::NONE;
        let mut returned = 0;
        let (mut waits, mut others) = (Vec::new(), 0);
        for at in thread.calls.clone() {
            let start = calls.start[at];
            if last.is_some() && start.saturating_sub(returned) >= LONG {
                let over = ops.end[last.index()];
                let is_wait = over > returned
                    && over <= start.saturating_add(RESUMED)
                    && start.saturating_sub(over) <= RESUMED.min((start - returned) / 10);
                // The driver's call within the runtime's may be the one that launches.
                let within =
                    (at..thread.calls.end).take_while(|inner| *inner == at || calls.is_nested(*inner));
                let launch = within.into_iter().find(|call| last_of_call[*call].is_some());
                if let (true, Some(launch)) = (is_wait, launch) {
                    let call = CallId(launch as u32);
                    waits.push(HostWait { call, op: last });
                } else if over > returned {
                    others += 1;
                }
            }
            returned = returned.max(calls.end[at]);
            let own = last_of_call[at];
            if own.is_some() && (!last.is_some() || ops.end[last.index()] < ops.end[own.index()]) {
                last = own;
            }
        }
        if waits.len() >= MANY && waits.len() as f64 >= NEARLY_ALWAYS * (waits.len() + others) as f64 {
            found.append(&mut waits);
        }
    }
    found
}
