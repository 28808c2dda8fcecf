//! Patterns of a what-if that match nothing, so that the change which they describe is none.

use std::collections::BTreeSet;

use super::similar::did_you_mean;
use super::{Analysis, HostWaits, WhatIf};
use crate::reconstruct::CallClass;

/// A pattern that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// What it should have matched.
    pub target: PatternTarget,
    /// The pattern.
    pub pattern: String,
    /// `; did you mean a or b?` with names that are like it. Empty if there are none.
    pub suggestion: String,
}

/// What the pattern of a what-if selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternTarget {
    /// GPU work that takes longer or shorter.
    Work,
    /// Waits of the CPU that are left out.
    Waits,
}

impl WhatIf {
    /// The patterns that match nothing. `left_waits` is the number of waits that the simulation has left out.
    pub fn unmatched_patterns(&self, analysis: &Analysis, left_waits: u64) -> Vec<UnmatchedPattern> {
        let (trace, activity) = (&analysis.trace, &analysis.activity);
        let mut unmatched = Vec::new();
        let names: BTreeSet<&str> = activity.op_names(trace).collect();
        for scale in &self.scales {
            if !names.iter().any(|name| scale.name.matches(name)) {
                let pattern = scale.name.as_str();
                unmatched.push(UnmatchedPattern {
                    target: PatternTarget::Work,
                    pattern: pattern.to_owned(),
                    suggestion: did_you_mean(pattern, names.iter().copied()),
                });
            }
        }
        if let HostWaits::LeftIn(pattern) = &self.host_waits
            && left_waits == 0
        {
            let functions = activity.calls.functions.iter();
            let waits = functions.filter(|(_, class)| *class == CallClass::Sync);
            let names: BTreeSet<&str> = waits.map(|(name, _)| trace.string(*name)).collect();
            unmatched.push(UnmatchedPattern {
                target: PatternTarget::Waits,
                pattern: pattern.as_str().to_owned(),
                suggestion: did_you_mean(pattern.as_str(), names.iter().copied()),
            });
        }
        unmatched
    }
}
