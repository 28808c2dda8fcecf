//! Interpreters, and scripts that call the driver.

#![allow(dead_code, unused_imports, reason = "not every test file needs all of it")]

#[path = "../../../stacks/tests/python/interpreters.rs"]
mod interpreters;

use std::path::PathBuf;

pub(crate) use interpreters::{Interpreter, KNOWN, find};

/// A script of the tests.
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(name)
}
