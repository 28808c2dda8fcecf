//! Who wrote the operation whose gradient this is.
//!
//! Backward work of PyTorch is launched by threads of its own, far from the program's code. Its operators carry the number
//! of the forward operator that they belong to: in recordings of PyTorch's profiler as a field, in those of others as part
//! of the names of NVTX ranges (`AddmmBackward0, seq = 12`), which `torch.autograd.profiler.emit_nvtx` makes. So a launch
//! within a backward operator is joined to the forward operator of the same number, and to the code that called that.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use tracesmith_format::{Columns, CorrelationId, ProcessId, StackId, ThreadId, Timestamp};

use crate::error::Error;
use crate::model::event::{EventKind, EventName};
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::query::Query;

/// For calls of backward work, the forward operators that it belongs to.
#[derive(Debug, Default)]
pub struct ForwardReport {
    by_call: FxHashMap<(ProcessId, CorrelationId), Forward>,
}

/// A forward operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Its name.
    pub operator: EventName,
    /// When it began, on the trace's timeline.
    pub start: Timestamp,
    /// Who called it; none when nothing of it has a stack.
    pub stack: StackId,
}

/// An operator with a number.
#[derive(Clone, Copy)]
struct Operator {
    process: ProcessId,
    thread: ThreadId,
    start: u64,
    end: u64,
    sequence: i64,
    name: EventName,
    stack: StackId,
}

#[derive(Clone, Copy)]
struct Call {
    start: u64,
    correlation: CorrelationId,
    stack: StackId,
}

type Thread = (ProcessId, ThreadId);

impl ForwardReport {
    /// Reads operators and calls of a trace.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        let operator_rows = trace.host_calls.rows().saturating_add(trace.markers.rows());
        trace.file.admit_rows(
            "operators, ranges and calls",
            &[
                Kept::new(operator_rows, size_of::<Operator>()),
                Kept::new(trace.api_calls.rows(), size_of::<Call>()),
            ],
        )?;
        let (backward, forward): (Vec<Operator>, Vec<Operator>) = operators(trace)
            .into_iter()
            .partition(|operator| is_backward(trace, operator.name));
        if backward.is_empty() || forward.is_empty() {
            return Ok(Self::default());
        }
        let calls = calls(trace);
        let mut by_number: FxHashMap<(ProcessId, i64), Vec<Operator>> = FxHashMap::default();
        for operator in forward {
            let key = (operator.process, operator.sequence);
            by_number.entry(key).or_default().push(operator);
        }
        let mut report = Self::default();
        for node in outermost(backward) {
            let numbered = by_number.get(&(node.process, node.sequence));
            let earlier: Vec<&Operator> = numbered
                .into_iter()
                .flatten()
                .filter(|operator| operator.end <= node.start)
                .collect();
            let Some(operator) = forward_of(trace, &node, &earlier) else {
                continue;
            };
            // One that launched nothing was called from where those around it were.
            let around = earlier.iter().filter(|other| other.thread == operator.thread);
            let stack = std::iter::once(&operator)
                .chain(around)
                .map(|operator| stack_of(operator, &calls))
                .find(|stack| stack.is_some());
            let forward = Forward {
                operator: operator.name,
                start: Timestamp(operator.start),
                stack: stack.unwrap_or(StackId::NONE),
            };
            let within = calls.get(&(node.process, node.thread));
            for call in within
                .into_iter()
                .flat_map(|calls| between(calls, node.start, node.end))
            {
                report.by_call.insert((node.process, call.correlation), forward);
            }
        }
        Ok(report)
    }

    /// The forward operator behind the work of a call.
    pub fn of_call(&self, process: ProcessId, correlation: CorrelationId) -> Option<Forward> {
        self.by_call.get(&(process, correlation)).copied()
    }

    /// Calls of backward work whose forward operator is known.
    pub fn calls(&self) -> usize {
        self.by_call.len()
    }
}

/// All that carry a number: operators of PyTorch's profiler, and ranges of NVTX.
fn operators(trace: &Trace) -> Vec<Operator> {
    let mut operators = Vec::new();
    for (block, rows) in trace.host_calls.stream() {
        let time = |time| trace.clock_map.convert(block.header.clock, time).time.0;
        for row in (0..rows.len()).filter(|row| rows.sequence[*row] > 0) {
            let caller = rows.caller.get(row);
            operators.push(Operator {
                process: caller.process,
                thread: caller.thread,
                start: time(rows.start[row]),
                end: time(rows.end[row]),
                sequence: rows.sequence[row],
                name: EventName::Id(rows.shape.get(row).name),
                stack: rows.stack[row],
            });
        }
    }
    let query = Query {
        kinds: Some(vec![EventKind::Marker]),
        ..Query::default()
    };
    trace.for_each_event(&query, |found| {
        let event = &found.event;
        if let Some(sequence) = number_in(trace.event_name(event)) {
            operators.push(Operator {
                process: event.process,
                thread: event.thread,
                start: event.start.0,
                end: event.end.0,
                sequence,
                name: event.name,
                stack: StackId::NONE,
            });
        }
        ControlFlow::Continue(())
    });
    operators
}

/// The calls of each thread, by time.
fn calls(trace: &Trace) -> FxHashMap<Thread, Vec<Call>> {
    let mut calls: FxHashMap<Thread, Vec<Call>> = FxHashMap::default();
    let query = Query {
        kinds: Some(vec![EventKind::ApiCall]),
        ..Query::default()
    };
    trace.for_each_event(&query, |found| {
        let event = &found.event;
        if event.start.is_some() {
            calls
                .entry((event.process, event.thread))
                .or_default()
                .push(Call {
                    start: event.start.0,
                    correlation: event.correlation,
                    stack: event.stack,
                });
        }
        ControlFlow::Continue(())
    });
    for calls in calls.values_mut() {
        calls.sort_by_key(|call| call.start);
    }
    calls
}

/// The number in `aten::addmm, seq = 12, op_id = 30`.
fn number_in(name: &str) -> Option<i64> {
    let (_, rest) = name.split_once(", seq = ")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Nodes of the backward graph are named after the operator whose gradient they make.
fn is_backward(trace: &Trace, name: EventName) -> bool {
    bare(trace, name).contains("Backward")
}

fn bare(trace: &Trace, name: EventName) -> &str {
    let name = match name {
        EventName::Id(id) => trace.string(id),
        EventName::Word(word) => word,
    };
    name.split(',').next().unwrap_or(name)
}

/// Those that lie in no other of their thread: what a node calls has numbers of no meaning.
fn outermost(mut nodes: Vec<Operator>) -> Vec<Operator> {
    nodes.sort_by_key(|node| (node.process, node.thread, node.start, std::cmp::Reverse(node.end)));
    let mut open: Option<(Thread, u64)> = None;
    nodes.retain(|node| {
        let thread = (node.process, node.thread);
        let is_inside = open.is_some_and(|(of, end)| of == thread && node.start < end);
        if !is_inside {
            open = Some((thread, node.end));
        }
        !is_inside
    });
    nodes
}

/// Of the operators with a node's number the one that it is named after, else the outermost; the last before it, for
/// threads count by themselves.
fn forward_of<'o>(trace: &Trace, node: &Operator, earlier: &[&'o Operator]) -> Option<&'o Operator> {
    let wanted = gradient_of(bare(trace, node.name));
    earlier.iter().copied().max_by_key(|operator| {
        let is_named = plain(bare(trace, operator.name)) == wanted;
        (
            is_named,
            operator.end - operator.start.min(operator.end),
            operator.start,
        )
    })
}

/// `autograd::engine::evaluate_function: AddmmBackward0` is the gradient of `addmm`.
fn gradient_of(node: &str) -> String {
    let name = node.rsplit([' ', ':']).next().unwrap_or(node);
    let name = name.split("Backward").next().unwrap_or(name);
    plain(name)
}

/// `aten::native_layer_norm` and `NativeLayerNorm` are the same.
fn plain(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.chars()
        .filter(|letter| *letter != '_')
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// Who called an operator: its own stack, or that of a launch in it.
fn stack_of(operator: &Operator, calls: &FxHashMap<Thread, Vec<Call>>) -> StackId {
    if operator.stack.is_some() {
        return operator.stack;
    }
    let calls = calls.get(&(operator.process, operator.thread));
    calls
        .into_iter()
        .flat_map(|calls| between(calls, operator.start, operator.end))
        .map(|call| call.stack)
        .find(|stack| stack.is_some())
        .unwrap_or(StackId::NONE)
}

fn between(calls: &[Call], start: u64, end: u64) -> &[Call] {
    let first = calls.partition_point(|call| call.start < start);
    let last = calls.partition_point(|call| call.start <= end);
    &calls[first..last.max(first)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_names() {
        assert_eq!(number_in("aten::addmm, seq = 12, op_id = 30"), Some(12));
        assert_eq!(number_in("AddmmBackward0, seq = 12"), Some(12));
        assert_eq!(number_in("aten::addmm"), None);
        assert_eq!(number_in("x, seq = "), None);
    }

    #[test]
    fn nodes_are_named_after_operators() {
        for (node, operator) in [
            ("AddmmBackward0", "aten::addmm"),
            (
                "autograd::engine::evaluate_function: NativeLayerNormBackward0",
                "aten::native_layer_norm",
            ),
            (
                "ScaledDotProductFlashAttentionBackward0",
                "aten::_scaled_dot_product_flash_attention",
            ),
        ] {
            assert_eq!(gradient_of(node), plain(operator));
        }
    }
}
