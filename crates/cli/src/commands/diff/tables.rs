//! The tables that `diff` prints for people.

use tracesmith_trace::analysis::{Compared, CopyDiff, DiffReport, DiffUnit, Fate, KernelDiff, MemoryDiff};
use tracesmith_trace::units;

use crate::output::names::RENAMED;
use crate::output::table::{Align, Cell, TextTable, shortened};
use crate::output::{BAD, FAINT, GOOD, HEADING, Output};

/// The most columns of a value of a run.
const WIDEST_VALUE: usize = 60;

pub(super) fn show(report: &DiffReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    runs(report, output)?;
    times(report, output)?;
    idle(report, output)?;
    copies(report, output)?;
    memory(&report.memory, output)?;
    kernels(report, limit, output)
}

fn heading(text: &str, output: &mut Output) -> anyhow::Result<()> {
    Ok(output.line(&format!("{HEADING}{text}{HEADING:#}"))?)
}

fn runs(report: &DiffReport, output: &mut Output) -> anyhow::Result<()> {
    if report.runs.is_empty() {
        output.line(
            "The runs have the same GPU, versions, command, ranks and number of steps, as far as recorded",
        )?;
        return Ok(output.line("")?);
    }
    heading("Runs", output)?;
    let mut table = TextTable::new(&[("", Align::Left), ("before", Align::Left), ("after", Align::Left)]);
    for run in &report.runs {
        let value = |value: &str| match value {
            "" => Cell::styled("not known", FAINT),
            value => shortened(value, WIDEST_VALUE).into(),
        };
        table.row([run.what.clone().into(), value(&run.a), value(&run.b)]);
    }
    output.table(&table)?;
    Ok(output.line("")?)
}

/// The columns that all tables of times begin with.
const TIMES: [(&str, Align); 3] = [
    ("before", Align::Right),
    ("after", Align::Right),
    ("change", Align::Right),
];

fn time_cells(compared: &Compared) -> [Cell; 3] {
    [
        units::nanos(compared.a_ns as u64).into(),
        units::nanos(compared.b_ns as u64).into(),
        change(compared),
    ]
}

fn times(report: &DiffReport, output: &mut Output) -> anyhow::Result<()> {
    let unit = match report.unit {
        DiffUnit::Step => format!(
            "per step, mean of {} and {} steps{}",
            report.steps_a,
            report.steps_b,
            match report.has_enough_steps {
                true => "",
                false => " (too few to be certain of a change: record at least 5 each)",
            }
        ),
        DiffUnit::Trace => "of the whole traces (at least one has fewer than two steps)".to_owned(),
    };
    heading(&format!("Times {unit}"), output)?;
    let [before, after, change] = TIMES;
    let mut table = TextTable::new(&[("", Align::Left), before, after, change, ("", Align::Left)]);
    for (name, compared) in [("time", &report.time), ("GPU busy", &report.busy)] {
        let [before, after, change] = time_cells(compared);
        table.row([
            name.into(),
            before,
            after,
            change,
            verdict(report, compared).into(),
        ]);
    }
    Ok(output.table(&table)?)
}

fn idle(report: &DiffReport, output: &mut Output) -> anyhow::Result<()> {
    let changed: Vec<_> = report.idle.iter().filter(|row| is_shown(&row.time)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    output.line("")?;
    heading("GPU idle time by cause", output)?;
    let [before, after, change] = TIMES;
    let mut table = TextTable::new(&[before, after, change, ("", Align::Left), ("cause", Align::Left)]);
    for row in changed {
        let [before, after, change] = time_cells(&row.time);
        let cause = row.cause.words();
        table.row([
            before,
            after,
            change,
            verdict(report, &row.time).into(),
            cause.into(),
        ]);
    }
    Ok(output.table(&table)?)
}

fn copies(report: &DiffReport, output: &mut Output) -> anyhow::Result<()> {
    let is_changed = |row: &&CopyDiff| is_shown(&row.time) || row.a_bytes != row.b_bytes;
    let changed: Vec<_> = report.copies.iter().filter(is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    output.line("")?;
    heading("Copies", output)?;
    let [before, after, change] = TIMES;
    let mut table = TextTable::new(&[
        before,
        after,
        change,
        ("count", Align::Right),
        ("bytes", Align::Right),
        ("", Align::Left),
        ("direction", Align::Left),
    ]);
    for row in changed {
        let [before, after, change] = time_cells(&row.time);
        let bytes = |bytes: f64| units::bytes(bytes.round() as u64);
        table.row([
            before,
            after,
            change,
            from_to(count(row.count_a), count(row.count_b)).into(),
            from_to(bytes(row.a_bytes), bytes(row.b_bytes)).into(),
            verdict(report, &row.time).into(),
            row.direction.into(),
        ]);
    }
    Ok(output.table(&table)?)
}

fn memory(rows: &[MemoryDiff], output: &mut Output) -> anyhow::Result<()> {
    let is_changed = |row: &&MemoryDiff| row.a_bytes != row.b_bytes;
    let changed: Vec<_> = rows.iter().filter(is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    output.line("")?;
    heading("Peak device memory", output)?;
    let [before, after, change] = TIMES;
    let mut table = TextTable::new(&[before, after, change, ("process", Align::Left)]);
    for row in changed {
        let bytes = |bytes: Option<u64>| bytes.map_or("not recorded".to_owned(), units::bytes);
        let change = match (row.a_bytes, row.b_bytes) {
            (Some(a), Some(b)) => {
                let (sign, style) = if b > a { ("+", BAD) } else { ("-", GOOD) };
                let share = match a {
                    0 => String::new(),
                    a => format!(" ({})", units::change((b as f64 - a as f64) / a as f64)),
                };
                Cell::styled(format!("{sign}{}{share}", units::bytes(a.abs_diff(b))), style)
            }
            _ => "".into(),
        };
        let process = match row.allocator.as_str() {
            "" => row.process.clone(),
            allocator => format!("{}, {allocator}", row.process),
        };
        table.row([
            bytes(row.a_bytes).into(),
            bytes(row.b_bytes).into(),
            change,
            process.into(),
        ]);
    }
    Ok(output.table(&table)?)
}

fn kernels(report: &DiffReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let is_changed = |kernel: &&KernelDiff| is_shown(&kernel.time) || kernel.fate == Fate::Renamed;
    let changed: Vec<_> = report.kernels.iter().filter(is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    output.line("")?;
    heading("Kernels", output)?;
    let [before, after, change] = TIMES;
    let mut table = TextTable::new(&[
        before,
        after,
        change,
        ("launches", Align::Right),
        ("", Align::Left),
        ("name", Align::Name),
    ]);
    for kernel in changed.iter().take(limit) {
        let [before, after, change] = time_cells(&kernel.time);
        let verdict = verdict(report, &kernel.time);
        let note = match kernel.fate {
            Fate::Kept => verdict,
            Fate::Renamed if verdict.is_empty() => "renamed".to_owned(),
            Fate::Renamed => format!("renamed; {verdict}"),
            other => super::fate(other).to_owned(),
        };
        let name = match &kernel.renamed_to {
            Some(new) => format!("{}{RENAMED}{new}", kernel.name),
            None => kernel.name.clone(),
        };
        table.row([
            before,
            after,
            change,
            from_to(count(kernel.count_a), count(kernel.count_b)).into(),
            note.into(),
            name.into(),
        ]);
    }
    output.table(&table)?;
    if changed.len() > limit {
        let hidden = units::count((changed.len() - limit) as u64);
        output.note(&format!("{hidden} more kernels changed; --limit 0 shows all"));
    }
    Ok(())
}

/// Changes of less than a nanosecond are not shown.
fn is_shown(compared: &Compared) -> bool {
    compared.change_ns.abs() >= 1.0
}

fn from_to(a: String, b: String) -> String {
    if a == b { a } else { format!("{a} → {b}") }
}

/// A mean of counts: whole where it is.
fn count(mean: f64) -> String {
    match mean.fract() {
        0.0 => format!("{mean:.0}"),
        _ => format!("{mean:.1}"),
    }
}

/// Nothing for a certain change; otherwise how likely chance alone makes it.
fn verdict(report: &DiffReport, compared: &Compared) -> String {
    let every = match (compared.is_in_every_step, compared.change_ns > 0.0) {
        (false, _) => None,
        (true, true) => Some("longer in every step"),
        (true, false) => Some("shorter in every step"),
    };
    let is_few = report.unit == DiffUnit::Step && !report.has_enough_steps;
    match (compared.p_adjusted, every) {
        _ if compared.change_ns == 0.0 || compared.is_significant && compared.p.is_some() => String::new(),
        (None, _) => "one sample".to_owned(),
        (_, Some(every)) if is_few => every.to_owned(),
        _ if is_few => "not certain".to_owned(),
        (Some(p), None) => format!("not certain (p = {})", probability(p)),
        (Some(p), Some(every)) => format!("not certain (p = {}); {every}", probability(p)),
    }
}

/// With two digits that count.
fn probability(p: f64) -> String {
    let text = match p {
        0.1.. => format!("{p:.2}"),
        0.01.. => format!("{p:.3}"),
        _ => format!("{p:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn change(compared: &Compared) -> Cell {
    let nanos = compared.change_ns;
    let sign = if nanos < 0.0 { "-" } else { "+" };
    let size = units::nanos(nanos.abs() as u64);
    let text = match compared.change {
        // Tens of times as much is not read as percent.
        Some(share) if share >= 9.0 => format!("{sign}{size} (×{:.0})", 1.0 + share),
        Some(share) => format!("{sign}{size} ({})", units::change(share)),
        None => format!("{sign}{size}"),
    };
    let style = match (compared.is_significant, nanos > 0.0) {
        (false, _) => FAINT,
        (true, true) => BAD,
        (true, false) => GOOD,
    };
    Cell::styled(text, style)
}
