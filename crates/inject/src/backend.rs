//! What the agent needs from a GPU vendor.
//!
//! The agent knows windows, rings, threads and NVTX. A backend knows the
//! vendor's tracing library. CUDA is the only one today ([`cuda`](crate::cuda)).
//! A second one implements [`Backend`] and joins `Agent::backends`.
//!
//! A backend keeps three promises about its records:
//!
//! - **Devices.** It defines devices, contexts and streams in the sink before
//!   another record refers to them.
//! - **Correlation.** Each call that launches work has an ID that is unique in the
//!   process. The records of the call and of its work have that ID, with 64 bits.
//!   [`Stacks`](crate::stacks::Stacks) stores the caller's stack under its low 32
//!   bits, which is all that CUPTI has.
//! - **Clock.** Times are on the host's clock, or on one clock of the vendor's
//!   that [`Backend::clock_pair`] compares with the host's.

use std::ffi::c_void;

use tracesmith_wire::{control::Settings, record::ClockPair};

use crate::agent::Agent;

/// How much a flush returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Records that are complete now.
    Complete,
    /// Records that are complete now, or after a short wait for the device: the
    /// process may end.
    BeforeExit,
}

/// A vendor's tracing library, as this process uses it. Its methods are called
/// with the agent's lock held, so never two at the same time, except
/// [`Backend::driver_loaded`] and [`Backend::name_stream`].
pub(crate) trait Backend: Sync {
    /// The vendor's driver is being initialized. Only now the library can be used.
    fn driver_loaded(&self);

    /// Does what is slow or unsafe while the program runs, before a window opens.
    fn prepare(&self);

    /// Prepares for a window. Does nothing before the driver is loaded. An error is
    /// reported to the collector here; the rest of the process is still recorded.
    fn open(&self, agent: &Agent, settings: &Settings) -> Result<(), String>;

    /// Whether it is prepared for a window.
    fn is_open(&self) -> bool;

    /// Starts recording in an open window.
    fn begin(&self, agent: &Agent, settings: &Settings);

    /// Ends recording and flushes all records.
    fn end(&self, agent: &Agent);

    /// Ends the window.
    fn close(&self, agent: &Agent);

    /// Moves records from the library into the rings.
    fn flush(&self, flush: Flush);

    /// Compares the vendor's clock with the host's; none while no window is open.
    fn clock_pair(&self) -> Option<ClockPair>;

    /// Whether nothing is left to do for a window that was closed.
    fn is_settled(&self) -> bool;

    /// Does what is left to do for a window that was closed, as far as the
    /// program's threads allow it.
    fn settle(&self);

    /// Leaves the library to another profiler in this process, for good.
    fn release(&self, agent: &Agent);

    /// The program names a stream, by the vendor's handle.
    fn name_stream(&self, agent: &Agent, stream: *mut c_void, name: &[u8]);
}
