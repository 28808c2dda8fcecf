//! Timestamps that CUPTI takes only on request. CUPTI has one switch for each
//! type, which is on while either client needs it.

use std::sync::Mutex;

use tracesmith_cuda::{Error, cupti::Switch};

use super::multiplexer::{Client, CuptiMultiplexer};
use crate::guard::lock;

/// Which times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    /// When launches were queued and submitted.
    Launches = 0,
    /// When the device passed events.
    Events = 1,
}

/// The clients that need each type.
static WANTED: Mutex<[[bool; 2]; 2]> = Mutex::new([[false; 2]; 2]);

/// Switches a type of timestamps on or off for a client.
pub(super) fn set(
    multiplexer: &CuptiMultiplexer,
    side: Client,
    times: Times,
    switch: Switch,
) -> Result<(), Error> {
    let mut wanted = lock(&WANTED);
    let sides = &mut wanted[times as usize];
    let before = sides.contains(&true);
    sides[side as usize] = switch == Switch::On;
    if sides.contains(&true) == before {
        return Ok(());
    }
    let result = match times {
        Times::Launches => multiplexer.cupti().enable_latency(switch),
        Times::Events => multiplexer.cupti().enable_event_times(switch),
    };
    if result.is_err() {
        sides[side as usize] = false;
    }
    result
}

/// Switches all of them off for a client.
pub(super) fn leave(multiplexer: &CuptiMultiplexer, side: Client) {
    for times in [Times::Launches, Times::Events] {
        // What could be switched on can be switched off.
        let _ = set(multiplexer, side, times, Switch::Off);
    }
}
