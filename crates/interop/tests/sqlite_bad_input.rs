//! SQLite files that are damaged, hostile, or of something else: a clear line or counted doubts, never a panic, a hang, or
//! a trace that says it is whole.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use tracesmith_format::tables::HealthCause;
use tracesmith_format::{Columns, Timestamp};
use tracesmith_trace::Trace;

const KERNELS: &str = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1, 'gemm');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, shortName, demangledName);";

fn database(folder: &TempDir, script: &str) -> Vec<u8> {
    let path = folder.path().join("made.sqlite");
    let _ = fs::remove_file(&path);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(script).unwrap();
    connection.close().unwrap();
    fs::read(&path).unwrap()
}

fn details(trace: &Trace) -> Vec<String> {
    let health = trace.health().recorded;
    health
        .iter()
        .map(|item| format!("{} {}", item.count, item.detail))
        .collect()
}

/// An export of a few thousand kernels, so that it has many pages.
fn large(folder: &TempDir) -> Vec<u8> {
    database(
        folder,
        &format!(
            "{KERNELS}
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 100, i * 100 + 50, 0, 7, i, 1, 1 FROM n"
        ),
    )
}

#[test]
fn a_database_of_something_else_is_named_as_such() {
    let folder = TempDir::new().unwrap();
    let bytes = database(
        &folder,
        "CREATE TABLE moz_places (url TEXT); CREATE TABLE moz_hosts (host TEXT)",
    );
    let error = tracesmith_interop::open_bytes(bytes).unwrap_err().to_string();
    assert!(
        error.contains("no nsys export: it has moz_hosts, moz_places"),
        "{error}"
    );
    let error = tracesmith_interop::open_bytes(database(&folder, "VACUUM")).map(|_| ());
    assert!(error.is_err(), "an empty file is no trace");
}

#[test]
fn what_is_left_of_a_truncated_file_is_read() {
    let folder = TempDir::new().unwrap();
    let bytes = large(&folder);
    let trace = tracesmith_interop::open_bytes(bytes[..bytes.len() * 2 / 3].to_vec()).unwrap();
    let rows = trace.kernels.rows();
    assert!((1000..5000).contains(&rows), "{rows}");
    let health = trace.health();
    assert!(health.recorded.iter().any(|item| item.cause == HealthCause::CUT));
}

#[test]
fn every_truncation_ends() {
    let folder = TempDir::new().unwrap();
    let bytes = large(&folder);
    for length in (0..bytes.len()).step_by(997) {
        // A trace or an error, whichever: it must come.
        let _ = tracesmith_interop::open_bytes(bytes[..length].to_vec());
    }
}

#[test]
fn damaged_pages_leave_the_others() {
    let folder = TempDir::new().unwrap();
    let mut bytes = large(&folder);
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    let trace = tracesmith_interop::open_bytes(bytes).unwrap();
    assert!(trace.kernels.rows() > 500, "{}", trace.kernels.rows());
    assert!(
        details(&trace).iter().any(|line| line.contains("malformed")),
        "{:?}",
        details(&trace)
    );
}

#[test]
fn values_of_wrong_types_are_counted_and_read_as_unknown() {
    let folder = TempDir::new().unwrap();
    let trace = tracesmith_interop::open_bytes(database(
        &folder,
        &format!(
            "{KERNELS} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
             ('early', 'late', x'00', 'seven', 'one', 'gemm', 2.5), (NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             (9223372036854775807, 9223372036854775807, 0, 7, 1, 1, 1), (500, 400, 0, 7, 2, 99, 1),
             (100.0, 200.0, 0.0, 7.0, 3.0, 1.0, 1.0), (-9223372036854775808, 5, -1, -1, -1, -1, -1)"
        ),
    ))
    .unwrap();
    let (_, rows) = trace.kernels.columns().next().unwrap();
    let times: Vec<(u64, u64)> = (0..rows.len())
        .map(|row| (rows.start[row].0, rows.end[row].0))
        .collect();
    let most = i64::MAX as u64;
    assert_eq!(
        times,
        [(0, 0), (0, 0), (most, most), (500, 0), (100, 200), (0, 5)]
    );
    assert_eq!(
        details(&trace),
        [
            "3 names that are in no table",
            "3 numbers out of range",
            "7 values of the wrong type in CUPTI_ACTIVITY_KIND_KERNEL",
            "1 events that end before they start, kept without an end",
            "5 times that are missing",
        ]
    );
}

#[test]
fn times_before_the_session_are_kept_by_a_shift() {
    let folder = TempDir::new().unwrap();
    let trace = tracesmith_interop::open_bytes(database(
        &folder,
        &format!("{KERNELS} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-3000, -500, 0, 7, 1, 1, 1), (0, 9, 0, 7, 2, 1, 1)"),
    ))
    .unwrap();
    let (_, rows) = trace.kernels.columns().next().unwrap();
    assert_eq!(rows.start, [Timestamp(997_000), Timestamp(1_000_000)]);
    assert_eq!(trace.metadata["import.time_shift_nanos"], "1000000");
    assert!(trace.health().is_good());
}

#[test]
fn a_view_that_never_ends_is_not_asked() {
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let trace = tracesmith_interop::open_bytes(database(
        &folder,
        &format!(
            "{KERNELS} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 1, 1);
             CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
               SELECT i AS start, i AS end, 59 AS eventType FROM n;
             CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS SELECT * FROM NVTX_EVENTS;"
        ),
    ))
    .unwrap();
    assert_eq!((trace.kernels.rows(), trace.markers.rows()), (1, 0));
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// A tree whose inner pages name the same page many times over holds more rows than there are atoms.
#[test]
fn a_tree_that_multiplies_itself_is_given_up() {
    let folder = TempDir::new().unwrap();
    let mut bytes = large(&folder);
    let pages = bytes.len() / 4096;
    // An inner page of a table begins with 5; its cells are a page number and a row number.
    let inner: Vec<usize> = (1..pages).filter(|page| bytes[page * 4096] == 5).collect();
    assert!(!inner.is_empty());
    for page in inner {
        let at = page * 4096;
        let cells = usize::from(u16::from_be_bytes([bytes[at + 3], bytes[at + 4]]));
        for cell in 0..cells {
            let pointer = at + 12 + 2 * cell;
            let cell = at + usize::from(u16::from_be_bytes([bytes[pointer], bytes[pointer + 1]]));
            let own = u32::try_from(page + 1).unwrap().to_be_bytes();
            bytes[cell..cell + 4].copy_from_slice(&own);
        }
    }
    let start = Instant::now();
    if let Ok(trace) = tracesmith_interop::open_bytes(bytes) {
        assert!(!trace.health().is_good());
    }
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_file_in_wal_mode_is_read_and_nothing_is_left_beside_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("wal #1?.sqlite");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection
        .execute_batch(&format!(
            "{KERNELS} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 1, 1)"
        ))
        .unwrap();
    assert_eq!(
        tracesmith_interop::open(&path).unwrap().kernels.rows(),
        1,
        "while it is open, through its log"
    );
    connection.close().unwrap();
    assert_eq!(
        tracesmith_interop::open(&path).unwrap().kernels.rows(),
        1,
        "and alone"
    );
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [path.file_name().unwrap()]);
}

#[test]
fn a_packed_database_is_unpacked() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("export.sqlite.gz");
    let mut packer =
        flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    packer.write_all(&large(&folder)).unwrap();
    packer.finish().unwrap();
    assert_eq!(
        tracesmith_interop::open(Path::new(&path)).unwrap().kernels.rows(),
        5000
    );
}

#[test]
fn tables_that_are_not_known_are_counted_by_name() {
    let folder = TempDir::new().unwrap();
    let trace = tracesmith_interop::open_bytes(database(
        &folder,
        &format!("{KERNELS} CREATE TABLE NEW_EVENTS (a); INSERT INTO NEW_EVENTS VALUES (1), (2), (3); CREATE TABLE NONE (a)"),
    ))
    .unwrap();
    assert_eq!(details(&trace), ["3 rows of NEW_EVENTS"]);
}
