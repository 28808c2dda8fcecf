//! A test double of NVIDIA's libraries: one shared object with the C functions of libcuda, libcupti and libnvidia-ml
//! that allocates, copies and runs a handful of known kernels on the CPU, and hands out activity records and callbacks
//! as the real ones do. It is never shipped.
//!
//! ```no_run
//! use tracesmith_fake_cuda::{Options, install};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = std::env::temp_dir().join("fake");
//! install(&folder)?;
//! std::process::Command::new("./program")
//!     .env("LD_LIBRARY_PATH", &folder)
//!     .envs(Options::default().variables())
//!     .status()?;
//! # Ok(())
//! # }
//! ```

mod call;
mod clock;
mod code;
mod config;
mod cupti;
mod driver;
mod engine;
mod install;
mod nvml;
mod nvtx;
mod options;
mod pointer;
mod process;
mod runtime;

pub use install::{Error, LIBRARY_NAMES, install, library};
pub use options::{CuptiVersion, Options, variable};
