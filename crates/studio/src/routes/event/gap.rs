//! A gap of a device: why it was idle, what ended the gap, and what the host did instead of launching that before.

use tracesmith_trace::analysis::main_cause;
use tracesmith_trace::reconstruct::CallId;

use super::stacks::StackOf;
use super::{Event, Picked, Tie};
use crate::facts::Whole;

pub(super) fn describe(picked: &Picked<'_>, whole: &Whole, event: &mut Event) {
    let activity = picked.places.activity;
    let Some(device) = picked.track.key.device() else {
        return;
    };
    let at = whole
        .gaps
        .binary_search_by_key(&(device, picked.start()), |gap| (gap.device, gap.from));
    let Ok(at) = at else { return };
    let gap = &whole.gaps[at];
    event.cause = Some(main_cause(activity, gap).name());
    event.ops = picked.places.of_op(gap.next).into_iter().collect();
    let call = activity.ops.get(gap.next).call;
    event.launch = picked.launch(call);
    if !call.is_some() {
        return;
    }
    event.stack = StackOf::of(picked.places.trace, activity.calls.get(call).stack);
    let instead = longest_call(picked, call).and_then(|call| picked.places.of_call(call));
    event.waited_for = instead
        .map(|place| Tie {
            place,
            why: "host_busy",
        })
        .into_iter()
        .collect();
}

/// The call that the launching thread was in for the longest part of the gap, other than the launch itself.
fn longest_call(picked: &Picked<'_>, launch: CallId) -> Option<CallId> {
    let calls = &picked.places.activity.calls;
    let thread = &calls.threads[calls.thread_of(launch)];
    let (from, to) = (picked.start(), picked.end());
    let before_end = calls.start[thread.calls.clone()].partition_point(|start| *start < to);
    let until = thread.calls.start + before_end;
    let overlap = |at: usize| calls.end[at].min(to).saturating_sub(calls.start[at].max(from));
    let outer = (thread.calls.start..until)
        .rev()
        .filter(|at| !calls.is_nested(*at))
        // Calls of a thread follow each other: what ended before the gap is followed by nothing in it, going back.
        .take_while(|at| calls.end[*at] > from)
        .filter(|at| *at != launch.index());
    let longest = outer.max_by_key(|at| overlap(*at))?;
    (overlap(longest) > 0).then_some(CallId(longest as u32))
}
