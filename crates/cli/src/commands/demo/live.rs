//! `tracesmith demo --live`: records a small CUDA program on this machine's GPU.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, bail};
use tracesmith_machine::DevicesReport;
use tracesmith_trace::{EventKind, Query, Trace, units};

use crate::args::Format;
use crate::commands::ourselves::capture;
use crate::commands::view;
use crate::output::{FAINT, HEADING, Output};

/// Number of rows of the totals.
const ROWS: usize = 12;

/// Records the program. Returns the GPU's name and the trace.
pub(super) fn record(side: u32) -> anyhow::Result<(String, Vec<u8>)> {
    let devices = DevicesReport::new().devices;
    let Some(device) = devices.iter().find(|device| !device.cuda_ordinals.is_empty()) else {
        bail!("no CUDA GPU on this machine; `tracesmith demo` without --live needs none");
    };
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let file = folder.path().join("demo.sbt");
    capture(&["demo", "--side", &side.to_string()], &[], &file)?;
    let trace = std::fs::read(&file).context("reading the recording")?;
    Ok((device.name.clone(), trace))
}

/// Whether a trace is of the program.
pub(super) fn is_recording(trace: &Trace) -> bool {
    let command = trace.metadata.get("command");
    command.is_some_and(|command| command.contains(" workload demo"))
}

/// Shows the totals, and what to try next.
pub(super) fn show(device: &str, trace: &Trace, out: &Path, output: &mut Output) -> anyhow::Result<()> {
    if output.format == Format::Table {
        let span = trace.span();
        let span = span.map_or(0, |(first, last)| last.0 - first.0);
        output.line(&format!(
            "{HEADING}{} of a small program that just ran on this machine's {device}{HEADING:#}, in {}",
            units::nanos(span),
            out.display()
        ))?;
        output.line("")?;
    }
    for problem in trace.health().sentences() {
        output.warning(&format!("the trace is incomplete: {problem}"));
    }
    view::show_totals(trace, &Query::default(), ROWS, output)?;
    if output.format == Format::Table {
        output.line(&format!("\n{HEADING}what to try next{HEADING:#}"))?;
        let file = out.display();
        for (command, meaning) in [
            (format!("tracesmith info {file}"), "contents of the trace"),
            (
                format!("tracesmith view {file} --kind kernel --sort duration --limit 5"),
                "the longest kernels",
            ),
            (
                format!("tracesmith view {file} {}", busy_range(trace)),
                "all events in a time range",
            ),
            (
                "tracesmith profile -- python train.py".to_owned(),
                "record your own program",
            ),
        ] {
            output.line(&format!("  {command}\n      {FAINT}{meaning}{FAINT:#}"))?;
        }
    }
    Ok(())
}

/// Options for one percent of the trace that contains kernels.
fn busy_range(trace: &Trace) -> String {
    let query = Query {
        kinds: Some(vec![EventKind::Kernel]),
        ..Query::default()
    };
    let mut start = None;
    trace.for_each_event_by_time(&query, |found| {
        start = Some(found.event.start);
        ControlFlow::Break(())
    });
    let (first, last) = trace.span().unwrap_or_default();
    let nanos = start.map_or(0, |start| start.0.saturating_sub(first.0));
    let percent = nanos * 100 / (last.0 - first.0).max(1);
    format!("--from {percent}% --to {}%", (percent + 1).min(100))
}
