//! Memory that was given back twice.

use super::{Evidence, Facts, Finding};
use crate::units;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let frees = &facts.memory.double_frees;
    let Some(first) = frees.first() else {
        return Vec::new();
    };
    vec![Finding {
        rule: "bad_frees",
        sentence: format!(
            "memory was given back {} that was given back before, first {:#x} by {}",
            if frees.len() == 1 {
                "once".to_owned()
            } else {
                format!("{} times", units::count(frees.len() as u64))
            },
            first.address,
            first.stack
        ),
        advice: "the second release may hit memory that is someone else's by then",
        saves_ns: None,
        saves_share: None,
        evidence: vec![Evidence {
            what: "the second release".to_owned(),
            table: "allocations",
            row: Some(first.row),
            start_ns: first.time_ns,
            end_ns: first.time_ns,
        }],
    }]
}
