//! The programs of `ci/readers`, which ask the readers of other projects what they see in an export.
//!
//! `ci/test` installs what they need. A test whose reader is missing is recorded as skipped.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::root;

/// The programs end so when something that they need is not there.
const MISSING: i32 = 3;

/// The JSON that a program answers its input with; `None`, and a skipped test, when it lacks `need`.
pub fn answer(need: &str, command: &mut Command, input: &[u8]) -> Option<Value> {
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            tracesmith_skip::without(need, format!("{}: {error}", command.get_program().display()));
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(MISSING) {
        tracesmith_skip::without(need, talk);
        return None;
    }
    assert!(output.status.success(), "{talk}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A browser, and what drives it.
pub struct Browser {
    /// The folder of npm's playwright-core.
    pub playwright: PathBuf,
    /// The program.
    pub chromium: PathBuf,
}

impl Browser {
    /// `None` when one of both is not at hand.
    pub fn find() -> Option<Self> {
        let paths = std::env::var_os("PATH")?;
        let mut programs = std::env::split_paths(&paths).flat_map(|folder| {
            let names = ["chromium", "chromium-browser", "google-chrome"];
            names.map(|name| folder.join(name))
        });
        Some(Browser {
            playwright: node_package("playwright-core")?,
            chromium: programs.find(|program| program.is_file())?,
        })
    }
}

/// The folder of a package that `ci/test` got from npm.
pub fn node_package(name: &str) -> Option<PathBuf> {
    let folder = target().join("tools/node_modules").join(name);
    folder.is_dir().then_some(folder)
}

/// The folder that cargo builds in.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
