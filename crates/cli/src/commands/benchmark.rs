//! `tracesmith benchmark`: the same launches, unprofiled and recorded.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tracesmith_format::tables::HealthCause;
use tracesmith_machine::workload::benchmark::KERNEL;
use tracesmith_trace::{EventKind, NamePattern, Query, Trace, units};

use super::ourselves::{capture, run_bare};
use crate::args::{BenchmarkArgs, Format};
use crate::exit::Exit;
use crate::input::open_trace;
use crate::output::table::{Align, TextTable};
use crate::output::{BAD, GOOD, Hinted, Output};

const DOCTOR: &str = "tracesmith doctor shows what is missing";

/// The times of one run.
struct Run {
    device: String,
    kernels: u64,
    launch_seconds: f64,
    seconds: f64,
    kernels_per_second: f64,
}

/// The launches in the trace.
struct Recorded {
    records: u64,
    dropped: u64,
    file_bytes: u64,
    /// Why the trace is incomplete.
    problems: Vec<String>,
    stacks: StackCounts,
}

/// The stacks of the recorded launches.
#[derive(Default)]
struct StackCounts {
    /// Records with a stack.
    records: u64,
    /// Frames of all stacks, without the profiler's own.
    frames: u64,
}

/// The figures of the public reference for 10,000 kernels: stacks with 7 frames, and 107 ms.
struct Reference {
    kernels: u64,
    frames_per_stack: f64,
    millis: f64,
}

const REFERENCE: Reference = Reference {
    kernels: 10_000,
    frames_per_stack: 7.0,
    millis: 107.0,
};

pub(crate) fn run(args: &BenchmarkArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if let Some(out) = &args.out
        && out.exists()
        && !args.force
    {
        bail!("{} exists; replace it with --force", out.display());
    }
    let work = [
        "benchmark".to_owned(),
        format!("--kernels={}", args.kernels),
        format!("--streams={}", args.streams),
        format!("--device={}", args.device),
    ];
    let bare = run_bare(&work)
        .map_err(|error| Hinted::error(&error, DOCTOR))
        .context("running the benchmark")?;
    let bare = run_from_report(&bare);
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let file = folder.path().join("benchmark.sbt");
    let frames = if args.stacks { "native" } else { "none" };
    let options: &[&str] = &["--stacks", frames];
    let captured = capture(&work, options, &file)
        .map_err(|error| Hinted::error(&error, DOCTOR))
        .context("recording the benchmark")?;
    let captured = run_from_report(&captured);
    let recorded = recorded_in(&file)?;
    if let Some(out) = &args.out {
        std::fs::copy(&file, out).with_context(|| format!("writing {}", out.display()))?;
    }
    show(args, &bare, &captured, &recorded, output)?;
    for problem in &recorded.problems {
        output.warning(&format!("the trace is incomplete: {problem}"));
    }
    let has_stacks = !args.stacks || recorded.stacks.records == recorded.records;
    Ok(Exit::from_check(
        recorded.records == captured.kernels && recorded.dropped == 0 && has_stacks,
    ))
}

fn run_from_report(report: &Value) -> Run {
    let number = |name: &str| report[name].as_f64().unwrap_or(0.0);
    Run {
        device: report["device"].as_str().unwrap_or_default().to_owned(),
        kernels: report["kernels"].as_u64().unwrap_or(0),
        launch_seconds: number("launch_seconds"),
        seconds: number("seconds"),
        kernels_per_second: number("kernels_per_second"),
    }
}

impl Run {
    fn launch_micros(&self) -> f64 {
        self.launch_seconds * 1e6 / (self.kernels as f64).max(1.0)
    }

    fn json(&self) -> Value {
        json!({
            "launch_seconds": self.launch_seconds, "seconds": self.seconds,
            "kernels_per_second": self.kernels_per_second,
        })
    }
}

fn recorded_in(file: &Path) -> anyhow::Result<Recorded> {
    let trace = open_trace(file)?;
    let query = Query {
        kinds: Some(vec![EventKind::Kernel]),
        name: Some(NamePattern::exact(KERNEL)),
        ..Query::default()
    };
    let mut records = 0;
    let mut stacks = StackCounts::default();
    let mut depths = HashMap::new();
    trace.for_each_event(&query, |found| {
        records += 1;
        let stack = found.event.stack;
        if stack.is_some() {
            stacks.records += 1;
            stacks.frames += *depths
                .entry(stack)
                .or_insert_with(|| trace.stack(stack).frames.len() as u64);
        }
        ControlFlow::Continue(())
    });
    Ok(Recorded {
        records,
        dropped: dropped_of(&trace),
        file_bytes: trace.file_bytes(),
        problems: trace.health().sentences(),
        stacks,
    })
}

/// Records that were dropped.
fn dropped_of(trace: &Trace) -> u64 {
    trace
        .health()
        .recorded
        .iter()
        .filter(|item| matches!(item.cause, HealthCause::RING_FULL | HealthCause::VENDOR_DROPPED))
        .map(|item| item.count)
        .sum()
}

fn show(
    args: &BenchmarkArgs,
    bare: &Run,
    captured: &Run,
    recorded: &Recorded,
    output: &mut Output,
) -> anyhow::Result<()> {
    let added_micros = captured.launch_micros() - bare.launch_micros();
    if output.format != Format::Table {
        output.facts(&[
            ("device", json!(captured.device)),
            ("streams", json!(args.streams)),
            ("kernels", json!(captured.kernels)),
            ("records", json!(recorded.records)),
            ("dropped", json!(recorded.dropped)),
            ("bare", bare.json()),
            ("recorded", captured.json()),
            ("added_micros_per_launch", json!(added_micros)),
            ("file_bytes", json!(recorded.file_bytes)),
            ("stacks", recorded.stacks.json()),
        ])?;
        return Ok(());
    }
    let missing = captured.kernels.abs_diff(recorded.records);
    let style = if missing == 0 && recorded.dropped == 0 {
        GOOD
    } else {
        BAD
    };
    output.line(&format!(
        "{}: {} kernels launched, {style}{} records received, {} dropped{style:#}",
        captured.device,
        units::count(captured.kernels),
        units::count(recorded.records),
        units::count(recorded.dropped),
    ))?;
    output.line("")?;
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("kernels/s", Align::Right),
        ("µs/launch", Align::Right),
        ("total time", Align::Right),
    ]);
    for (name, run) in [("unprofiled", bare), ("recorded", captured)] {
        table.row([
            name.into(),
            units::count(run.kernels_per_second as u64).into(),
            format!("{:.2}", run.launch_micros()).into(),
            units::nanos((run.seconds * 1e9) as u64).into(),
        ]);
    }
    output.table(&table)?;
    output.line(&format!(
        "\nrecording added {added_micros:.2} µs per launch and wrote {:.1} bytes per kernel",
        recorded.file_bytes as f64 / (recorded.records as f64).max(1.0),
    ))?;
    if args.stacks {
        show_stacks(captured, recorded, output)?;
    }
    Ok(())
}

impl StackCounts {
    fn frames_per_stack(&self) -> f64 {
        self.frames as f64 / (self.records as f64).max(1.0)
    }

    fn json(&self) -> Value {
        json!({ "records": self.records, "frames_per_stack": self.frames_per_stack() })
    }
}

/// The table of the public reference, next to the figures of this machine.
fn show_stacks(captured: &Run, recorded: &Recorded, output: &mut Output) -> anyhow::Result<()> {
    let Recorded { records, stacks, .. } = recorded;
    let share = 100.0 * stacks.records as f64 / (*records as f64).max(1.0);
    let per_second = REFERENCE.kernels as f64 / REFERENCE.millis * 1e3;
    let mut table = TextTable::new(&[
        ("with stacks", Align::Left),
        ("here", Align::Right),
        ("reference", Align::Right),
    ]);
    for (name, here, reference) in [
        (
            "kernels",
            units::count(captured.kernels),
            units::count(REFERENCE.kernels),
        ),
        ("records", units::count(*records), units::count(REFERENCE.kernels)),
        (
            "stacks",
            units::count(stacks.records),
            units::count(REFERENCE.kernels),
        ),
        (
            "frames per stack",
            format!("{:.1}", stacks.frames_per_stack()),
            format!("{:.1}", REFERENCE.frames_per_stack),
        ),
        (
            "records with a stack",
            format!("{share:.1} %"),
            "100.0 %".to_owned(),
        ),
        (
            "total time",
            units::nanos((captured.seconds * 1e9) as u64),
            format!("{:.0} ms", REFERENCE.millis),
        ),
        (
            "kernels per second",
            units::count(captured.kernels_per_second as u64),
            units::count(per_second as u64),
        ),
    ] {
        table.row([name.into(), here.into(), reference.into()]);
    }
    output.line("")?;
    Ok(output.table(&table)?)
}
