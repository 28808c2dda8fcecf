//! Kernels that take less time than the calls that launch them.

use super::{Evidence, Facts, Finding, many, percent};
use crate::units;

/// Share of all kernels from which on it is said.
const WORTH: f64 = 0.3;
/// And share of the time in their calls.
const WORTH_TIME: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let short = &facts.summary.launches.short_kernels;
    let is_worth = short.share >= WORTH && short.call_ns as f64 >= WORTH_TIME * facts.span_ns as f64;
    if short.count == 0 || !is_worth {
        return Vec::new();
    }
    let worst = short.worst_row.map(|row| Evidence {
        what: "kernel with the largest difference to its launch call".to_owned(),
        table: "kernels",
        row: Some(u64::from(row)),
        start_ns: short.worst_start_ns,
        end_ns: short.worst_end_ns,
    });
    vec![Finding {
        rule: "short_kernels",
        sentence: format!(
            "{} ({:.0} %) take less time than their launch calls: {} of GPU work for {} of launch calls, {} of the time",
            many(short.count, "kernel"),
            100.0 * short.share,
            units::nanos(short.kernel_ns),
            units::nanos(short.call_ns),
            percent(short.call_ns, facts.span_ns)
        ),
        advice: "Fuse them, or launch them together in a CUDA graph",
        saves_ns: None,
        saves_share: None,
        evidence: worst.into_iter().collect(),
    }]
}
