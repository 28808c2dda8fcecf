//! The device is idle although work was launched.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.1;
/// And length of such a gap on average: a device takes a few microseconds from one kernel to the next.
const LONG_NANOS: u64 = 20_000;
/// Or share of the time of the longest.
const WORTH_LONGEST: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::Dispatch, WORTH) else {
        return Vec::new();
    };
    let evidence = device.gaps_of(IdleCause::Dispatch);
    let longest = evidence.iter().filter_map(|gap| gap.cause_ns).max();
    let longest = longest.unwrap_or(0);
    if idle / gaps.max(1) < LONG_NANOS && (longest as f64) < WORTH_LONGEST * facts.span_ns as f64 {
        return Vec::new();
    }
    vec![Finding {
        rule: "queued_idle",
        sentence: format!(
            "{} of the time {} is idle although work was launched ({}, the longest {})",
            percent(idle, facts.span_ns),
            device.name(),
            many(gaps, "gap"),
            units::nanos(longest)
        ),
        advice: "Look at what the launched work waits for: an event of another stream, another GPU, a host function, or another \
                 process on the GPU (tracesmith states --at)"
            .into(),
        assumption: "the trace has all GPU work of this process",
        saves_ns: Some(idle),
        saves_share: None,
        evidence,
    }]
}
