//! Flushing CUPTI's buffers.
//!
//! CUPTI returns a buffer with incomplete records only if the flush is forced, and
//! those records then have no times. So a flush of everything first waits for the
//! device, with a time limit.

use std::time::Duration;

use tracesmith_cuda::{Error, cupti::Flush};

use super::{buffers, multiplexer::CuptiMultiplexer};
use crate::wait_limit::WaitLimit;

/// For the device to finish.
const DEVICE_WAIT_LIMIT: WaitLimit = WaitLimit {
    control_thread: Duration::from_millis(500),
    program_thread: Duration::from_millis(100),
};

/// Flushes the buffers whose records are complete.
pub(super) fn complete(multiplexer: &CuptiMultiplexer) -> Result<(), Error> {
    multiplexer.cupti().flush(Flush::Complete)
}

/// Flushes the records that are complete within the time limit. The rest stays in
/// CUPTI.
pub(super) fn complete_soon(multiplexer: &CuptiMultiplexer) -> Result<(), Error> {
    let (lent, mut flushed) = (buffers::lent_count(), Ok(()));
    DEVICE_WAIT_LIMIT.until(|| {
        flushed = complete(multiplexer);
        flushed.is_err() || !buffers::has_outstanding_buffer(lent)
    });
    flushed
}

/// Flushes all records. Those of work that does not end within the time limit have
/// no times.
pub(super) fn all(multiplexer: &CuptiMultiplexer) -> Result<(), Error> {
    let (lent, mut flushed) = (buffers::lent_count(), Ok(()));
    let is_all_back = DEVICE_WAIT_LIMIT.until(|| {
        flushed = complete(multiplexer);
        flushed.is_err() || !buffers::has_outstanding_buffer(lent)
    });
    if is_all_back {
        flushed
    } else {
        buffers::forced(|| multiplexer.cupti().flush(Flush::Forced))
    }
}
