//! Real work for a GPU, to measure and to look at.
//!
//! - [`benchmark`]: as many empty kernels as one likes, as fast as they go.
//! - [`demo`]: a little of everything, with its results checked.

pub mod benchmark;
pub mod demo;

use tracesmith_cuda::driver::{Context, Driver};

use crate::error::Error;

/// Opens a device for work.
fn open(ordinal: u32) -> Result<Context, Error> {
    let driver = Driver::open()?;
    Ok(Context::of(&driver.device(ordinal)?)?)
}
