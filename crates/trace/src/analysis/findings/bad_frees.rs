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
            "memory was freed twice ({}), first {:#x} at {}",
            if frees.len() == 1 {
                "once".to_owned()
            } else {
                format!("{} times", units::count(frees.len() as u64))
            },
            first.address,
            first.stack
        ),
        advice: "Remove the second free: it may release memory that has been allocated again".into(),
        assumption: "all allocations of the address were recorded",
        saves_ns: None,
        saves_share: None,
        evidence: vec![Evidence {
            what: "the second free".to_owned(),
            table: "allocations",
            row: Some(first.row),
            start_ns: first.time_ns,
            offset_ns: 0,
            end_ns: first.time_ns,
            cause_ns: None,
        }],
    }]
}
