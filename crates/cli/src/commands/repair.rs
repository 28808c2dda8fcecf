//! `tracesmith repair`.

use serde_json::json;
use tracesmith_format::tables::HealthCause;
use tracesmith_trace::{repair, units};

use crate::args::{Format, RepairArgs};
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;

pub(crate) fn run(args: &RepairArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = open_trace(&args.file)?;
    let progress = Progress::new("repairing", trace.file_bytes(), output.bar());
    let (report, bytes) = write_trace(&args.out, &[&args.file], Schema::Copied, |writer| {
        Ok(repair(&trace, writer, &mut |bytes| progress.add(bytes))?)
    })?;
    drop(progress);

    if is_stdout(&args.out) {
        for damage in &report.damage {
            output.note(&damage.to_string());
        }
        return Ok(());
    }
    if output.format != Format::Table {
        output.facts(&[
            ("blocks_kept", json!(report.blocks)),
            ("rows_kept", json!(report.rows)),
            ("bytes", json!(bytes)),
            (
                "damage",
                report.damage.iter().map(|damage| damage.to_string()).collect(),
            ),
        ])?;
        return Ok(());
    }
    output.line(&format!(
        "kept {} rows of events in {} blocks ({})",
        units::count(report.rows),
        units::count(report.blocks),
        units::bytes(bytes)
    ))?;
    let health = trace.health();
    let is_cut = health.recorded.iter().any(|item| item.cause == HealthCause::CUT);
    if is_cut && trace.metadata.contains_key("import.format") {
        output.line("the imported file was truncated: the new trace contains the part that could be read")?;
    } else if is_cut {
        output.line("the recorded file was truncated: the last events are missing")?;
    } else if report.damage.is_empty() {
        output.line("nothing was damaged")?;
    }
    for damage in &report.damage {
        output.line(&format!("lost: {damage}"))?;
    }
    Ok(())
}
