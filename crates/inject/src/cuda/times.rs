//! Times that CUPTI takes only where they are asked for. It has one switch for
//! each, which is on while either side wants it to be.

use std::sync::Mutex;

use tracesmith_cuda::{Error, cupti::Switch};

use super::multiplexer::{Hub, Side};
use crate::guard::lock;

/// Which times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    /// When launches were queued and submitted.
    Launches = 0,
    /// When the device passed events.
    Events = 1,
}

/// Who wants which.
static WANTED: Mutex<[[bool; 2]; 2]> = Mutex::new([[false; 2]; 2]);

/// A side wants them, or does not any more.
pub(super) fn ask(hub: &Hub, side: Side, times: Times, switch: Switch) -> Result<(), Error> {
    let mut wanted = lock(&WANTED);
    let sides = &mut wanted[times as usize];
    let before = sides.contains(&true);
    sides[side as usize] = switch == Switch::On;
    if sides.contains(&true) == before {
        return Ok(());
    }
    let told = match times {
        Times::Launches => hub.cupti().enable_latency(switch),
        Times::Events => hub.cupti().enable_event_times(switch),
    };
    if told.is_err() {
        sides[side as usize] = false;
    }
    told
}

/// A side wants none of them any more.
pub(super) fn leave(hub: &Hub, side: Side) {
    for times in [Times::Launches, Times::Events] {
        // What could be switched on can be switched off.
        let _ = ask(hub, side, times, Switch::Off);
    }
}
