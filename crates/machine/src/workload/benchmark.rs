//! As many empty kernels as one likes, as fast as they go.

use std::time::{Duration, Instant};

use tracesmith_cuda::kernels::Kernels;

use super::open;
use crate::error::Error;

/// The name under which the kernels appear in a trace. No other part of the
/// benchmark runs a kernel of this name.
pub const KERNEL: &str = "noop";

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchmarkPlan {
    /// Kernels to launch.
    pub kernels: u64,
    /// Streams that take them in turns; at least one.
    pub streams: u32,
    /// The device, as CUDA counts.
    pub device: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchmarkReport {
    /// The device's name.
    pub device: String,
    /// Kernels launched.
    pub kernels: u64,
    /// Streams that took them.
    pub streams: u32,
    /// Until the last launch had returned: what it costs the host.
    pub launched: Duration,
    /// Until the last kernel was done.
    pub done: Duration,
}

impl BenchmarkReport {
    /// Kernels a second, until all were done.
    pub fn kernels_per_second(&self) -> f64 {
        self.kernels as f64 / self.done.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Runs it.
///
/// # Errors
///
/// What the driver says.
pub fn run(plan: BenchmarkPlan) -> Result<BenchmarkReport, Error> {
    let context = open(plan.device)?;
    let kernels = Kernels::load(&context)?;
    let streams = (0..plan.streams.max(1))
        .map(|_| context.stream())
        .collect::<Result<Vec<_>, _>>()?;
    // The first work in a stream makes the driver set things up. It has a kernel of its own, so that the counted
    // ones are those that were asked for.
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
