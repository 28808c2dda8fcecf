//! What the line editor needs to know: when a line is complete, and what a word can become.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use tracesmith_sql::{Completions, statements};

/// Commands of the prompt, with their arguments and what they do.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    (".tables", "", "list tables, views and functions"),
    (".schema", "NAME", "list the columns of a table, view or function"),
    (".mode", "table|json|csv", "choose how results are printed"),
    (".timeout", "TIME|off", "end queries after this time, such as 10s"),
    (".help", "", "list these commands"),
    (".quit", "", "end the prompt, as Ctrl-D does"),
];

/// Ways to print results.
pub(super) const MODES: [&str; 3] = ["table", "json", "csv"];

/// Knows SQL and the names of a database.
pub(super) struct SqlHelper {
    pub(super) names: Completions,
}

/// Whether a line is a command of the prompt and no SQL.
pub(super) fn is_command(line: &str) -> bool {
    line.trim_start().starts_with('.')
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let is_complete = is_command(context.input()) || statements(context.input()).1.is_empty();
        Ok(if is_complete {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Completer for SqlHelper {
    type Candidate = String;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
        if !is_command(line) {
            return Ok(self.names.complete(line, cursor));
        }
        let before = &line[..cursor];
        let start = before.rfind(' ').map_or(0, |space| space + 1);
        let word = &before[start..];
        let found = match before[..start].trim() {
            "" => COMMANDS.iter().map(command).collect(),
            ".schema" => self.names.names_like(word),
            ".mode" => MODES.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        let like = |text: &String| text.len() >= word.len() && text.is_char_boundary(word.len());
        let is_like = |text: &String| like(text) && text[..word.len()].eq_ignore_ascii_case(word);
        Ok((start, found.into_iter().filter(is_like).collect()))
    }
}

/// A command, with a space if an argument follows.
fn command((name, argument, _): &(&str, &str, &str)) -> String {
    let space = if argument.is_empty() { "" } else { " " };
    format!("{name}{space}")
}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Highlighter for SqlHelper {}

impl Helper for SqlHelper {}
