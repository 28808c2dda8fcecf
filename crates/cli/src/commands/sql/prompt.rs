//! The prompt: reads queries from a terminal until its user ends it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use tracesmith_sql::{Completions, Database, Named, NamedKind, statements};

use super::interrupt::Interrupts;
use super::line::{COMMANDS, MODES, SqlHelper, is_command};
use super::{print, with_hint};
use crate::args::{DurationArg, Format};
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{Output, StdoutError};

/// Queries that are kept.
const HISTORY_LENGTH: usize = 1000;

/// Whether the prompt goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Prompt,
    Quit,
}

pub(super) fn run(
    database: Database,
    interrupts: &Interrupts,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    interrupts.end_queries(database.interrupter());
    let names = Completions::new(database.names()?);
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<SqlHelper, FileHistory> =
        Editor::with_config(config).context("opening the prompt")?;
    editor
        .set_max_history_size(HISTORY_LENGTH)
        .context("opening the prompt")?;
    editor.set_helper(Some(SqlHelper { names }));
    let history = history_path();
    if let Some(path) = &history {
        // A history that cannot be read is an empty one.
        let _ = editor.load_history(path);
    }
    let mut prompt = Prompt { database, limit };
    output.note("Queries end with a semicolon. .help lists commands, Tab completes, Ctrl-D quits.");
    loop {
        output.finish()?;
        let before = interrupts.count();
        let line = match editor.readline("sql> ") {
            Ok(line) => line,
            // Ctrl-C gives up the line.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("reading a query"),
        };
        if line.trim().is_empty() {
            continue;
        }
        // Only memory can lack, and then the line is not kept.
        let _ = editor.add_history_entry(line.trim());
        if let Some(path) = &history {
            // A history that cannot be written ends with this session.
            let _ = editor.append_history(path);
        }
        let Some(helper) = editor.helper() else {
            return Ok(());
        };
        let is_interrupted = || interrupts.count() != before;
        match prompt.answer(&line, &helper.names, is_interrupted, output) {
            Ok(Next::Prompt) => {}
            Ok(Next::Quit) => return Ok(()),
            Err(error) if error.chain().any(|cause| cause.is::<StdoutError>()) => return Err(error),
            Err(error) => output.error(&error),
        }
    }
}

/// Where queries are kept: `tracesmith/sql_history` in the XDG state folder, which is made if needed.
fn history_path() -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        // The XDG rules ignore relative paths.
        path.is_absolute().then_some(path)
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    let ours = state.join("tracesmith");
    // If it cannot be made, neither can the file: the prompt works without one.
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(&ours);
    Some(ours.join("sql_history"))
}

struct Prompt {
    database: Database,
    limit: usize,
}

impl Prompt {
    fn answer(
        &mut self,
        line: &str,
        names: &Completions,
        is_interrupted: impl Fn() -> bool,
        output: &mut Output,
    ) -> anyhow::Result<Next> {
        if is_command(line) {
            return self.command(line, names, output);
        }
        for query in statements(line).0 {
            let statement = self.database.prepare(query).map_err(with_hint)?;
            if is_interrupted() {
                // It came after the line was read and before the query could be ended.
                self.database.interrupter()();
            }
            print::rows(statement, query, self.limit, output)?;
        }
        Ok(Next::Prompt)
    }

    fn command(&mut self, line: &str, names: &Completions, output: &mut Output) -> anyhow::Result<Next> {
        let mut words = line.trim().trim_end_matches(';').split_whitespace();
        let command = words.next().unwrap_or_default();
        let argument = words.next();
        if words.next().is_some() {
            bail!("too many words after {command}; .help lists commands");
        }
        match (command, argument) {
            (".quit" | ".exit", None) => return Ok(Next::Quit),
            (".help", None) => help(output)?,
            (".tables", None) => tables(names.all(), output)?,
            (".schema", Some(name)) => match names.find(name) {
                Some(named) => schema(named, output)?,
                None => bail!("no such table: {name}; .tables lists all"),
            },
            (".mode", Some(mode)) => output.format = format_of(mode)?,
            (".mode", None) => output.line(mode_of(output.format))?,
            (".timeout", Some("off")) => self.database.set_time_limit(None),
            (".timeout", Some(time)) => {
                let time: DurationArg = time.parse().map_err(anyhow::Error::msg)?;
                self.database.set_time_limit(Some(time.0));
            }
            (".timeout", None) => {
                let limit = self.database.time_limit();
                output.line(&limit.map_or_else(|| "off".to_owned(), |limit| format!("{limit:?}")))?;
            }
            _ => bail!("unknown command: {}; .help lists commands", line.trim()),
        }
        Ok(Next::Prompt)
    }
}

fn format_of(mode: &str) -> anyhow::Result<Format> {
    Ok(match mode {
        "table" => Format::Table,
        "json" => Format::Json,
        "csv" => Format::Csv,
        _ => bail!("unknown mode: {mode}; use {}", MODES.join(", ")),
    })
}

fn mode_of(format: Format) -> &'static str {
    match format {
        Format::Table => "table",
        Format::Json => "json",
        Format::Csv => "csv",
    }
}

fn help(output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[("command", Align::Left), ("meaning", Align::Left)]);
    for (name, argument, doc) in COMMANDS {
        table.row([
            Cell::from(format!("{name} {argument}")),
            Cell::from((*doc).to_owned()),
        ]);
    }
    output.table(&table)?;
    output.note("Everything else is SQL and ends with a semicolon. Ctrl-C ends a query that runs.");
    Ok(())
}

fn tables(names: &[Named], output: &mut Output) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("name", Align::Left),
        ("kind", Align::Left),
        ("rows", Align::Clipped),
    ]);
    for named in names {
        table.row([
            Cell::from(title(named)),
            Cell::from(named.kind.name().to_owned()),
            Cell::from(named.doc.clone()),
        ]);
    }
    Ok(output.table(&table)?)
}

fn schema(named: &Named, output: &mut Output) -> anyhow::Result<()> {
    output.line(&format!("{}: {}", title(named), named.doc))?;
    for (name, doc) in named.arguments {
        output.line(&format!("  {name}: {doc}"))?;
    }
    let mut table = TextTable::new(&[
        ("column", Align::Left),
        ("type", Align::Left),
        ("unit", Align::Left),
        ("meaning", Align::Clipped),
    ]);
    for column in &named.columns {
        table.row([
            Cell::from(column.name.clone()),
            Cell::from(column.kind.to_owned()),
            Cell::from(column.unit.to_owned()),
            Cell::from(column.doc.to_owned()),
        ]);
    }
    Ok(output.table(&table)?)
}

/// A name as a query writes it.
fn title(named: &Named) -> String {
    if named.kind != NamedKind::Function {
        return named.name.to_owned();
    }
    let arguments: Vec<&str> = named.arguments.iter().map(|(name, _)| *name).collect();
    format!("{}({})", named.name, arguments.join(", "))
}
