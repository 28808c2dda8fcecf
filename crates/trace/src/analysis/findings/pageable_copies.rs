//! Copies from or to host memory that is not page-locked.

use super::{Facts, Finding, longest_copy, percent};
use crate::units;

/// Share of the time in such copies from which on it is said.
const WORTH: f64 = 0.02;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let rows = &facts.summary.copies.rows;
    rows.iter()
        .filter(|row| row.is_pageable && row.durations.total_ns > 0)
        .filter(|row| facts.copy_time(row) as f64 >= WORTH * facts.span_ns as f64)
        .map(|row| {
            // What page-locked memory would have done is known when there are such copies too.
            let pinned = rows
                .iter()
                .filter(|other| {
                    !other.is_pageable && other.device == row.device && other.direction == row.direction
                })
                .filter_map(|other| other.gigabytes_per_second)
                .reduce(f64::max);
            let saves = pinned.map(|speed| {
                let would_take = row.bytes as f64 / speed;
                row.durations.total_ns.saturating_sub(would_take as u64)
            });
            Finding {
                rule: "pageable_copies",
                sentence: format!(
                    "{} of the time is {} {} with pageable memory, at {}",
                    percent(facts.copy_time(row), facts.span_ns),
                    if row.durations.count == 1 {
                        "1 copy".to_owned()
                    } else {
                        format!("{} copies", units::count(row.durations.count))
                    },
                    row.direction,
                    units::rate(row.bytes, row.durations.total_ns)
                ),
                advice: "Pin the host memory (pin_memory, cudaHostAlloc) and copy asynchronously".into(),
                assumption: "the host memory is used often enough for pinning to pay off",
                saves_ns: saves,
                saves_share: None,
                evidence: vec![longest_copy(row)],
            }
        })
        .collect()
}
