//! A report about a trace as one HTML page. It needs no other files and runs no scripts.

mod charts;
mod page;

use tracesmith_format::Timestamp;
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::overview::{DEVICE_KINDS, Overview, TimeSpan as Span};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{Query, Trace, units};

use crate::error::Error;

/// Cells of the timeline: about one for two pixels of the page's width.
const CELLS: usize = 600;

/// What the page says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlReportOptions {
    /// The title, for example the name of the file.
    pub title: String,
    /// The number of the step, if the analysis is limited to one.
    pub step: Option<usize>,
}

/// The page about an analysis: findings, utilization, timeline, idle time, steps, kernels, copies and memory.
pub fn html_report(analysis: &Analysis, options: &HtmlReportOptions) -> Result<String, Error> {
    let trace = analysis.trace.as_ref();
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
    let overview = match Span::of(trace, &query) {
        Some(span) => {
            let from = window
                .from
                .map_or(span.from, |from| span.from.max(Timestamp(from)));
            let to = window.to.map_or(span.to, |to| span.to.min(Timestamp(to)));
            Overview::new(trace, &query, Span::new(from, to), CELLS)
        }
        None => Overview::default(),
    };
    let page = page::Page {
        trace,
        title: &options.title,
        part: part(options, window, trace),
        summary: &summary,
        findings: &findings,
        memory: &memory,
        overview: &overview,
    };
    Ok(page.html())
}

/// The part of the trace that the page is about, in words. `None` if it is about the whole trace.
fn part(options: &HtmlReportOptions, window: Window, trace: &Trace) -> Option<String> {
    if window == Window::default() {
        return None;
    }
    let span = whole_span(trace);
    let mut words = Vec::new();
    words.extend(options.step.map(|step| format!("step {step}")));
    words.extend(
        window
            .from
            .map(|from| format!("from {}", units::offset(span, from))),
    );
    words.extend(window.to.map(|to| format!("to {}", units::offset(span, to))));
    Some(format!("only {}", words.join(" ")))
}

fn whole_span(trace: &Trace) -> Option<(u64, u64)> {
    trace.span().map(|(first, last)| (first.0, last.0))
}
