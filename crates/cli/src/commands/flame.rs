//! `tracesmith flame`: a short name for the two flame graph exports.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tracesmith_interop::export::{ExportOptions, exporter_for};

use crate::args::FlameArgs;
use crate::commands::export;
use crate::input::{open_trace, warn_of_damage};
use crate::narrowed::narrowed;
use crate::output::Output;
use crate::progress::Progress;
use crate::select::{range_of, selection};

/// Example names with the extensions of both formats.
const PICTURE: &str = "x.svg";
const TEXT: &str = "x.folded";

pub(crate) fn run(args: &FlameArgs, output: &mut Output) -> anyhow::Result<()> {
    let form = if args.folded { TEXT } else { form_of(&args.out.out) };
    let exporter = exporter_for(Path::new(form)).context("a form of flame graphs is missing")?;
    let trace = Arc::new(open_trace(&args.file)?);
    if trace.stack_nodes().next().is_none() {
        output.note(
            "this trace has no stacks; the graph shows only names, ranges and operators. Record with \
             'tracesmith profile --stacks native,python' for functions",
        );
    }
    let selection = selection(&args.select, &trace)?;
    let part = narrowed(&trace, &selection)?;
    let options = ExportOptions {
        range: range_of(&args.select.stretch, &selection, &trace)?,
        weight: export::weight(args.by),
        progress: Some(Progress::new("drawing", trace.file_bytes(), output.bar()).into_fn()),
        ..ExportOptions::default()
    };
    let (report, bytes) = export::write(exporter, &part, &options, &args.out, &args.file)?;
    drop(options);
    warn_of_damage(&trace, &args.file, output);
    export::show(exporter, &report, bytes, &args.out, output)
}

/// The format for an extension.
fn form_of(out: &Path) -> &'static str {
    let is_text = out
        .extension()
        .is_some_and(|ending| ending == "folded" || ending == "txt");
    if is_text { TEXT } else { PICTURE }
}
