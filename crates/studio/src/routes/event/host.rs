//! A call of the host: what it launched, and what it waited for.

use tracesmith_trace::reconstruct::CallId;

use super::{Event, Picked, Tie, row};
use crate::facts::Whole;
use crate::places::thread_of;
use crate::reply::Failure;

/// Ops of one call in an answer: a launch of a graph can have thousands.
const MOST_OPS: usize = 200;

pub(super) fn describe_call(picked: &Picked<'_>, whole: &Whole, event: &mut Event) -> Result<(), Failure> {
    if let Some(found) = row::find(picked) {
        row::describe(picked, &found, event)?;
    }
    let Some(id) = call_of(picked) else {
        return Ok(());
    };
    let (places, ties) = (picked.places, whole.ties());
    let ops = ties.ops_of(id).iter().take(MOST_OPS);
    event.ops = ops.filter_map(|op| places.of_op(*op)).collect();
    let waits = ties.dependencies.waits_of(id).iter().take(MOST_OPS);
    let tie = |op| {
        places.of_op(op).map(|place| Tie {
            place,
            why: "host_wait",
        })
    };
    event.waited_for = waits.filter_map(|wait| tie(wait.op)).collect();
    Ok(())
}

/// The call that a slice shows.
fn call_of(picked: &Picked<'_>) -> Option<CallId> {
    let (trace, calls) = (picked.places.trace, &picked.places.activity.calls);
    let (process, thread, _) = thread_of(picked.track)?;
    let thread = calls
        .threads
        .iter()
        .find(|known| known.process == process && known.thread == thread)?;
    let start = picked.start();
    let of_thread = &calls.start[thread.calls.clone()];
    let first = thread.calls.start + of_thread.partition_point(|other| *other < start);
    let mut together = (first..thread.calls.end).take_while(|at| calls.start[*at] == start);
    together
        .find(|at| {
            let call = calls.get(CallId(*at as u32));
            call.end == picked.end() && trace.string(call.name) == picked.name
        })
        .map(|at| CallId(at as u32))
}
