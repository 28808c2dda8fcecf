//! `tracesmith merge`.

use std::path::Path;

use tracesmith_trace::merge;

use crate::args::MergeArgs;
use crate::commands::cut::show_report;
use crate::commands::out_file::{Schema, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;

pub(crate) fn run(args: &MergeArgs, output: &mut Output) -> anyhow::Result<()> {
    let traces = args
        .files
        .iter()
        .map(|file| open_trace(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let inputs: Vec<&Path> = args.files.iter().map(AsRef::as_ref).collect();
    let total = traces.iter().map(|trace| trace.file_bytes()).sum();
    let progress = Progress::new("merging", total, output.bar());
    let (report, bytes) = write_trace(&args.out, &inputs, Schema::Own, |writer| {
        Ok(merge(&traces, writer, &mut |bytes| progress.add(bytes))?)
    })?;
    drop(progress);
    show_report(&report, bytes, &args.out, output)
}
