//! Tables as CSV (RFC 4180, lines end in a line feed): a head of column names, then a line for each row.

use std::cell::RefCell;

use tracesmith_format::{Meaning, StringId, Value};
use tracesmith_trace::Trace;

use super::part::{Part, PartColumn};
use super::{Pass, TableFile, table};
use crate::error::Error;
use crate::export::json_text::push_format;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};
use tracesmith_trace::tables::StoredColumn as Column;

pub(in crate::export) const EXPORTER: Exporter = Exporter {
    name: "csv",
    aliases: &[],
    title: "a folder of CSV files, or one table with --table",
    extension: "csv",
    way: Way::Tables(write),
};

fn write(
    trace: &Trace,
    options: &ExportOptions,
    name: &str,
    out: &mut Out<'_>,
) -> Result<ExportReport, Error> {
    let table = table(EXPORTER.name, name)?;
    let head: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    out.put(format!("{}\n", head.join(",")).as_bytes())?;
    let mut report = ExportReport::default();
    table.for_each_part(trace, options, Pass::Write, |part| {
        report.events += part.len() as u64;
        report.without_time += part.without_time;
        write_part(trace, &table, part, out)
    })?;
    Ok(report)
}

/// One column of a part, by rows. Strings are looked up when they are written: many rows may have the same long one.
enum Cells {
    Strings(Vec<StringId>),
    /// The texts of all others, one behind the other; rows that share a value share its text.
    Texts {
        text: Vec<u8>,
        of_rows: Vec<(u32, u32)>,
    },
}

impl Cells {
    fn of(column: &Column, values: &PartColumn<'_>) -> Self {
        if column.spec.meaning == Meaning::String {
            let mut ids = Vec::new();
            let id = |value| match value {
                Value::Number(id) => StringId(id as u32),
                _ => StringId::NONE,
            };
            values.map(id, |id| ids.push(id));
            return Cells::Strings(ids);
        }
        let text = RefCell::new(Vec::new());
        let mut of_rows = Vec::new();
        let make = |value| {
            let mut text = text.borrow_mut();
            let start = text.len() as u32;
            push_cell(&mut text, &value);
            (start, text.len() as u32)
        };
        values.map(make, |range| of_rows.push(range));
        Cells::Texts {
            text: text.into_inner(),
            of_rows,
        }
    }

    fn push(&self, out: &mut Vec<u8>, trace: &Trace, row: usize) {
        match self {
            Cells::Strings(ids) => push_quoted(out, trace.string(ids[row])),
            Cells::Texts { text, of_rows } => {
                let (start, end) = of_rows[row];
                out.extend_from_slice(&text[start as usize..end as usize]);
            }
        }
    }
}

fn write_part(trace: &Trace, table: &TableFile, part: &Part<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let mut columns = Vec::with_capacity(table.columns.len());
    part.for_each_column(&table.columns, &mut |_, column, values| {
        columns.push(Cells::of(column, &values));
    });
    for row in 0..part.len() {
        let line = out.buffer();
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            column.push(line, trace, row);
        }
        line.push(b'\n');
        out.settle()?;
    }
    Ok(())
}

fn push_cell(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) | Value::Code(None, number) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        Value::Signed(number) => out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
        Value::Float(number) => push_format(out, format_args!("{number}")),
        Value::Flag(flag) => push_format(out, format_args!("{flag}")),
        Value::Code(Some(name), _) => push_quoted(out, name),
        _ => {}
    }
}

/// A text as one field: in quotes when it holds what ends a field.
fn push_quoted(out: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\n', '\r']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for part in text.split_inclusive('"') {
        out.extend_from_slice(part.as_bytes());
        if part.ends_with('"') {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_field_is_quoted() {
        let quoted = |text| {
            let mut out = Vec::new();
            push_quoted(&mut out, text);
            String::from_utf8(out).unwrap_or_default()
        };
        assert_eq!(
            [
                quoted("plain text"),
                quoted("f(int, \"a\")"),
                quoted("\""),
                quoted("a\nb"),
                quoted("")
            ],
            ["plain text", "\"f(int, \"\"a\"\")\"", "\"\"\"\"", "\"a\nb\"", ""]
        );
    }
}
