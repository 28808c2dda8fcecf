//! The device waits for launches.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let (Some(device), Some(idle)) = (facts.device(), facts.idle()) else {
        return Vec::new();
    };
    // Single calls that take very long are another rule's.
    let (all, gaps) = facts.idle_of(IdleCause::LaunchGap);
    let (nanos, gaps) = (
        all.saturating_sub(idle.slow_launches_ns),
        gaps.saturating_sub(idle.slow_launches),
    );
    if gaps == 0 || (nanos as f64) < WORTH * facts.span_ns as f64 {
        return Vec::new();
    }
    vec![Finding {
        rule: "launch_gaps",
        sentence: format!(
            "{} of the time {} is idle while a launch call is in progress ({} of {} on average)",
            percent(nanos, facts.span_ns),
            device.name,
            many(gaps, "gap"),
            units::nanos(nanos / gaps)
        ),
        advice: facts.program.fewer_launches(),
        assumption: "the work does not have to wait for anything but its launch",
        saves_ns: Some(nanos),
        saves_share: None,
        evidence: facts.gaps_of(IdleCause::LaunchGap),
    }]
}
