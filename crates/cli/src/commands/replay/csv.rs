//! Results of a replay as CSV. The columns are those of the JSON output.

use tracesmith_replay::{Comparison, Determinism, Run, Timing, Verdict};

use super::answers::{nanos, verdict_word};
use crate::output::Output;

pub(super) fn timings(timings: &[Timing], output: &mut Output) -> anyhow::Result<()> {
    output.csv([
        "command",
        "name",
        "recorded_ns",
        "median_ns",
        "min_ns",
        "max_ns",
        "runs",
    ])?;
    for timing in timings {
        let (shortest, longest) = timing.spread();
        output.csv([
            timing.command.to_string(),
            timing.name.clone(),
            timing
                .recorded
                .map(nanos)
                .map_or_else(String::new, |time| time.to_string()),
            nanos(timing.median()).to_string(),
            nanos(shortest).to_string(),
            nanos(longest).to_string(),
            timing.runs.len().to_string(),
        ])?;
    }
    Ok(())
}

/// One row per run, then one per replaced launch.
pub(super) fn runs(runs: &[Run], compared: &[Comparison], output: &mut Output) -> anyhow::Result<()> {
    output.csv([
        "run",
        "command",
        "verdict",
        "buffers",
        "differences",
        "device_ns",
        "host_ns",
        "reason",
    ])?;
    for (number, run) in (1..).zip(runs) {
        let [verdict, buffers, differences, reason] = verdict_cells(&run.verdict);
        output.csv([
            number.to_string(),
            String::new(),
            verdict,
            buffers,
            differences,
            nanos(run.device_time).to_string(),
            nanos(run.host_time).to_string(),
            reason,
        ])?;
    }
    for comparison in compared {
        let [verdict, buffers, differences, reason] = verdict_cells(&comparison.verdict);
        output.csv([
            String::new(),
            comparison.old.command.to_string(),
            verdict,
            buffers,
            differences,
            nanos(super::answers::median(&comparison.new)).to_string(),
            String::new(),
            reason,
        ])?;
    }
    Ok(())
}

fn verdict_cells(verdict: &Verdict) -> [String; 4] {
    let (buffers, differences, reason) = match verdict {
        Verdict::Same { buffers, .. } => (buffers.to_string(), 0, ""),
        Verdict::Within { buffers, close, .. } => (buffers.to_string(), close.len(), ""),
        Verdict::Unproven { why } => (String::new(), 0, *why),
        Verdict::Differs { differences, buffers } => (buffers.to_string(), differences.len(), ""),
    };
    [
        verdict_word(verdict).to_owned(),
        buffers,
        differences.to_string(),
        reason.to_owned(),
    ]
}

pub(super) fn check(found: &Determinism, output: &mut Output) -> anyhow::Result<()> {
    output.csv(["verdict", "runs", "calls", "command", "name", "cause", "buffer"])?;
    let row = match found {
        Determinism::Repeats { runs, calls } => [
            "repeats".to_owned(),
            runs.to_string(),
            calls.to_string(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ],
        Determinism::Differs(culprit) => [
            "does not repeat".to_owned(),
            String::new(),
            String::new(),
            culprit
                .command
                .map_or_else(String::new, |number| number.to_string()),
            culprit.name.clone(),
            culprit.cause.to_string(),
            culprit
                .buffer
                .map_or_else(String::new, |buffer| buffer.to_string()),
        ],
    };
    output.csv(row)?;
    Ok(())
}
