//! The device waits for launches.

use super::{DeviceFacts, Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = facts.worst(|device| without_slow(device).0) else {
        return Vec::new();
    };
    let (nanos, gaps) = without_slow(&device);
    if gaps == 0 || !facts.is_worth(nanos, WORTH) {
        return Vec::new();
    }
    vec![Finding {
        rule: "launch_gaps",
        sentence: format!(
            "{} of the time {} is idle from a launch call to the start of its work ({} of {} on average)",
            percent(nanos, facts.span_ns),
            device.name(),
            many(gaps, "gap"),
            units::nanos(nanos / gaps)
        ),
        advice: facts.program.fewer_launches(),
        assumption: "the work does not have to wait for anything but its launch",
        saves_ns: Some(nanos),
        saves_share: None,
        evidence: device.gaps_of(IdleCause::LaunchGap),
    }]
}

/// Idle time during launches, and its gaps. Single calls that take very long are another rule's.
fn without_slow(device: &DeviceFacts<'_>) -> (u64, u64) {
    let (nanos, gaps) = device.idle_of(IdleCause::LaunchGap);
    let (slow, slow_nanos) = device.slow_launches();
    (nanos.saturating_sub(slow_nanos), gaps.saturating_sub(slow))
}
