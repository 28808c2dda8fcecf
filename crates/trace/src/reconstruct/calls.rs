//! Calls of the host in compact columns, thread by thread in the order of their start.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ApiCall, ApiDomain, Caller};
use tracesmith_format::{CorrelationId, ProcessId, Projection, StackId, StringId, Table, ThreadId};

use super::class::CallClass;
use super::doubts::Doubts;
use super::intern::Interner;
use super::ops::{expected_rows, filled_up, picked, push_stack, times_on};
use crate::error::Error;
use crate::model::trace::Trace;

/// Number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

impl CallId {
    /// None.
    pub const NONE: Self = CallId(u32::MAX);

    /// Whether this names one.
    #[inline]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thread of the host, and where its calls stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostThread {
    /// Its process.
    pub process: ProcessId,
    /// The operating system's number of it.
    pub thread: ThreadId,
    /// Its calls.
    pub calls: std::ops::Range<usize>,
}

/// All calls of a trace, column by column.
#[derive(Debug, Default)]
pub struct Calls {
    /// When each began.
    pub start: Vec<u64>,
    /// When each ended; never before its start.
    pub end: Vec<u64>,
    /// The function of each: a place in `functions`.
    pub function: Vec<u32>,
    /// The code that called; empty when the trace has no stacks.
    pub stack: Vec<StackId>,
    /// Whether each stands within another call of its thread.
    nested: Vec<bool>,
    /// The distinct functions.
    pub functions: Vec<(StringId, CallClass)>,
    /// The threads, in the order of process and number.
    pub threads: Vec<HostThread>,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The function's name.
    pub name: StringId,
    /// What it asks for.
    pub class: CallClass,
    /// The code that called.
    pub stack: StackId,
}

impl Calls {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// One of them.
    pub fn get(&self, id: CallId) -> Call {
        let at = id.index();
        let (name, class) = self.functions[self.function[at] as usize];
        Call {
            start: self.start[at],
            end: self.end[at],
            name,
            class,
            stack: self.stack.get(at).copied().unwrap_or(StackId::NONE),
        }
    }

    /// What one of them asks for.
    #[inline]
    pub fn class(&self, at: usize) -> CallClass {
        self.functions[self.function[at] as usize].1
    }

    /// Whether one of them stands within another call of its thread, as a driver's call within the runtime's.
    #[inline]
    pub fn is_nested(&self, at: usize) -> bool {
        self.nested[at]
    }

    /// The thread that made a call: a place in `threads`.
    pub fn thread_of(&self, call: CallId) -> usize {
        self.threads
            .partition_point(|thread| thread.calls.end <= call.index())
    }

    /// Reads all calls. The joins go with them: they are of no use once device work is joined.
    pub(super) fn read(trace: &Trace, doubts: &mut Doubts) -> Result<(Self, Joins), Error> {
        let mut gathered = Gathered::default();
        let rows = expected_rows(trace, &[trace.api_calls.rows()]);
        gathered.start.reserve(rows);
        gathered.end.reserve(rows);
        gathered.thread.reserve(rows);
        gathered.function.reserve(rows);
        gathered.correlation.reserve(rows);
        let wanted = Projection::of::<ApiCall>(&[
            "start",
            "end",
            "correlation",
            "stack",
            "caller",
            "shape.name",
            "shape.domain",
        ])?;
        let mut classes: FxHashMap<StringId, CallClass> = FxHashMap::default();
        let mut is_full = false;
        trace.api_calls.stream_wanted(
            &wanted,
            |block, rows: <ApiCall as Table>::Columns| {
                let line = trace.clock_map.line(block.header.clock);
                (times_on(line, &rows.start, &rows.end), rows)
            },
            |((start, end), rows)| {
                if gathered.start.len() + start.len() >= u32::MAX as usize {
                    is_full = true;
                    return;
                }
                let threads = gathered.threads.numbers(rows.caller.values.iter().copied());
                let functions = gathered.functions.numbers(rows.shape.values.iter().map(|shape| {
                    let class = *classes
                        .entry(shape.name)
                        .or_insert_with(|| class_of(trace.string(shape.name), shape.domain));
                    (shape.name, class)
                }));
                for row in 0..start.len() {
                    let (start, mut end) = (start[row], end[row]);
                    if start == 0 || end < start {
                        doubts.calls_without_time += 1;
                        if start == 0 || end == 0 {
                            continue;
                        }
                        end = start;
                    }
                    gathered.start.push(start);
                    gathered.end.push(end);
                    gathered.thread.push(threads[rows.caller.index[row] as usize]);
                    gathered.function.push(functions[rows.shape.index[row] as usize]);
                    gathered.correlation.push(rows.correlation[row].0);
                    push_stack(&mut gathered.stack, gathered.start.len(), rows.stack[row]);
                }
            },
        );
        if is_full {
            return Err(Error::TooLarge { what: "calls" });
        }
        Ok(gathered.in_order())
    }
}

fn class_of(name: &str, domain: ApiDomain) -> CallClass {
    match (CallClass::of_function(name), domain) {
        (CallClass::Other, ApiDomain::OS) if name.contains("lock") || name.contains("wait") => {
            CallClass::Lock
        }
        (class, _) => class,
    }
}

#[derive(Default)]
struct Gathered {
    start: Vec<u64>,
    end: Vec<u64>,
    thread: Vec<u32>,
    function: Vec<u32>,
    correlation: Vec<u64>,
    stack: Vec<StackId>,
    threads: Interner<Caller>,
    functions: Interner<(StringId, CallClass)>,
}

impl Gathered {
    fn in_order(mut self) -> (Calls, Joins) {
        let (order, threads) = self.order();
        let thread = std::mem::take(&mut self.thread);
        drop(thread);
        let stack = picked(filled_up(self.stack, self.start.len()), &order);
        let start = picked(self.start, &order);
        let end = picked(self.end, &order);
        let function = picked(self.function, &order);
        let correlation = picked(self.correlation, &order);
        drop(order);
        let mut nested = vec![false; start.len()];
        for thread in &threads {
            let mut open_until = 0;
            for at in thread.calls.clone() {
                nested[at] = start[at] < open_until;
                if !nested[at] {
                    open_until = end[at];
                }
            }
        }
        let joins = Joins::new(&threads, &correlation);
        let calls = Calls {
            start,
            end,
            function,
            stack,
            nested,
            functions: self.functions.values,
            threads,
        };
        (calls, joins)
    }

    /// By thread, and by time within it: a bucket for each thread, which is sorted unless it is in order already. Of two
    /// that start together the longer one, which holds the other, comes first.
    fn order(&self) -> (Option<Vec<u32>>, Vec<HostThread>) {
        let mut ranked: Vec<(Caller, u32)> = self.threads.values.iter().copied().zip(0..).collect();
        ranked.sort_by_key(|(caller, _)| (caller.process, caller.thread));
        let mut sizes = vec![0usize; ranked.len()];
        for thread in &self.thread {
            sizes[*thread as usize] += 1;
        }
        let mut next = vec![0usize; ranked.len()];
        let mut threads = Vec::with_capacity(ranked.len());
        let mut first = 0;
        for (caller, number) in ranked {
            let end = first + sizes[number as usize];
            next[number as usize] = first;
            threads.push(HostThread {
                process: caller.process,
                thread: caller.thread,
                calls: first..end,
            });
            first = end;
        }
        let mut order = vec![0u32; self.start.len()];
        for (at, thread) in self.thread.iter().enumerate() {
            let place = &mut next[*thread as usize];
            order[*place] = at as u32;
            *place += 1;
        }
        for thread in &threads {
            let calls = &mut order[thread.calls.clone()];
            let key = |at: &u32| {
                (
                    self.start[*at as usize],
                    std::cmp::Reverse(self.end[*at as usize]),
                )
            };
            if !calls.is_sorted_by_key(key) {
                calls.sort_by_key(key);
            }
        }
        (Some(order), threads)
    }
}

/// Finds the call of a correlation, which is unique within its process.
pub(super) struct Joins {
    by_process: FxHashMap<ProcessId, ProcessJoins>,
}

/// Correlations are counted up by the runtime, so a plain list from the lowest to the highest is small. Numbers of
/// another kind are kept in a map.
enum ProcessJoins {
    List { lowest: u64, calls: Vec<u32> },
    Map(FxHashMap<u64, u32>),
}

/// Entries of a list for each call: beyond that, a map is smaller.
const LIST_ENTRIES_PER_CALL: u64 = 8;

impl Joins {
    fn new(threads: &[HostThread], correlations: &[u64]) -> Self {
        let mut ranges: FxHashMap<ProcessId, (u64, u64, u64)> = FxHashMap::default();
        for thread in threads {
            let range = ranges.entry(thread.process).or_insert((u64::MAX, 0, 0));
            for correlation in correlations[thread.calls.clone()]
                .iter()
                .filter(|number| **number != 0)
            {
                *range = (range.0.min(*correlation), range.1.max(*correlation), range.2 + 1);
            }
        }
        let mut by_process: FxHashMap<ProcessId, ProcessJoins> = ranges
            .into_iter()
            .filter(|(_, (.., count))| *count > 0)
            .map(|(process, (lowest, highest, count))| {
                let entries = highest - lowest;
                let joins = if entries < count.saturating_mul(LIST_ENTRIES_PER_CALL) {
                    let calls = vec![u32::MAX; entries as usize + 1];
                    ProcessJoins::List { lowest, calls }
                } else {
                    ProcessJoins::Map(FxHashMap::default())
                };
                (process, joins)
            })
            .collect();
        for thread in threads {
            let Some(joins) = by_process.get_mut(&thread.process) else {
                continue;
            };
            for at in thread.calls.clone().filter(|at| correlations[*at] != 0) {
                // A runtime's call stands before the driver's call within it, and is the one that the program made.
                match joins {
                    ProcessJoins::List { lowest, calls } => {
                        let entry = &mut calls[(correlations[at] - *lowest) as usize];
                        *entry = (*entry).min(at as u32);
                    }
                    ProcessJoins::Map(map) => {
                        let entry = map.entry(correlations[at]).or_insert(u32::MAX);
                        *entry = (*entry).min(at as u32);
                    }
                }
            }
        }
        Joins { by_process }
    }

    /// The call with this correlation.
    #[inline]
    pub(super) fn find(&self, process: ProcessId, correlation: CorrelationId) -> CallId {
        if !correlation.is_some() {
            return CallId::NONE;
        }
        let found = match self.by_process.get(&process) {
            Some(ProcessJoins::List { lowest, calls }) => correlation
                .0
                .checked_sub(*lowest)
                .and_then(|at| calls.get(usize::try_from(at).ok()?))
                .copied(),
            Some(ProcessJoins::Map(map)) => map.get(&correlation.0).copied(),
            None => None,
        };
        found.map_or(CallId::NONE, CallId)
    }
}
