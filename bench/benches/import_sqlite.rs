//! The figures of SQLite files: rows a second from an nsys export into a trace, and back.
//!
//! `cargo bench -p tracesmith-bench --bench import_sqlite`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use rusqlite::{Connection, params};
use tracesmith_bench::figure::{median_time, millions_per_second, print, print_head};
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_interop::export::{ExportOptions, Way, exporter};
use tracesmith_interop::import::{ImportOptions, Input, Sink, import};
use tracesmith_trace::Trace;

const KERNELS: usize = 1_000_000;
/// A launch for each kernel, and as many other calls.
const CALLS: usize = 2 * KERNELS;
const PID: i64 = 1 << 48 | 4711 << 24;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (database, trace, copy) = (
        folder.path().join("made.sqlite"),
        folder.path().join("imported.sbt"),
        folder.path().join("exported.sqlite"),
    );
    make(&database);
    let rows = KERNELS + CALLS;
    let megabytes = |path: &Path| format!("{:.0} MB", path.metadata().unwrap().len() as f64 / 1e6);

    print_head("nsys export of 1 million kernels and 2 million calls, one core");
    print("database", megabytes(&database), "");
    let time = median_time(3, || import_file(&database, &trace));
    print(
        "rows imported, million/s",
        format!("{:.2}", millions_per_second(rows, time)),
        "",
    );
    let bytes = trace.metadata().unwrap().len() as f64 / rows as f64;
    print("trace, bytes a row", format!("{bytes:.1}"), "");
    let opened = Trace::open(&trace).unwrap();
    let time = median_time(3, || {
        let _ = std::fs::remove_file(&copy);
        export_file(&opened, &copy);
    });
    print(
        "rows exported, million/s",
        format!("{:.2}", millions_per_second(rows, time)),
        "",
    );
    print("exported database, with its indexes", megabytes(&copy), "");
}

fn import_file(database: &Path, trace: &Path) {
    let sink: Box<dyn Sink> = Box::new(BufWriter::new(File::create(trace).unwrap()));
    let mut writer = Writer::new(sink, WriterOptions::default()).unwrap();
    let input = Input::open(database).unwrap();
    let report = import(vec![input], &ImportOptions::default(), &mut writer).unwrap();
    assert_eq!(report.rows, (KERNELS + CALLS) as u64);
    writer.seal().unwrap();
}

fn export_file(trace: &Trace, path: &Path) {
    let Way::File(write) = exporter("sqlite").unwrap().way else {
        panic!("a database is a file");
    };
    let report = write(trace, &ExportOptions::default(), path).unwrap();
    assert_eq!(report.events, (KERNELS + CALLS) as u64);
}

/// A database with the columns that real ones have.
fn make(path: &Path) {
    let mut connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
                contextId INTEGER, greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
                demangledName INTEGER, shortName INTEGER, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
                registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
                blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,
                localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId INTEGER, sharedMemoryExecuted INTEGER,
                graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
             CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER,
                globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);",
        )
        .unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let mut name = transaction
            .prepare("INSERT INTO StringIds VALUES (?, ?)")
            .unwrap();
        for id in 0..200i64 {
            name.execute(params![id, format!("void ns::kernel_{id}<float>(float *)")])
                .unwrap();
        }
        name.execute(params![1000, "cudaLaunchKernel_v7000"]).unwrap();
        name.execute(params![1001, "cudaEventQuery_v3020"]).unwrap();
        let mut kernel = transaction
            .prepare(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, 0, 1, 0, ?3, ?4, ?5, ?6, ?6, ?6, 1, 1, 32, ?7, 1, 1,
                 256, 1, 1, 0, 1024, 0, 250871808, ?4, 32768, NULL, 0)",
            )
            .unwrap();
        let mut call = transaction
            .prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0, NULL)")
            .unwrap();
        for number in 0..KERNELS as i64 {
            // Times that nothing predicts, as real ones are: the low bits of a multiplicative hash.
            let jitter = (number.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 40) & 0x3ff;
            let start = 1_000_000 + number * 7_000 + jitter;
            let (stream, name) = (7 + number % 8, number * 31 % 200);
            let grid = 64 + number % 16;
            kernel
                .execute(params![
                    start,
                    start + 5_000 + jitter * number % 977,
                    stream,
                    number + 1,
                    PID,
                    name,
                    grid
                ])
                .unwrap();
            let called = start - 20_000 - jitter / 2;
            call.execute(params![
                called,
                called + 3_000 + jitter,
                PID | 9,
                number + 1,
                1000
            ])
            .unwrap();
            call.execute(params![called + 4_500, called + 5_000, PID | 9, 0, 1001])
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}
