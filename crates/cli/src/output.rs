//! The only place that prints. Standard output is the answer, standard error the talk.

#![allow(clippy::print_stderr, reason = "this is the module that may print")]

mod lean;
pub(crate) mod names;
pub(crate) mod table;

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;
use tracesmith_interop::Error as InteropError;
use tracesmith_interop::import::IMPORTERS;

use crate::args::{Format, FormatArg, GlobalArgs};
use crate::progress::Bar;
pub(crate) use names::Names;
use table::TextTable;

/// Headings.
pub(crate) const HEADING: Style = Style::new().bold();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Something to keep in mind.
pub(crate) const CAREFUL: Style = AnsiColor::Yellow.on_default();
/// Something is amiss.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Bytes that are handed to the operating system at once, of answers that may be gigabytes long.
const PLAIN_BYTES: usize = 256 << 10;

/// Bytes that a row of CSV is put together in.
const CSV_ROW_BYTES: usize = 512;

/// Standard output could not be written to. Told apart from other errors since a closed pipe is none.
#[derive(Debug)]
pub(crate) struct StdoutError(pub(crate) io::Error);

impl std::fmt::Display for StdoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "writing to standard output: {}", self.0)
    }
}

impl std::error::Error for StdoutError {}

/// An error whose remedy its place of origin knows.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: &'static str,
}

impl Hinted {
    /// Says with an error what to do about it.
    pub(crate) fn error(error: &anyhow::Error, hint: &'static str) -> anyhow::Error {
        let message = format!("{error:#}");
        anyhow::Error::new(Hinted { message, hint })
    }
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// Whether the answer is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colors {
    Shown,
    Hidden,
}

/// Where answers and talk go.
pub(crate) struct Output {
    /// How the answer is written.
    pub(crate) format: Format,
    /// Whether JSON is lean, and the entries of its lists.
    lean: Option<usize>,
    quiet: bool,
    verbose: bool,
    width: Option<usize>,
    /// How tables show names of C++ functions.
    names: Names,
    out: BufWriter<AutoStream<io::Stdout>>,
    /// For answers without styles. Those with styles are looked through for them, byte by byte, where they are not wanted.
    plain: BufWriter<io::Stdout>,
    errors: AutoStream<io::Stderr>,
}

impl Output {
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        let choice = if global.no_color {
            anstream::ColorChoice::Never
        } else {
            anstream::ColorChoice::Auto
        };
        Output {
            format: match global.format {
                // It is written to a file; what else is printed is for people.
                FormatArg::Table | FormatArg::Parquet => Format::Table,
                FormatArg::Json => Format::Json,
                FormatArg::Csv => Format::Csv,
            },
            lean: None,
            quiet: global.quiet,
            verbose: global.verbose,
            width: width(),
            names: Names::Short,
            out: BufWriter::new(AutoStream::new(io::stdout(), choice)),
            plain: BufWriter::with_capacity(PLAIN_BYTES, io::stdout()),
            errors: AutoStream::new(io::stderr(), choice),
        }
    }

    /// Whether details are printed: in formats for programs, and with -v.
    pub(crate) fn wants_detail(&self) -> bool {
        self.verbose || self.format == Format::Json
    }

    /// Whether progress bars are wanted.
    pub(crate) fn bar(&self) -> Bar {
        if self.quiet { Bar::Hidden } else { Bar::Shown }
    }

    /// Columns of the terminal; `None` when the answer goes elsewhere and may be as wide as it is.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether colours of the answer are kept, for those who would show something else instead.
    pub(crate) fn colors(&self) -> Colors {
        match self.out.get_ref().current_choice() {
            anstream::ColorChoice::Never => Colors::Hidden,
            _ => Colors::Shown,
        }
    }

    /// A name in a sentence: cut in its middle where tables would cut it, too.
    pub(crate) fn name_in_text(&self, name: &str) -> String {
        match self.names {
            Names::Whole => name.to_owned(),
            _ => table::shortened(name, 80),
        }
    }

    /// Chooses how tables show names of C++ functions.
    pub(crate) fn show_names(&mut self, names: Names) {
        self.names = names;
    }

    /// Where an answer without styles is written to: JSON, CSV, bytes.
    pub(crate) fn plain(&mut self) -> Result<&mut impl Write, StdoutError> {
        self.out.flush().map_err(StdoutError)?;
        Ok(&mut self.plain)
    }

    /// One line of the answer.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), StdoutError> {
        if !self.plain.buffer().is_empty() {
            self.plain.flush().map_err(StdoutError)?;
        }
        writeln!(self.out, "{line}").map_err(StdoutError)
    }

    /// Prompts for a line of input, after all earlier output.
    pub(crate) fn prompt(&mut self, text: &str) -> Result<(), StdoutError> {
        self.raw(text.as_bytes())?;
        self.finish()
    }

    /// Bytes of the answer as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), StdoutError> {
        self.plain()?.write_all(bytes).map_err(StdoutError)
    }

    /// The answer as one JSON value. It is written as it comes: a long list takes no memory for its text.
    pub(crate) fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), StdoutError> {
        if let Some(limit) = self.lean {
            let value = serde_json::to_value(value).map_err(|error| StdoutError(error.into()))?;
            return self.lean_json(value, limit);
        }
        let out = self.plain()?;
        serde_json::to_writer_pretty(&mut *out, value).map_err(|error| StdoutError(error.into()))?;
        out.write_all(b"\n").map_err(StdoutError)
    }

    fn lean_json(&mut self, value: Value, limit: usize) -> Result<(), StdoutError> {
        let out = self.plain()?;
        serde_json::to_writer(&mut *out, &lean::lean(value, limit))
            .map_err(|error| StdoutError(error.into()))?;
        out.write_all(b"\n").map_err(StdoutError)
    }

    /// Makes the result lean JSON, whose lists have at most this many entries. Fails if another format was chosen.
    pub(crate) fn make_lean(&mut self, limit: usize) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            anyhow::bail!("--lean is JSON; leave out --format csv");
        }
        self.format = Format::Json;
        self.lean = Some(limit);
        Ok(())
    }

    /// Whether the result is lean JSON.
    pub(crate) fn is_lean(&self) -> bool {
        self.lean.is_some()
    }

    /// An answer that writes itself as JSON.
    pub(crate) fn json_of(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StdoutError> {
        if let Some(limit) = self.lean {
            let mut bytes = Vec::new();
            write(&mut bytes).map_err(StdoutError)?;
            let value = serde_json::from_slice(&bytes).map_err(|error| StdoutError(error.into()))?;
            return self.lean_json(value, limit);
        }
        let out = self.plain()?;
        write(out)
            .and_then(|()| out.write_all(b"\n"))
            .map_err(StdoutError)
    }

    /// A table of the answer, for people.
    pub(crate) fn table(&mut self, table: &TextTable) -> Result<(), StdoutError> {
        for line in table.lines_with(self.width, self.names) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// One row of CSV.
    pub(crate) fn csv<S: AsRef<[u8]>>(
        &mut self,
        fields: impl IntoIterator<Item = S>,
    ) -> Result<(), StdoutError> {
        // Into memory, since the writer flushes what it writes to. A row is short: so is its buffer.
        let mut row = csv::WriterBuilder::new()
            .buffer_capacity(CSV_ROW_BYTES)
            .from_writer(Vec::new());
        row.write_record(fields)
            .map_err(|error| StdoutError(io::Error::other(error)))?;
        let bytes = row
            .into_inner()
            .map_err(|error| StdoutError(io::Error::other(error)))?;
        self.raw(&bytes)
    }

    /// A few facts: aligned lines, an object, or one row under a header.
    pub(crate) fn facts(&mut self, facts: &[(&str, Value)]) -> Result<(), StdoutError> {
        match self.format {
            Format::Json => self.json(
                &facts
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone()))
                    .collect::<Value>(),
            ),
            Format::Csv => {
                self.csv(facts.iter().map(|(key, _)| *key))?;
                self.csv(facts.iter().map(|(_, value)| plain(value)))
            }
            Format::Table => {
                let widest = facts.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
                for (key, value) in facts {
                    let key = key.replace('_', " ");
                    self.line(&format!("{FAINT}{key:<widest$}{FAINT:#}  {}", plain(value)))?;
                }
                Ok(())
            }
        }
    }

    /// Whether nothing but the answer is wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Says something besides the answer.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.quiet {
            // What was answered so far comes first. Talk that nobody can hear must not stop the work.
            let _ = self.finish();
            let _ = writeln!(self.errors, "{FAINT}{note}{FAINT:#}");
        }
    }

    /// Says something that only the curious want to know.
    pub(crate) fn remark(&mut self, note: &str) {
        if self.verbose {
            self.note(note);
        }
    }

    /// Says that something is amiss.
    pub(crate) fn warning(&mut self, warning: &str) {
        let _ = self.finish();
        let _ = writeln!(self.errors, "{BAD}warning:{BAD:#} {warning}");
    }

    /// Says why we failed: one line, and a hint where we know one.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let _ = self.finish();
        let _ = writeln!(self.errors, "{BAD}error:{BAD:#} {error:#}");
        if let Some(hint) = hint(error) {
            let _ = writeln!(self.errors, "\nhint: {hint}");
        }
    }

    /// Hands everything to the operating system.
    pub(crate) fn finish(&mut self) -> Result<(), StdoutError> {
        self.out.flush().map_err(StdoutError)?;
        self.plain.flush().map_err(StdoutError)
    }
}

/// The terminal's width; COLUMNS counts where there is no terminal, as it does for other tools.
fn width() -> Option<usize> {
    if io::stdout().is_terminal() {
        let (terminal_size::Width(width), _) = terminal_size::terminal_size()?;
        return Some(usize::from(width));
    }
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// A JSON value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What to do about an error, where that is known.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(hinted) = error.chain().find_map(|cause| cause.downcast_ref::<Hinted>()) {
        return Some(hinted.hint.to_owned());
    }
    if let Some(InteropError::UnknownFormat { .. }) = interop_error(error) {
        return Some(readable_formats());
    }
    match error.chain().find_map(trace_error) {
        Some(tracesmith_trace::Error::TooManyRows { .. }) => Some(
            "the file is probably damaged; if it is not, select a part of it with --from and --to".to_owned(),
        ),
        Some(tracesmith_trace::Error::SelectionTooNarrow { .. }) => {
            Some("leave out --stream, or select whole GPUs and processes".to_owned())
        }
        _ => fixed_hint(error).map(str::to_owned),
    }
}

fn interop_error(error: &anyhow::Error) -> Option<&InteropError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// An error of the trace, which an error of the interop crate may contain without being its cause.
fn trace_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e tracesmith_trace::Error> {
    match cause.downcast_ref() {
        Some(InteropError::Trace(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// The formats that can be read. Help texts of `import` say more of each.
fn readable_formats() -> String {
    let names: Vec<&str> = IMPORTERS.iter().map(|importer| importer.name).collect();
    format!(
        "tracesmith reads its own .sbt files and {}; 'tracesmith import --help' describes these formats",
        names.join(", ")
    )
}

fn fixed_hint(error: &anyhow::Error) -> Option<&'static str> {
    use tracesmith_collect::Error as CollectError;
    use tracesmith_format::Error as FormatError;
    match error
        .chain()
        .find_map(|cause| cause.downcast_ref::<CollectError>())
    {
        Some(CollectError::Exists { .. }) => {
            return Some("replace it with --force, or name another file with -o");
        }
        Some(CollectError::BeingWritten { .. }) => {
            return Some(
                "give each process or rank a file of its own, or wait until the other recording ends",
            );
        }
        Some(CollectError::NotArmed { .. }) => {
            return Some("start it with the variables that 'tracesmith env' prints");
        }
        _ => {}
    }
    if let Some(InteropError::NotBuilt {
        feature: "parquet", ..
    }) = interop_error(error)
    {
        return Some("build one that can with: cargo install --locked --path crates/cli --features parquet");
    }
    let format_error = error.chain().find_map(|cause| match trace_error(cause) {
        Some(tracesmith_trace::Error::Format(error)) => Some(error),
        _ => cause.downcast_ref::<FormatError>(),
    })?;
    match format_error {
        FormatError::NewerVersion { .. } => Some("update tracesmith to read this file"),
        FormatError::CutHeader { .. } | FormatError::Empty => {
            Some("recording stopped before any data was written; nothing can be recovered")
        }
        FormatError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            Some("free some space, or write to another disk with -o")
        }
        _ => None,
    }
}
