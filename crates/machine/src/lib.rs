//! The GPUs of this machine, whether they can be recorded, and test workloads.
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
//! - [`devices`]: the properties of each GPU.
//! - [`topology`]: the connections of GPUs to each other and to CPUs.
//! - [`counters`]: sampled counters, such as power and utilization.
//! - [`doctor`]: whether programs can be recorded on this machine.
//! - [`workload`]: GPU work for benchmarks and demos.
//!
//! All modules work on a machine without a GPU, with fewer results.

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
