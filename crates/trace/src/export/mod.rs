//! Ways out of the model: one format a file.
//!
//! An exporter walks the trace block by block and writes as it goes, so that its memory does not grow with the trace. A
//! new exporter is a file here and a line in [`EXPORTERS`].

mod folded;
#[allow(dead_code, reason = "the exporters that use all of it come one by one")]
mod json_text;
mod out;
mod perfetto;

use std::fmt;
use std::path::Path;

use tracesmith_format::tables::Place;
use tracesmith_format::{Block, StreamId, Timestamp};

use crate::error::Error;
use crate::model::trace::Trace;
use crate::query::{Progress, ProgressFn};
use crate::rewrite::TimeRange;
pub use out::Out;
pub use perfetto::{GpuForm, OpenFile, Packing, PerfettoOptions, write_split};

/// All exporters.
pub static EXPORTERS: &[Exporter] = &[folded::EXPORTER, perfetto::EXPORTER];

/// A foreign format that can be written.
pub struct Exporter {
    /// Its short name.
    pub name: &'static str,
    /// Other names that users know it by.
    pub aliases: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    /// What names of such files end in, without the dot.
    pub extension: &'static str,
    /// How it is written.
    pub way: Way,
}

/// How a format is written.
#[derive(Clone, Copy)]
pub enum Way {
    /// From start to end into anything that takes bytes.
    Stream(fn(&Trace, &ExportOptions, &mut Out<'_>) -> Result<ExportReport, Error>),
    /// Into a new file that must be able to seek.
    File(fn(&Trace, &ExportOptions, &Path) -> Result<ExportReport, Error>),
    /// Into an empty folder, a file for each table.
    Folder(fn(&Trace, &ExportOptions, &Path) -> Result<ExportReport, Error>),
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What is wanted of an export.
#[derive(Default)]
pub struct ExportOptions {
    /// Only events that reach into this stretch; they are kept whole.
    pub range: TimeRange,
    /// Only device work of these streams. What the host did is kept.
    pub streams: Option<Vec<StreamId>>,
    /// What stacks are weighed by.
    pub weight: Weight,
    /// How a Perfetto trace is written.
    pub perfetto: PerfettoOptions,
    /// Told of every block that was read.
    pub progress: Option<ProgressFn>,
}

/// What a stack is weighed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Nanoseconds of device work that it launched.
    #[default]
    GpuTime,
    /// Launches.
    Launches,
    /// Bytes that it allocated.
    AllocatedBytes,
    /// Samples of the host.
    Samples,
}

/// What an export did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Events that were written.
    pub events: u64,
    /// Events that the format has no place for, and which were left out.
    pub left_out: u64,
    /// Events without a time, which were left out.
    pub without_time: u64,
}

impl ExportOptions {
    /// Whether device work in this place and time is wanted; times are on the trace's timeline.
    pub fn wants(&self, start: Timestamp, end: Timestamp, place: &Place) -> bool {
        self.wants_time(start, end)
            && self
                .streams
                .as_ref()
                .is_none_or(|streams| streams.contains(&place.stream))
    }

    /// Whether something at this time is wanted.
    pub fn wants_time(&self, start: Timestamp, end: Timestamp) -> bool {
        self.range.is_all() || self.range.holds(start, end)
    }

    /// Notes a block as read.
    pub fn note(&self, block: &Block) {
        if let Some(progress) = &self.progress {
            progress(Progress::Read(block.header.total_length()));
        }
    }
}

impl fmt::Debug for ExportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportOptions")
            .field("range", &self.range)
            .field("streams", &self.streams)
            .field("weight", &self.weight)
            .field("perfetto", &self.perfetto)
            .finish_non_exhaustive()
    }
}

/// The exporter with this name.
pub fn exporter(name: &str) -> Option<&'static Exporter> {
    EXPORTERS
        .iter()
        .find(|exporter| exporter.name == name || exporter.aliases.contains(&name))
}

/// The exporter whose files are named like this one.
pub fn exporter_for(path: &Path) -> Option<&'static Exporter> {
    let name = path.file_name()?.to_str()?;
    EXPORTERS
        .iter()
        .filter(|exporter| name.ends_with(&format!(".{}", exporter.extension)))
        .max_by_key(|exporter| exporter.extension.len())
}
