//! The rows of a query, as a table, JSON or CSV.

use std::io::{self, Write};

use serde_json::{Map, Value};
use tracesmith_sql::{Statement, ValueRef};

use crate::args::Format;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{Output, StdoutError};

/// Prints all rows of a query, or as many as `limit` if people read them. 0 is no limit.
pub(super) fn rows(
    statement: Statement<'_>,
    query: &str,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    match output.format {
        Format::Table => table(statement, query, limit, output),
        Format::Json => json(statement, output),
        Format::Csv => csv(statement, output),
    }
}

/// Whether a query has `*` among its columns, such as `select *` and `k.*`, but not `count(*)`.
fn selects_all_columns(query: &str) -> bool {
    query.match_indices('*').any(|(at, _)| {
        let before = query[..at].trim_end();
        let word = before.rsplit(|letter: char| !letter.is_ascii_alphabetic()).next();
        before.ends_with(['.', ','])
            || word.is_some_and(|word| {
                ["select", "distinct", "all"]
                    .iter()
                    .any(|known| word.eq_ignore_ascii_case(known))
            })
    })
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

fn table(mut statement: Statement<'_>, query: &str, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let limit = if limit == 0 { usize::MAX } else { limit };
    let columns = statement.columns.clone();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut is_number = vec![true; columns.len()];
    let mut more = 0_u64;
    statement.for_each(|row| {
        if rows.len() == limit {
            more += 1;
            return true;
        }
        for (is_number, value) in is_number.iter_mut().zip(row) {
            *is_number &= !matches!(value, ValueRef::Text(_) | ValueRef::Blob(_));
        }
        rows.push(row.iter().map(|value| text(*value)).collect());
        true
    })?;
    let head = columns.into_iter().zip(&is_number).map(|(name, is_number)| {
        let align = if *is_number { Align::Right } else { Align::Name };
        (name, align)
    });
    let mut table = TextTable::with_columns(head.collect());
    if !selects_all_columns(query) {
        // The query names its columns, so those without a value are shown, too.
        table = table.keeping_empty_columns();
    }
    for row in rows {
        table.row_of(row.into_iter().map(Cell::from).collect());
    }
    output.table(&table)?;
    if more > 0 {
        output.note(&format!("{more} more rows; --limit 0 shows all"));
    }
    Ok(())
}

fn json(mut statement: Statement<'_>, output: &mut Output) -> anyhow::Result<()> {
    let columns = statement.columns.clone();
    let out = output.plain()?;
    let mut separator = "[\n";
    let mut failed: Option<io::Error> = None;
    statement.for_each(|row| {
        let mut object = Map::new();
        for (name, value) in columns.iter().zip(row) {
            let value = match value {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::from(*number),
                ValueRef::Real(number) => Value::from(*number),
                other => Value::from(text(*other)),
            };
            object.insert(name.clone(), value);
        }
        let written = out
            .write_all(separator.as_bytes())
            .and_then(|()| serde_json::to_writer(&mut *out, &object).map_err(io::Error::from));
        separator = ",\n";
        written.map_err(|error| failed = Some(error)).is_ok()
    })?;
    if let Some(error) = failed {
        return Err(StdoutError(error).into());
    }
    let end: &[u8] = if separator == "[\n" { b"[]\n" } else { b"\n]\n" };
    out.write_all(end).map_err(StdoutError)?;
    Ok(())
}

fn csv(mut statement: Statement<'_>, output: &mut Output) -> anyhow::Result<()> {
    output.csv(&statement.columns)?;
    let mut failed: Option<StdoutError> = None;
    statement.for_each(|row| {
        let written = output.csv(row.iter().map(|value| text(*value)));
        written.map_err(|error| failed = Some(error)).is_ok()
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_among_the_columns_selects_all() {
        for query in [
            "select * from a",
            "SELECT DISTINCT\n*",
            "select k.*, 1 from k",
            "select 1, *",
        ] {
            assert!(selects_all_columns(query), "{query}");
        }
        for query in ["select count(*) from a", "select 2 * 3", "select a"] {
            assert!(!selects_all_columns(query), "{query}");
        }
    }
}
