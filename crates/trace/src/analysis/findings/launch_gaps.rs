//! The device waits for launches.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::LaunchGap, WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: "launch_gaps",
        sentence: format!(
            "{} of the time {} is idle while a launch call is in progress ({} of {} on average)",
            percent(idle, facts.span_ns),
            device.name,
            many(gaps, "gap"),
            units::nanos(idle / gaps.max(1))
        ),
        advice: "Launch less often: capture the step in a CUDA graph, or fuse small kernels",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: facts.gaps_of(IdleCause::LaunchGap),
    }]
}
