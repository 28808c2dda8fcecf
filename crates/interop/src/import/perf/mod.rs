//! What `perf script` prints: samples of Linux programs with their stacks, as text.
//!
//! Every sample becomes a row; nothing is summed up. One sample is in memory at a time.

mod line;
#[cfg(test)]
mod tests;

use tracesmith_format::tables::{
    Caller, ClockKind, Frame, FrameKind, HealthCause, HostCall, HostCallKind, HostShape,
};
use tracesmith_format::{
    Address, Bytes, ClockId, FrameId, HostId, ImageId, ProcessId, StackId, StringId, ThreadId, Timestamp,
};

use crate::error::Error;
use crate::import::lines::Lines;
use crate::import::{Builder, ImportOptions, Importer, Input};
use line::{FirstLine, FrameLine, SampleLine, first_line, frame_line, source_line};

pub(super) const IMPORTER: Importer = Importer {
    name: "perf",
    title: "perf script",
    sniff,
    read,
};

/// Frames of one sample that are kept; the kernel's own limit is far below.
const MAX_FRAMES: usize = 64 << 10;
/// Addresses of the kernel begin here.
const KERNEL_ADDRESSES: u64 = 1 << 63;

/// The first line that is no comment must begin a record.
fn sniff(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.next().is_some_and(|line| first_line(line).is_some())
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut lines = Lines::new(input);
    let host = builder.host("")?;
    let mut samples = Samples {
        clock: builder.clock(ClockKind::MONOTONIC, "perf")?,
        host,
        open: None,
    };
    while let Some(line) = lines.next()? {
        if let Some(comment) = line.strip_prefix('#') {
            state_fact(comment, host, builder)?;
        } else if line.trim().is_empty() {
            samples.close(builder)?;
        } else {
            samples.take(&line, builder)?;
        }
    }
    samples.close(builder)?;
    lines.note(builder);
    Ok(())
}

/// Puts a sample together from its lines.
struct Samples {
    clock: ClockId,
    host: HostId,
    open: Option<Sample>,
}

/// The sample that is being read.
struct Sample {
    row: HostCall,
    event: StringId,
    /// From the innermost outwards.
    frames: Vec<Frame>,
    has_tracepoint: bool,
}

impl Samples {
    fn take(&mut self, line: &str, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let is_indented = line.starts_with(['\t', ' ']);
        if let (true, Some(sample)) = (is_indented, &mut self.open) {
            if let Some(frame) = frame_line(line) {
                return sample.add(&frame, builder);
            }
            if let (Some((file, number)), Some(frame)) = (source_line(line), sample.frames.last_mut()) {
                frame.file = builder.string(file)?;
                frame.line = number;
                return Ok(());
            }
        }
        match first_line(line) {
            Some(FirstLine::Sample(sample)) => {
                self.close(builder)?;
                self.open = Some(self.begin(&sample, builder)?);
                Ok(())
            }
            Some(FirstLine::Other(kind)) => {
                self.close(builder)?;
                builder.skip(kind, 1);
                Ok(())
            }
            None if line.trim_start().starts_with('[') => Ok(()), // perf's word for a frame without a source line
            None => {
                builder.skip("lines that are no sample", 1);
                Ok(())
            }
        }
    }

    fn begin(&self, line: &SampleLine<'_>, builder: &mut Builder<'_, '_>) -> Result<Sample, Error> {
        if line.process.is_none() {
            builder.doubt(
                HealthCause::OTHER,
                "samples whose process is not named; perf script -F +pid names it",
                1,
            );
        }
        let process = builder.process(self.host, line.process.unwrap_or(0));
        let thread = ThreadId(u64::from(line.thread));
        let name = builder.string(line.name)?;
        builder.thread_mut(process, thread).name = name;
        if line.process == Some(line.thread) {
            builder.process_mut(process).name = name;
        }
        let event = builder.string(line.event)?;
        let mut sample = Sample {
            row: HostCall {
                start: line.time,
                end: line.time,
                cpu: line.cpu.unwrap_or(0),
                argument: line.period.unwrap_or(0),
                caller: Caller { process, thread },
                shape: HostShape {
                    kind: HostCallKind::SAMPLE,
                    category: event,
                    ..HostShape::default()
                },
                ..HostCall::default()
            },
            event,
            frames: Vec::new(),
            has_tracepoint: false,
        };
        if line.time == Timestamp::NONE {
            builder.doubt(HealthCause::ZERO_TIME, "samples without a time", 1);
        }
        match frame_line(line.rest) {
            Some(frame) => sample.add(&frame, builder)?,
            None if !line.rest.is_empty() => {
                sample.row.detail = builder.string(line.rest)?;
                sample.has_tracepoint = true;
            }
            None => {}
        }
        Ok(sample)
    }

    fn close(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let Some(mut sample) = self.open.take() else {
            return Ok(());
        };
        let mut stack = StackId::NONE;
        for frame in sample.frames.iter().rev() {
            let frame: FrameId = builder.frame(frame.clone())?;
            stack = builder.stack_child(stack, frame)?;
        }
        sample.row.stack = stack;
        let innermost = sample.frames.first();
        sample.row.shape.image = innermost.map_or(ImageId::NONE, |frame| frame.image);
        let function = innermost.map_or(StringId::NONE, |frame| frame.function);
        // A tracepoint is what happened; any other event only says when one looked.
        sample.row.shape.name = if function.is_some() && !sample.has_tracepoint {
            function
        } else {
            sample.event
        };
        builder.push(self.clock, &sample.row)
    }
}

impl Sample {
    fn add(&mut self, line: &FrameLine<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        if self.frames.len() >= MAX_FRAMES {
            builder.skip("frames beyond the 65,536th of a sample", 1);
            return Ok(());
        }
        let is_kernel = line.address >= KERNEL_ADDRESSES || line.image.starts_with("[kernel");
        // The kernel is one for all processes.
        let process = if is_kernel {
            ProcessId::NONE
        } else {
            self.row.caller.process
        };
        let image = match line.image {
            "" => ImageId::NONE,
            path => builder.image(process, path)?,
        };
        self.frames.push(Frame {
            kind: match line.image {
                _ if is_kernel => FrameKind::KERNEL,
                path if path.contains("/perf-") && path.ends_with(".map") => FrameKind::JIT,
                _ => FrameKind::NATIVE,
            },
            image,
            address: Address(line.address),
            function: builder.string(line.function)?,
            ..Frame::default()
        });
        Ok(())
    }
}

/// A line of `perf script --header`, such as ` hostname : node7`.
fn state_fact(comment: &str, host: HostId, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some((key, value)) = comment.split_once(" : ") else {
        return Ok(());
    };
    let (key, value) = (key.trim(), value.trim());
    let text = builder.string(value)?;
    match key {
        "hostname" => builder.host_mut(host).name = text,
        "os release" => builder.host_mut(host).os = text,
        "cpudesc" => builder.host_mut(host).cpu = text,
        "nrcpus online" => builder.host_mut(host).cpus = value.parse().unwrap_or(0),
        "total memory" => {
            let kilobytes = value.trim_end_matches(" kB").parse().unwrap_or(0);
            builder.host_mut(host).memory = Bytes(u64::saturating_mul(kilobytes, 1024));
        }
        "cmdline" | "perf version" | "captured on" | "arch" => {
            builder.metadata(&format!("perf.{}", key.replace(' ', "_")), value)?;
        }
        _ => {}
    }
    Ok(())
}
