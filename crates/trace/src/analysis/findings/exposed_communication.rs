//! Communication that nothing computes beside.

use super::{DeviceFacts, Facts, Finding, longest_alone, percent};
use crate::reconstruct::OpClass;
use crate::units;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.05;

/// What helps if there is enough computation.
const OVERLAP: &str = "Start communication earlier or in smaller parts, so that it overlaps with computation";

/// What helps if there is not.
const LESS: &str = "Communicate less: exchange less often (larger batches, gradient accumulation) or in a smaller data \
                    type. Check with NCCL_DEBUG=INFO that NCCL uses the fastest transport, and look for a slower rank \
                    that the others wait for";

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let exposed = |device: &DeviceFacts<'_>| device.utilization.breakdown.communication_exposed_ns;
    let Some(device) = facts.worst(exposed) else {
        return Vec::new();
    };
    let (exposed, device) = (exposed(&device), device.utilization);
    if !facts.is_worth(exposed, WORTH) {
        return Vec::new();
    }
    // Communication can be hidden only by computation that runs without communication beside it.
    let breakdown = &device.breakdown;
    let compute_alone = breakdown
        .compute_ns
        .saturating_sub(breakdown.communication_hidden_ns);
    let is_mostly_communication = compute_alone < exposed / 2;
    vec![Finding {
        rule: "exposed_communication",
        sentence: format!(
            "{} of the time {} communicates without computing: {} of {} of communication is exposed",
            percent(exposed, facts.span_ns),
            device.name,
            units::nanos(exposed),
            units::nanos(breakdown.communication_ns)
        ),
        advice: match is_mostly_communication {
            true => format!(
                "{LESS}. Overlap with computation saves at most {}",
                units::nanos(compute_alone)
            )
            .into(),
            false => OVERLAP.into(),
        },
        assumption: match is_mostly_communication {
            true => {
                "the time is that of the transfer or of waiting for slower ranks, and could be avoided altogether"
            }
            false => {
                "there is independent computation to overlap with. The time includes waiting for slower ranks"
            }
        },
        saves_ns: Some(match is_mostly_communication {
            true => exposed,
            false => exposed.min(compute_alone),
        }),
        saves_share: None,
        evidence: longest_alone(facts, device.device, |class| class == OpClass::Communication),
    }]
}
