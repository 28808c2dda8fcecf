//! The selected part of a trace as a trace of its own, for code that knows nothing of selections.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use anyhow::Context;
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::{Selection, TimeRange, Trace, cut};

/// The part of a trace that is selected: the trace itself if everything is. The part is written to a temporary file, so
/// that it needs no more memory than the trace did.
pub(crate) fn narrowed(trace: &Arc<Trace>, selection: &Selection) -> anyhow::Result<Arc<Trace>> {
    if selection.is_all() {
        return Ok(Arc::clone(trace));
    }
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let path = folder.path().join("selected.sbt");
    let file = File::create(&path).context("writing the selected part of the trace")?;
    let mut writer = Writer::new(BufWriter::new(file), WriterOptions::default())?;
    cut(trace, TimeRange::default(), selection, &mut writer, &mut |_| {})?;
    writer.finish()?;
    // The file stays readable through its open handle after the folder is removed.
    Ok(Arc::new(Trace::open(&path)?))
}
