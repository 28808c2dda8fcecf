//! Real files of other tools, where this machine has them.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part")]

use std::path::{Path, PathBuf};

/// A file of the collection of other tools' files: the folder `TRACESMITH_DATA`, or `shared/data` beside the project.
/// It is not part of the project: a test that needs it is skipped where it is missing.
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TRACESMITH_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    tracesmith_skip::without("data", path.display());
    None
}
