//! `tracesmith cut`.

use std::sync::Arc;

use serde_json::json;
use tracesmith_trace::{RewriteReport, cut, units};

use crate::args::{CutArgs, Format, OutArgs};
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;
use crate::select::{range_of, selection};

pub(crate) fn run(args: &CutArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = Arc::new(open_trace(&args.file)?);
    let selection = selection(&args.select, &trace)?;
    let range = range_of(&args.select.stretch, &selection, &trace)?;
    let progress = Progress::new("cutting", trace.file_bytes(), output.bar());
    let (report, bytes) = write_trace(&args.out, &[&args.file], Schema::Own, |writer| {
        let mut add = |bytes| progress.add(bytes);
        Ok(cut(&trace, range, &selection, writer, &mut add)?)
    })?;
    drop(progress);
    show_report(&report, bytes, &args.out, output)
}

/// Prints the result of a cut or merge. Losses are warnings, in every output format.
pub(crate) fn show_report(
    report: &RewriteReport,
    bytes: u64,
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.damaged_blocks > 0 {
        output.warning(&format!(
            "{} skipped",
            units::counted(report.damaged_blocks, "damaged block was", "damaged blocks were")
        ));
    }
    warn_of_losses(report, output);
    if is_stdout(out) {
        return Ok(());
    }
    if output.format == Format::Table {
        let outside = match report.rows_outside {
            0 => String::new(),
            rows => format!(", left out {} that are not selected", units::count(rows)),
        };
        output.line(&format!(
            "wrote {} rows of events ({}){outside}",
            units::count(report.rows),
            units::bytes(bytes)
        ))?;
        if report.unused_code_bytes > 0 {
            let unused = units::bytes(report.unused_code_bytes);
            output.line(&format!(
                "left out {unused} of device code that no recorded call uses"
            ))?;
        }
        return Ok(());
    }
    output.facts(&[
        ("rows", json!(report.rows)),
        ("rows_outside", json!(report.rows_outside)),
        ("rows_not_carried", json!(report.rows_not_carried)),
        ("recordings", json!(report.recordings)),
        ("recordings_left_out", json!(report.recordings_left_out)),
        ("unused_code_bytes", json!(report.unused_code_bytes)),
        ("damaged_blocks", json!(report.damaged_blocks)),
        ("hosts", json!(report.hosts)),
        ("bytes", json!(bytes)),
    ])?;
    Ok(())
}

/// Warns about data that is missing in the new trace.
pub(crate) fn warn_of_losses(report: &RewriteReport, output: &mut Output) {
    if report.rows_not_carried > 0 {
        let rows = units::count(report.rows_not_carried);
        output.warning(&format!(
            "{rows} rows of tables that this version does not know were left out"
        ));
    }
    for left_out in &report.recordings_left_out {
        output.warning(&format!(
            "the replay recording of process {} was left out: {}",
            left_out.pid,
            left_out.reason.words()
        ));
    }
}
