//! Prints what the CPU did while GPUs waited for it.

use tracesmith_trace::analysis::{HostActivityReport, HostRow, HostTime};
use tracesmith_trace::units;

use super::tables::{heading, more, percent};
use crate::output::Output;
use crate::output::table::{Align, TextTable};

/// What the places of a list are, for the time in none of them.
fn outside_of(title: &str) -> &'static str {
    match title {
        RANGE => "ranges",
        OPERATOR => "operators",
        FUNCTION => "Python functions",
        _ => "known lines",
    }
}

/// The titles of the lists.
const RANGE: &str = "innermost NVTX or framework range";
const OPERATOR: &str = "outermost operator";
const FUNCTION: &str = "Python function";

/// How to get places in the program.
const NO_PLACES: &str = "where the CPU was is not known: the trace has no operators, no NVTX ranges and no stacks; record with \
                         `tracesmith profile` (stacks are on unless --stacks none is given)";

/// Everything that is known.
pub(super) fn activity(report: &HostActivityReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    if report.idle.total_ns == 0 && report.critical_path.total_ns == 0 {
        output.note("no GPU waited for CPU code in this time range");
        return Ok(());
    }
    in_gaps(&report.idle, limit, output)?;
    if !report.idle.has_places() {
        // The path has none either.
        return Ok(());
    }
    on_path(&report.critical_path, limit, output)
}

/// What the CPU did while GPUs were idle.
pub(super) fn in_gaps(time: &HostTime, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let heading = "CPU code that GPUs waited for (CPU busy between calls)";
    places(heading, time, limit, output)
}

/// What the CPU did in its part of the critical path.
pub(super) fn on_path(time: &HostTime, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    places("CPU code on the critical path", time, limit, output)
}

fn places(text: &str, time: &HostTime, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    if time.total_ns == 0 {
        return Ok(());
    }
    if !time.has_places() {
        output.note(NO_PLACES);
        return Ok(());
    }
    heading(&format!("{text}: {}", units::nanos(time.total_ns)), output)?;
    for (kind, rows) in time.lists() {
        let title = match kind {
            "range" => RANGE,
            "operator" => OPERATOR,
            "function" => FUNCTION,
            _ => "line of the next CUDA call",
        };
        list(title, rows, time.total_ns, limit, output)?;
    }
    Ok(output.line("")?)
}

fn list(
    title: &'static str,
    rows: &[HostRow],
    total_ns: u64,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("time", Align::Right),
        ("share", Align::Right),
        (title, Align::Name),
    ]);
    for row in rows.iter().take(limit) {
        table.row([
            units::nanos(row.total_ns).into(),
            percent(row.share).into(),
            row.name.clone().into(),
        ]);
    }
    // A list that leaves out much of the time must show it.
    let outside = total_ns.saturating_sub(rows.iter().map(|row| row.total_ns).sum());
    if outside > total_ns / 100 {
        table.row([
            units::nanos(outside).into(),
            percent(outside as f64 / total_ns as f64).into(),
            format!("(outside of all {})", outside_of(title)).into(),
        ]);
    }
    output.table(&table)?;
    let hidden = rows.len().saturating_sub(limit);
    more(hidden, &format!("row of '{title}'"), output);
    Ok(())
}
