//! Where the library is that is loaded into programs.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, bail};

/// Names the library, for those who build it themselves.
const VARIABLE: &str = "TRACESMITH_INJECT_LIBRARY";
const FILE_NAME: &str = "libtracesmith_inject.so";

/// The library's absolute path.
pub(crate) fn locate() -> anyhow::Result<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return PathBuf::from(named)
            .canonicalize()
            .with_context(|| format!("looking for the library that {VARIABLE} names"));
    }
    let program = env::current_exe().context("finding this program's own file")?;
    let beside = program.with_file_name(FILE_NAME);
    if !beside.exists() {
        bail!("{FILE_NAME} is not beside {}", program.display());
    }
    Ok(beside)
}
