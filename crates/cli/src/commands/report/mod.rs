//! `tracesmith report`: one page about a trace, to be mailed to a colleague. It needs nothing but a browser.

mod charts;
mod page;

use std::io::Write;

use tracesmith_trace::Query;
use tracesmith_trace::analysis::{Analysis, MemoryReport};
use tracesmith_trace::overview::{DEVICE_KINDS, Overview, Window as Span};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::units;

use crate::args::ReportArgs;
use crate::commands::out_file::{Target, is_stdout, write_out};
use crate::input::open_trace;
use crate::output::Output;

/// Cells of the timeline: some for each pixel of a page's width.
const CELLS: usize = 600;

pub(crate) fn run(args: &ReportArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = open_trace(&args.file)?;
    let analysis = Analysis::of(&trace, Window::default())?;
    let summary = analysis.summary()?;
    let findings = analysis.findings(&summary)?;
    let memory = MemoryReport::of(&trace, Window::default())?;
    let query = Query {
        kinds: Some(DEVICE_KINDS.to_vec()),
        ..Query::default()
    };
    let overview = match Span::of(&trace, &query) {
        Some(span) => Overview::new(&trace, &query, span, CELLS),
        None => Overview::default(),
    };
    let title = args.title.clone().unwrap_or_else(|| name_of(args));
    let html = page::Page {
        trace: &trace,
        title: &title,
        summary: &summary,
        findings: &findings,
        memory: &memory,
        overview: &overview,
    }
    .html();
    write_out(&args.out, &[&args.file], |target| {
        let mut to: Box<dyn Write> = match target {
            Target::File(file) => Box::new(file),
            Target::Stream(stream) => stream,
        };
        to.write_all(html.as_bytes())?;
        Ok(to.flush()?)
    })?;
    if !is_stdout(&args.out) {
        output.note(&format!(
            "wrote {} ({})",
            args.out.out.display(),
            units::bytes(html.len() as u64)
        ));
    }
    Ok(())
}

fn name_of(args: &ReportArgs) -> String {
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    name.to_string_lossy().into_owned()
}
