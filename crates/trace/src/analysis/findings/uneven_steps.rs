//! Steps that take much longer than the others.

use super::{Evidence, Facts, Finding};
use crate::reconstruct::StepSource;
use crate::units;

/// How much longer than half of the others a step takes to be told.
const LONGER: f64 = 1.5;
/// Steps without which nothing can be said.
const FEWEST: u64 = 4;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let report = &facts.summary.steps;
    let typical = report.settled.p50_ns;
    if report.settled.count < FEWEST || typical == 0 {
        return Vec::new();
    }
    let long: Vec<_> = report
        .steps
        .iter()
        .filter(|row| !row.step.is_warm_up && row.step.duration() as f64 > LONGER * typical as f64)
        .collect();
    let Some(longest) = long.iter().max_by_key(|row| row.step.duration()) else {
        return Vec::new();
    };
    let saves = long.iter().map(|row| row.step.duration() - typical).sum();
    vec![Finding {
        rule: "uneven_steps",
        sentence: format!(
            "{} of {} steps {} more than {LONGER}× the median ({}); the longest is {} with {}",
            long.len(),
            report.settled.count,
            if long.len() == 1 { "takes" } else { "take" },
            units::nanos(typical),
            longest.step.name,
            units::nanos(longest.step.duration())
        ),
        advice: format!(
            "Compare it with another step: tracesmith analyze --step {}",
            longest.step.number
        )
        .into(),
        assumption: "all steps do the same work",
        saves_ns: Some(saves),
        saves_share: None,
        evidence: vec![Evidence {
            what: longest.step.name.clone(),
            table: match report.source {
                StepSource::Markers { .. } => "markers",
                _ => "kernels",
            },
            row: None,
            start_ns: longest.step.start_ns,
            end_ns: longest.step.end_ns,
        }],
    }]
}
