//! The result of a capture session.

use std::path::PathBuf;

use tracesmith_format::tables::HealthCause;
use tracesmith_symbols::ModuleReport;

use crate::{error::Error, rows::Finished};

/// The traces, the number of rows, and the losses.
#[derive(Debug, Default)]
pub struct Report {
    /// The written traces with their sizes: one, or one per dump.
    pub files: Vec<(PathBuf, u64)>,
    /// Why a trace could not be completed.
    pub failure: Option<Error>,
    /// Rows, over all traces.
    pub rows: RowCounts,
    /// Processes that connected.
    pub processes: u32,
    /// How many losses are about processes that used CUDA and did not connect.
    pub uncaptured_processes: usize,
    /// Lost, truncated or doubtful data, as noted in the trace.
    pub losses: Vec<Loss>,
    /// Programs and libraries that contain stack frames, and whether they could be symbolized.
    pub modules: Vec<ModuleReport>,
}

/// Number of rows per table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Kernels.
    pub kernels: u64,
    /// Memcpys and memsets.
    pub copies: u64,
    /// Runtime and driver API calls.
    pub api_calls: u64,
    /// Waits and event records.
    pub syncs: u64,
    /// Allocations and frees.
    pub allocations: u64,
    /// Markers.
    pub markers: u64,
    /// Launches of whole CUDA graphs.
    pub graph_launches: u64,
    /// Other host functions and calls.
    pub host_calls: u64,
    /// Counter samples.
    pub counters: u64,
    /// Calls recorded for replay.
    pub recorded_calls: u64,
    /// Bytes of memory recorded for replay.
    pub recorded_bytes: u64,
    /// How long programs were stopped to read that memory, in nanoseconds.
    pub recorded_nanos: u64,
}

/// One cause of lost or doubtful data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The cause.
    pub cause: HealthCause,
    /// Number of records.
    pub count: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// A description.
    pub detail: String,
}

/// The detail of the loss in a trace without any process.
pub(crate) const NO_PROCESS: &str = "no process initialized CUDA or NVTX with the TraceSmith library loaded";

impl Loss {
    /// Whether this loss states that no process was recorded.
    pub fn is_no_process(&self) -> bool {
        self.cause == HealthCause::UNAVAILABLE && self.detail == NO_PROCESS
    }

    /// Whether records are missing. Otherwise it is only a remark.
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
    /// Whether the trace contains everything that was recorded.
    pub fn is_whole(&self) -> bool {
        self.failure.is_none() && !self.losses.iter().any(Loss::is_missing_data)
    }

    /// Adds the result of one trace.
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
