//! A target that speaks the contract with real rings, and ways to start it.
//!
//! The test binary starts itself again as the target: its test
//! `capture::target_process` does nothing unless [`TASK`] says what.

#![allow(dead_code, reason = "not every test file needs all of it")]

pub mod script;
pub mod target;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tracesmith_collect::{
    Capture, Destination, End, Existing, Forwarding, Injection, Launch, Preload, Report, Wait, profile,
};
use tracesmith_format::{
    Columns, Table,
    tables::{HealthCause, Kernel, Marker, ProcessEnd},
};
use tracesmith_trace::{TableView, Trace};

/// Says what the target does: see [`script`].
pub const TASK: &str = "TRACESMITH_TEST_TASK";

/// The command that starts this test binary as a target.
pub fn command(task: &str) -> Vec<OsString> {
    let program = env::current_exe().unwrap();
    let mut command: Vec<OsString> = vec!["env".into(), format!("{TASK}={task}").into(), program.into()];
    command.extend(
        [
            "capture::target_process",
            "--exact",
            "--nocapture",
            "--test-threads=1",
            "-q",
        ]
        .map(OsString::from),
    );
    command
}

pub fn launch(task: &str) -> Launch {
    Launch {
        command: command(task),
        library: "/nowhere/library.so".into(),
        preload: Preload::No,
        injection: Injection::ByDriver,
        wait: Wait::Primary,
        forwarding: Forwarding::Program,
    }
}

pub fn destination(path: &Path) -> Destination {
    Destination {
        path: path.to_owned(),
        existing: Existing::Refuse,
    }
}

/// Profiles a target to its end.
pub fn profile_task(task: &str, capture: Capture) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.sbt");
    let (end, report) = profile(launch(task), capture, destination(&path)).unwrap();
    Outcome {
        end,
        report,
        path,
        folder,
    }
}

/// What came of a recording.
pub struct Outcome {
    pub end: End,
    pub report: Report,
    pub path: PathBuf,
    pub folder: tempfile::TempDir,
}

impl Outcome {
    /// The trace, which must be whole as a file.
    pub fn trace(&self) -> Trace {
        assert!(self.report.failure.is_none(), "{:?}", self.report.failure);
        open(&self.path)
    }
}

/// A trace that was completed.
pub fn open(path: &Path) -> Trace {
    let trace = Trace::open(path).unwrap();
    assert!(trace.health().damage.is_empty(), "{:?}", trace.health().damage);
    trace
}

/// All rows of kernels.
pub fn kernels(trace: &Trace) -> Vec<Kernel> {
    rows(&trace.kernels)
}

/// All rows of markers.
pub fn markers(trace: &Trace) -> Vec<Marker> {
    rows(&trace.markers)
}

/// All rows of a table, in the order they were written.
pub fn rows<T: Table>(view: &TableView<T>) -> Vec<T> {
    view.load();
    let blocks = view.columns();
    blocks
        .flat_map(|(_, columns)| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

/// How the only process of a trace ended.
pub fn only_end(trace: &Trace) -> (ProcessEnd, i32) {
    assert_eq!(trace.processes.len(), 1);
    (trace.processes[0].end, trace.processes[0].end_code)
}

/// Records counted under a cause; none when it was not noted.
pub fn noted(trace: &Trace, cause: HealthCause) -> Option<u64> {
    let health = trace.health();
    let items = health.recorded.iter().filter(|item| item.cause == cause);
    items.map(|item| item.count).reduce(|sum, count| sum + count)
}
