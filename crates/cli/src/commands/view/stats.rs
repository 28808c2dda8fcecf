//! `tracesmith view --stats`: totals by kind and by name.

use tracesmith_trace::analysis::{Total, TotalsReport};
use tracesmith_trace::{QueryRun, Trace, units};

use crate::args::Format;
use crate::output::Output;
use crate::output::table::{Align, TextTable};

pub(super) fn show(
    trace: &Trace,
    query: QueryRun<'_>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut report = TotalsReport::new(trace, query);
    match output.format {
        Format::Table => show_tables(&report, limit, output),
        Format::Json => {
            report.by_name.truncate(limit);
            Ok(output.json(&report)?)
        }
        Format::Csv => {
            output.csv([
                "kind", "name", "count", "total_ns", "mean_ns", "min_ns", "max_ns", "bytes",
            ])?;
            for row in report.by_name.iter().take(limit) {
                let total = &row.total;
                let numbers = [
                    total.count,
                    total.nanos,
                    total.mean_nanos(),
                    total.min_nanos,
                    total.max_nanos,
                    total.bytes,
                ]
                .map(|number| number.to_string());
                output.csv(
                    [row.kind.name().to_owned(), row.name.clone()]
                        .into_iter()
                        .chain(numbers),
                )?;
            }
            Ok(())
        }
    }
}

fn show_tables(report: &TotalsReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    if report.by_kind.is_empty() {
        output.note("no events");
        return Ok(());
    }
    let columns = [
        ("kind", Align::Left),
        ("count", Align::Right),
        ("total", Align::Right),
        ("share", Align::Right),
        ("mean", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("bytes", Align::Right),
        ("name", Align::Flexible),
    ];
    // Kernels and calls overlap each other: a share is of the events of the same kind.
    let cells = |kind: &str, name: &str, total: &Total, of: u64| {
        let bytes = if total.bytes == 0 {
            String::new()
        } else {
            units::bytes(total.bytes)
        };
        let share = if of == 0 {
            String::new()
        } else {
            format!("{:.1} %", 100.0 * total.nanos as f64 / of as f64)
        };
        let has_time = total.max_nanos > 0;
        let time = |nanos: u64| {
            if has_time {
                units::nanos(nanos)
            } else {
                String::new()
            }
        };
        [
            kind.into(),
            units::count(total.count).into(),
            time(total.nanos).into(),
            share.into(),
            time(total.mean_nanos()).into(),
            time(total.min_nanos).into(),
            time(total.max_nanos).into(),
            bytes.into(),
            name.into(),
        ]
    };
    let mut kinds = TextTable::new(&columns);
    for (kind, total) in &report.by_kind {
        kinds.row(cells(kind.name(), "", total, 0));
    }
    output.table(&kinds)?;
    output.line("")?;
    let mut names = TextTable::new(&columns);
    for row in report.by_name.iter().take(limit) {
        let of = report.by_kind.get(&row.kind).map_or(0, |total| total.nanos);
        names.row(cells(row.kind.name(), &row.name, &row.total, of));
    }
    output.table(&names)?;
    if report.by_name.len() > limit {
        let hidden = units::count((report.by_name.len() - limit) as u64);
        output.note(&format!("{hidden} more names; --limit 0 shows all"));
    }
    Ok(())
}
