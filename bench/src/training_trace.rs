//! A whole trace of the training job, as the benches of analysis read it.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tracesmith_format::{ClockId, Writer, WriterOptions};

use crate::workload::{Training, kernel_names};

/// Writes a file with so many kernels and two calls for each.
pub fn write_trace(path: &Path, kernels: usize) -> Result<(), Box<dyn Error>> {
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
    let mut job = Training::new(7, &names);
    let mut left = kernels;
    while left > 0 {
        let count = left.min(100_000);
        let (calls, kernels) = job.launches(count, functions);
        for call in &calls {
            writer.push(ClockId(1), call)?;
        }
        for kernel in &kernels {
            writer.push(ClockId(1), kernel)?;
        }
        left -= count;
    }
    writer.finish()?.flush()?;
    Ok(())
}
