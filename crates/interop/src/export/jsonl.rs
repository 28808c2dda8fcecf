//! JSON lines: one event a line, in the order of their start, each as `tracesmith view --format json` shows it.

use std::ops::ControlFlow;

use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::event_json::EventJson;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "jsonl",
    aliases: &["ndjson"],
    title: "JSON lines, one event each",
    extension: "jsonl",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let json = EventJson::new(trace);
    let mut report = ExportReport::default();
    let mut result = Ok(());
    trace.for_each_event_by_time(
        options.query().with_progress(options.progress.as_ref()),
        |found| {
            if options.wants_stream(found.event.stream) {
                report.events += 1;
                json.push(out.buffer(), found);
                out.buffer().push(b'\n');
                result = out.settle();
            }
            if result.is_err() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    result.map(|()| report)
}
