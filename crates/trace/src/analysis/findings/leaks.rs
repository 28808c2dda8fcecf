//! Memory that one line of code takes again and again and never gives back.
//!
//! What a program takes once, at its start, is not meant: a model stays until the end. Neither is what allocators and
//! libraries keep on purpose.

use super::{Evidence, Facts, Finding};
use crate::units;

/// Pieces of one line of code, never given back, from which on it is said.
const MANY: u64 = 10;
/// One in so many of them was taken in the second half of the trace: the memory still grows.
const GROWS: u64 = 4;
/// And bytes of them.
const WORTH_BYTES: u64 = 1 << 20;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pool in &facts.memory.pools {
        let process = match (pool.rank, facts.trace.processes.len()) {
            (Some(rank), 2..) => format!(" (rank {rank})"),
            (None, 2..) => format!(" (process {})", pool.pid),
            _ => String::new(),
        };
        for holder in &pool.never_freed {
            let grows = holder.late > 0 && holder.late * GROWS >= holder.count;
            if holder.count < MANY || holder.bytes < WORTH_BYTES || !grows || holder.kept_by.is_some() {
                continue;
            }
            findings.push(Finding {
                rule: "leaks",
                sentence: format!(
                    "{} of {} memory of {}{} in {} allocations was never freed; allocated at {}",
                    units::bytes(holder.bytes),
                    pool.memory,
                    pool.device_name,
                    process,
                    units::count(holder.count),
                    holder.stack
                ),
                advice: "Check whether these allocations are meant to live until the end".into(),
                assumption: "the line still allocates in the second half of the trace, so the memory grows with the run",
                saves_ns: None,
                saves_share: None,
                evidence: vec![Evidence {
                    what: "the first allocation".to_owned(),
                    table: "allocations",
                    row: Some(holder.first_row),
                    start_ns: holder.first_ns,
                    offset_ns: 0,
                    end_ns: holder.first_ns,
                    cause_ns: None,
                }],
            });
        }
    }
    findings
}
