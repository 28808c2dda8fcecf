//! Ways out of the model: one format a file.
//!
//! An exporter walks the trace block by block and writes as it goes, so that its memory does not grow with the trace. A
//! new exporter is a file here and a line in [`EXPORTERS`].

mod dot;
mod event_json;
mod firefox;
mod flame;
mod folded;
mod fragments;
mod gathered;
mod json;
mod json_members;
mod json_text;
mod jsonl;
mod kineto;
mod lanes;
mod nesting;
mod out;
mod owners;
mod perfetto;
mod pids;
mod row_value;
mod speedscope;
mod spill;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stage;
mod sweep;
mod tables;
#[cfg_attr(
    not(feature = "parquet"),
    allow(dead_code, reason = "only files of Arrow and Parquet name the clock")
)]
mod timeline;
mod trace_event;
mod tracks;
mod weights;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tracesmith_format::tables::Place;
use tracesmith_format::{Block, StreamId, Timestamp};
use tracesmith_trace::{Progress, ProgressFn, Query, TimeRange, Trace};

use crate::error::Error;
pub use event_json::EventJson;
pub use flame::{FlameNode, flame_graph};
pub use kineto::{KinetoOptions, kineto_processes};
pub use out::Out;
pub use owners::processes_with_events;
pub use perfetto::{GpuForm, OpenFile, Packing as PacketPacking, PerfettoOptions, write_split};
pub use tables::{can_write_parquet, table_names, write_folder, write_parquet};

/// All exporters.
pub static EXPORTERS: &[Exporter] = &[
    perfetto::EXPORTER,
    json::EXPORTER,
    kineto::EXPORTER,
    #[cfg(feature = "sqlite")]
    sqlite::EXPORTER,
    tables::parquet::EXPORTER,
    tables::arrow::FILE,
    tables::arrow::STREAM,
    tables::csv::EXPORTER,
    jsonl::EXPORTER,
    folded::EXPORTER,
    flame::EXPORTER,
    speedscope::EXPORTER,
    firefox::EXPORTER,
    dot::EXPORTER,
];

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
    /// The named table from start to end: into anything that takes bytes, or by [`write_folder`] all of them.
    Tables(TableFn),
}

/// Writes the table of this name.
pub type TableFn = fn(&Arc<Trace>, &ExportOptions, &str, &mut Out<'_>) -> Result<ExportReport, Error>;

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How a streamed export is packed, by the end of its file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// With gzip.
    Gzip,
    /// With zstd.
    Zstd,
}

impl Packing {
    /// The packing that a file of this name has.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        [Packing::Gzip, Packing::Zstd]
            .into_iter()
            .find(|packing| name.ends_with(packing.ending()))
    }

    fn ending(self) -> &'static str {
        match self {
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
        }
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
    /// Which process a Kineto file is of.
    pub kineto: KinetoOptions,
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

    /// Whether something on this stream is wanted; what the host did, on no stream, is.
    pub fn wants_stream(&self, stream: Option<StreamId>) -> bool {
        match (&self.streams, stream) {
            (Some(streams), Some(stream)) => streams.contains(&stream),
            _ => true,
        }
    }

    /// A query for the events in the stretch of time, of all streams.
    pub(crate) fn query(&self) -> Query {
        Query {
            from: self.range.from,
            to: self.range.to,
            ..Query::default()
        }
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
            .field("kineto", &self.kineto)
            .finish_non_exhaustive()
    }
}

/// The exporter with this name.
pub fn exporter(name: &str) -> Option<&'static Exporter> {
    EXPORTERS
        .iter()
        .find(|exporter| exporter.name == name || exporter.aliases.contains(&name))
}

/// The exporter whose files are named like this one. The ending of a packed file is looked through.
pub fn exporter_for(path: &Path) -> Option<&'static Exporter> {
    let name = path.file_name()?.to_str()?;
    let name = Packing::of(path).map_or(name, |packing| &name[..name.len() - packing.ending().len()]);
    EXPORTERS
        .iter()
        .filter(|exporter| name.ends_with(&format!(".{}", exporter.extension)))
        .max_by_key(|exporter| exporter.extension.len())
}
