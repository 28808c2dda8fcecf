//! Copies that nothing runs beside.

use super::{Facts, Finding, longest_alone, percent};
use crate::reconstruct::OpClass;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = facts.device() else {
        return Vec::new();
    };
    let alone = device.breakdown.copy_exposed_ns;
    if alone == 0 || (alone as f64) < WORTH * facts.span_ns as f64 {
        return Vec::new();
    }
    vec![Finding {
        rule: "copies_alone",
        sentence: format!(
            "{} of the time {} copies or sets memory while no kernel runs ({})",
            percent(alone, facts.span_ns),
            device.name,
            units::nanos(alone)
        ),
        advice: "Copy ahead of time, on a separate stream, from pinned memory",
        saves_ns: Some(alone),
        saves_share: None,
        evidence: longest_alone(facts, device.device, |class| {
            matches!(class, OpClass::Copy | OpClass::Set)
        }),
    }]
}
