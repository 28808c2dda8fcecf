//! GPU work for benchmarks and demos.
//!
//! - [`benchmark`]: launches empty kernels as fast as possible.
//! - [`demo`]: most kinds of GPU work, with checked results.

pub mod benchmark;
pub mod demo;

use tracesmith_cuda::driver::{Context, Driver};

use crate::error::Error;

/// Opens a device.
fn open(ordinal: u32) -> Result<Context, Error> {
    let driver = Driver::open()?;
    Ok(Context::of(&driver.device(ordinal)?)?)
}
