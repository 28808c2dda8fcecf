//! Communication that nothing computes beside.

use super::{DeviceFacts, Facts, Finding, longest_alone, percent};
use crate::reconstruct::OpClass;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let exposed = |device: &DeviceFacts<'_>| device.utilization.breakdown.communication_exposed_ns;
    let Some(device) = facts.worst(exposed) else {
        return Vec::new();
    };
    let (exposed, device) = (exposed(&device), device.utilization);
    if !facts.is_worth(exposed, WORTH) {
        return Vec::new();
    }
    vec![Finding {
        rule: "exposed_communication",
        sentence: format!(
            "{} of the time {} communicates without computing: {} of {} of communication is exposed",
            percent(exposed, facts.span_ns),
            device.name,
            units::nanos(exposed),
            units::nanos(device.breakdown.communication_ns)
        ),
        advice: "Start communication earlier or in smaller parts, so that it overlaps with computation"
            .into(),
        assumption: "there is independent computation to overlap with. The time includes waiting for slower ranks",
        saves_ns: Some(exposed),
        saves_share: None,
        evidence: longest_alone(facts, device.device, |class| class == OpClass::Communication),
    }]
}
