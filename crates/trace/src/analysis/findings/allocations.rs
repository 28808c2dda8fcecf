//! The device waits while the host takes memory or gives it back.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.02;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::HostAllocation, WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: "allocations",
        sentence: format!(
            "{} of the time {} is idle while the CPU allocates or frees memory ({})",
            percent(idle, facts.span_ns),
            device.name,
            many(gaps, "gap")
        ),
        advice: "Allocate once and reuse, or use a pool (cudaMallocAsync, a caching allocator)",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: facts.gaps_of(IdleCause::HostAllocation),
    }]
}
