//! Where threads were: operators, ranges and functions at a time, and the line that made a call.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{HostCall, HostCallKind, MarkerKind};
use tracesmith_format::{Projection, StackId, StringId};

use super::source_line::{own_line, source_line};
use crate::error::Error;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, CallId, HostSpans, Interner, NestedSpans, for_each_marker, times_on};

/// The operators, ranges and functions of all threads.
#[derive(Debug)]
pub(super) struct HostPlaces {
    /// The outermost operators.
    pub(super) operators: NestedSpans,
    /// The innermost ranges.
    pub(super) ranges: NestedSpans,
    /// The innermost Python functions of the program itself.
    pub(super) functions: NestedSpans,
}

impl HostPlaces {
    /// The outermost operator that a call was made in.
    pub(super) fn operator(&self, activity: &Activity, call: CallId) -> Option<StringId> {
        if !call.is_some() {
            return None;
        }
        let thread = activity.calls.thread_of(call);
        self.operators.at(thread, activity.calls.start[call.index()])
    }

    /// Nothing is known of any thread.
    pub(super) fn none(activity: &Activity) -> Self {
        let threads = &activity.calls.threads;
        let empty = || HostSpans::default().innermost(threads);
        HostPlaces {
            operators: empty(),
            ranges: empty(),
            functions: empty(),
        }
    }

    pub(super) fn of(trace: &Trace, activity: &Activity) -> Result<Self, Error> {
        let rows = trace.host_calls.rows().saturating_add(trace.markers.rows());
        trace.file.admit_rows(
            "operators and ranges",
            &[Kept::new(rows, 2 * size_of::<(u64, u64, StringId)>())],
        )?;
        let (mut operators, mut functions, mut ranges) = Default::default();
        let columns = ["start", "end", "caller", "shape.name", "shape.kind"];
        let wanted = Projection::of::<HostCall>(&columns)?;
        trace.host_calls.stream_wanted(
            &wanted,
            |block, rows| {
                let line = trace.clock_map.line(block.header.clock);
                (times_on(line, &rows.start, &rows.end), rows)
            },
            |((start, end), rows)| {
                for row in 0..start.len() {
                    let (caller, shape) = (rows.caller.get(row), rows.shape.get(row));
                    let name = trace.string(shape.name);
                    let spans: &mut HostSpans = match shape.kind {
                        HostCallKind::OPERATOR if is_annotation(name) => &mut ranges,
                        HostCallKind::OPERATOR => &mut operators,
                        HostCallKind::PYTHON if is_own_function(name) => &mut functions,
                        _ => continue,
                    };
                    spans.push(
                        (caller.process, caller.thread),
                        (start[row], end[row], shape.name),
                    );
                }
            },
        );
        for_each_marker(trace, |caller, shape, (start, end)| {
            if shape.kind == MarkerKind::NESTED_RANGE {
                let ranges: &mut HostSpans = &mut ranges;
                ranges.push((caller.process, caller.thread), (start, end, shape.name));
            }
        })?;
        let threads = &activity.calls.threads;
        Ok(HostPlaces {
            operators: operators.outermost(threads),
            ranges: ranges.innermost(threads),
            functions: functions.innermost(threads),
        })
    }
}

/// Older versions of PyTorch store their own ranges as operators: `ProfilerStep#12`, `Optimizer.step#SGD.step`,
/// `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`.
fn is_annotation(name: &str) -> bool {
    name.contains('#') && !name.contains("::")
}

/// Files and folders at the import root that are not the program's: packages, and Python's own library.
const PACKAGES: [&str; 32] = [
    "abc.py",
    "asyncio/",
    "codecs.py",
    "collections/",
    "concurrent/",
    "contextlib.py",
    "copy.py",
    "dataclasses.py",
    "enum.py",
    "functools.py",
    "importlib/",
    "inspect.py",
    "json/",
    "logging/",
    "multiprocessing/",
    "numpy/",
    "os.py",
    "pickle.py",
    "posixpath.py",
    "queue.py",
    "random.py",
    "re/",
    "runpy.py",
    "selectors.py",
    "socket.py",
    "threading.py",
    "torch/",
    "torchvision/",
    "triton/",
    "typing.py",
    "warnings.py",
    "weakref.py",
];

/// Whether a Python function is of the program. PyTorch names functions `train.py(21): load_batch`, with a path that starts
/// at the import root.
fn is_own_function(name: &str) -> bool {
    let is_package = PACKAGES.iter().any(|package| name.starts_with(package));
    let is_installed = name.contains("site-packages/") || name.contains("dist-packages/");
    !name.starts_with('<') && name.contains(".py(") && !is_package && !is_installed
}

/// What stands for a call of which nothing is known.
pub(crate) const NO_PLACE: &str = "no stack";

/// What is known of a stack.
#[derive(Clone, Copy)]
struct StackPlaces {
    /// The program's own Python line.
    own: Option<u32>,
    /// Any place.
    any: u32,
    is_in_backward: bool,
}

/// Finds the line of the program that made a call.
///
/// In this order: the program's own Python line in the stack of the call; its own Python function on the thread at that
/// time; for threads that run no Python code of the program, as PyTorch's backward threads do, the line or function in
/// which another thread waits in `backward`; any other place in the stack.
pub(super) struct LineFinder<'a> {
    trace: &'a Trace,
    activity: &'a Activity,
    places: &'a HostPlaces,
    names: Interner<String>,
    stacks: FxHashMap<StackId, StackPlaces>,
    /// Of each thread the calls with Python lines of the program, by their start: whether they are made in `backward`,
    /// and the line.
    own_calls: FxHashMap<usize, Vec<(u64, bool, u32)>>,
}

impl<'a> LineFinder<'a> {
    pub(super) fn new(trace: &'a Trace, activity: &'a Activity, places: &'a HostPlaces) -> Self {
        let mut finder = LineFinder {
            trace,
            activity,
            places,
            names: Interner::default(),
            stacks: FxHashMap::default(),
            own_calls: FxHashMap::default(),
        };
        let calls = &activity.calls;
        // Without stacks there is nothing to find.
        let threads = if calls.stack.is_empty() {
            &[]
        } else {
            &calls.threads[..]
        };
        for (thread, host) in threads.iter().enumerate() {
            for call in host.calls.clone() {
                let stack = calls.get(CallId(call as u32)).stack;
                if let Some(places) = finder.places_of(stack)
                    && let Some(own) = places.own
                {
                    let of_thread = finder.own_calls.entry(thread).or_default();
                    of_thread.push((calls.start[call], places.is_in_backward, own));
                }
            }
        }
        for of_thread in finder.own_calls.values_mut() {
            of_thread.sort_unstable();
        }
        finder
    }

    /// The line of a call. `stack` is that of the call, or of the graph node that it launches.
    pub(super) fn line(&mut self, call: CallId, stack: StackId) -> Option<u32> {
        let in_stack = self.places_of(stack);
        if let Some(own) = in_stack.and_then(|places| places.own) {
            return Some(own);
        }
        if !call.is_some() {
            return in_stack.map(|places| places.any);
        }
        let calls = &self.activity.calls;
        let (thread, time) = (calls.thread_of(call), calls.start[call.index()]);
        if let Some(name) = self.places.functions.at(thread, time) {
            return Some(self.names.number(self.trace.string(name).to_owned()));
        }
        if let Some(line) = self.waiting_in_backward(thread, time) {
            return Some(self.names.number(line));
        }
        in_stack.map(|places| places.any)
    }

    /// The same, or else the operator, or [`NO_PLACE`].
    pub(super) fn line_or_operator(&mut self, call: CallId, stack: StackId) -> u32 {
        if let Some(line) = self.line(call, stack) {
            return line;
        }
        let name = match self.places.operator(self.activity, call) {
            Some(name) => self.trace.string(name),
            None => NO_PLACE,
        };
        self.names.number(name.to_owned())
    }

    /// The names of all places that were found, by their numbers.
    pub(super) fn names(self) -> Vec<String> {
        self.names.values
    }

    /// The line in which another thread of the process waits for the backward pass.
    fn waiting_in_backward(&self, thread: usize, time: u64) -> Option<String> {
        let threads = &self.activity.calls.threads;
        let process = threads[thread].process;
        let is_other = |other: &usize| *other != thread && threads[*other].process == process;
        let others = || (0..threads.len()).filter(is_other);
        if !self.own_calls.is_empty() {
            return others().find_map(|other| {
                let own_calls = self.own_calls.get(&other)?;
                let next = own_calls.partition_point(|(start, ..)| *start <= time);
                let (_, is_in_backward, line) = own_calls[..next].last()?;
                is_in_backward.then(|| in_backward(&self.names.values[*line as usize]))
            });
        }
        // PyTorch's profiler records Python functions instead of stacks. Only the backward pass runs on threads without
        // functions, while the thread that started it waits.
        let operator = self.places.operators.at(thread, time)?;
        if !self.trace.string(operator).contains("ackward") {
            return None;
        }
        let name = others().find_map(|other| self.places.functions.at(other, time))?;
        Some(in_backward(self.trace.string(name)))
    }

    fn places_of(&mut self, stack: StackId) -> Option<StackPlaces> {
        if !stack.is_some() {
            return None;
        }
        if let Some(known) = self.stacks.get(&stack) {
            return Some(*known);
        }
        let own = own_line(self.trace, stack).map(|line| self.names.number(line));
        let any = self.names.number(source_line(self.trace, stack));
        let view = self.trace.stack(stack);
        let is_backward = |name: &str| name == "backward" || name.ends_with(".backward");
        let is_in_backward = view
            .frames
            .iter()
            .any(|frame| is_backward(&self.trace.frame_name(frame)));
        let places = StackPlaces {
            own,
            any,
            is_in_backward,
        };
        self.stacks.insert(stack, places);
        Some(places)
    }
}

fn in_backward(line: &str) -> String {
    format!("{line}, backward pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_stored_as_operators_are_found() {
        assert!(is_annotation("Optimizer.step#SGD.step"));
        assert!(!is_annotation("aten::linear"));
        assert!(!is_annotation("c10d::allreduce_#1"));
    }

    #[test]
    fn functions_of_packages_are_not_the_programs() {
        assert!(is_own_function("train.py(21): load_batch"));
        assert!(is_own_function("/home/me/project/train.py(3): <module>"));
        for name in [
            "torch/nn/modules/module.py(1532): _call_impl",
            "<built-in method linear of type object at 0x7f>",
            "nn.Module: Linear_0",
            "inspect.py(2501): _signature_from_callable",
            "/usr/lib/python3/dist-packages/x/y.py(3): z",
        ] {
            assert!(!is_own_function(name), "{name}");
        }
    }
}
