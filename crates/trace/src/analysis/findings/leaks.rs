//! Memory that one line of code takes again and again and never gives back.

use super::{Evidence, Facts, Finding};
use crate::units;

/// Pieces of one line of code, never given back, from which on it is said.
const MANY: u64 = 10;
/// And bytes of them.
const WORTH_BYTES: u64 = 1 << 20;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pool in &facts.memory.pools {
        for holder in &pool.never_freed {
            if holder.count < MANY || holder.bytes < WORTH_BYTES {
                continue;
            }
            findings.push(Finding {
                rule: "leaks",
                sentence: format!(
                    "{} of {} memory of {} in {} allocations was never freed; allocated at {}",
                    units::bytes(holder.bytes),
                    pool.memory,
                    pool.device_name,
                    units::count(holder.count),
                    holder.stack
                ),
                advice: "Check whether these allocations are meant to live until the end",
                saves_ns: None,
                saves_share: None,
                evidence: vec![Evidence {
                    what: "the first allocation".to_owned(),
                    table: "allocations",
                    row: Some(holder.first_row),
                    start_ns: holder.first_ns,
                    end_ns: holder.first_ns,
                }],
            });
        }
    }
    findings
}
