//! A whole trace of the training job, as the benches of analysis read it.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tracesmith_format::{ClockId, DeviceId, ProcessId, Writer, WriterOptions};

use crate::workload::{Training, kernel_names};

/// Writes a file with so many kernels and two calls for each.
pub fn write_trace(path: &Path, kernels: usize) -> Result<(), Box<dyn Error>> {
    write_jobs(path, kernels, 1)
}

/// The same of several jobs that run at the same time, each with a process and a GPU of its own.
pub fn write_jobs(path: &Path, kernels: usize, jobs: u32) -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), WriterOptions::default())?;
    let mut names = Vec::new();
    for name in kernel_names() {
        names.push(writer.string(&name)?);
    }
    let functions = [
        writer.string("cudaLaunchKernel")?,
        writer.string("cudaStreamIsCapturing")?,
        writer.string("cudaStreamSynchronize")?,
    ];
    let seeds = 7..7 + u64::from(jobs);
    let mut all: Vec<Training> = seeds.map(|seed| Training::new(seed, &names)).collect();
    let mut left = kernels;
    while left > 0 {
        for (number, job) in (1..).zip(&mut all) {
            let count = left.min(100_000);
            let (calls, kernels) = job.launches(count, functions);
            for mut call in calls {
                call.caller.process = ProcessId(number);
                writer.push(ClockId(1), &call)?;
            }
            for mut kernel in kernels {
                kernel.place.process = ProcessId(number);
                kernel.place.device = DeviceId(number);
                writer.push(ClockId(1), &kernel)?;
            }
            left -= count;
        }
    }
    writer.finish()?.flush()?;
    Ok(())
}
