//! `tracesmith demo`: a trace of real GPU work, on every machine.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tracesmith_machine::DevicesReport;
use tracesmith_trace::{EventKind, Query, Trace, units};

use super::info::health_lines;
use super::ourselves::capture;
use super::view;
use crate::args::{DemoArgs, Format};
use crate::output::{FAINT, HEADING, Output};

/// The bundled recording, made on an H200 (fixtures/demo-h200.md).
static RECORDING: &[u8] = include_bytes!("../../../../fixtures/demo-h200.sbt");

/// The default output. A file of an earlier demo is replaced.
const OUT: &str = "tracesmith-demo.sbt";

/// Number of rows of the totals.
const ROWS: usize = 12;

/// Where a trace comes from.
enum Origin {
    /// Just recorded on this machine's GPU.
    Here { device: String },
    /// The bundled recording.
    Recording,
}

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(OUT));
    let may_replace = args.force || (args.out.is_none() && is_own(&out));
    if out.exists() && !may_replace {
        bail!("{} exists; replace it with --force", out.display());
    }
    let (origin, trace) = trace_to_show(args, output)?;
    put(&trace, &out)?;
    let opened = Trace::from_bytes(trace).context("reading the demo trace")?;
    show(&origin, &opened, &out, output)
}

/// Whether a file is a trace of an earlier demo.
fn is_own(file: &Path) -> bool {
    let Ok(bytes) = std::fs::read(file) else {
        return false;
    };
    bytes == RECORDING
        || Trace::from_bytes(bytes).is_ok_and(|trace| {
            let command = trace.metadata.get("command");
            command.is_some_and(|command| command.contains(" workload demo"))
        })
}

/// Records on this machine's GPU if possible. Otherwise uses the bundled recording.
fn trace_to_show(args: &DemoArgs, output: &mut Output) -> anyhow::Result<(Origin, Vec<u8>)> {
    if !args.recorded {
        match DevicesReport::new()
            .devices
            .iter()
            .find(|device| !device.cuda_ordinals.is_empty())
        {
            Some(device) => match record(args.side) {
                Ok(trace) => {
                    let device = device.name.clone();
                    return Ok((Origin::Here { device }, trace));
                }
                Err(error) => output.warning(&format!(
                    "cannot record on this machine's GPU: {error:#}; showing the bundled recording"
                )),
            },
            None => output.note("no GPU on this machine: showing the bundled recording"),
        }
    }
    Ok((Origin::Recording, RECORDING.to_vec()))
}

fn record(side: u32) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let file = folder.path().join("demo.sbt");
    capture(&["demo", "--side", &side.to_string()], &[], &file)?;
    std::fs::read(&file).context("reading the recording")
}

/// Writes the trace and then renames it, so that the file is always complete.
fn put(trace: &[u8], out: &Path) -> anyhow::Result<()> {
    let what = || format!("writing {}", out.display());
    let folder = out
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(what)?;
    file.write_all(trace).with_context(what)?;
    file.persist(out).with_context(what)?;
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

fn show(origin: &Origin, trace: &Trace, out: &Path, output: &mut Output) -> anyhow::Result<()> {
    if output.format == Format::Table {
        let span = trace
            .span()
            .map(|(first, last)| units::nanos(last.0 - first.0))
            .unwrap_or_default();
        let from = match origin {
            Origin::Here { device } => format!("a small program that just ran on this machine's {device}"),
            Origin::Recording => {
                let device = trace
                    .devices
                    .first()
                    .map_or("GPU", |device| trace.string(device.name));
                format!("a small program that ran on an {device}")
            }
        };
        output.line(&format!(
            "{HEADING}{span} of {from}{HEADING:#}, in {}",
            out.display()
        ))?;
        output.line("")?;
    }
    for problem in health_lines(&trace.health()) {
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
                "tracesmith doctor".to_owned(),
                "check whether this machine can record programs",
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
