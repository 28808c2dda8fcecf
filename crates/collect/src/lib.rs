//! Receives records from profiled programs and writes them to a trace.
//!
//! Targets write records to rings in shared memory. One event loop reads the rings of all targets, converts records
//! to rows and writes the rows immediately. If a target crashes, all records in its rings are saved. If the collector
//! is killed, the file is readable up to that point.
//!
//! ```no_run
//! use tracesmith_collect::{
//!     Capture, Destination, Existing, Forwarding, Injection, Launch, Preload, Wait, profile,
//! };
//!
//! # fn main() -> Result<(), tracesmith_collect::Error> {
//! let launch = Launch {
//!     command: vec!["./train".into()],
//!     library: "/opt/tracesmith/libtracesmith_inject.so".into(),
//!     preload: Preload::Yes,
//!     injection: Injection::ByDriver,
//!     wait: Wait::Primary,
//!     forwarding: Forwarding::Program,
//! };
//! let destination = Destination { path: "train.sbt".into(), existing: Existing::Refuse };
//! let (ended, report) = profile(launch, Capture::default(), destination)?;
//! println!("{ended:?}: {} kernels", report.rows.kernels);
//! # Ok(())
//! # }
//! ```
//!
//! - [`profile()`] starts a program under the collector.
//! - [`record()`] attaches to programs that were started with the variables of [`environment()`].
//! - [`Operator`] directs a recording, for tools. [`Event`] tells how far it is.
//! - [`dump()`] requests the contents of a flight recorder.
//! - [`Capture`] states what to record and when. [`Report`] is the result.
//! - [`CounterSource`] provides the counters of devices.

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
mod operator;
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
pub use error::{Error, Refusal};
pub use launch::{Forwarding, Injection, Launch, Preload, Wait};
pub use operator::{Event, Operator};
pub use profile::profile;
pub use record::{Selection, record};
pub use report::{Loss, Report, RowCounts};
pub use tracesmith_symbols::{ModuleReport, Unresolved};
pub use tracesmith_wire::control::{CaptureRange, Kinds, Steps};
