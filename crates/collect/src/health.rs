//! What was lost, cut or doubtful: rows in the trace, and sums for the report.

use tracesmith_format::tables::HealthCause;
use tracesmith_format::{ProcessId, Timestamp, tables};

use crate::{report::Loss, time, trace_file::TraceFile};

/// Details told apart; what comes behind is summed up without them.
const MAX_LOSSES: usize = 200;

/// What was noted so far.
#[derive(Debug, Default)]
pub(crate) struct Health {
    losses: Vec<Loss>,
}

/// Something to note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'t> {
    pub(crate) cause: HealthCause,
    /// The process that it concerns.
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
    /// Writes it down.
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

    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.losses
    }
}
