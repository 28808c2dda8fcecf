//! Getting back what CUPTI holds.
//!
//! A buffer in which the end of some work is still to be written is handed over
//! by force only, and that work is then without its times. So whoever wants all
//! waits a little for the device first.

use std::time::Duration;

use tracesmith_cuda::{Error, cupti::Flush};

use super::{buffers, multiplexer::CuptiMultiplexer, wait_limit::WaitLimit};

/// For the device to come to an end.
const DEVICE_WAIT_LIMIT: WaitLimit = WaitLimit {
    control_thread: Duration::from_millis(500),
    program_thread: Duration::from_millis(100),
};

/// Has handed over what is complete.
pub(super) fn complete(multiplexer: &CuptiMultiplexer) -> Result<(), Error> {
    multiplexer.cupti().flush(Flush::Complete)
}

/// Has handed over what was recorded until now and comes to its end in time. The
/// rest stays with CUPTI.
pub(super) fn complete_soon(multiplexer: &CuptiMultiplexer) -> Result<(), Error> {
    let (lent, mut flushed) = (buffers::lent_count(), Ok(()));
    DEVICE_WAIT_LIMIT.until(|| {
        flushed = complete(multiplexer);
        flushed.is_err() || !buffers::has_outstanding_buffer(lent)
    });
    flushed
}

/// Has handed over all that was recorded until now: complete, where the device
/// comes to its end in time.
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
