//! Records that a test cannot run on this machine.
//!
//! Rust's test harness has no result for "skipped": a test that returns early has passed. So every test that lacks
//! something calls [`without`], which prints the skip and appends it to the file that `ci/test` names in the environment
//! variable `TRACESMITH_SKIPS`. `ci/skips` then fails the run unless `ci/may-skip` lists this machine as unable to run the
//! test.
//!
//! ```
//! fn valgrind_finds_nothing() {
//!     if std::process::Command::new("valgrind").arg("--version").output().is_err() {
//!         return tracesmith_skip::without("valgrind", "");
//!     }
//!     // …
//! }
//! # valgrind_finds_nothing();
//! ```

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

/// The environment variable that names the file with all skips of a run.
pub const FILE: &str = "TRACESMITH_SKIPS";

/// Records that the running test, or a part of it, was skipped because this machine lacks `need`.
///
/// `need` is a name in `ci/may-skip`. A name that is not listed there is never a reason to skip. `detail` may be empty.
///
/// # Panics
///
/// If the skip cannot be recorded: the run would look better than it was.
pub fn without(need: &str, detail: impl Display) {
    let detail = detail.to_string().replace(['\n', '\t'], " ");
    let line = format!("{need}\t{}\t{}\n", test_name(), detail.trim());
    // Not `eprintln`, which the test harness hides if the test passes.
    let _ = write!(std::io::stderr(), "SKIPPED: {}", line.replace('\t', ": ")); // stderr may be closed
    if let Some(path) = env::var_os(FILE) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write: tests run at the same time and share the file.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "cannot record a skipped test: {written:?}");
    }
}

/// A file of the collection of other tools' files: the folder `TRACESMITH_DATA`, or `shared/data` beside the project.
/// It is not part of the project: a test that needs it is skipped where it is missing.
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("TRACESMITH_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    without("data", path.display());
    None
}

/// The test harness names threads after their tests. nextest runs a test on the main thread, and gives its name.
fn test_name() -> String {
    let thread = thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => env::var("NEXTEST_TEST_NAME").unwrap_or_else(|_| "unknown test".to_owned()),
    }
}
