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
            device.name(),
            many(gaps, "gap")
        ),
        advice: match (facts.program.is_torch, facts.program.uses_pools) {
            (true, _) => {
                "PyTorch allocates from the driver only if its cache has no free block: let the cache fill before you \
                 measure, and do not call torch.cuda.empty_cache()"
            }
            (false, true) => "Raise the release threshold of the memory pool, or allocate once and reuse",
            (false, false) => "Allocate once and reuse, or use a pool (cudaMallocAsync)",
        }
        .into(),
        assumption: "the memory can be allocated ahead of time",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: device.gaps_of(IdleCause::HostAllocation),
    }]
}
