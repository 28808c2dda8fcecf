//! Many small copies.

use super::{Facts, Finding, longest_copy, percent};
use crate::units;

/// Small copies from which on it is said.
const MANY: u64 = 100;
/// Share of the time in copies of that kind from which on it is said.
const WORTH: f64 = 0.01;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let rows = facts
        .summary
        .copies
        .rows
        .iter()
        .filter(|row| row.direction != "set");
    rows.filter(|row| row.small >= MANY && row.small * 2 > row.durations.count)
        .filter(|row| facts.copy_time(row) as f64 >= WORTH * facts.span_ns as f64)
        .map(|row| Finding {
            rule: "small_copies",
            sentence: format!(
                "{} of {} copies {} move less than 64 KiB each: {} in {} of the time",
                units::count(row.small),
                units::count(row.durations.count),
                row.direction,
                units::bytes(row.bytes),
                percent(facts.copy_time(row), facts.span_ns)
            ),
            advice: "Combine small copies into one".into(),
            assumption: "the copies are ready at about the same time",
            saves_ns: None,
            saves_share: None,
            evidence: vec![longest_copy(row)],
        })
        .collect()
}
