//! What GPUs this machine has, whether they can be recorded, and work to try
//! them with.
//!
//! ```no_run
//! use tracesmith_machine::{DevicesReport, TopologyReport};
//!
//! let report = DevicesReport::new();
//! for device in &report.devices {
//!     println!("{} {:?}", device.name, device.capability);
//! }
//! println!("{}", TopologyReport::new(&report).pairs.len());
//! ```
//!
//! - [`devices`]: the GPUs, one by one.
//! - [`topology`]: how they are connected to each other and to CPUs.
//! - [`counters`]: what they do from moment to moment.
//! - [`doctor`]: whether a program's work on them can be recorded here.
//! - [`workload`]: real work for them.
//!
//! All of it answers, with less, on a machine without a GPU.

pub mod counters;
pub mod cpus;
pub mod devices;
pub mod doctor;
mod error;
pub mod topology;
pub mod workload;

pub use counters::Counters;
pub use devices::{Device, DevicesReport};
pub use doctor::{DoctorReport, Surroundings};
pub use error::Error;
pub use topology::TopologyReport;
