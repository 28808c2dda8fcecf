//! `tracesmith record`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use tracesmith_collect::{Event, Report, Selection, dump, record};

use super::capture;
use super::control::ControlLines;
use crate::args::{Format, RecordArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &RecordArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if args.dump {
        return request_dumps(&args.pid, output);
    }
    if args.control {
        return under_control(args, output);
    }
    let has_end = args.capture.duration.is_some();
    let report = record_processes(args, None, output, |event, output| {
        if event == Event::Open && !has_end {
            output.note("recording; press Ctrl-C to stop");
        }
    })?;
    capture::show(&report, output);
    if report.processes == 0 {
        output.warning("no process to attach to; start programs with the variables of 'tracesmith env'");
    }
    capture::exit(report, Exit::Done, &args.capture, output)
}

/// Records for a program that sends orders and reads answers.
fn under_control(args: &RecordArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let mut lines = ControlLines::new();
    let recorded = ControlLines::operator()
        .and_then(|operator| record_processes(args, Some(operator), output, |event, _| lines.event(&event)));
    match recorded {
        Ok(report) => {
            lines.done(&report);
            capture::exit(report, Exit::Done, &args.capture, output)
        }
        Err(error) => {
            lines.error(&error);
            Err(error)
        }
    }
}

fn record_processes(
    args: &RecordArgs,
    operator: Option<tracesmith_collect::Operator>,
    output: &mut Output,
    mut notify: impl FnMut(Event, &mut Output),
) -> anyhow::Result<Report> {
    for process in &args.pid {
        anyhow::ensure!(
            Path::new("/proc").join(process.to_string()).exists(),
            "no process {process}"
        );
    }
    let selection = if args.pid.is_empty() {
        Selection::Everyone
    } else {
        Selection::Processes(args.pid.iter().copied().collect::<BTreeSet<_>>())
    };
    let destination = capture::destination(&args.capture, OsStr::new("record"))?;
    let capture = capture::capture(&args.capture, output)?;
    let report = record(&selection, capture, destination, operator, |event| {
        notify(event, output);
    })?;
    Ok(report)
}

fn request_dumps(processes: &[u32], output: &mut Output) -> anyhow::Result<Exit> {
    for process in processes {
        let path = dump(*process)?;
        let path = path.display().to_string();
        match output.format {
            Format::Table => output.line(&path)?,
            _ => output.facts(&[("process", json!(process)), ("file", json!(path))])?,
        }
    }
    Ok(Exit::Done)
}
