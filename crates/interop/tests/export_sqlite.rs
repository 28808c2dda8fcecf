//! What a trace of our own becomes as a database: its tables with the rows they begin with, and the same bytes each time.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use tracesmith_interop::Error;
use tracesmith_interop::export::{ExportOptions, ExportReport, Way, exporter};
use tracesmith_trace::Trace;

fn fixture(name: &str) -> Trace {
    tracesmith_interop::open(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures")
            .join(name),
    )
    .unwrap()
}

fn export(trace: &Trace, path: &Path) -> Result<ExportReport, Error> {
    let Way::File(write) = exporter("sqlite").unwrap().way else {
        panic!("a database is a file");
    };
    write(trace, &ExportOptions::default(), path)
}

fn exported(name: &str) -> (TempDir, PathBuf, ExportReport) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("export.sqlite");
    let report = export(&fixture(name), &path).unwrap();
    (folder, path, report)
}

/// Every table with its number of rows and its first two.
fn summary(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let mut text = String::new();
    let mut names = connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        .unwrap();
    let names: Vec<String> = names
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for name in names.iter().filter(|name| !name.starts_with("ENUM_")) {
        let count: i64 = connection
            .query_row(&format!("SELECT COUNT(*) FROM {name}"), [], |row| row.get(0))
            .unwrap();
        writeln!(text, "{name}: {count}").unwrap();
        let mut rows = connection
            .prepare(&format!("SELECT * FROM {name} LIMIT 2"))
            .unwrap();
        let columns: Vec<String> = rows.column_names().map(str::to_owned).collect();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let mut cells = Vec::new();
            for (index, column) in columns.iter().enumerate() {
                match row.get_ref(index).unwrap() {
                    ValueRef::Null => {}
                    ValueRef::Integer(value) => cells.push(format!("{column}={value}")),
                    ValueRef::Real(value) => cells.push(format!("{column}={value:?}")),
                    ValueRef::Text(value) => {
                        cells.push(format!("{column}={:?}", String::from_utf8_lossy(value)))
                    }
                    ValueRef::Blob(_) => panic!("no table has such a column"),
                }
            }
            writeln!(text, "    {}", cells.join(" ")).unwrap();
        }
    }
    text
}

#[test]
fn a_synthetic_trace_has_a_place_for_everything() {
    let (_folder, path, report) = exported("synthetic-v1.sbt");
    assert_eq!(report.left_out, 0);
    insta::assert_snapshot!(summary(&path));
}

#[test]
fn the_demo_of_an_h200_is_an_nsys_export() {
    let (_folder, path, _) = exported("demo-h200.sbt");
    insta::assert_snapshot!(summary(&path));
    // What is exported so can be imported again.
    let (ours, again) = (fixture("demo-h200.sbt"), tracesmith_interop::open(&path).unwrap());
    assert_eq!(again.kernels.rows(), ours.kernels.rows());
    assert_eq!(again.copies.rows(), ours.copies.rows());
    assert_eq!(again.api_calls.rows(), ours.api_calls.rows());
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let (_one, first, _) = exported("synthetic-v1.sbt");
    let (_two, second, _) = exported("synthetic-v1.sbt");
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap());
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let folder = TempDir::new().unwrap();
    let error = export(
        &fixture("synthetic-v1.sbt"),
        &folder.path().join("no/such/folder.sqlite"),
    )
    .unwrap_err();
    assert!(
        matches!(error, Error::Export { format: "sqlite", .. }),
        "{error:?}"
    );
}
