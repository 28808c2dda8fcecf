//! Steps that take much longer than the others.

use super::{Evidence, Facts, Finding};
use crate::reconstruct::{Step, StepSource};
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
    // A step that the profiler made long says nothing about the program.
    let own = |step: &Step| {
        let overheads = &facts.activity.overheads;
        let overhead = overheads.most_profiler_nanos(step.start_ns, step.end_ns);
        step.duration().saturating_sub(overhead)
    };
    let long: Vec<_> = report
        .steps
        .iter()
        .filter(|row| !row.step.is_warm_up && own(&row.step) as f64 > LONGER * typical as f64)
        .collect();
    let Some(longest) = long.iter().max_by_key(|row| own(&row.step)) else {
        return Vec::new();
    };
    let saves = long.iter().map(|row| own(&row.step) - typical).sum();
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
