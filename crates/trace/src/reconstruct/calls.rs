//! Calls of the host in compact columns, thread by thread in the order of their start.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ApiCall, ApiDomain, Caller};
use tracesmith_format::{ProcessId, Projection, StackId, StringId, Table, ThreadId};

use super::class::CallClass;
use super::data_quality::DataQuality;
use super::intern::Interner;
use super::joins::Joins;
use super::ops::times_on;
use super::order::{order_by, put_in_order};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::selection::Selected;

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

    /// When the call before a call of the same thread ended, of those that stand within no other; 0 for the first.
    pub fn end_before(&self, call: CallId) -> u64 {
        let first = self.threads[self.thread_of(call)].calls.start;
        let outer = |mut at: usize| {
            while at > first && self.is_nested(at) {
                at -= 1;
            }
            at
        };
        match outer(call.index()) {
            at if at > first => self.end[outer(at - 1)],
            _ => 0,
        }
    }

    /// The thread that made a call: a place in `threads`.
    pub fn thread_of(&self, call: CallId) -> usize {
        self.threads
            .partition_point(|thread| thread.calls.end <= call.index())
    }

    /// The row of a call in its table. It is not kept, since few are ever asked for: blocks of its time are looked through.
    pub fn row_of(&self, trace: &Trace, call: CallId) -> Option<u64> {
        let (start, name) = (self.start[call.index()], self.get(call).name);
        let thread = &self.threads[self.thread_of(call)];
        let wanted = Projection::of::<ApiCall>(&["start", "caller", "shape.name"]).ok()?;
        trace.api_calls.find_row(
            &wanted,
            |block| {
                let (first, last) = trace.block_span(block);
                first.0 <= start && start <= last.0
            },
            |block, rows, row| {
                let caller = rows.caller.get(row);
                (caller.process, caller.thread, rows.shape.get(row).name)
                    == (thread.process, thread.thread, name)
                    && trace
                        .clock_map
                        .convert(block.header.clock, rows.start[row])
                        .time
                        .0
                        == start
            },
        )
    }

    /// Reads the calls of the selected processes. The joins go with them: they are of no use once device work is joined.
    pub(super) fn read(
        trace: &Trace,
        selected: &Selected,
        doubts: &mut DataQuality,
    ) -> Result<(Self, Joins), Error> {
        let mut gathered = Gathered::counted(trace, selected)?;
        gathered.read(trace, selected, doubts)?;
        gathered
            .threads
            .retain(|(thread, _)| selected.wants_process(thread.process));
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

/// Calls as they are read. Each goes to the place of its thread at once, for which calls are counted before.
struct Gathered {
    start: Vec<u64>,
    end: Vec<u64>,
    function: Vec<u32>,
    correlation: Vec<u64>,
    /// Empty until a call has one.
    stack: Vec<StackId>,
    callers: Interner<Caller>,
    /// Where the calls of each caller stand, and how many of them are there.
    threads: Vec<(HostThread, usize)>,
    functions: Interner<(StringId, CallClass)>,
}

impl Gathered {
    /// Makes room for the calls of each thread, in the order of process and number.
    fn counted(trace: &Trace, selected: &Selected) -> Result<Self, Error> {
        let mut callers = Interner::default();
        let mut counts: Vec<usize> = Vec::new();
        trace.api_calls.stream_wanted(
            &Projection::of::<ApiCall>(&["caller"])?,
            |_, rows: <ApiCall as Table>::Columns| {
                let mut counts = vec![0usize; rows.caller.values.len()];
                rows.caller.index.iter().for_each(|at| counts[*at as usize] += 1);
                (rows.caller.values, counts)
            },
            |(values, of_block)| {
                let numbers = callers.numbers(values);
                counts.resize(callers.values.len(), 0);
                for (number, count) in numbers.iter().zip(of_block) {
                    counts[*number as usize] += count;
                }
            },
        );
        for (caller, count) in callers.values.iter().zip(&mut counts) {
            let caller: &Caller = caller;
            if !selected.wants_process(caller.process) {
                *count = 0;
            }
        }
        let rows: usize = counts.iter().sum();
        if rows >= u32::MAX as usize {
            return Err(Error::TooLarge { what: "calls" });
        }
        let mut ranked: Vec<usize> = (0..counts.len()).collect();
        ranked.sort_by_key(|number| {
            let caller: &Caller = &callers.values[*number];
            (caller.process, caller.thread)
        });
        let mut firsts = vec![0; counts.len()];
        let mut first = 0;
        for number in ranked {
            firsts[number] = first;
            first += counts[number];
        }
        let threads = callers.values.iter().zip(firsts).zip(counts);
        let threads = threads.map(|((caller, first), count)| {
            let thread = HostThread {
                process: caller.process,
                thread: caller.thread,
                calls: first..first + count,
            };
            (thread, 0)
        });
        Ok(Gathered {
            start: vec![0; rows],
            end: vec![0; rows],
            function: vec![0; rows],
            correlation: vec![0; rows],
            stack: Vec::new(),
            threads: threads.collect(),
            callers,
            functions: Interner::default(),
        })
    }

    fn read(&mut self, trace: &Trace, selected: &Selected, doubts: &mut DataQuality) -> Result<(), Error> {
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
        trace.api_calls.stream_wanted(
            &wanted,
            |block, rows: <ApiCall as Table>::Columns| {
                let line = trace.clock_map.line(block.header.clock);
                (times_on(line, &rows.start, &rows.end), rows)
            },
            |((start, end), rows)| {
                let callers = self.callers.numbers(rows.caller.values.iter().copied());
                let functions = self.functions.numbers(rows.shape.values.iter().map(|shape| {
                    let class = *classes
                        .entry(shape.name)
                        .or_insert_with(|| class_of(trace.string(shape.name), shape.domain));
                    (shape.name, class)
                }));
                let wanted: Vec<bool> = rows
                    .caller
                    .values
                    .iter()
                    .map(|caller| selected.wants_process(caller.process))
                    .collect();
                for row in 0..start.len() {
                    if !wanted[rows.caller.index[row] as usize] {
                        continue;
                    }
                    let (start, mut end) = (start[row], end[row]);
                    if start == 0 || end < start {
                        doubts.calls_without_time += 1;
                        if start == 0 || end == 0 {
                            continue;
                        }
                        end = start;
                    }
                    let caller = callers[rows.caller.index[row] as usize] as usize;
                    // A block that could not be read when calls were counted, and can be now, is damage that was noted.
                    let Some((thread, count)) = self
                        .threads
                        .get_mut(caller)
                        .filter(|(thread, count)| *count < thread.calls.len())
                    else {
                        continue;
                    };
                    let at = thread.calls.start + *count;
                    *count += 1;
                    self.start[at] = start;
                    self.end[at] = end;
                    self.function[at] = functions[rows.shape.index[row] as usize];
                    self.correlation[at] = rows.correlation[row].0;
                    if rows.stack[row].is_some() {
                        self.stack.resize(self.start.len(), StackId::NONE);
                        self.stack[at] = rows.stack[row];
                    }
                }
            },
        );
        Ok(())
    }

    fn in_order(mut self) -> (Calls, Joins) {
        self.threads.sort_by_key(|(thread, _)| thread.calls.start);
        self.close_up();
        for number in 0..self.threads.len() {
            self.sort(self.threads[number].0.calls.clone());
        }
        let threads: Vec<HostThread> = self.threads.into_iter().map(|(thread, _)| thread).collect();
        let mut nested = vec![false; self.start.len()];
        for thread in &threads {
            let mut open_until = 0;
            for at in thread.calls.clone() {
                nested[at] = self.start[at] < open_until;
                if !nested[at] {
                    open_until = self.end[at];
                }
            }
        }
        let joins = Joins::new(&threads, &self.correlation, (&self.start, &self.end));
        let calls = Calls {
            start: self.start,
            end: self.end,
            function: self.function,
            stack: self.stack,
            nested,
            functions: self.functions.values,
            threads,
        };
        (calls, joins)
    }

    /// Gives back the room of calls that were counted and have no time, or could not be read.
    fn close_up(&mut self) {
        let mut first = 0;
        for (thread, count) in &mut self.threads {
            let filled = thread.calls.start..thread.calls.start + *count;
            thread.calls = first..first + *count;
            if filled.start != first {
                self.start.copy_within(filled.clone(), first);
                self.end.copy_within(filled.clone(), first);
                self.function.copy_within(filled.clone(), first);
                self.correlation.copy_within(filled.clone(), first);
                if !self.stack.is_empty() {
                    self.stack.copy_within(filled, first);
                }
            }
            first = thread.calls.end;
        }
        self.start.truncate(first);
        self.end.truncate(first);
        self.function.truncate(first);
        self.correlation.truncate(first);
        self.stack.truncate(first);
    }

    /// Puts calls of a thread in the order of their start. Of two that start together the longer one, which holds the
    /// other, comes first.
    fn sort(&mut self, calls: std::ops::Range<usize>) {
        let first = calls.start;
        let key = |row: usize| (self.start[first + row], Reverse(self.end[first + row]));
        let Some(order) = order_by(calls.len(), key) else {
            return;
        };
        put_in_order(order, |a, b| {
            let (a, b) = (first + a, first + b);
            self.start.swap(a, b);
            self.end.swap(a, b);
            self.function.swap(a, b);
            self.correlation.swap(a, b);
            if !self.stack.is_empty() {
                self.stack.swap(a, b);
            }
        });
    }
}
