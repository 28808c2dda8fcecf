//! Opening traces that the user names.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use tracesmith_trace::Trace;

/// Opens a trace; `-` reads standard input.
pub(crate) fn open_trace(path: &Path) -> anyhow::Result<Trace> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("reading standard input")?;
        return tracesmith_interop::open_bytes(bytes).context("reading trace from standard input");
    }
    tracesmith_interop::open(path).with_context(|| format!("reading trace {}", path.display()))
}
