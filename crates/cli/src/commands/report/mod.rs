//! `tracesmith report`: one page about a trace, to be mailed to a colleague. It needs nothing but a browser.

mod charts;
mod page;

use std::io::Write;
use std::sync::Arc;

use tracesmith_format::Timestamp;
use tracesmith_trace::overview::{DEVICE_KINDS, Overview, TimeSpan as Span};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{Query, Trace, units};

use crate::args::ReportArgs;
use crate::commands::analyze::analysis;
use crate::commands::out_file::{Target, is_stdout, write_out};
use crate::input::open_trace;
use crate::output::Output;

/// Cells of the timeline: some for each pixel of a page's width.
const CELLS: usize = 600;

pub(crate) fn run(args: &ReportArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = Arc::new(open_trace(&args.file)?);
    let analysis = analysis(&args.stretch, &trace)?;
    let window = analysis.activity.window;
    let summary = analysis.summary()?;
    let findings = analysis.findings(&summary)?;
    let memory = analysis.memory()?;
    let query = Query {
        kinds: Some(DEVICE_KINDS.to_vec()),
        from: window.from.map(Timestamp),
        to: window.to.map(Timestamp),
        ..Query::default()
    };
    let overview = match Span::of(&trace, &query) {
        Some(span) => {
            let from = window
                .from
                .map_or(span.from, |from| span.from.max(Timestamp(from)));
            let to = window.to.map_or(span.to, |to| span.to.min(Timestamp(to)));
            Overview::new(&trace, &query, Span::new(from, to), CELLS)
        }
        None => Overview::default(),
    };
    let title = args.title.clone().unwrap_or_else(|| name_of(args));
    let stretch = stretch(args, window, &trace);
    let html = page::Page {
        trace: &trace,
        title: &title,
        stretch: stretch.as_deref(),
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

/// What part of the trace the page is about, in words; none when it is about all of it.
fn stretch(args: &ReportArgs, window: Window, trace: &Trace) -> Option<String> {
    if window == Window::default() {
        return None;
    }
    let begin = trace.span().map_or(0, |(begin, _)| begin.0);
    let offset = |time: u64| format!("+{}", units::nanos(time.saturating_sub(begin)));
    let mut words = Vec::new();
    words.extend(args.stretch.step.map(|step| format!("step {step}")));
    words.extend(window.from.map(|from| format!("from {}", offset(from))));
    words.extend(window.to.map(|to| format!("to {}", offset(to))));
    Some(format!("only {}", words.join(" ")))
}

fn name_of(args: &ReportArgs) -> String {
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    name.to_string_lossy().into_owned()
}
