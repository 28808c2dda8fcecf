//! `tracesmith cut`.

use serde_json::json;
use tracesmith_trace::{RewriteReport, TimeRange, cut, units};

use crate::args::{CutArgs, Format, OutArgs};
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;

pub(crate) fn run(args: &CutArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = open_trace(&args.file)?;
    let span = trace.span();
    let range = TimeRange {
        from: args.from.map(|time| time.resolve(span)),
        to: args.to.map(|time| time.resolve(span)),
    };
    let progress = Progress::new("cutting", trace.file_bytes(), output.bar());
    let (report, bytes) = write_trace(&args.out, &[&args.file], Schema::Own, |writer| {
        Ok(cut(&trace, range, writer, &mut |bytes| progress.add(bytes))?)
    })?;
    drop(progress);
    show_report(&report, bytes, &args.out, output)
}

/// Says what a cut or merge did; what was lost is a warning wherever the answer goes.
pub(crate) fn show_report(
    report: &RewriteReport,
    bytes: u64,
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.damaged_blocks > 0 {
        output.warning(&format!(
            "{} damaged blocks could not be read",
            report.damaged_blocks
        ));
    }
    if report.rows_not_carried > 0 {
        let rows = units::count(report.rows_not_carried);
        output.warning(&format!(
            "{rows} rows of tables unknown to this version were left out"
        ));
    }
    if is_stdout(out) {
        return Ok(());
    }
    if output.format == Format::Table {
        let outside = match report.rows_outside {
            0 => String::new(),
            rows => format!(", left out {} outside the range", units::count(rows)),
        };
        output.line(&format!(
            "wrote {} rows of events ({}){outside}",
            units::count(report.rows),
            units::bytes(bytes)
        ))?;
        return Ok(());
    }
    output.facts(&[
        ("rows", json!(report.rows)),
        ("rows_outside", json!(report.rows_outside)),
        ("rows_not_carried", json!(report.rows_not_carried)),
        ("damaged_blocks", json!(report.damaged_blocks)),
        ("bytes", json!(bytes)),
    ])?;
    Ok(())
}
