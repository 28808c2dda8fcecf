//! Takes records from profiled programs and writes them as a trace.
//!
//! Targets hand their records to rings in shared memory; one event loop here
//! reads the rings of all of them, turns records into rows and writes the rows
//! at once. A target that dies leaves everything that had reached its rings,
//! and a collector that is killed leaves a file that can be read up to there.
//!
//! ```no_run
//! use tracesmith_collect::{Capture, Destination, Existing, Injection, Launch, Preload, Wait, profile};
//!
//! # fn main() -> Result<(), tracesmith_collect::Error> {
//! let launch = Launch {
//!     command: vec!["./train".into()],
//!     library: "/opt/tracesmith/libtracesmith_inject.so".into(),
//!     preload: Preload::Yes,
//!     injection: Injection::ByDriver,
//!     wait: Wait::Primary,
//! };
//! let destination = Destination { path: "train.sbt".into(), existing: Existing::Refuse };
//! let (ended, report) = profile(launch, Capture::default(), destination)?;
//! println!("{ended:?}: {} kernels", report.rows.kernels);
//! # Ok(())
//! # }
//! ```
//!
//! - [`profile()`] starts a program under the collector; [`record()`] opens a
//!   window in programs that were armed ([`environment()`]); [`dump()`] asks for
//!   what a flight recorder holds.
//! - [`Capture`] says what to record and when, [`Report`] what became of it.
//! - [`CounterSource`] is where counters of devices come from.

mod capture;
mod clocks;
mod counters;
mod dump;
mod end;
mod environment;
mod error;
mod flight;
pub mod fuzz;
mod health;
mod host;
mod identity;
mod launch;
mod mounts;
mod profile;
mod record;
mod report;
mod ring;
mod rows;
mod session;
mod signals;
mod target;
mod time;
mod trace_file;
mod uncaptured_processes;

pub use capture::{
    Announce, Capture, Destination, Existing, ReplayCaptureStart, STACK_MEMORY_BYTES, WindowSchedule,
};
pub use counters::{CounterSource, DeviceFacts, OpenCounters, Sample};
pub use dump::dump;
pub use end::End;
pub use environment::{CuptiPreinit, environment};
pub use error::Error;
pub use launch::{Injection, Launch, Preload, Wait};
pub use profile::profile;
pub use record::{Selection, record};
pub use report::{Loss, Report, RowCounts};
pub use tracesmith_symbols::{ModuleReport, Unresolved};
pub use tracesmith_wire::control::{CaptureRange, Kinds, Steps};
