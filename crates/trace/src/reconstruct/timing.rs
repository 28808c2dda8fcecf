//! When the nodes of a graph are, and what holds each of them up: as measured, or as predicted.

use std::cmp::Reverse;

use super::activity::Window;
use super::execution_graph::{ExecutionGraph, LinkKind, Node};

/// Times for the nodes of a graph.
pub trait Timing {
    /// The graph.
    fn graph(&self) -> &ExecutionGraph;

    /// When a node is.
    fn time(&self, at: usize) -> u64;

    /// How long an op takes; 0 for other nodes.
    fn length(&self, at: usize) -> u64;

    /// The node that holds a node up longest, and why; none for a node that waits for nothing.
    fn held_by(&self, at: usize) -> Option<(u32, LinkKind)>;

    /// The last end of an op or of a wait. A launch is later only where clocks disagree; it ends nothing.
    fn last(&self) -> Option<usize> {
        let graph = self.graph();
        let is_end = |at: &usize| !matches!(graph.nodes[*at], Node::Launch(_));
        let ends = (0..graph.len()).filter(is_end);
        ends.max_by_key(|at| (self.time(*at), Reverse(*at)))
    }

    /// The chain of nodes that hold each other up until the last end of an op or of a wait, in the order of time.
    fn critical(&self) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut next = self.last();
        while let Some(at) = next {
            chain.push(at as u32);
            next = self.held_by(at).map(|(from, _)| from as usize);
        }
        chain.reverse();
        chain
    }

    /// The time from the start of a selected time range to the first node of a path, if that is a call: the CPU works there.
    fn before(&self, path: &[u32], window: Window) -> Option<(u64, u64)> {
        let first = *path.first()? as usize;
        let (from, begin) = (window.from?, self.time(first));
        (!matches!(self.graph().nodes[first], Node::Op(_)) && begin > from).then_some((from, begin))
    }
}

impl Timing for ExecutionGraph {
    fn graph(&self) -> &ExecutionGraph {
        self
    }

    fn time(&self, at: usize) -> u64 {
        self.measured(at)
    }

    fn length(&self, at: usize) -> u64 {
        self.duration(at)
    }

    fn held_by(&self, at: usize) -> Option<(u32, LinkKind)> {
        self.binding(at).map(|link| (link.from, link.kind))
    }
}
