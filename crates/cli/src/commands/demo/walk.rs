//! The walk through the bundled recording: look, find, why, fix and replay. Every figure is computed from the traces.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use tracesmith_trace::analysis::{Analysis, HostRow};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{Trace, units};

use crate::args::Format;
use crate::commands::info::recording;
use crate::output::{FAINT, HEADING, Output};

/// What the walk shows.
#[derive(Serialize)]
struct Walk {
    device: String,
    steps: usize,
    step_ns: f64,
    fixed_step_ns: f64,
    busy_share: f64,
    /// The first finding.
    finding: String,
    remedy: String,
    /// Where the CPU was while the GPU waited for it.
    range: Option<HostRow>,
    line: Option<HostRow>,
}

impl Walk {
    fn of(trace: &Arc<Trace>, fixed: &Arc<Trace>) -> anyhow::Result<Self> {
        let analysis = Analysis::of(trace, Window::default())?;
        let summary = analysis.summary()?;
        let findings = analysis.findings(&summary)?;
        let finding = findings.findings.first().context("the demo has no finding")?;
        let device = summary.utilization.devices.first();
        let device = device.context("the demo has no GPU work")?;
        let fixed = Analysis::of(fixed, Window::default())?.swept();
        Ok(Walk {
            device: device.name.clone(),
            steps: summary.steps.steps.len(),
            step_ns: summary.steps.settled.mean_ns,
            fixed_step_ns: fixed.steps.settled.mean_ns,
            busy_share: device.breakdown.utilization,
            finding: finding.sentence.clone(),
            remedy: finding.advice.to_string(),
            range: summary.host.ranges.first().cloned(),
            line: summary.host.lines.first().cloned(),
        })
    }
}

/// Shows the walk. `file` and `fixed_file` are where the two traces were written.
pub(super) fn show(
    (trace, file): (&Arc<Trace>, &Path),
    (fixed, fixed_file): (&Arc<Trace>, &Path),
    output: &mut Output,
) -> anyhow::Result<()> {
    let walk = Walk::of(trace, fixed)?;
    let recording = recording::report(trace, file).context("the demo has no replay recording")?;
    let (file, fixed_file) = (file.display().to_string(), fixed_file.display().to_string());
    if output.format != Format::Table {
        let recording = recording.value();
        let mut facts = vec![("file", json!(file)), ("fixed_file", json!(fixed_file))];
        let walk = serde_json::to_value(&walk)?;
        let members = walk.as_object().context("writing JSON")?;
        facts.extend(members.iter().map(|(key, value)| (key.as_str(), value.clone())));
        facts.push(("recording", recording));
        return Ok(output.facts(&facts)?);
    }
    output.line(&format!(
        "{HEADING}A PyTorch training loop, recorded on an {}{HEADING:#}",
        walk.device.trim_start_matches("GPU 0 ")
    ))?;
    output.line(&format!(
        "{FAINT}wrote {file}, and {fixed_file} of the same loop after a fix{FAINT:#}"
    ))?;
    let nanos = |mean: f64| units::nanos(mean as u64);
    part(
        "1. Look: how busy is the GPU?",
        &[format!("tracesmith analyze {file}")],
        &[format!(
            "{} steps of {} each; the GPU is busy for {:.1} % of the time",
            walk.steps,
            nanos(walk.step_ns),
            100.0 * walk.busy_share
        )],
        output,
    )?;
    part(
        "2. Find: what costs the most?",
        &[format!("tracesmith analyze {file} --only findings")],
        &[walk.finding.clone(), walk.remedy.clone()],
        output,
    )?;
    let mut why = Vec::new();
    if let Some(HostRow { name, share, .. }) = &walk.range {
        let percent = 100.0 * share;
        why.push(format!(
            "{percent:.0} % of that time the CPU is in the NVTX range {name}"
        ));
    }
    if let Some(HostRow { name, share, .. }) = &walk.line {
        let percent = 100.0 * share;
        why.push(format!("{percent:.0} % of it is before the CUDA call at {name}"));
    }
    part(
        "3. Why: which code does the GPU wait for?",
        &[format!("tracesmith analyze {file} --only host")],
        &why,
        output,
    )?;
    part(
        "4. Fix it, record again, and compare",
        &[format!("tracesmith diff {file} {fixed_file}")],
        &[format!(
            "with batches that are prepared on the GPU, a step takes {} instead of {}",
            nanos(walk.fixed_step_ns),
            nanos(walk.step_ns)
        )],
        output,
    )?;
    part(
        "5. Replay: run the recorded steps again, without the program",
        &[
            format!("tracesmith replay {file} --mode dry-run    # needs no GPU"),
            format!(
                "tracesmith replay {file}                   # on a Hopper GPU: the same memory, bit for bit"
            ),
        ],
        &[recording.summary()],
        output,
    )?;
    part(
        "Now your own program",
        &[
            "tracesmith doctor                       # can this machine record?".to_owned(),
            "tracesmith profile -- python train.py".to_owned(),
        ],
        &[],
        output,
    )
}

fn part(title: &str, commands: &[String], answers: &[String], output: &mut Output) -> anyhow::Result<()> {
    output.line(&format!("\n{HEADING}{title}{HEADING:#}"))?;
    for command in commands {
        output.line(&format!("   {FAINT}${FAINT:#} {command}"))?;
    }
    for answer in answers {
        output.line(&format!("   {answer}"))?;
    }
    Ok(())
}
