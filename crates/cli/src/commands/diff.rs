//! `tracesmith diff`.

use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use tracesmith_trace::analysis::{Analysis, Compared, DiffReport, DiffUnit, Fate};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::units;

use crate::args::{DiffArgs, Format};
use crate::commands::analyze::show_doubts;
use crate::exit::Exit;
use crate::input::open_trace;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{BAD, FAINT, GOOD, HEADING, Output};

pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let (before, after) = (
        Arc::new(open_trace(&args.before)?),
        Arc::new(open_trace(&args.after)?),
    );
    let a = Analysis::of(&before, Window::default())?;
    let b = Analysis::of(&after, Window::default())?;
    let report = DiffReport::of(&a, &b);
    let limit = match (args.limit, output.format) {
        (Some(0), _) | (None, Format::Json | Format::Csv) => usize::MAX,
        (Some(limit), _) => limit,
        (None, Format::Table) => 20,
    };
    let is_over = args.fail_over.is_some_and(|limit| {
        report.time.is_significant() && report.time.change.is_some_and(|change| change > limit.0)
    });
    match output.format {
        Format::Table => show(&report, limit, output)?,
        Format::Json => {
            let mut answer = serde_json::to_value(&report).context("writing JSON")?;
            answer["is_over"] = json!(args.fail_over.map(|_| is_over));
            answer["doubts_a"] = json!(a.activity.doubts);
            answer["doubts_b"] = json!(b.activity.doubts);
            output.json(&answer)?;
        }
        Format::Csv => {
            output.csv([
                "name",
                "fate",
                "count_a",
                "count_b",
                "a_ns",
                "b_ns",
                "change_ns",
                "p",
                "is_significant",
            ])?;
            for kernel in report.kernels.iter().take(limit) {
                output.csv([
                    kernel.name.clone(),
                    fate(kernel.fate).to_owned(),
                    kernel.count_a.to_string(),
                    kernel.count_b.to_string(),
                    kernel.time.a_ns.to_string(),
                    kernel.time.b_ns.to_string(),
                    kernel.time.change_ns.to_string(),
                    kernel.time.p.map_or(String::new(), |p| p.to_string()),
                    kernel.is_significant.to_string(),
                ])?;
            }
        }
    }
    if output.format != Format::Json {
        show_doubts(&a.activity.doubts, output);
        show_doubts(&b.activity.doubts, output);
    }
    if let Some(allowed) = args.fail_over.filter(|_| is_over) {
        output.note(&format!(
            "the time increased by more than {:.1} %",
            100.0 * allowed.0
        ));
    }
    Ok(Exit::from_check(!is_over))
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "kept",
        Fate::New => "new",
        Fate::Gone => "gone",
    }
}

fn show(report: &DiffReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let unit = match report.unit {
        DiffUnit::Step => format!(
            "per step, mean of {} and {} steps",
            report.steps_a, report.steps_b
        ),
        DiffUnit::Trace => "of the whole traces (at least one has fewer than two steps)".to_owned(),
    };
    output.line(&format!("{HEADING}Times {unit}{HEADING:#}"))?;
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("", Align::Left),
    ]);
    for (name, compared) in [("time", &report.time), ("GPU busy", &report.busy)] {
        table.row([
            name.into(),
            units::nanos(compared.a_ns as u64).into(),
            units::nanos(compared.b_ns as u64).into(),
            change(compared),
            verdict(compared).into(),
        ]);
    }
    output.table(&table)?;
    let changed: Vec<_> = report
        .kernels
        .iter()
        .filter(|kernel| kernel.time.change_ns != 0.0)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let mut table = TextTable::new(&[
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("launches", Align::Right),
        ("", Align::Left),
        ("name", Align::Flexible),
    ]);
    for kernel in changed.iter().take(limit) {
        let launches = if kernel.count_a == kernel.count_b {
            format!("{:.0}", kernel.count_a)
        } else {
            format!("{:.0} → {:.0}", kernel.count_a, kernel.count_b)
        };
        let note = match kernel.fate {
            Fate::Kept => verdict(&kernel.time),
            other => fate(other),
        };
        table.row([
            units::nanos(kernel.time.a_ns as u64).into(),
            units::nanos(kernel.time.b_ns as u64).into(),
            change(&kernel.time),
            launches.into(),
            note.into(),
            kernel.name.clone().into(),
        ]);
    }
    output.table(&table)?;
    if changed.len() > limit {
        let hidden = units::count((changed.len() - limit) as u64);
        output.note(&format!("{hidden} more kernels changed; --limit 0 shows all"));
    }
    Ok(())
}

fn verdict(compared: &Compared) -> &'static str {
    match compared.p {
        _ if compared.change_ns == 0.0 => "",
        None => "one sample",
        Some(_) if compared.is_significant() => "",
        Some(_) => "noise",
    }
}

fn change(compared: &Compared) -> Cell {
    let nanos = compared.change_ns;
    let text = match compared.change {
        Some(share) => format!(
            "{}{} ({:+.1} %)",
            if nanos < 0.0 { "-" } else { "+" },
            units::nanos(nanos.abs() as u64),
            100.0 * share
        ),
        None => format!("+{}", units::nanos(nanos as u64)),
    };
    let style = match (compared.is_significant(), nanos > 0.0) {
        (false, _) => FAINT,
        (true, true) => BAD,
        (true, false) => GOOD,
    };
    Cell::styled(text, style)
}
