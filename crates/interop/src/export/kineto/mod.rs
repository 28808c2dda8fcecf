//! What PyTorch's profiler would have written: Kineto's JSON, for HolisticTraceAnalysis, TensorBoard and whatever else
//! reads it.
//!
//! It is trace-event JSON with names, categories and arguments of its own. The importer's mapping
//! (docs/reference/interop/json.md) is reversed: an imported file is written as it was, including `External id` and all
//! arguments without a column. Recorded traces get the events that Kineto would have written.
//!
//! Host events stay on their thread, overlapping or not, since readers build call stacks by thread; device work that
//! overlaps gets further lanes, since its stream is also among its arguments.
//!
//! PyTorch writes a file for each process, and so does [`KinetoOptions::process`]. A file of several processes has numbers
//! that are unique among them: readers join events by correlation ID and `External id` alone.

mod device;
mod head;
mod host;
mod occupancy;

use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;
use tracesmith_format::{ProcessId, StackId, StringId};
use tracesmith_trace::{FrameView, Trace};

use crate::error::Error;
use crate::export::json_members::members;
use crate::export::json_text::{push_key, push_members, push_positive, push_string};
use crate::export::owners::{Owned, processes_with_events};
use crate::export::stage::{Dialect, SAID, Stage};
use crate::export::sweep::{External, Piece, Rows, Score, sweep};
use crate::export::trace_event::EventText;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "kineto",
    aliases: &["pytorch"],
    title: "JSON of PyTorch's profiler, for HolisticTraceAnalysis and TensorBoard",
    extension: "pt.trace.json",
    way: Way::Stream(write),
};

/// Which part of a trace a Kineto file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KinetoOptions {
    /// Only events of this process. Counters of a device are in the file of the first process that uses it.
    pub process: Option<ProcessId>,
}

/// The processes with files of their own. A trace of one process, or of one file of PyTorch's profiler, has one.
pub fn kineto_processes(trace: &Trace) -> Vec<ProcessId> {
    let first: Vec<ProcessId> = trace.processes.iter().map(|process| process.id).take(1).collect();
    if trace.processes.len() < 2 || is_file_of_profiler(trace) {
        return first;
    }
    match processes_with_events(trace) {
        found if found.len() > 1 => found,
        _ => first,
    }
}

/// Whether a trace was one file of PyTorch's profiler. It numbers all that it saw, children of the process included.
fn is_file_of_profiler(trace: &Trace) -> bool {
    let has = |prefix: &str| trace.metadata.keys().any(|key| key.starts_with(prefix));
    Origin::of(trace) == Origin::Profiler && !has("import.file2.") && !has("import.json.tracesmith")
}

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let origin = Origin::of(trace);
    let zero = head::Zero::of(trace, origin);
    let only = options.kineto.process;
    let processes = match only {
        Some(process) => vec![process],
        None => kineto_processes(trace),
    };
    let stage = Stage::new(trace, Dialect::Kineto, only);
    head::write(&stage, &processes, &zero, out)?;
    let mut kineto = Kineto {
        stage,
        base: zero.time,
        origin,
        owned: only.map(|process| Owned::new(trace, process)),
        processes,
        stacks: RwLock::default(),
    };
    let report = sweep(trace, options, &mut kineto, out)?;
    out.put(b"\n]}\n")?;
    Ok(report)
}

/// The export on its way.
struct Kineto<'t> {
    stage: Stage<'t>,
    base: u64,
    origin: Origin,
    /// What tells the events of the file from those of other processes.
    owned: Option<Owned>,
    /// The processes of the file.
    processes: Vec<ProcessId>,
    /// Texts of stacks: a launch in a loop has the same one each time.
    stacks: RwLock<FxHashMap<StackId, Box<[u8]>>>,
}

/// Where the trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// From a file of such a profiler: numbers of it that are 0 were 0.
    Profiler,
    /// From elsewhere: they are not known.
    Elsewhere,
}

impl Origin {
    fn of(trace: &Trace) -> Self {
        let is_json = |key: &String| key.starts_with("import.json.") || key == "import.distributed";
        if trace.metadata.keys().any(is_json) {
            Origin::Profiler
        } else {
            Origin::Elsewhere
        }
    }
}

impl Score for Kineto<'_> {
    fn wants(&self, rows: &Rows, row: usize) -> bool {
        self.owned.as_ref().is_none_or(|owned| owned.has(rows, row))
    }

    fn place(&mut self, piece: &mut Piece, item: usize) -> u32 {
        // Such a file says collectives with its operators and kernels, and their arguments are still there.
        if self.origin == Origin::Profiler && matches!(piece.rows, Rows::Collective(_)) {
            return SAID;
        }
        self.stage.place(piece, item)
    }

    fn take_definitions(&mut self) -> Vec<u8> {
        self.stage.tracks.take_definitions()
    }

    fn write(&self, piece: &Piece, items: Range<usize>, out: &mut Vec<u8>) {
        match &piece.rows {
            Rows::Kernel(rows) => self.kernels(piece, rows, items, out),
            Rows::MemoryCopy(rows) => self.copies(piece, rows, items, out),
            Rows::MemorySet(rows) => self.sets(piece, rows, items, out),
            Rows::Synchronization(rows) => self.syncs(piece, rows, items, out),
            Rows::GraphLaunch(rows) => self.graph_launches(piece, rows, items, out),
            Rows::Collective(rows) => self.collectives(piece, rows, items, out),
            Rows::ApiCall(rows) => self.api_calls(piece, rows, items, out),
            Rows::HostCall(rows) => self.host_calls(piece, rows, items, out),
            Rows::Marker(rows) => self.markers(piece, rows, items, out),
            Rows::Allocation(rows) => self.allocations(piece, rows, items, out),
            Rows::Counter(rows) => self.counters(piece, rows, items, out),
            Rows::Flow(rows) => self.flows(piece, rows, items, out),
        }
    }
}

impl Kineto<'_> {
    fn text(&self) -> EventText<'_> {
        EventText {
            tracks: &self.stage.tracks,
            base: self.base,
        }
    }

    fn string(&self, id: StringId) -> &str {
        self.stage.trace.string(id)
    }

    /// Adds a number that is 0 also where 0 may be real.
    fn push_index(&self, out: &mut Vec<u8>, key: &str, number: u64) {
        if number > 0 || self.origin == Origin::Profiler {
            push_key(out, key);
            crate::export::json_text::push_number(out, number);
            out.push(b',');
        }
    }

    fn push_label(&self, out: &mut Vec<u8>, key: &str, label: StringId) {
        if label.is_some() {
            push_key(out, key);
            push_string(out, self.string(label));
            out.push(b',');
        }
    }

    /// A number that is unique within a process, such as a correlation ID, as one that is unique within the file. 0 is
    /// none and stays 0.
    fn unique(&self, process: ProcessId, number: u64) -> u64 {
        if number == 0 || self.processes.len() < 2 {
            return number;
        }
        let at = self.processes.iter().position(|known| *known == process);
        number
            .wrapping_mul(self.processes.len() as u64)
            .wrapping_add(at.unwrap_or(0) as u64)
    }

    /// Adds the process of an event that is on a device. In a file of one process it is that one.
    fn push_process(&self, out: &mut Vec<u8>, process: ProcessId) {
        if self.processes.len() > 1 && process.is_some() {
            push_positive(out, "process", self.stage.pids.process(process));
        }
    }

    /// Adds the framework's number of a row. What else it says comes last.
    fn push_external_id(&self, out: &mut Vec<u8>, process: ProcessId, external: External) {
        push_positive(out, "External id", self.unique(process, external.id));
    }

    /// Adds a text of the source: its members, when it is an object in JSON.
    fn push_rest(&self, out: &mut Vec<u8>, rest: StringId) {
        match members(self.string(rest)) {
            Some(members) => push_members(out, &members),
            None => self.push_label(out, "detail", rest),
        }
    }

    /// Adds a stack as PyTorch writes one, the innermost call first.
    fn push_stack(&self, out: &mut Vec<u8>, stack: StackId) {
        if !stack.is_some() {
            return;
        }
        let known = self.stacks.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(&stack) {
            out.extend_from_slice(text);
            return;
        }
        drop(known);
        let text = self.stack(stack);
        out.extend_from_slice(&text);
        let mut known = self.stacks.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(stack, text);
    }

    fn stack(&self, stack: StackId) -> Box<[u8]> {
        let frames = self.stage.trace.stack(stack).frames;
        let lines: Vec<String> = frames.iter().map(|frame| self.frame(frame)).collect();
        let mut text = Vec::new();
        push_key(&mut text, "Call stack");
        push_string(&mut text, &lines.join(";"));
        text.push(b',');
        text.into_boxed_slice()
    }

    fn frame(&self, frame: &FrameView) -> String {
        let (file, line) = match &frame.symbol {
            Some(symbol) => (symbol.file, symbol.line),
            None => (frame.frame.file, frame.frame.line),
        };
        let function = self.stage.trace.frame_name(frame);
        if file.is_some() {
            format!("{}({line}): {function}", self.string(file))
        } else {
            function
        }
    }
}
