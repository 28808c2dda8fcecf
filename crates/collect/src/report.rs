//! What became of a recording.

use std::path::PathBuf;

use tracesmith_format::tables::HealthCause;
use tracesmith_symbols::ModuleReport;

use crate::{error::Error, rows::Finished};

/// What was recorded, where it is, and what was lost.
#[derive(Debug, Default)]
pub struct Report {
    /// The traces written, with their bytes: one, or one for each dump.
    pub files: Vec<(PathBuf, u64)>,
    /// Why a trace could not be written to its end.
    pub failure: Option<Error>,
    /// Rows, over all traces.
    pub rows: RowCounts,
    /// Processes that connected.
    pub processes: u32,
    /// Losses that are processes which used CUDA and did not connect.
    pub uncaptured_processes: usize,
    /// What was lost, cut or doubtful, as it stands in the trace.
    pub losses: Vec<Loss>,
    /// Programs and libraries that frames of stacks are in, and whether those have names.
    pub modules: Vec<ModuleReport>,
}

/// Rows by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Kernels.
    pub kernels: u64,
    /// Copies and sets.
    pub copies: u64,
    /// Calls of the runtime and the driver.
    pub api_calls: u64,
    /// Waits and event records.
    pub syncs: u64,
    /// Allocations and releases.
    pub allocations: u64,
    /// Markers.
    pub markers: u64,
    /// Graphs as a whole.
    pub graph_launches: u64,
    /// Other work on the host.
    pub host_calls: u64,
    /// Samples of counters.
    pub counters: u64,
    /// Calls that can be made again.
    pub recorded_calls: u64,
    /// Bytes of memory that were read for them.
    pub recorded_bytes: u64,
    /// Nanoseconds that programs stood still for that.
    pub recorded_nanos: u64,
}

/// One cause of loss or doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub cause: HealthCause,
    /// How many records.
    pub count: u64,
    /// How many bytes.
    pub bytes: u64,
    /// In words.
    pub detail: String,
}

/// The detail of the loss that stands for a recording without any process.
pub(crate) const NO_PROCESS: &str = "no process initialized CUDA or NVTX with the TraceSmith library loaded";

impl Loss {
    /// Whether it states that no process was recorded at all.
    pub fn is_no_process(&self) -> bool {
        self.cause == HealthCause::UNAVAILABLE && self.detail == NO_PROCESS
    }

    /// Whether records are missing, not only worth a word.
    pub fn is_missing_data(&self) -> bool {
        !matches!(self.cause, HealthCause::OTHER | HealthCause::OVERWRITTEN)
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.cause.name().unwrap_or("other"))?;
        if self.count > 0 {
            write!(f, ", {} records", self.count)?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl Report {
    /// Whether everything that happened is in a trace.
    pub fn is_whole(&self) -> bool {
        self.failure.is_none() && !self.losses.iter().any(Loss::is_missing_data)
    }

    /// Adds what one trace holds.
    pub(crate) fn add(&mut self, finished: &Finished) {
        self.rows += finished.rows;
        self.modules.extend(finished.modules.iter().cloned());
        for loss in finished.losses.iter().cloned() {
            let same = self
                .losses
                .iter_mut()
                .find(|known| known.cause == loss.cause && known.detail == loss.detail);
            match same {
                Some(known) => {
                    known.count = known.count.saturating_add(loss.count);
                    known.bytes = known.bytes.saturating_add(loss.bytes);
                }
                None => self.losses.push(loss),
            }
        }
    }
}

impl std::ops::AddAssign for RowCounts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            kernels,
            copies,
            api_calls,
            syncs,
            allocations,
            markers,
            graph_launches,
            host_calls,
            counters,
            recorded_calls,
            recorded_bytes,
            recorded_nanos,
        } = other;
        self.kernels += kernels;
        self.copies += copies;
        self.api_calls += api_calls;
        self.syncs += syncs;
        self.allocations += allocations;
        self.markers += markers;
        self.graph_launches += graph_launches;
        self.host_calls += host_calls;
        self.counters += counters;
        self.recorded_calls += recorded_calls;
        self.recorded_bytes += recorded_bytes;
        self.recorded_nanos += recorded_nanos;
    }
}
