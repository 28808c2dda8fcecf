//! The device is idle, and the trace does not have the calls that would explain it.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.1;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::Unknown, WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: "unknown_idle",
        sentence: format!(
            "{} of the time {} is idle, and the calls that launched the work after it are not in the trace ({})",
            percent(idle, facts.span_ns),
            device.name(),
            many(gaps, "gap")
        ),
        advice: "Record CUDA API calls as well, or start recording before the work is launched".into(),
        assumption: "the calls were made and not recorded",
        saves_ns: None,
        saves_share: None,
        evidence: device.gaps_of(IdleCause::Unknown),
    }]
}
