//! Exports of nsys as they come from nsys: what SQL says of a file is what the trace holds, and an export of the trace
//! answers queries as the file does. The files are not part of the project; without them the tests say so.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use tracesmith_skip as support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use support::data;
use tracesmith_format::{Columns, StreamId, Timestamp};
use tracesmith_interop::export::{ExportOptions, ExportReport, Way, exporter};
use tracesmith_trace::analysis::{Analysis, Scale, WhatIf};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{NamePattern, TimeRange, Trace};

const FILES: [&str; 4] = [
    "nsys/nsysai_h100_2gpu_1s.sqlite",
    "nsys/nsysai_healthy_1pct.sqlite",
    "nsys/nsysai_mfu_2gpu_before.sqlite",
    "nsys/pipit_saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
];

fn sql(path: &Path, query: &str) -> (i64, i64) {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection
        .query_row(query, [], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(0)))
        })
        .unwrap_or((0, 0)) // no such table
}

fn export(trace: &Trace, options: &ExportOptions, path: &Path) -> ExportReport {
    let Way::File(write) = exporter("sqlite").unwrap().way else {
        panic!("a database is a file");
    };
    write(trace, options, path).unwrap()
}

#[test]
fn counts_and_durations_are_those_of_sql() {
    for file in FILES {
        let Some(path) = data(file) else { return };
        let trace = tracesmith_interop::open(&path).unwrap();
        macro_rules! same {
            ($($field:ident: $table:literal),*) => {$(
                let mut found = (0i64, 0i64);
                for (_, rows) in trace.$field.columns() {
                    for row in 0..rows.len() {
                        found.0 += 1;
                        found.1 += rows.end[row].0.saturating_sub(rows.start[row].0) as i64;
                    }
                }
                let query = concat!("SELECT COUNT(*), SUM(end - start) FROM ", $table);
                assert_eq!(found, sql(&path, query), "{file}: {}", $table);
            )*};
        }
        same!(
            kernels: "CUPTI_ACTIVITY_KIND_KERNEL",
            copies: "CUPTI_ACTIVITY_KIND_MEMCPY",
            sets: "CUPTI_ACTIVITY_KIND_MEMSET",
            syncs: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            api_calls: "CUPTI_ACTIVITY_KIND_RUNTIME",
            markers: "NVTX_EVENTS WHERE eventType IN (34, 59, 60)"
        );
    }
}

/// GPUs that are busy 90 % of the time and more determine the time of their programs, whatever the CPU waits in: calls whose
/// rows have the wrong device (two GPUs, FSDP), launches into a full queue (FSDP), or no call at all.
#[test]
fn gpu_work_determines_the_time_of_busy_gpus() {
    for (file, gains) in [
        ("nsys/nsysai_mfu_2gpu_before.sqlite", 0.30..0.45),
        ("nsys/nsysai_healthy_1pct.sqlite", 0.48..0.50),
        ("nsys/nsysai_h100_2gpu_1s.sqlite", 0.48..0.50),
    ] {
        let Some(path) = data(file) else { return };
        let trace = Arc::new(tracesmith_interop::open(&path).unwrap());
        let analysis = Analysis::of(&trace, Window::default()).unwrap();
        let scale = Scale {
            name: NamePattern::new("").unwrap(),
            factor: 0.5,
        };
        let halved = WhatIf {
            scales: vec![scale],
            ..WhatIf::default()
        };
        let report = analysis.what_if(&halved).unwrap();
        assert_eq!(report.unchanged_ns, report.measured_ns, "{file}");
        let gain = 1.0 - report.changed_ns as f64 / report.measured_ns as f64;
        assert!(gains.contains(&gain), "{file}: {gain}");
        assert!(report.path_work_share > 0.6, "{file}: {}", report.path_work_share);
    }
}

/// Stated by Python: `python3 -c` with the same queries, once, in November 2026.
#[test]
fn the_figures_are_those_that_python_counted() {
    let Some(path) = data(FILES[0]) else { return };
    let trace = tracesmith_interop::open(&path).unwrap();
    let rows = [
        trace.kernels.rows(),
        trace.copies.rows(),
        trace.sets.rows(),
        trace.syncs.rows(),
        trace.api_calls.rows(),
        trace.markers.rows(),
        trace.host_calls.rows(),
    ];
    assert_eq!(rows, [3442, 904, 22, 244, 5796, 16782, 198]);
    let Some(path) = data(FILES[3]) else { return };
    let trace = tracesmith_interop::open(&path).unwrap();
    let rows = [
        trace.kernels.rows(),
        trace.copies.rows(),
        trace.api_calls.rows(),
        trace.markers.rows(),
        trace.host_calls.rows(),
    ];
    // Of 24 rows of NVTX one names a domain and one a thread; 5451 samples, 3238 moments of the scheduler and 16 of
    // the profiler's own work make the host's.
    assert_eq!(rows, [5, 15, 95, 22, 5451 + 3238 + 16]);
}

#[test]
fn processes_threads_devices_and_streams_are_right() {
    let Some(path) = data(FILES[2]) else { return };
    let trace = tracesmith_interop::open(&path).unwrap();
    // SELECT DISTINCT globalPid / 0x1000000 % 0x1000000, deviceId, contextId, streamId FROM ..._KERNEL
    let mut places = Vec::new();
    for (_, rows) in trace.kernels.columns() {
        for row in 0..rows.len() {
            let place = rows.place.get(row);
            let pid = trace.process(place.process).unwrap().pid;
            let device = trace.device(place.device).unwrap().ordinal;
            places.push((pid, device, place.context.0, place.stream.0));
        }
    }
    places.sort_unstable();
    places.dedup();
    assert_eq!(places, [(144, 0, 1, 7), (145, 1, 2, 15)]);
    assert_eq!(trace.metadata["nsys.export.EXPORT_SCHEMA_VERSION"], "3.25.0");
    assert!(trace.metadata["command"].starts_with("torchrun --nnodes=1"));
    assert!(
        !trace.metadata.keys().any(|key| key.contains("ENVIRONMENT")),
        "an environment may hold secrets"
    );
    assert_eq!(trace.string(trace.hosts[0].name), "modal");
    // Of 17 processes in the list, those that did something.
    assert_eq!(
        trace.metadata["nsys.other_processes"].parse::<usize>().unwrap() + trace.processes.len(),
        17
    );
}

#[test]
fn samples_have_their_stacks_and_calls_theirs() {
    let Some(path) = data(FILES[3]) else { return };
    let trace = tracesmith_interop::open(&path).unwrap();
    let frames: usize = trace
        .host_calls
        .columns()
        .flat_map(|(_, rows)| (0..rows.len()).map(|row| rows.stack[row]).collect::<Vec<_>>())
        .map(|stack| trace.stack(stack).frames.len())
        .sum();
    assert_eq!(frames, 12_326, "SELECT COUNT(*) FROM SAMPLING_CALLCHAINS");
    let frames: usize = trace
        .api_calls
        .columns()
        .flat_map(|(_, rows)| (0..rows.len()).map(|row| rows.stack[row]).collect::<Vec<_>>())
        .map(|stack| trace.stack(stack).frames.len())
        .sum();
    assert_eq!(frames, 289, "of 296: the frames of chains that a call refers to");
    assert_eq!(trace.string(trace.devices[0].name), "NVIDIA A100-SXM4-40GB");
    assert_eq!(trace.devices[0].multiprocessors, 108);
}

/// Every kernel, copy, set and call with its times, place and correlation, compared by SQL in both directions.
#[test]
fn a_round_trip_keeps_every_row() {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        let Some(path) = data(file) else { return };
        let trace = tracesmith_interop::open(&path).unwrap();
        let copy = folder.path().join(Path::new(file).file_name().unwrap());
        let report = export(&trace, &ExportOptions::default(), &copy);
        assert_eq!((report.left_out, report.without_time), (0, 0), "{file}");

        let connection = Connection::open(&copy).unwrap();
        connection
            .execute("ATTACH ?1 AS original", [path.to_str().unwrap()])
            .unwrap();
        for (table, columns) in [
            (
                "CUPTI_ACTIVITY_KIND_KERNEL",
                "start, end, deviceId, contextId, streamId, correlationId, globalPid, registersPerThread, gridX, gridY, \
                 gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryTotal, gridId, \
                 sharedMemoryExecuted, graphNodeId, launchType, cacheConfig, clusterX, maxActiveClusters",
            ),
            (
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind, \
                 copyCount",
            ),
            (
                "CUPTI_ACTIVITY_KIND_MEMSET",
                "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, value, memKind",
            ),
            (
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                "start, end, deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId, eventSyncId",
            ),
            (
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                "start, end, globalTid, correlationId, returnValue",
            ),
            ("NVTX_EVENTS", "start, end, globalTid, domainId, color, category"),
            ("COMPOSITE_EVENTS", "start, cpu, globalTid, cpuCycles"),
            ("SCHED_EVENTS", "start, cpu, isSchedIn, globalTid"),
            ("TARGET_INFO_SESSION_START_TIME", "utcEpochNs, utcTime"),
        ] {
            compare(&connection, file, table, columns);
        }
    }
}

fn columns_of(connection: &Connection, schema: &str, table: &str) -> Vec<String> {
    connection
        .prepare(&format!("PRAGMA {schema}.table_info({table})"))
        .unwrap()
        .query_map([], |row| row.get(1))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn compare(connection: &Connection, file: &str, table: &str, wanted: &str) {
    let count = |schema: &str| -> i64 {
        let condition = match table {
            // Domains are defined where they are first used, and thread names elsewhere.
            "NVTX_EVENTS" => "WHERE eventType IN (34, 59, 60)",
            _ => "",
        };
        connection
            .query_row(
                &format!("SELECT COUNT(*) FROM {schema}.{table} {condition}"),
                [],
                |row| row.get(0),
            )
            .unwrap_or(0)
    };
    assert_eq!(count("main"), count("original"), "{file}: {table}");
    if count("original") == 0 {
        return;
    }
    let known = columns_of(connection, "original", table);
    // The small file was made by hand and names no process, so its threads have other numbers here.
    let unnamed = file.contains("healthy");
    let columns: Vec<&str> = wanted
        .split(", ")
        .map(str::trim)
        .filter(|column| known.iter().any(|known| known == column) && !(unnamed && *column == "globalTid"))
        .collect();
    let columns = columns.join(", ");
    for (one, other) in [("main", "original"), ("original", "main")] {
        let condition = match table {
            "NVTX_EVENTS" => "WHERE eventType IN (34, 59, 60)",
            _ => "",
        };
        let missing: i64 = connection
            .query_row(
                &format!(
                    "SELECT COUNT(*) FROM (SELECT {columns} FROM {one}.{table} {condition} \
                     EXCEPT SELECT {columns} FROM {other}.{table})"
                ),
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(
            missing, 0,
            "{file}: rows of {one}.{table} that are not in {other}: {columns}"
        );
    }
}

#[test]
fn python_gets_the_same_answers_from_the_original_and_from_ours() {
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        let Some(path) = data(file) else { return };
        let copy = folder.path().join(Path::new(file).file_name().unwrap());
        export(
            &tracesmith_interop::open(&path).unwrap(),
            &ExportOptions::default(),
            &copy,
        );
        let ask = |path: &Path| {
            let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/support/nsys_queries.py");
            let mut python = Command::new("python3");
            python.arg(script).arg(path);
            if !file.contains("healthy") {
                python.arg("globalPid");
            }
            let output = python.output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        };
        let (original, ours) = (ask(&path), ask(&copy));
        // A file without a table of codes is not asked about copies.
        let ours = match original.contains("\"copies\"") {
            true => ours,
            false => without(&ours, "copies"),
        };
        let ours = match original.contains("\"ranges\"") {
            true => ours,
            false => without(&ours, "ranges"),
        };
        assert_eq!(original.trim(), ours.trim(), "{file}");
    }
}

/// The answers without one, all of which come as `"name": [...]`.
fn without(answers: &str, name: &str) -> String {
    let start = answers.find(&format!(", \"{name}\": [")).unwrap();
    let rest = &answers[start + 2..];
    let end = rest.find(", \"").map_or(answers.len() - 2, |end| start + 2 + end);
    format!(
        "{}{}",
        &answers[..start],
        &answers[end.min(answers.trim_end().len() - 1)..]
    )
}

#[test]
fn a_stretch_and_a_stream_are_honoured() {
    let Some(path) = data(FILES[2]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("part.sqlite");
    let trace = tracesmith_interop::open(&path).unwrap();
    let options = ExportOptions {
        range: TimeRange {
            from: Some(Timestamp(60_150_000_000)),
            to: Some(Timestamp(60_200_000_000)),
        },
        streams: Some(vec![StreamId(7)]),
        ..ExportOptions::default()
    };
    export(&trace, &options, &copy);
    let condition = "start < 60200000000 AND end > 60150000000";
    for (table, stream) in [
        ("CUPTI_ACTIVITY_KIND_KERNEL", " AND streamId = 7"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", " AND streamId = 7"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", ""),
    ] {
        let whole = format!("SELECT COUNT(*), SUM(end - start) FROM {table}");
        let part = format!("{whole} WHERE {condition}{stream}");
        assert_eq!(sql(&copy, &whole), sql(&path, &part), "{table}");
        assert!(sql(&copy, &whole).0 > 0, "{table}");
    }
}
