//! Getting back what CUPTI holds.
//!
//! A buffer in which the end of some work is still to be written is handed over
//! by force only, and that work is then without its times. So whoever wants all
//! waits a little for the device first.

use std::time::Duration;

use tracesmith_cuda::{Error, cupti::Flush};

use super::{buffers, multiplexer::Hub, wait_limit::Patience};

/// For the device to come to an end.
const PATIENCE: Patience = Patience {
    ours: Duration::from_millis(500),
    theirs: Duration::from_millis(100),
};

/// Has handed over what is complete.
pub(super) fn complete(hub: &Hub) -> Result<(), Error> {
    hub.cupti().flush(Flush::Complete)
}

/// Has handed over what was recorded until now and comes to its end in time. The
/// rest stays with CUPTI.
pub(super) fn complete_soon(hub: &Hub) -> Result<(), Error> {
    let (moment, mut flushed) = (buffers::moment(), Ok(()));
    PATIENCE.until(|| {
        flushed = complete(hub);
        flushed.is_err() || !buffers::is_any_out_since(moment)
    });
    flushed
}

/// Has handed over all that was recorded until now: complete, where the device
/// comes to its end in time.
pub(super) fn all(hub: &Hub) -> Result<(), Error> {
    let (moment, mut flushed) = (buffers::moment(), Ok(()));
    let is_all_back = PATIENCE.until(|| {
        flushed = complete(hub);
        flushed.is_err() || !buffers::is_any_out_since(moment)
    });
    if is_all_back {
        flushed
    } else {
        buffers::forced(|| hub.cupti().flush(Flush::Forced))
    }
}
