//! The rows of a query as a Parquet file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tracesmith_interop::export::{Out, RowCell, RowKind, RowTable, can_write_parquet};
use tracesmith_sql::{Statement, Type, ValueRef};
use tracesmith_trace::units;

use crate::args::OutArgs;
use crate::commands::out_file::{Target, is_stdout, write_out};
use crate::output::Output;

pub(super) fn write(
    mut statement: Statement<'_>,
    out: &OutArgs,
    inputs: &[&Path],
    output: &mut Output,
) -> anyhow::Result<()> {
    let names = statement.columns.iter().cloned();
    let kinds = statement.declared.iter().map(|declared| kind_of(*declared));
    // Before the query runs: a build without Parquet fails at once.
    can_write_parquet()?;
    let mut rows = RowTable::new(names.zip(kinds));
    statement.for_each(|row| {
        rows.push(row.iter().map(|value| cell_of(*value)));
        true
    })?;
    let count = rows.rows() as u64;
    let bytes = write_out(out, inputs, |target| {
        let mut sink: Box<dyn Write> = match target {
            Target::File(file) => Box::new(file),
            Target::Stream(stream) => stream,
        };
        let mut out = Out::new(&mut sink);
        rows.write_parquet(&mut out).context("writing rows")?;
        Ok(out.finish()?)
    })?;
    if !is_stdout(out) {
        output.line(&format!(
            "wrote {} rows to {} ({})",
            units::count(count),
            out.out.display(),
            units::bytes(bytes)
        ))?;
    }
    Ok(())
}

/// The type of a column without values.
fn kind_of(declared: Option<Type>) -> RowKind {
    match declared {
        Some(Type::Integer) => RowKind::Integer,
        Some(Type::Real) => RowKind::Real,
        Some(Type::Blob) => RowKind::Bytes,
        Some(Type::Text | Type::Null) | None => RowKind::Text,
    }
}

fn cell_of(value: ValueRef<'_>) -> RowCell<'_> {
    match value {
        ValueRef::Null => RowCell::Null,
        ValueRef::Integer(number) => RowCell::Integer(number),
        ValueRef::Real(number) => RowCell::Real(number),
        // SQLite does not check that texts are UTF-8.
        ValueRef::Text(text) => std::str::from_utf8(text).map_or(RowCell::Bytes(text), RowCell::Text),
        ValueRef::Blob(bytes) => RowCell::Bytes(bytes),
    }
}
