//! Real files of PyTorch's profiler: what is in the trace afterwards is what Python's own JSON reader counts in them.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stderr,
    reason = "a test may stop on any error, and says what it skipped"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracesmith_format::tables::*;
use tracesmith_format::{Columns, StringId, Table};
use tracesmith_trace::import::{ImportOptions, Input, Sink, TimeUnit, import};
use tracesmith_trace::{TableView, Trace};

fn open(name: &str) -> Option<Trace> {
    Some(Trace::open(&support::data(&format!("kineto/{name}"))?).unwrap())
}

fn rows<T: Table>(table: &TableView<T>) -> Vec<T> {
    let columns = table.columns().map(|(_, columns)| columns);
    columns
        .flat_map(|columns| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    Input::open(path).unwrap().read_to_end(&mut content).unwrap();
    content
}

/// The counts that the Python script prints, taken from the trace.
fn counts_of(trace: &Trace) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counts.entry(name.to_owned()).or_default() += count;
    let absolute = |time| {
        trace
            .clock_map
            .convert(trace.kernels.blocks().next().unwrap().header.clock, time)
            .time
            .0
    };
    let kernels = rows(&trace.kernels);
    let calls = rows(&trace.api_calls);
    let launched: BTreeSet<_> = calls
        .iter()
        .map(|call| (call.caller.process, call.correlation))
        .collect();
    for kernel in &kernels {
        add("kernels", 1);
        add("kernels_ns", kernel.end.0 - kernel.start.0);
        let is_joined = launched.contains(&(kernel.place.process, kernel.correlation));
        add(
            "joined_kernels",
            u64::from(is_joined && kernel.correlation.is_some()),
        );
    }
    add(
        "first_kernel",
        kernels
            .iter()
            .map(|kernel| absolute(kernel.start))
            .min()
            .unwrap_or(0),
    );
    add(
        "last_kernel",
        kernels
            .iter()
            .map(|kernel| absolute(kernel.end))
            .max()
            .unwrap_or(0),
    );
    for call in &calls {
        add("api_calls", 1);
        add("api_calls_ns", call.end.0 - call.start.0);
    }
    for copy in rows(&trace.copies) {
        add("copies", 1);
        add("copies_ns", copy.end.0 - copy.start.0);
    }
    for set in rows(&trace.sets) {
        add("sets", 1);
        add("sets_ns", set.end.0 - set.start.0);
    }
    add("syncs", trace.syncs.rows());
    add("markers", trace.markers.rows());
    for call in rows(&trace.host_calls) {
        match call.shape.kind {
            HostCallKind::OPERATOR => add("operators", 1),
            HostCallKind::PYTHON => add("python_functions", 1),
            HostCallKind::OVERHEAD => add("overheads", 1),
            other => panic!("{other:?}"),
        }
    }
    for allocation in rows(&trace.allocations) {
        add("allocations", 1);
        if allocation.shape.operation == MemoryOperation::FREE {
            add("freed_bytes", allocation.bytes.0);
        }
    }
    for flow in rows(&trace.flows) {
        match flow.shape.kind {
            FlowKind::FORWARD_BACKWARD => add("forward_backward", 1),
            FlowKind::EXTERNAL if flow.flow != 0 => add(
                match () {
                    () if flow.shape.device.is_some() => "device_external",
                    () => "api_calls_external",
                },
                1,
            ),
            _ => {}
        }
    }
    counts
}

/// What Python counts. Device work is put together: flows do not say of which table a row is.
fn python_counts(path: &Path) -> Option<BTreeMap<String, u64>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/count_events.py");
    let python = std::env::var_os("TRACESMITH_PYTHON").unwrap_or("python3".into());
    let output = match Command::new(python).arg(script).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no Python here: {error}");
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut counts = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (name, count) = line.split_once(' ').unwrap();
        let name = match name {
            "kernels_external" | "copies_external" | "sets_external" => "device_external",
            name => name,
        };
        *counts.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    Some(counts)
}

#[test]
fn every_file_holds_what_python_counts() {
    let Some(folder) = support::data("kineto") else {
        return;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for path in files {
        let Some(mut expected) = python_counts(&path) else {
            return;
        };
        let trace = Trace::open(&path).unwrap();
        let mut found = counts_of(&trace);
        // Waits have external ids, too, which Python was not asked for.
        if trace.syncs.rows() > 0 {
            expected.remove("device_external");
            found.remove("device_external");
        }
        expected.retain(|_, count| *count > 0);
        found.retain(|_, count| *count > 0);
        assert_eq!(found, expected, "{}", path.display());
        assert!(trace.health().damage.is_empty());
    }
}
