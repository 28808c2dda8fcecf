//! `tracesmith report`: one page about a trace, to be mailed to a colleague. It needs nothing but a browser.

use std::io::Write;
use std::sync::Arc;

use tracesmith_interop::{HtmlReportOptions, html_report};
use tracesmith_trace::{Selection, units};

use crate::args::ReportArgs;
use crate::commands::analyze::analysis;
use crate::commands::out_file::{Target, is_stdout, write_out};
use crate::input::open_trace;
use crate::output::Output;

pub(crate) fn run(args: &ReportArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = Arc::new(open_trace(&args.file)?);
    let analysis = analysis(&args.stretch, &Selection::default(), &trace)?;
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    let options = HtmlReportOptions {
        title: match &args.title {
            Some(title) => title.clone(),
            None => name.to_string_lossy().into_owned(),
        },
        step: args.stretch.step,
    };
    let html = html_report(&analysis, &options)?;
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
