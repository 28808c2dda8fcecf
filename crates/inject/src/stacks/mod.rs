//! The stacks of callers.
//!
//! A callback at the entry of a call captures the stack, looks up its ID and stores
//! the ID in a table by the call's correlation ID. When CUPTI delivers the records
//! of the call, they get the stack ID from there. So a launch costs an unwind, a
//! hash and one store. Only a new stack is sent, as a definition.
//!
//! - [`images`]: the program and its libraries, as the unwinder sees them.
//! - [`stack_by_correlation`]: from a call to its stack.
//! - [`nodes`]: from a node of a graph to its stack.
//! - [`python`]: the interpreter, if there is one, and the code that it runs.
//! - [`thread_unwinder`]: captures the stacks of one thread.

mod images;
mod nodes;
mod python;
mod stack_by_correlation;
mod thread_unwinder;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use images::KnownImages;
use nodes::Nodes;
use python::Interpreter;
use stack_by_correlation::StackByCorrelation;
pub(crate) use thread_unwinder::forked;
use tracesmith_wire::control::Kinds;

use crate::{
    facts,
    sink::{Cause, Sink},
};

/// The stacks of this process.
#[derive(Default)]
pub(crate) struct Stacks {
    on: AtomicBool,
    /// Counts windows: a stack is sent once in each.
    window: AtomicU64,
    images: KnownImages,
    interpreter: Interpreter,
    by_correlation: StackByCorrelation,
    last_stack: AtomicU32,
    /// The last stack before the window: stacks up to it were sent in earlier windows.
    last_before: AtomicU32,
    nodes: Nodes,
    doubts: Doubts,
    cost: Cost,
}

/// The time that captures of stacks took. Only some are timed, because reading the
/// clock costs too.
#[derive(Default)]
struct Cost {
    timed: AtomicU64,
    nanos: AtomicU64,
}

/// One of so many stacks of a thread is timed.
const TIMED: u32 = 16;

/// What went wrong since the window began.
#[derive(Default)]
struct Doubts {
    /// Calls of threads that may keep nothing.
    refused: AtomicU64,
    /// Stacks that end at a frame that could not be left.
    broken: AtomicU64,
    /// Stacks with Python frames whose places are not known.
    apart: AtomicU64,
}

impl Stacks {
    /// Starts capturing stacks.
    pub(crate) fn begin(&self, kinds: Kinds, sink: &Sink) {
        self.by_correlation.prepare();
        self.last_before
            .store(self.last_stack.load(Ordering::Relaxed), Ordering::Relaxed);
        self.window.fetch_add(1, Ordering::Relaxed);
        self.nodes.clear();
        self.images.begin(sink);
        if kinds.contains(Kinds::PYTHON) {
            self.interpreter.look_for(sink);
        } else {
            self.interpreter.leave_alone();
        }
        self.on.store(true, Ordering::Release);
    }

    /// Ends capturing stacks, and reports what went wrong.
    pub(crate) fn end(&self, sink: &Sink) {
        if !self.on.swap(false, Ordering::AcqRel) {
            return;
        }
        for (count, words) in [
            (
                &self.doubts.refused,
                "calls have no stack: too many threads make some",
            ),
            (
                &self.doubts.broken,
                "stacks end at a frame that could not be left",
            ),
            (
                &self.doubts.apart,
                "stacks have their Python frames behind the native ones: it is not known where they belong",
            ),
            (
                self.by_correlation.lost(),
                "records have no stack: too many calls were made before CUPTI handed them out",
            ),
        ] {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                sink.note(Cause::Other, &format!("{count} {words}"));
            }
        }
        self.interpreter.report(sink);
        let (timed, nanos) = (
            self.cost.timed.swap(0, Ordering::Relaxed),
            self.cost.nanos.swap(0, Ordering::Relaxed),
        );
        if let Some(each) = nanos.checked_div(timed) {
            facts::send_process_fact(sink, "stacks.nanos_each", &each.to_string());
        }
    }

    /// Finds libraries that were loaded since the last call, and sends them.
    pub(crate) fn pulse(&self, sink: &Sink) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        self.nodes.pulse();
        if self.images.learn(sink) {
            self.interpreter.look_again(sink);
        }
    }

    /// Captures the calling thread's stack for the records of the call that it
    /// begins.
    #[inline]
    pub(crate) fn take(&self, sink: &Sink, correlation: u32) {
        if self.on.load(Ordering::Acquire) {
            self.by_correlation.expect(correlation);
            let stack = thread_unwinder::take(self, sink);
            self.by_correlation.put(correlation, stack);
        }
    }

    /// The stack of the call with this correlation; 0 is none.
    #[inline]
    pub(crate) fn of_call(&self, correlation: u32) -> u32 {
        self.if_from_this_window(self.by_correlation.get(correlation))
    }

    /// The stack of GPU work: that which created its graph node, or else that of the
    /// call; 0 is none.
    #[inline]
    pub(crate) fn of_work(&self, correlation: u32, node: u64) -> u32 {
        let of_node = if node == 0 { None } else { self.nodes.get(node) };
        of_node.map_or_else(
            || self.of_call(correlation),
            |stack| self.if_from_this_window(stack),
        )
    }

    /// The stack if it was sent in this window, else 0. A thread that was delayed
    /// between capturing a stack and making its call may have one of an earlier
    /// window.
    #[inline]
    fn if_from_this_window(&self, stack: u32) -> u32 {
        let since = stack.wrapping_sub(self.last_before.load(Ordering::Relaxed));
        let is_of_window = since != 0 && since < 1 << 31;
        if is_of_window && self.on.load(Ordering::Relaxed) {
            stack
        } else {
            0
        }
    }

    /// Captures the calling thread's stack for executions of the graph node that it
    /// creates.
    pub(crate) fn take_for_node(&self, sink: &Sink, node: u64) {
        if self.on.load(Ordering::Acquire) {
            let stack = thread_unwinder::take(self, sink);
            self.nodes.put(node, stack);
        }
    }

    /// A graph node is a copy of another.
    pub(crate) fn copy_node(&self, original: u64, node: u64) {
        self.nodes.copy(original, node);
    }

    /// A graph node is gone.
    pub(crate) fn forget_node(&self, node: u64) {
        self.nodes.remove(node);
    }

    /// A number for a stack that is new.
    fn number(&self) -> u32 {
        self.last_stack.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stacks")
            .field("on", &self.on)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_a_window_before_are_none() {
        let (stacks, sink) = (Stacks::default(), Sink::default());
        let take = |correlation| {
            let stack = stacks.number();
            stacks.by_correlation.put(correlation, stack);
            stack
        };
        stacks.begin(Kinds::STACKS, &sink);
        let (first, late) = (take(1), stacks.number());
        assert_eq!((stacks.of_call(1), stacks.of_call(2)), (first, 0));
        stacks.end(&sink);
        assert_eq!(stacks.of_call(1), 0, "none are wanted");
        stacks.begin(Kinds::STACKS, &sink);
        stacks.by_correlation.put(3, late);
        let second = take(4);
        assert_eq!([1, 3, 4].map(|call| stacks.of_call(call)), [0, 0, second]);
    }
}
