//! Opens traces.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use tracesmith_trace::Trace;

use crate::output::Output;

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

/// Warns about damage in a trace, with the remedy.
pub(crate) fn warn_of_damage(trace: &Trace, file: &Path, output: &mut Output) {
    let damage = trace.health().damage;
    for damage in &damage {
        output.warning(&damage.to_string());
    }
    if !damage.is_empty() {
        output.note(&repair_hint(file));
    }
}

/// The remedy for a truncated or damaged trace.
pub(crate) fn repair_hint(file: &Path) -> String {
    let file = file.display();
    format!("hint: 'tracesmith repair {file} -o NEW.sbt' writes the readable part to a new file")
}
