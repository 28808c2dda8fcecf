//! The device waits for single launches that take very long.

use super::{Evidence, Facts, Finding, idle_before, many, percent};
use crate::analysis::idle::DeviceIdle;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let (Some(device), Some(idle)) = (facts.device(), facts.idle()) else {
        return Vec::new();
    };
    let nanos = idle.slow_launches_ns;
    if nanos == 0 || (nanos as f64) < WORTH * facts.span_ns as f64 {
        return Vec::new();
    }
    vec![Finding {
        rule: "slow_launches",
        sentence: format!(
            "{} of the time {} is idle during {} of more than 100 µs ({} in total)",
            percent(nanos, facts.span_ns),
            device.name,
            many(idle.slow_launches, "launch call"),
            units::nanos(nanos)
        ),
        advice: "A first launch loads or compiles device code: launch each kernel once before the part that you measure, or \
                 set CUDA_MODULE_LOADING=EAGER"
            .into(),
        assumption: "the calls are slow because they load code or set up the device, and later launches are fast",
        saves_ns: Some(nanos),
        saves_share: None,
        evidence: slowest(idle),
    }]
}

/// The longest gaps with such a call.
fn slowest(idle: &DeviceIdle) -> Vec<Evidence> {
    let long = idle.longest.iter();
    let long = long.filter(|gap| gap.is_slow_launch() && gap.overhead_ns == 0);
    let long: Vec<Evidence> = long.take(3).map(idle_before).collect();
    match long.is_empty() {
        true => idle.slowest_launch.iter().map(idle_before).collect(),
        false => long,
    }
}
