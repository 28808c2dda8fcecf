//! The device waits for the host's own work between calls.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.1;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::HostBusy, WORTH) else {
        return Vec::new();
    };
    let mut sentence = format!(
        "{} of the time {} is idle, waiting for the CPU to launch work ({})",
        percent(idle, facts.span_ns),
        device.name,
        many(gaps, "gap")
    );
    let places = facts.summary.host.main_places();
    if !places.is_empty() {
        sentence = format!("{sentence}: {}", places.join(", "));
    }
    vec![Finding {
        rule: "host_busy",
        sentence,
        advice: facts.program.less_host_work(),
        assumption: "the launching thread works between its calls. It may also wait for something outside CUDA",
        saves_ns: Some(idle),
        saves_share: None,
        evidence: facts.gaps_of(IdleCause::HostBusy),
    }]
}
