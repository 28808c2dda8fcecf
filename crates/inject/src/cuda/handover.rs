//! Getting back what CUPTI holds.
//!
//! A buffer in which the end of some work is still to be written is handed over
//! by force only, and that work is then without its times. So whoever wants all
//! waits a little for the device first.

use std::{
    thread,
    time::{Duration, Instant},
};

use tracesmith_cuda::{Error, cupti::Flush};

use super::{buffers, hub::Hub};
use crate::control;

/// How long our own thread waits for the device.
const OUR_PATIENCE: Duration = Duration::from_millis(500);

/// How long a thread of the program is kept waiting for it.
const THEIR_PATIENCE: Duration = Duration::from_millis(100);

/// The pauses between two looks.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LAST_PAUSE: Duration = Duration::from_millis(8);

/// Has handed over what is complete.
pub(super) fn complete(hub: &Hub) -> Result<(), Error> {
    hub.cupti().flush(Flush::Complete)
}

/// Has handed over all that was recorded until now: complete, where the device
/// comes to its end in time.
pub(super) fn all(hub: &Hub) -> Result<(), Error> {
    let patience = if control::is_own_thread() {
        OUR_PATIENCE
    } else {
        THEIR_PATIENCE
    };
    let (moment, begun) = (buffers::moment(), Instant::now());
    let mut pause = FIRST_PAUSE;
    loop {
        complete(hub)?;
        if !buffers::is_any_out_since(moment) {
            return Ok(());
        }
        if begun.elapsed() + pause > patience {
            return buffers::forced(|| hub.cupti().flush(Flush::Forced));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LAST_PAUSE);
    }
}
