//! The device waits for the profiler.

use super::{Facts, Finding, many, percent};
use crate::analysis::idle::IdleCause;

/// Share of the time from which on it is said.
const WORTH: f64 = 0.02;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let Some((device, idle, gaps)) = facts.idle_worth(IdleCause::ProfilerOverhead, WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: "profiler_overhead",
        sentence: format!(
            "{} of the time {} is idle while the profiler holds up the CPU ({})",
            percent(idle, facts.span_ns),
            device.name(),
            many(gaps, "gap")
        ),
        advice: "This is not the program's time: subtract it, or look at a later part of the trace with --from or --step".into(),
        assumption: "a buffer request or flush without a known thread holds up every thread of its process",
        saves_ns: None,
        saves_share: None,
        evidence: device.gaps_of(IdleCause::ProfilerOverhead),
    }]
}
