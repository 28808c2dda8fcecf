//! Steps that take much longer than the others: with the same work, or because they do more.

use super::{Evidence, Facts, Finding, many};
use crate::analysis::steps::StepRow;
use crate::reconstruct::{Step, StepSource};
use crate::units;

/// How much longer than half of the others a step takes to be told.
const LONGER: f64 = 1.5;
/// Steps without which nothing can be said.
const FEWEST: u64 = 4;
/// How much the number of ops of steps may differ if they do the same work.
const SAME_WORK: f64 = 0.05;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let report = &facts.summary.steps;
    let typical = report.settled.p50_ns;
    if report.settled.count < FEWEST || typical == 0 {
        return Vec::new();
    }
    let settled = report.steps.iter().filter(|row| row.step.is_settled());
    let mut counts: Vec<u64> = settled.clone().map(|row| row.ops).collect();
    counts.sort_unstable();
    let usual = counts[counts.len() / 2];
    let long = settled.filter(|row| own(facts, &row.step) as f64 > LONGER * typical as f64);
    let (same, other): (Vec<&StepRow>, Vec<&StepRow>) =
        long.partition(|row| row.ops.abs_diff(usual) as f64 <= SAME_WORK * usual as f64);
    let mut findings = Vec::new();
    if let Some(longest) = longest_of(facts, &same) {
        findings.push(Finding {
            sentence: format!(
                "{}; the longest is {} with {}",
                take_longer(facts, &same),
                longest.step.name,
                units::nanos(longest.step.duration())
            ),
            advice: format!(
                "Compare it with another step: tracesmith analyze --step {}",
                longest.step.number
            )
            .into(),
            assumption: "steps with the same number of GPU operations do the same work",
            saves_ns: Some(same.iter().map(|row| own(facts, &row.step) - typical).sum()),
            ..finding(facts, longest)
        });
    }
    if let Some(longest) = longest_of(facts, &other) {
        findings.push(Finding {
            sentence: format!(
                "{} and {} different work: {} has {}, the median is {}",
                take_longer(facts, &other),
                if other.len() == 1 { "does" } else { "do" },
                longest.step.name,
                many(longest.ops, "GPU operation"),
                units::count(usual)
            ),
            advice: format!(
                "Look at what the step adds: tracesmith analyze --step {} --only kernels",
                longest.step.number
            )
            .into(),
            assumption: "the program does more in this step on purpose, such as logging or saving",
            ..finding(facts, longest)
        });
    }
    findings
}

/// The time of a step without profiler overhead: a step that the profiler made long says nothing about the program.
fn own(facts: &Facts<'_>, step: &Step) -> u64 {
    let overheads = &facts.activity.overheads;
    let overhead = overheads.most_profiler_nanos(step.start_ns, step.end_ns);
    step.duration().saturating_sub(overhead)
}

fn longest_of<'a>(facts: &Facts<'_>, rows: &[&'a StepRow]) -> Option<&'a StepRow> {
    rows.iter().copied().max_by_key(|row| own(facts, &row.step))
}

fn take_longer(facts: &Facts<'_>, rows: &[&StepRow]) -> String {
    let settled = &facts.summary.steps.settled;
    format!(
        "{} of {} steps {} more than {LONGER}× the median ({})",
        rows.len(),
        settled.count,
        if rows.len() == 1 { "takes" } else { "take" },
        units::nanos(settled.p50_ns)
    )
}

/// What findings about a step have in common.
fn finding(facts: &Facts<'_>, longest: &StepRow) -> Finding {
    Finding {
        rule: "uneven_steps",
        sentence: String::new(),
        advice: "".into(),
        assumption: "",
        saves_ns: None,
        saves_share: None,
        evidence: vec![Evidence {
            what: longest.step.name.clone(),
            table: match facts.summary.steps.source {
                StepSource::Markers { .. } => "markers",
                _ => "kernels",
            },
            row: None,
            start_ns: longest.step.start_ns,
            offset_ns: 0,
            end_ns: longest.step.end_ns,
            cause_ns: None,
        }],
    }
}
