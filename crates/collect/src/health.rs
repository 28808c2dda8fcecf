//! Lost, truncated or doubtful data: rows in the trace, and totals for the report.

use std::collections::BTreeSet;

use tracesmith_format::tables::HealthCause;
use tracesmith_format::{ProcessId, Timestamp, tables};

use crate::{report::Loss, time, trace_file::TraceFile};

/// Maximum number of different details. Further losses are summed without a detail.
const MAX_LOSSES: usize = 200;

/// The losses so far.
#[derive(Debug, Default)]
pub(crate) struct Health {
    losses: Vec<Loss>,
    /// Processes whose GPU work is not recorded, because another profiler uses CUPTI.
    conflicts: BTreeSet<ProcessId>,
}

/// A loss or a remark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'t> {
    pub(crate) cause: HealthCause,
    /// The affected process.
    pub(crate) process: ProcessId,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) detail: &'t str,
}

impl<'t> Notice<'t> {
    pub(crate) fn new(cause: HealthCause, process: ProcessId, detail: &'t str) -> Self {
        Self {
            cause,
            process,
            count: 0,
            bytes: 0,
            detail,
        }
    }

    pub(crate) fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    pub(crate) fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}

impl Health {
    /// Writes the notice to the trace and adds it to the totals.
    pub(crate) fn note(&mut self, notice: Notice<'_>, file: &mut TraceFile) {
        let Notice {
            cause,
            process,
            count,
            bytes,
            detail,
        } = notice;
        let row = tables::Health {
            time: Timestamp(time::now()),
            cause,
            process,
            count,
            bytes,
            detail: file.string(detail),
            ..tables::Health::default()
        };
        file.define(&row);
        if cause == HealthCause::CONFLICT {
            self.conflicts.insert(process);
        }
        let detail = if self.losses.len() < MAX_LOSSES {
            detail
        } else {
            ""
        };
        let same = self
            .losses
            .iter_mut()
            .find(|loss| loss.cause == cause && loss.detail == detail);
        match same {
            Some(loss) => {
                loss.count = loss.count.saturating_add(count);
                loss.bytes = loss.bytes.saturating_add(bytes);
            }
            None => self.losses.push(Loss {
                cause,
                count,
                bytes,
                detail: detail.to_owned(),
            }),
        }
    }

    /// The detail of the first loss with this cause.
    pub(crate) fn first(&self, cause: HealthCause) -> Option<&str> {
        let found = self.losses.iter().find(|loss| loss.cause == cause);
        found.map(|loss| loss.detail.as_str())
    }

    /// How many processes have another profiler that uses CUPTI.
    pub(crate) fn conflicts(&self) -> usize {
        self.conflicts.len()
    }

    /// Why data are missing, as far as that is known. Remarks are left out.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.losses.iter().filter(|loss| loss.is_missing_data());
        let reason = |loss: &Loss| match loss.detail.as_str() {
            "" => loss.cause.name().unwrap_or("other").to_owned(),
            detail => detail.to_owned(),
        };
        missing.map(reason).collect()
    }

    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.losses
    }
}
