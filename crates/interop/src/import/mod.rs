//! Ways into the model: one format a file, told apart by content, never by name alone.
//!
//! An importer reads a foreign trace as a stream and writes it as a native one through a [`Builder`]; everything else
//! opens the result as if it had been recorded. A new importer is a file here and a line in [`IMPORTERS`].

mod bounded;
mod builder;
#[cfg(feature = "sqlite")]
mod doubts;
mod folded;
mod input;
mod json;
mod lines;
mod looks;
#[cfg(feature = "sqlite")]
pub(crate) mod nsys;
mod perf;
mod perfetto;
#[cfg(feature = "sqlite")]
mod rocpd;
mod rocprof;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
use tracesmith_skip as support;
mod xctrace;
mod xray;

use std::fmt;
use std::io::{Cursor, Seek, Write};
use std::path::PathBuf;

use tracesmith_format::{Writer, WriterOptions};

use crate::error::Error;
pub use builder::{Builder, ImportReport};
pub use input::Input;
pub use xctrace::xctrace_tables;

/// All importers, the most certain of their format first.
pub static IMPORTERS: &[Importer] = &[
    perfetto::IMPORTER,
    #[cfg(feature = "sqlite")]
    rocpd::IMPORTER,
    #[cfg(feature = "sqlite")]
    nsys::IMPORTER,
    rocprof::JSON,
    rocprof::CSV,
    xctrace::IMPORTER,
    xray::IMPORTER,
    json::MCTRACER,
    json::KINETO,
    json::CHROME,
    perf::IMPORTER,
    folded::IMPORTER,
];

/// A foreign format that can be read.
pub struct Importer {
    /// Its short name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Whether a file that begins so is of this format. Sees the unpacked beginning, all of it for a short file.
    pub(crate) sniff: fn(head: &[u8]) -> bool,
    /// Reads a file into the builder. May be called for several files that belong together.
    pub(crate) read: fn(&mut Input, &ImportOptions, &mut Builder<'_, '_>) -> Result<(), Error>,
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What an importer cannot see from the file.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format, when the content shall not decide.
    pub format: Option<&'static Importer>,
    /// The program that was traced, for function names.
    pub binary: Option<PathBuf>,
    /// What the file's times count, when it does not say so or says it wrongly.
    pub time_unit: Option<TimeUnit>,
}

/// What a number of a foreign file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
}

/// Where a trace can be written to.
pub trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// The writer of an imported trace.
pub type ImportWriter<'w> = Writer<Box<dyn Sink + 'w>>;

/// The importer for a file, by what it holds.
pub fn importer_of(input: &Input) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| (importer.sniff)(input.head()))
}

/// The error for a file that no importer knows.
pub fn unknown_format(input: &Input) -> Error {
    Error::UnknownFormat {
        looks_like: looks::like(input),
    }
}

/// Reads foreign files that belong together into a trace. The caller finishes the writer.
pub fn import(
    inputs: Vec<Input>,
    options: &ImportOptions,
    writer: &mut ImportWriter<'_>,
) -> Result<ImportReport, Error> {
    import_each(inputs, options, writer, &mut |_| {})
}

/// The same. `reading` is called with each file before it is read, so that the caller can name the one that fails.
pub fn import_each(
    inputs: Vec<Input>,
    options: &ImportOptions,
    writer: &mut ImportWriter<'_>,
    reading: &mut dyn FnMut(&Input),
) -> Result<ImportReport, Error> {
    let mut builder = Builder::new(writer);
    for mut input in inputs {
        reading(&input);
        let importer = options
            .format
            .or_else(|| importer_of(&input))
            .ok_or_else(|| unknown_format(&input))?;
        builder.begin_file(importer, &input)?;
        (importer.read)(&mut input, options, &mut builder)?;
        builder.end_file(&input)?;
    }
    builder.finish()
}

/// A foreign file as the bytes of a native trace.
pub(crate) fn import_to_bytes(input: Input) -> Result<Vec<u8>, Error> {
    let mut bytes = Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer = Writer::new(sink, WriterOptions::default())?;
    import(vec![input], &ImportOptions::default(), &mut writer)?;
    writer.seal()?;
    Ok(bytes.into_inner())
}

/// The code with this name; the one that means "not known" when there is none.
fn code<C: Copy + Default>(all: &[C], name: impl Fn(C) -> Option<&'static str>, text: &str) -> C {
    all.iter()
        .copied()
        .find(|code| name(*code) == Some(text))
        .unwrap_or_default()
}
