//! `tracesmith sql`.

mod interrupt;
mod line;
mod parquet;
mod print;
mod prompt;

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use tracesmith_sql::{Database, Limits};

use crate::args::{FormatArg, OutArgs, SqlArgs};
use crate::input::open_trace;
use crate::output::{Hinted, Output};
use interrupt::Interrupts;

pub(crate) fn run(args: &SqlArgs, format: FormatArg, output: &mut Output) -> anyhow::Result<()> {
    let (files, query) = split(args)?;
    let parquet = match (format, &args.out) {
        (FormatArg::Parquet, Some(out)) => Some(OutArgs {
            out: out.clone(),
            force: args.force,
        }),
        (FormatArg::Parquet, None) => bail!("--format parquet writes a file: name it with -o"),
        (_, Some(_)) => bail!("-o is for --format parquet; other formats go to standard output"),
        (_, None) => None,
    };
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_prompt = query.is_none() && args.file.is_none() && is_terminal && parquet.is_none();
    // Before there are other threads: they inherit which signals are blocked.
    let interrupts = is_prompt.then(Interrupts::watch).transpose()?;
    let mut traces = Vec::new();
    for (file, name) in files.iter().zip(names(&files)) {
        traces.push((name, Arc::new(open_trace(file)?)));
    }
    let limits = Limits {
        time: args.timeout.map(|limit| limit.0),
        ..Limits::default()
    };
    let database = Database::new(traces, limits)?;
    if let Some(interrupts) = interrupts {
        return prompt::run(database, &interrupts, args.limit, output);
    }
    let query = match query {
        Some(query) => query,
        None => read_query(args)?,
    };
    if query.trim().is_empty() {
        bail!("the query is empty: write it after the files, or pass it with -f or on standard input");
    }
    let statement = database.prepare(&query).map_err(with_hint)?;
    if let Some(out) = parquet {
        let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        return parquet::write(statement, &out, &inputs, output);
    }
    print::rows(statement, &query, args.limit, output)
}

/// Files, and the query if it is the last argument: what is no file is one.
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
        bail!("no query: write it after the files, or pass it with -f");
    }
    let mut query = String::new();
    input
        .read_to_string(&mut query)
        .context("reading the query from standard input")?;
    Ok(query)
}

/// What queries call each trace: its file's name, or its path if two have the same name.
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
