//! The tables of a trace: rows and sizes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tracesmith_format::{BlockKind, schema};
use tracesmith_trace::{Trace, units};

use super::source::Source;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{FAINT, Output};

/// The size of all blocks of one kind.
#[derive(Default)]
pub(super) struct Size {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) unpacked: u64,
}

impl Size {
    fn ratio(&self) -> f64 {
        self.unpacked as f64 / self.bytes as f64
    }
}

pub(super) fn sizes_by_kind(trace: &Trace) -> BTreeMap<BlockKind, Size> {
    let mut kinds: BTreeMap<BlockKind, Size> = BTreeMap::new();
    for block in trace.blocks() {
        let size = kinds.entry(block.header.kind).or_default();
        size.blocks += 1;
        size.rows += u64::from(block.header.rows);
        size.bytes += block.header.total_length();
        size.unpacked += u64::from(block.header.unpacked_length);
    }
    kinds
}

pub(super) fn show(
    trace: &Trace,
    kinds: &BTreeMap<BlockKind, Size>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("table", Align::Left),
        ("rows", Align::Right),
        ("size", Align::Right),
        ("bytes/row", Align::Right),
        ("ratio", Align::Right),
        ("blocks", Align::Right),
        ("of file", Align::Right),
    ]);
    let share = |bytes: u64| format!("{:.1} %", 100.0 * bytes as f64 / trace.file_bytes() as f64);
    let row = |kind: &BlockKind, size: &Size| -> [Cell; 7] {
        [
            kind.to_string().into(),
            units::count(size.rows).into(),
            units::bytes(size.bytes).into(),
            format!("{:.1}", size.bytes as f64 / size.rows as f64).into(),
            format!("{:.1}×", size.ratio()).into(),
            units::count(size.blocks).into(),
            share(size.bytes).into(),
        ]
    };
    // Event tables first, because they matter most.
    for (kind, size) in kinds.iter().filter(|(kind, _)| kind.is_events()) {
        table.row(row(kind, size));
    }
    for (kind, size) in kinds.iter().filter(|(kind, _)| !kind.is_events()) {
        table.row(row(kind, size).map(|cell| cell.with_style(FAINT)));
    }
    if table.len() == 0 {
        output.line("\nno data")?;
        return Ok(());
    }
    output.line("")?;
    output.table(&table)?;
    let (bytes, unpacked) = kinds.values().fold((0, 0), |(bytes, unpacked), size| {
        (bytes + size.bytes, unpacked + size.unpacked)
    });
    output.line(&format!(
        "{FAINT}total: {} for {} of values, {:.1}× smaller{FAINT:#}",
        units::bytes(bytes),
        units::bytes(unpacked),
        unpacked as f64 / bytes as f64
    ))?;
    Ok(())
}

pub(super) fn show_columns(
    trace: &Trace,
    kinds: &BTreeMap<BlockKind, Size>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("table", Align::Left),
        ("column", Align::Left),
        ("size", Align::Right),
        ("bytes/row", Align::Right),
    ]);
    for column in columns(trace) {
        let rows = kinds.get(&column.table).map_or(0, |size| size.rows);
        table.row([
            column.table.to_string().into(),
            column.name.into(),
            units::bytes(column.bytes).into(),
            format!("{:.2}", column.bytes as f64 / rows as f64).into(),
        ]);
    }
    output.line("")?;
    output.table(&table)?;
    Ok(())
}

/// The size of one column.
struct ColumnSize {
    table: BlockKind,
    name: String,
    bytes: u64,
}

/// The columns of all tables, largest first per table.
fn columns(trace: &Trace) -> Vec<ColumnSize> {
    let names: BTreeMap<(BlockKind, u16), String> = schema::tables()
        .into_iter()
        .flat_map(|(table, columns)| columns.into_iter().map(move |spec| ((table, spec.id), spec.name)))
        .collect();
    let mut columns: Vec<ColumnSize> = trace
        .column_bytes()
        .into_iter()
        .map(|(key, bytes)| ColumnSize {
            table: key.0,
            // A column of a later version.
            name: names
                .get(&key)
                .cloned()
                .unwrap_or_else(|| format!("column {}", key.1)),
            bytes,
        })
        .collect();
    columns.sort_by_key(|column| {
        (
            !column.table.is_events(),
            column.table,
            std::cmp::Reverse(column.bytes),
        )
    });
    columns
}

/// The tables of a file of another tool: how many events it has. Sizes would be those of its conversion.
pub(super) fn show_rows(kinds: &BTreeMap<BlockKind, Size>, output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[("events", Align::Left), ("rows", Align::Right)]);
    for (kind, size) in kinds.iter().filter(|(kind, _)| kind.is_events()) {
        table.row([kind.to_string().into(), units::count(size.rows).into()]);
    }
    output.line("")?;
    match table.len() {
        0 => output.line("no events")?,
        _ => output.table(&table)?,
    }
    Ok(())
}

pub(super) fn value(
    trace: &Trace,
    source: &Source,
    kinds: &BTreeMap<BlockKind, Size>,
    with_columns: bool,
) -> Vec<Value> {
    if let Source::Foreign(_) = source {
        let events = kinds.iter().filter(|(kind, _)| kind.is_events());
        return events
            .map(|(kind, size)| json!({ "name": kind.to_string(), "kind": kind.0, "rows": size.rows }))
            .collect();
    }
    let columns = if with_columns { columns(trace) } else { Vec::new() };
    let tables = kinds.iter().map(|(kind, size)| {
        let mut table = json!({
            "name": kind.to_string(), "kind": kind.0, "blocks": size.blocks, "rows": size.rows,
            "bytes": size.bytes, "unpacked_bytes": size.unpacked,
        });
        if with_columns {
            let columns = columns.iter().filter(|column| column.table == *kind);
            table["columns"] = columns
                .map(|column| (column.name.clone(), json!(column.bytes)))
                .collect();
        }
        table
    });
    tables.collect()
}
