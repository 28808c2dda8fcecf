//! `tracesmith sql`.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use tracesmith_sql::{Database, Limits, ValueRef};

use crate::args::{Format, SqlArgs};
use crate::input::open_trace;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{Hinted, Output, StdoutError};

pub(crate) fn run(args: &SqlArgs, output: &mut Output) -> anyhow::Result<()> {
    let (files, query) = split(args)?;
    let mut traces = Vec::new();
    for (file, name) in files.iter().zip(names(&files)) {
        traces.push((name, Arc::new(open_trace(file)?)));
    }
    let limits = Limits {
        time: args.timeout.map(|limit| limit.0),
        ..Limits::default()
    };
    let database = Database::new(traces, limits)?;
    let query = match query {
        Some(query) => query,
        None => read_query(args)?,
    };
    if query.trim().is_empty() {
        bail!("the query is empty: write it after the files, or pass it with -f or on standard input");
    }
    let statement = database.prepare(&query).map_err(with_hint)?;
    match output.format {
        Format::Table => table(statement, args.limit, output),
        Format::Json => json(statement, output),
        Format::Csv => csv(statement, output),
    }
}

/// Splits arguments into files and a query. The last argument is the query if it is not a file.
fn split(args: &SqlArgs) -> anyhow::Result<(Vec<PathBuf>, Option<String>)> {
    let mut words = args.files_and_query.clone();
    let is_query = args.file.is_none()
        && words.last().is_some_and(|last| {
            last != "-" && !Path::new(last).exists() && last.contains(char::is_whitespace)
        });
    let query = if is_query { words.pop() } else { None };
    if words.is_empty() {
        bail!("no trace file: write tracesmith sql FILE... 'QUERY'");
    }
    Ok((words.into_iter().map(PathBuf::from).collect(), query))
}

fn read_query(args: &SqlArgs) -> anyhow::Result<String> {
    if let Some(path) = &args.file {
        return fs::read_to_string(path).with_context(|| format!("reading the query {}", path.display()));
    }
    let mut input = io::stdin();
    if input.is_terminal() {
        bail!("no query: write it after the files, or pass it with -f or on standard input");
    }
    let mut query = String::new();
    input
        .read_to_string(&mut query)
        .context("reading the query from standard input")?;
    Ok(query)
}

/// The name of each trace in queries: its file name, or its path if names are equal.
fn names(files: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    files
        .iter()
        .map(|file| {
            let same = files.iter().filter(|other| short(other) == short(file)).count();
            short(file)
                .filter(|_| same == 1)
                .unwrap_or_else(|| file.display().to_string())
        })
        .collect()
}

fn with_hint(error: tracesmith_sql::Error) -> anyhow::Error {
    let is_unknown = error.to_string().starts_with("no such table");
    let error = anyhow::Error::new(error);
    if is_unknown {
        return Hinted::error(
            &error,
            "docs/reference/sql.md lists all tables, views and functions; so does 'select name from pragma_module_list'",
        );
    }
    error
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

fn table(
    mut statement: tracesmith_sql::Statement<'_>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
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
    for row in rows {
        table.row_of(row.into_iter().map(Cell::from).collect());
    }
    output.table(&table)?;
    if more > 0 {
        output.note(&format!("{more} more rows; --limit 0 shows all"));
    }
    Ok(())
}

fn json(mut statement: tracesmith_sql::Statement<'_>, output: &mut Output) -> anyhow::Result<()> {
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

fn csv(mut statement: tracesmith_sql::Statement<'_>, output: &mut Output) -> anyhow::Result<()> {
    output.csv(&statement.columns)?;
    let mut failed: Option<StdoutError> = None;
    statement.for_each(|row| {
        let written = output.csv(row.iter().map(|value| text(*value)));
        written.map_err(|error| failed = Some(error)).is_ok()
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}
