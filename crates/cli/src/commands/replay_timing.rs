//! Measures calls as the recorded ones were measured: with a trace of the replay itself.
//!
//! Times from events around a call are two microseconds too long. So the replay runs again, under `tracesmith profile`.
//! Before each timed call, a kernel with a known name keeps the device busy. The first operation after that kernel
//! belongs to the call.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tracesmith_replay::{Clocks, Timing};
use tracesmith_trace::{EventKind, Query};

use super::ourselves::ARMING;
use crate::input::open_trace;

/// Set in the profiled process.
const TIMED: &str = "TRACESMITH_TIMED";

/// The name of the kernel before each timed call.
const MARK: &str = "delay";

/// Whether this process is the profiled one.
pub(crate) fn is_inner() -> bool {
    std::env::var_os(TIMED).is_some()
}

/// The times of the calls, and how they were measured.
pub(crate) struct Timed {
    pub(crate) timings: Vec<Timing>,
    pub(crate) method: Method,
    /// The device's clocks before and after.
    pub(crate) clocks: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// From a trace of the replay.
    Recorded,
    /// With events around each call.
    Events,
}

/// Runs this command again under `tracesmith profile`. `None` if it failed and printed the error.
pub(crate) fn timed() -> anyhow::Result<Option<Timed>> {
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let file = folder.path().join("timing.sbt");
    let mut command = Command::new(program()?);
    command
        .args(["profile", "-q", "--level", "light", "--stacks", "none", "-o"])
        .arg(&file)
        .arg("--")
        .arg(program()?);
    let Some(report) = report(command)? else {
        return Ok(None);
    };
    let mut timings = timings_of(&report["calls"])?;
    let works = works_in(&file).unwrap_or_default();
    let method = if fill_in(&mut timings, &works) {
        Method::Recorded
    } else {
        Method::Events
    };
    Ok(Some(Timed {
        timings,
        method,
        clocks: report["clocks"].clone(),
    }))
}

fn program() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_exe().context("finding this program")
}

fn report(mut command: Command) -> anyhow::Result<Option<Value>> {
    command
        .args(std::env::args_os().skip(1))
        .env(TIMED, "1")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    for variable in ARMING {
        command.env_remove(variable);
    }
    let output = command.output().context("running the replay")?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).with_context(|| format!("reading the report {text:?}"))?;
    Ok(Some(report))
}

/// The report of the profiled process.
pub(crate) fn report_value(timings: &[Timing], clocks: [Option<Clocks>; 2]) -> Value {
    let nanos = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let calls = timings.iter().map(|timing| {
        serde_json::json!({
            "command": timing.command, "name": timing.name, "bytes": timing.bytes,
            "recorded_ns": timing.recorded.as_ref().map(nanos),
            "runs_ns": timing.runs.iter().map(nanos).collect::<Vec<u64>>(),
        })
    });
    let clocks = clocks.map(|clocks| {
        let clocks = clocks.unwrap_or_default();
        serde_json::json!({
            "sm_mhz": clocks.sm_mhz, "memory_mhz": clocks.memory_mhz,
            "temperature_celsius": clocks.temperature_celsius,
        })
    });
    serde_json::json!({ "calls": calls.collect::<Vec<Value>>(), "clocks": clocks })
}

fn timings_of(report: &Value) -> anyhow::Result<Vec<Timing>> {
    let nanos = |value: &Value| value.as_u64().map(Duration::from_nanos);
    let calls = report.as_array().context("reading the report")?;
    let timing = |call: &Value| {
        Some(Timing {
            command: call["command"].as_u64()?,
            name: call["name"].as_str()?.to_owned(),
            bytes: call["bytes"].as_u64()?,
            recorded: nanos(&call["recorded_ns"]),
            runs: call["runs_ns"].as_array()?.iter().filter_map(nanos).collect(),
        })
    };
    calls
        .iter()
        .map(|call| timing(call).context("reading the report"))
        .collect()
}

/// A GPU operation: its kind, its bytes and its duration.
struct Work {
    kind: EventKind,
    bytes: u64,
    took: Duration,
}

/// The first operation after each mark.
fn works_in(file: &Path) -> anyhow::Result<Vec<Option<Work>>> {
    let trace = open_trace(file)?;
    let query = Query {
        kinds: Some(vec![EventKind::Kernel, EventKind::Copy, EventKind::Set]),
        ..Query::default()
    };
    let mut all = Vec::new();
    trace.for_each_event(&query, |found| {
        let event = found.event;
        let is_mark = event.kind == EventKind::Kernel && trace.event_name(&event) == MARK;
        all.push((event.start, event.end, event.kind, event.bytes.0, is_mark));
        ControlFlow::Continue(())
    });
    all.sort_by_key(|(start, ..)| *start);
    let mut works: Vec<Option<Work>> = Vec::new();
    for (start, end, kind, bytes, is_mark) in all {
        match works.last_mut() {
            _ if is_mark => works.push(None),
            Some(work @ None) => {
                *work = Some(Work {
                    kind,
                    bytes,
                    took: Duration::from_nanos(end.0.saturating_sub(start.0)),
                });
            }
            _ => {}
        }
    }
    Ok(works)
}

/// Replaces the times from events with those from the trace, if the trace contains all of them.
fn fill_in(timings: &mut [Timing], works: &[Option<Work>]) -> bool {
    let wanted: usize = timings.iter().map(|timing| timing.runs.len()).sum();
    if works.len() != wanted {
        return false;
    }
    let mut works = works.iter();
    for timing in timings {
        let count = timing.runs.len();
        let own: Vec<&Work> = works.by_ref().take(count).flatten().collect();
        let fits = |work: &&Work| match timing.name.as_str() {
            "copy" | "copy of planes" => work.kind == EventKind::Copy && work.bytes == timing.bytes,
            "set" => work.kind == EventKind::Set,
            _ => work.kind == EventKind::Kernel,
        };
        // An empty memcpy has no GPU operation.
        if own.len() == count && own.iter().all(fits) {
            timing.runs = own.iter().map(|work| work.took).collect();
        }
    }
    true
}
