//! Counts what a captured trace holds and how many kernels are joined to the
//! call that launched them; one line of `key value` pairs for each trace.
//!
//! `cargo run --release -p tracesmith-bench --example check_capture -- train.sbt`
#![allow(clippy::print_stdout, reason = "the line is what this program is for")]

use std::{
    collections::{BTreeMap, HashSet},
    env,
    error::Error,
    path::Path,
};

use tracesmith_format::{
    Columns, ImageId, ProcessId, StackId,
    tables::{FrameKind, HealthCause},
};
use tracesmith_symbols::{Extent, Module, Sources};
use tracesmith_trace::Trace;

fn main() -> Result<(), Box<dyn Error>> {
    for path in env::args().skip(1) {
        println!("{}", summary(Path::new(&path))?);
    }
    Ok(())
}

fn summary(path: &Path) -> Result<String, Box<dyn Error>> {
    let trace = Trace::open(path)?;
    let mut calls: HashSet<(ProcessId, u64)> = HashSet::new();
    for (_, columns) in trace.api_calls.columns() {
        for row in 0..columns.len() {
            let call = columns.row(row);
            calls.insert((call.caller.process, call.correlation.0));
        }
    }
    let (mut kernels, mut joined, mut untimed, mut in_graphs) = (0u64, 0u64, 0u64, 0u64);
    let mut distinct = HashSet::new();
    let mut stacks = Stacks::default();
    for (_, columns) in trace.kernels.columns() {
        for row in 0..columns.len() {
            let kernel = columns.row(row);
            let key = (kernel.place.process, kernel.correlation.0);
            kernels += 1;
            joined += u64::from(calls.contains(&key));
            untimed += u64::from(kernel.start.0 == 0 || kernel.end.0 < kernel.start.0);
            in_graphs += u64::from(kernel.graph_node.0 != 0);
            distinct.insert((key, kernel.graph_node.0));
            stacks.add(&trace, kernel.stack);
        }
    }
    let health = trace.health();
    let lost = |cause: HealthCause| -> u64 {
        health
            .recorded
            .iter()
            .filter(|item| item.cause == cause)
            .map(|item| item.count.max(1))
            .sum()
    };
    // Their counts are of lost launches.
    let died = health.recorded.iter();
    let died = died
        .filter(|item| item.cause == HealthCause::PROCESS_DIED)
        .count();
    Ok(format!(
        "kernels {kernels} distinct {} joined {joined} untimed {untimed} graph_kernels {in_graphs} copies {} sets {} api {} \
         syncs {} allocations {} markers {} modules {} counters {} processes {} bytes {} ring_full {} vendor_dropped {} \
         conflicts {} died {} {}",
        distinct.len(),
        trace.copies.rows(),
        trace.sets.rows(),
        trace.api_calls.rows(),
        trace.syncs.rows(),
        trace.allocations.rows(),
        trace.markers.rows(),
        trace.modules.rows(),
        trace.counters.rows(),
        trace.processes.len(),
        trace.file_bytes(),
        lost(HealthCause::RING_FULL),
        lost(HealthCause::VENDOR_DROPPED),
        lost(HealthCause::CONFLICT),
        died,
        stacks.summary(&trace),
    ))
}

/// The stacks of kernels.
#[derive(Default)]
struct Stacks {
    kernels: u64,
    distinct: HashSet<StackId>,
}

impl Stacks {
    fn add(&mut self, trace: &Trace, stack: StackId) {
        if self.distinct.contains(&stack) {
            self.kernels += 1;
        } else if stack.is_some() && !trace.stack(stack).frames.is_empty() {
            self.kernels += 1;
            self.distinct.insert(stack);
        }
    }

    /// Frames are those of distinct stacks. Of native frames, those count that are in a file that names all its
    /// functions: what was stripped names nothing but what it exports.
    fn summary(&self, trace: &Trace) -> String {
        let (mut native, mut python) = (0u64, 0u64);
        let mut by_image: BTreeMap<ImageId, (u64, u64)> = BTreeMap::new();
        let mut addresses = HashSet::new();
        for stack in &self.distinct {
            for frame in trace.stack(*stack).frames {
                match frame.frame.kind {
                    FrameKind::PYTHON => python += 1,
                    _ => native += 1,
                }
                if frame.frame.kind == FrameKind::NATIVE && addresses.insert(frame.id) {
                    let counts = by_image.entry(frame.frame.image).or_default();
                    counts.0 += 1;
                    counts.1 += u64::from(frame.symbol.is_some());
                }
            }
        }
        let with_symbols = by_image
            .iter()
            .filter(|(image, _)| names_all_functions(trace, **image));
        let (resolvable, named) =
            with_symbols.fold((0, 0), |sum, (_, counts)| (sum.0 + counts.0, sum.1 + counts.1));
        format!(
            "with_stack {} stacks {} native_frames {native} python_frames {python} resolvable {resolvable} named {named}",
            self.kernels,
            self.distinct.len(),
        )
    }
}

/// Whether the file of an image, which must still be on this machine, has more than its exports to tell.
fn names_all_functions(trace: &Trace, image: ImageId) -> bool {
    let Some(image) = trace.image(image) else {
        return false;
    };
    let path = Path::new(trace.string(image.path));
    Module::open(path, trace.string(image.build_id), &Sources::default())
        .is_ok_and(|module| module.extent() != Extent::Exports)
}
