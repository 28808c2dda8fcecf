//! The device waits for the host's own work between calls.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.1;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::HostBusy, WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: "host_busy",
        sentence: format!(
            "{} of the time {} has nothing to do while the host works between its calls, in {}",
            percent(idle, facts.span_ns),
            device.name,
            many(gaps, "gap")
        ),
        advice: "move work of the host to other threads or behind the launches; for Python, compile the model or use CUDA graphs",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: facts.gaps_of(IdleCause::HostBusy),
    }]
}
