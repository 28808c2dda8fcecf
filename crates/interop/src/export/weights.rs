//! What a trace's stacks weigh: the sums that flame graphs are drawn from.
//!
//! Weights are summed by stack before anything is written, so memory follows the distinct stacks, not the events: work
//! without one waits, outside of memory where there is much of it, until its launch is found. Device
//! work is shown below the code that launched it, as its innermost frame. Where no stack was recorded, the ranges and calls
//! that were open on the launching thread stand in for it (see [`Nesting`]), so that nothing is left out.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{FrameKind, HostCallKind, MemoryOperation};
use tracesmith_format::{Columns, ProcessId, StackId, StringId, Timestamp};
use tracesmith_trace::{Event, EventColumns, EventName, FrameView, Trace};

use crate::error::Error;
use crate::export::nesting::{Keep, Nesting, PathId};
use crate::export::spill::Spill;
use crate::export::{ExportOptions, ExportReport, Weight};

/// What a weight belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weighed {
    /// The process.
    pub(super) process: ProcessId,
    stack: StackId,
    path: PathId,
    leaf: Option<EventName>,
}

impl Weighed {
    /// Whether it has a stack, and not only what stands in for one.
    pub(super) fn has_stack(&self) -> bool {
        self.stack.is_some()
    }
}

/// The weights of a trace.
pub(super) struct Weights<'t> {
    trace: &'t Trace,
    nesting: Option<Nesting>,
    /// Work without a stack, with the number of its name and its weight.
    waiting: Spill<WAITING_WORDS>,
    names: Names,
    /// The weight of everything that has one.
    pub(super) sums: BTreeMap<Weighed, u64>,
    /// What was weighed.
    pub(super) report: ExportReport,
}

/// Process, correlation, name and weight.
const WAITING_WORDS: usize = 4;

/// Names of events, each with a number.
#[derive(Default)]
pub(super) struct Names {
    list: Vec<EventName>,
    known: FxHashMap<EventName, u64>,
}

impl Names {
    pub(super) fn number(&mut self, name: EventName) -> u64 {
        let list = &mut self.list;
        *self.known.entry(name).or_insert_with(|| {
            list.push(name);
            list.len() as u64 - 1
        })
    }

    pub(super) fn name(&self, number: u64) -> EventName {
        self.list[number as usize]
    }
}

/// One frame of a weighed stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FrameText {
    /// The function, kernel or range.
    pub(super) name: String,
    /// The source file; may be none.
    pub(super) file: StringId,
    /// The line there; 0 is not known.
    pub(super) line: u32,
    /// What kind of thing it is.
    pub(super) origin: FrameOrigin,
}

/// What stands in a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FrameOrigin {
    /// A function of the program or of a library.
    #[default]
    Native,
    /// A function of Python.
    Python,
    /// Code made at run time.
    Jit,
    /// Not code of the host: work of a device, or a range that stands for code.
    Work,
}

impl<'t> Weights<'t> {
    /// Weighs a trace.
    pub(super) fn of(trace: &'t Trace, options: &ExportOptions) -> Result<Self, Error> {
        let mut weights = Weights {
            trace,
            nesting: None,
            waiting: Spill::default(),
            names: Names::default(),
            sums: BTreeMap::new(),
            report: ExportReport::default(),
        };
        match options.weight {
            Weight::GpuTime | Weight::Launches => weights.device_work(options),
            Weight::AllocatedBytes => weights.allocations(options),
            Weight::Samples => weights.samples(options),
        }
        weights.place_waiting()?;
        Ok(weights)
    }

    /// The frames of what was weighed, the outermost first.
    pub(super) fn frames(&self, weighed: &Weighed) -> Vec<FrameText> {
        let path = self.nesting.as_ref().map(|nesting| nesting.names(weighed.path));
        let names: Vec<EventName> = path.into_iter().flatten().chain(weighed.leaf).collect();
        frame_texts(self.trace, weighed.stack, &names)
    }

    /// A text of the trace.
    pub(super) fn string(&self, id: StringId) -> &str {
        self.trace.string(id)
    }

    fn add(&mut self, weighed: Weighed, weight: u64) {
        self.report.events += 1;
        let sum = self.sums.entry(weighed).or_default();
        *sum = sum.saturating_add(weight);
    }

    /// Adds an event as the innermost frame of the code that asked for it.
    fn add_event(&mut self, event: &Event, weight: u64) {
        if !event.stack.is_some() && event.correlation.is_some() {
            let name = self.names.number(event.name);
            let process = u64::from(event.process.0);
            self.waiting.push([process, event.correlation.0, name, weight]);
            return;
        }
        let weighed = Weighed {
            process: event.process,
            stack: event.stack,
            path: PathId::default(),
            leaf: Some(event.name),
        };
        self.add(weighed, weight);
    }

    /// Adds the work that has no stack, below what its launch was in the midst of.
    fn place_waiting(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let mut nesting = Nesting::of(self.trace, Keep::InRanges);
        let mut asked = nesting.asked(waiting)?;
        self.nesting = Some(nesting);
        while let Some(([process, _, name, weight], launch)) = asked.next()? {
            let weighed = Weighed {
                process: ProcessId(process as u32),
                stack: StackId::NONE,
                path: launch.map_or(PathId::default(), |launch| launch.path),
                leaf: Some(self.names.name(name)),
            };
            self.add(weighed, weight);
        }
        Ok(())
    }

    fn device_work(&mut self, options: &ExportOptions) {
        let trace = self.trace;
        macro_rules! add {
            ($($table:ident),*) => {$(
                for (block, rows) in trace.$table.stream() {
                    options.note(block);
                    for row in 0..rows.len() {
                        let event = trace.on_timeline(rows.event(row), block);
                        if options.wants(event.start, event.end, rows.place.get(row)) {
                            let weight = match options.weight {
                                Weight::Launches => 1,
                                _ => event.duration(),
                            };
                            self.add_event(&event, weight);
                        }
                    }
                }
            )*};
        }
        add!(kernels, copies, sets);
    }

    fn allocations(&mut self, options: &ExportOptions) {
        let trace = self.trace;
        for (block, rows) in trace.allocations.stream() {
            options.note(block);
            for row in 0..rows.len() {
                let event = trace.on_timeline(rows.event(row), block);
                let taken = rows.shape.get(row).operation == MemoryOperation::ALLOCATE;
                if taken && options.wants(event.start, event.end, rows.place.get(row)) {
                    self.add_event(&event, rows.bytes[row].0);
                }
            }
        }
    }

    /// Samples may come without times, and then a stretch of time holds none of them.
    fn samples(&mut self, options: &ExportOptions) {
        let trace = self.trace;
        for (block, rows) in trace.host_calls.stream() {
            options.note(block);
            for row in 0..rows.len() {
                let time: Timestamp = trace.clock_map.convert(block.header.clock, rows.start[row]).time;
                if rows.shape.get(row).kind != HostCallKind::SAMPLE || !options.wants_time(time, time) {
                    continue;
                }
                if !rows.stack[row].is_some() {
                    self.report.left_out += 1;
                    continue;
                }
                let weighed = Weighed {
                    process: rows.caller.get(row).process,
                    stack: rows.stack[row],
                    path: PathId::default(),
                    leaf: None,
                };
                self.add(weighed, rows.argument[row].max(1));
            }
        }
    }
}

/// The frames of a stack, the outermost first, and further names below them.
pub(super) fn frame_texts(trace: &Trace, stack: StackId, names: &[EventName]) -> Vec<FrameText> {
    let stack = trace.stack(stack);
    let frames = stack.frames.iter().rev().map(|frame| frame_text(trace, frame));
    let below = names.iter().map(|name| FrameText {
        name: match name {
            EventName::Id(id) => trace.string(*id).to_owned(),
            EventName::Word(word) => (*word).to_owned(),
        },
        file: StringId::NONE,
        line: 0,
        origin: FrameOrigin::Work,
    });
    frames.chain(below).collect()
}

/// A frame's function, or what is known instead, and where it is written.
fn frame_text(trace: &Trace, frame: &FrameView) -> FrameText {
    let (file, line) = match &frame.symbol {
        Some(symbol) => (symbol.file, symbol.line),
        None => (frame.frame.file, frame.frame.line),
    };
    FrameText {
        name: trace.frame_name(frame),
        file,
        line,
        origin: match frame.frame.kind {
            FrameKind::PYTHON => FrameOrigin::Python,
            FrameKind::JIT => FrameOrigin::Jit,
            FrameKind::DEVICE => FrameOrigin::Work,
            _ => FrameOrigin::Native,
        },
    }
}
