//! Folded stacks for flame graph tools: `main;work;leaf 42`, the outermost frame first.
//!
//! Weights are summed by stack before anything is written, so memory follows the distinct stacks, not the events.

use std::collections::BTreeMap;

use tracesmith_format::tables::{HostCallKind, MemoryOperation};
use tracesmith_format::{Columns, StackId, Timestamp};

use crate::error::Error;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way, Weight};
use crate::model::stacks::FrameView;
use crate::model::trace::Trace;

pub(super) const EXPORTER: Exporter = Exporter {
    name: "folded",
    aliases: &["collapsed"],
    title: "folded stacks, for flame graph tools",
    extension: "folded",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let (weights, report) = weights_by_stack(trace, options);
    if weights.is_empty() {
        return Err(Error::Export {
            format: "folded",
            problem: "no event with a stack has such a weight".to_owned(),
        });
    }
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, weight) in weights {
        let line = lines.entry(folded(trace, stack)).or_default();
        *line = line.saturating_add(weight);
    }
    for (line, weight) in lines {
        out.put(format!("{line} {weight}\n").as_bytes())?;
    }
    Ok(report)
}

/// The weight of every stack that has one.
pub(super) fn weights_by_stack(
    trace: &Trace,
    options: &ExportOptions,
) -> (BTreeMap<StackId, u64>, ExportReport) {
    let mut sums = Sums {
        weights: BTreeMap::new(),
        report: ExportReport::default(),
    };
    match options.weight {
        Weight::GpuTime | Weight::Launches => sums.device_work(trace, options),
        Weight::AllocatedBytes => sums.allocations(trace, options),
        Weight::Samples => sums.samples(trace, options),
    }
    (sums.weights, sums.report)
}

struct Sums {
    weights: BTreeMap<StackId, u64>,
    report: ExportReport,
}

impl Sums {
    fn add(&mut self, stack: StackId, weight: u64) {
        if stack.is_some() {
            self.report.events += 1;
            let sum = self.weights.entry(stack).or_default();
            *sum = sum.saturating_add(weight);
        } else {
            self.report.left_out += 1;
        }
    }

    fn device_work(&mut self, trace: &Trace, options: &ExportOptions) {
        macro_rules! add {
            ($($table:ident),*) => {$(
                for (block, rows) in trace.$table.stream() {
                    options.note(block);
                    for row in 0..rows.len() {
                        let time = |time| trace.clock_map.convert(block.header.clock, time).time;
                        let (start, end) = (time(rows.start[row]), time(rows.end[row]));
                        if !options.wants(start, end, rows.place.get(row)) {
                            continue;
                        }
                        let weight = match options.weight {
                            Weight::Launches => 1,
                            _ => end.0.saturating_sub(start.0),
                        };
                        self.add(rows.stack[row], weight);
                    }
                }
            )*};
        }
        add!(kernels, copies, sets);
    }

    fn allocations(&mut self, trace: &Trace, options: &ExportOptions) {
        for (block, rows) in trace.allocations.stream() {
            options.note(block);
            for row in 0..rows.len() {
                let time = trace.clock_map.convert(block.header.clock, rows.time[row]).time;
                let taken = rows.shape.get(row).operation == MemoryOperation::ALLOCATE;
                if taken && options.wants(time, time, rows.place.get(row)) {
                    self.add(rows.stack[row], rows.bytes[row].0);
                }
            }
        }
    }

    /// Samples may come without times, and then a stretch of time holds none of them.
    fn samples(&mut self, trace: &Trace, options: &ExportOptions) {
        for (block, rows) in trace.host_calls.stream() {
            options.note(block);
            for row in 0..rows.len() {
                let time: Timestamp = trace.clock_map.convert(block.header.clock, rows.start[row]).time;
                if rows.shape.get(row).kind == HostCallKind::SAMPLE && options.wants_time(time, time) {
                    self.add(rows.stack[row], rows.argument[row].max(1));
                }
            }
        }
    }
}

/// A stack as a line. A semicolon would end a frame and a line break the line: both are replaced.
fn folded(trace: &Trace, stack: StackId) -> String {
    let mut frames: Vec<String> = trace
        .stack(stack)
        .frames
        .iter()
        .map(|frame| frame_name(trace, frame).replace([';', '\n', '\r'], ":"))
        .collect();
    frames.reverse();
    frames.join(";")
}

/// A frame's function, or what is known instead.
pub(super) fn frame_name(trace: &Trace, frame: &FrameView) -> String {
    let function = match &frame.symbol {
        Some(symbol) => symbol.function,
        None => frame.frame.function,
    };
    match trace.string(function) {
        "" => format!("0x{:x}", frame.frame.address.0),
        name => name.to_owned(),
    }
}
