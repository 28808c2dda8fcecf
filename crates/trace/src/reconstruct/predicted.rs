//! A predicted timeline: when every op and every moment of a thread would have been.
//!
//! The simulation has times for the ends of ops, the starts of launches and the ends of waits. All else on a thread moves
//! with the last of these before it: the code between two calls takes as long as it did. What lies within a wait becomes
//! as much shorter or longer as the wait. A thread that launches nothing and waits for nothing has no predicted times.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tracesmith_format::{ProcessId, ThreadId};

use super::activity::Activity;
use super::calls::CallId;
use super::execution_graph::{ExecutionGraph, LinkKind, Node};
use super::ops::OpId;
use super::simulation::Simulated;
use super::timing::Timing;

/// The times of a simulation with a change.
#[derive(Debug)]
pub struct Predicted {
    graph: Arc<ExecutionGraph>,
    simulated: Simulated,
    /// For each kind of op how many times as long it takes.
    factors: Vec<Option<f64>>,
}

impl Predicted {
    /// Of a simulation in which ops of each kind take so many times as long.
    pub(crate) fn new(graph: Arc<ExecutionGraph>, simulated: Simulated, factors: Vec<Option<f64>>) -> Self {
        Predicted {
            graph,
            simulated,
            factors,
        }
    }

    /// What was simulated.
    pub fn activity(&self) -> &Arc<Activity> {
        self.graph.activity()
    }

    /// The times of all nodes of the graph.
    pub fn times(&self) -> &[u64] {
        self.simulated.times()
    }

    /// From where the graph begins to the last predicted end. Calls after the last node stay as far behind it as they were.
    pub fn total(&self) -> u64 {
        self.graph.total(self.times())
    }

    /// Every op with its start and end, in an order in which each comes after what it waits for.
    pub fn ops(&self) -> impl Iterator<Item = (OpId, (u64, u64))> + '_ {
        let nodes = self.graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| match node {
            Node::Op(op) => Some((*op, self.times_of(at))),
            _ => None,
        })
    }

    /// Start and end of one op. Looks through all of them.
    pub fn op(&self, op: OpId) -> Option<(u64, u64)> {
        let at = self.graph.nodes.iter().position(|node| *node == Node::Op(op))?;
        Some(self.times_of(at))
    }

    fn times_of(&self, at: usize) -> (u64, u64) {
        let end = self.times()[at];
        (end - self.length(at).min(end), end)
    }

    /// The memory that the times take, without the graph.
    pub fn memory_bytes(&self) -> usize {
        self.simulated.memory_bytes()
    }

    /// The nodes of each thread, by which its moments move.
    pub fn threads(&self) -> ThreadNodes<'_> {
        ThreadNodes::of(self)
    }
}

impl Timing for Predicted {
    fn graph(&self) -> &ExecutionGraph {
        &self.graph
    }

    fn time(&self, at: usize) -> u64 {
        self.times()[at]
    }

    fn length(&self, at: usize) -> u64 {
        match self.graph.nodes[at] {
            Node::Op(op) => {
                let factor = self.factors[self.activity().ops.kind[op.index()] as usize];
                scaled(self.graph.duration(at), factor)
            }
            _ => 0,
        }
    }

    fn held_by(&self, at: usize) -> Option<(u32, LinkKind)> {
        self.simulated.held_by(at)
    }
}

/// A duration that is so many times as long.
pub(crate) fn scaled(nanos: u64, factor: Option<f64>) -> u64 {
    factor.map_or(nanos, |factor| (nanos as f64 * factor).round() as u64)
}

/// The nodes of each thread, in the order of their measured times. Four bytes a node.
#[derive(Debug)]
pub struct ThreadNodes<'a> {
    predicted: &'a Predicted,
    numbers: FxHashMap<(ProcessId, ThreadId), usize>,
    nodes: Vec<u32>,
    /// Those of thread `n` are `nodes[first[n]..first[n + 1]]`.
    first: Vec<usize>,
}

impl<'a> ThreadNodes<'a> {
    fn of(predicted: &'a Predicted) -> Self {
        let (graph, calls) = (&*predicted.graph, &predicted.activity().calls);
        let mut thread_of_call = ThreadOfCall { calls, last: 0 };
        let mut of_node = |node: &Node| match node {
            Node::Launch(call) | Node::Wait(call) => Some(thread_of_call.find(*call)),
            Node::Op(_) => None,
        };
        let mut first = vec![0; calls.threads.len() + 1];
        for thread in graph.nodes.iter().filter_map(&mut of_node) {
            first[thread + 1] += 1;
        }
        for thread in 1..first.len() {
            first[thread] += first[thread - 1];
        }
        let mut next = first.clone();
        let mut nodes = vec![0; first[calls.threads.len()]];
        for (at, node) in graph.nodes.iter().enumerate() {
            if let Some(thread) = of_node(node) {
                nodes[next[thread]] = at as u32;
                next[thread] += 1;
            }
        }
        let threads = calls.threads.iter().enumerate();
        ThreadNodes {
            predicted,
            numbers: threads
                .map(|(number, thread)| ((thread.process, thread.thread), number))
                .collect(),
            nodes,
            first,
        }
    }

    /// How moments of a thread move; none for a thread that launches nothing and waits for nothing.
    pub fn of_thread(&self, process: ProcessId, thread: ThreadId) -> Option<ThreadMoves<'_>> {
        let number = *self.numbers.get(&(process, thread))?;
        let nodes = &self.nodes[self.first[number]..self.first[number + 1]];
        (!nodes.is_empty()).then_some(ThreadMoves {
            predicted: self.predicted,
            nodes,
            at: 0,
        })
    }
}

/// Finds threads of calls. Calls that follow each other are often of one thread.
struct ThreadOfCall<'a> {
    calls: &'a super::calls::Calls,
    last: usize,
}

impl ThreadOfCall<'_> {
    fn find(&mut self, call: CallId) -> usize {
        if !self.calls.threads[self.last].calls.contains(&call.index()) {
            self.last = self.calls.thread_of(call);
        }
        self.last
    }
}

/// How the moments of one thread move. Moments that are asked for one after the other are found fastest in order.
#[derive(Clone, Debug)]
pub struct ThreadMoves<'a> {
    predicted: &'a Predicted,
    nodes: &'a [u32],
    /// How many nodes are not after the last moment.
    at: usize,
}

impl ThreadMoves<'_> {
    /// When a measured moment would have been. Before the first node nothing moves. A moment within a wait stays at the same
    /// share of it.
    pub fn moved(&mut self, time: u64) -> u64 {
        self.at = self.until(time);
        let graph = &*self.predicted.graph;
        let next = self.nodes.get(self.at).map(|node| *node as usize);
        if let Some(next) = next
            && let Node::Wait(call) = graph.nodes[next]
            && graph.activity().calls.start[call.index()] < time
        {
            let last = self.last().map_or(0, |last| graph.measured(last));
            let since = graph.activity().calls.start[call.index()].max(last);
            let (from, to) = (self.after_last(since), self.predicted.times()[next]);
            let measured = u128::from(graph.measured(next) - since);
            let share = u128::from(time - since) * u128::from(to.saturating_sub(from));
            return from + u64::try_from(share / measured.max(1)).unwrap_or(0);
        }
        self.after_last(time)
    }

    /// The node before the last moment.
    fn last(&self) -> Option<usize> {
        Some(self.nodes[self.at.checked_sub(1)?] as usize)
    }

    /// When a moment after that node would have been.
    fn after_last(&self, time: u64) -> u64 {
        self.last().map_or(time, |node| {
            let since = time - self.predicted.graph.measured(node);
            self.predicted.times()[node].saturating_add(since)
        })
    }

    /// How many nodes are not after a time: a search that begins at the last moment, with steps that double.
    fn until(&self, time: u64) -> usize {
        let is_until = |at: usize| self.predicted.graph.measured(self.nodes[at] as usize) <= time;
        let (mut low, mut high, mut step) = (self.at, self.nodes.len(), 1);
        if low > 0 && !is_until(low - 1) {
            while low > 0 && !is_until(low - 1) {
                high = low - 1;
                low = high.saturating_sub(step);
                step *= 2;
            }
        } else {
            while low + step <= self.nodes.len() && is_until(low + step - 1) {
                low += step;
                step *= 2;
            }
            high = high.min(low + step - 1);
        }
        let range = &self.nodes[low..high];
        low + range.partition_point(|node| self.predicted.graph.measured(*node as usize) <= time)
    }
}
