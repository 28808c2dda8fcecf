//! Work that came out of graphs: which launch of a graph it belongs to, and what its node waits for.
//!
//! A graph runs on the stream that it is launched on and on streams of the driver's own. Seen on an H200: the node that was
//! added first runs on the stream of the launch.

use tracesmith_format::{Columns, CorrelationId, GraphNodeId, ProcessId};

use super::activity::{StreamIndex, StreamKey};
use super::ops::{OpId, Ops};
use crate::model::trace::Trace;

/// The work of one launch of a graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphWork {
    /// The first of its work in `work`, and how much there is.
    first: u32,
    count: u32,
    /// The stream that it was launched on.
    pub lane: StreamIndex,
}

/// Work that came out of no graph.
const NO_LAUNCH: u32 = u32::MAX;

/// Work of graphs, launch by launch.
#[derive(Debug, Default)]
pub struct Graphs {
    /// Work with its node; that of a launch stands together, sorted by node.
    work: Vec<(GraphNodeId, OpId)>,
    /// Launches, in the order of their first work's start.
    launches: Vec<GraphWork>,
    /// The launch of each piece of work; empty when none came out of a graph.
    of_op: Vec<u32>,
    /// What nodes wait for: process, node and the other, sorted.
    edges: Vec<(ProcessId, GraphNodeId, GraphNodeId)>,
}

impl Graphs {
    /// Puts the work of each launch together. `nodes` has an entry for every piece of work, or is empty.
    pub(super) fn of(
        trace: &Trace,
        ops: &Ops,
        nodes: &[GraphNodeId],
        correlations: &[CorrelationId],
        lanes: &[StreamKey],
    ) -> Self {
        let mut members: Vec<(ProcessId, CorrelationId, GraphNodeId, OpId)> = ops
            .ids()
            .zip(nodes)
            .filter(|(op, node)| node.is_some() && correlations[op.index()].is_some())
            .map(|(op, node)| {
                let process = lanes[ops.lane[op.index()].index()].process;
                (process, correlations[op.index()], *node, op)
            })
            .collect();
        if members.is_empty() {
            return Graphs::default();
        }
        members.sort_unstable();
        let mut launches: Vec<GraphWork> = Vec::new();
        let mut first = 0;
        for launch in members.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            launches.push(GraphWork {
                first,
                count: launch.len() as u32,
                lane: ops.lane[launch[0].3.index()],
            });
            first += launch.len() as u32;
        }
        let work: Vec<(GraphNodeId, OpId)> = members.iter().map(|member| (member.2, member.3)).collect();
        let start_of = |launch: &GraphWork| work[launch.range()].iter().map(|(_, op)| *op).min();
        launches.sort_by_key(start_of);
        let mut of_op = vec![NO_LAUNCH; ops.len()];
        for (number, launch) in launches.iter().enumerate() {
            for (_, op) in &work[launch.range()] {
                of_op[op.index()] = number as u32;
            }
        }
        Graphs {
            work,
            launches,
            of_op,
            edges: edges(trace),
        }
    }

    /// All launches, in the order of their first work's start.
    pub fn launches(&self) -> &[GraphWork] {
        &self.launches
    }

    /// The work of a launch, by node.
    pub fn work_of(&self, launch: &GraphWork) -> &[(GraphNodeId, OpId)] {
        &self.work[launch.range()]
    }

    /// The launch that a piece of work belongs to: its place among all.
    pub fn launch_of(&self, op: OpId) -> Option<usize> {
        let number = self
            .of_op
            .get(op.index())
            .filter(|number| **number != NO_LAUNCH)?;
        Some(*number as usize)
    }

    /// What a node waits for.
    pub fn before(&self, process: ProcessId, node: GraphNodeId) -> impl Iterator<Item = GraphNodeId> + '_ {
        let first = self
            .edges
            .partition_point(|edge| (edge.0, edge.1) < (process, node));
        let of_node = self.edges[first..].iter();
        of_node
            .take_while(move |edge| (edge.0, edge.1) == (process, node))
            .map(|edge| edge.2)
    }
}

impl GraphWork {
    fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

fn edges(trace: &Trace) -> Vec<(ProcessId, GraphNodeId, GraphNodeId)> {
    let mut edges = Vec::new();
    for (_, rows) in trace.graph_edges.columns() {
        edges.extend((0..rows.len()).map(|row| (rows.process[row], rows.node[row], rows.before[row])));
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}
