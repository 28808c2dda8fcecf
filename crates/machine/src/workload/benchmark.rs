//! Launches empty kernels as fast as possible.

use std::time::{Duration, Instant};

use tracesmith_cuda::kernels::Kernels;

use super::open;
use crate::error::Error;

/// The name of the kernels in a trace. No other part of the benchmark runs a kernel with this name.
pub const KERNEL: &str = "noop";

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchmarkPlan {
    /// Number of kernels.
    pub kernels: u64,
    /// Number of streams. Launches alternate between them. At least one.
    pub streams: u32,
    /// The CUDA device ordinal.
    pub device: u32,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchmarkReport {
    /// The device's name.
    pub device: String,
    /// Kernels launched.
    pub kernels: u64,
    /// Number of streams.
    pub streams: u32,
    /// Time until the last launch call returned: the host's cost.
    pub launched: Duration,
    /// Time until the last kernel finished.
    pub done: Duration,
}

impl BenchmarkReport {
    /// Kernels per second until all have finished.
    pub fn kernels_per_second(&self) -> f64 {
        self.kernels as f64 / self.done.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Runs the benchmark.
///
/// # Errors
///
/// If the driver reports an error.
pub fn run(plan: BenchmarkPlan) -> Result<BenchmarkReport, Error> {
    let context = open(plan.device)?;
    let kernels = Kernels::load(&context)?;
    let streams = (0..plan.streams.max(1))
        .map(|_| context.stream())
        .collect::<Result<Vec<_>, _>>()?;
    // The first operation in a stream makes the driver set it up. It uses another kernel, so that the number of
    // counted kernels is exact.
    let memory = context.memory::<f32>(32)?;
    for stream in &streams {
        kernels.fill(&memory, 0.0, stream)?;
    }
    context.synchronize()?;

    let started = Instant::now();
    let mut turns = streams.iter().cycle();
    for _ in 0..plan.kernels {
        if let Some(stream) = turns.next() {
            kernels.noop(stream)?;
        }
    }
    let launched = started.elapsed();
    context.synchronize()?;
    let done = started.elapsed();
    Ok(BenchmarkReport {
        device: context.device().name()?,
        kernels: plan.kernels,
        streams: streams.len() as u32,
        launched,
        done,
    })
}
