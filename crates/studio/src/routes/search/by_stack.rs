//! Work and calls by the functions that made them.

use rustc_hash::FxHashSet;
use tracesmith_format::StackId;
use tracesmith_trace::reconstruct::{CallId, OpId};
use tracesmith_trace::tables::Cancel;

use super::{Hit, Pattern};
use crate::places::Places;
use crate::reply::Failure;
use crate::routes::Subject;

/// What is searched for in stacks.
pub(super) struct Wanted<'a> {
    pub(super) pattern: &'a Pattern,
    /// Whether what has such a name is found by it.
    pub(super) is_found_by_name: bool,
}

/// How many there are that are not found by their names, and the first of them: GPU work, and calls that launched none.
pub(super) fn find(
    subject: &Subject,
    Wanted {
        pattern,
        is_found_by_name,
    }: Wanted<'_>,
    (from, to): (u64, u64),
    limit: usize,
    cancel: &Cancel,
) -> Result<(u64, Vec<Hit>), Failure> {
    let (trace, grid) = (&subject.ready.trace, subject.ready.grid());
    let mut stacks: FxHashSet<StackId> = FxHashSet::default();
    for node in trace.stack_nodes() {
        if cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        // Callers come before those they call.
        let is_below = node.parent.is_some_and(|parent| stacks.contains(&parent));
        let is_named = || {
            node.functions
                .iter()
                .any(|frame| pattern.matches(&trace.frame_name(frame)))
        };
        if is_below || is_named() {
            stacks.insert(node.id);
        }
    }
    if stacks.is_empty() {
        return Ok((0, Vec::new()));
    }
    let whole = subject.ready.facts.whole(trace)?;
    let activity = &whole.analysis.activity;
    let places = Places {
        trace,
        grid,
        activity,
    };
    let (first, last) = (
        grid.origin().saturating_add(from),
        grid.origin().saturating_add(to),
    );
    let is_inside = |start: u64, end: u64| end.max(start) >= first && start < last;
    let (mut total, mut hits) = (0, Vec::new());
    let mut add = |place: &dyn Fn() -> Option<crate::places::Place>, kept: &mut usize| {
        total += 1;
        if *kept < limit
            && let Some(place) = place()
        {
            *kept += 1;
            hits.push(Hit {
                place,
                found_in: "stack",
            });
        }
    };
    let (ops, calls) = (&activity.ops, &activity.calls);
    let is_known = |name: &str| is_found_by_name && pattern.matches(name);
    let known_ops: Vec<bool> = activity.op_names(trace).map(is_known).collect();
    let functions = calls.functions.iter();
    let known_calls: Vec<bool> = functions.map(|(name, _)| is_known(trace.string(*name))).collect();
    let mut kept = 0;
    for (at, stack) in ops.stack.iter().enumerate() {
        let is_new = !known_ops[ops.kind[at] as usize];
        if is_new && stacks.contains(stack) && is_inside(ops.start[at], ops.end[at]) {
            add(&|| places.of_op(OpId(at as u32)), &mut kept);
        }
    }
    let ties = whole.ties();
    kept = 0;
    for (at, stack) in calls.stack.iter().enumerate() {
        let call = CallId(at as u32);
        let is_new = !known_calls[calls.function[at] as usize] && ties.ops_of(call).is_empty();
        if is_new && stacks.contains(stack) && is_inside(calls.start[at], calls.end[at]) {
            add(&|| places.of_call(call), &mut kept);
        }
    }
    Ok((total, hits))
}
