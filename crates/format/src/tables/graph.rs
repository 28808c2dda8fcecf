//! Graphs: what their nodes wait for.

use crate::ids::{GraphNodeId, ProcessId};
use crate::table::table;

table! {
    /// One node of a graph that was made ready to run waits for another. Work has the number of its node; nodes that
    /// leave no row, such as functions of the host, stand between others here.
    GraphEdge, GraphEdges, GRAPH_EDGES, times();
    /// The process.
    1 process: ProcessId, plain;
    /// The node that waits.
    2 node: GraphNodeId, delta;
    /// The node that it waits for.
    3 before: GraphNodeId, delta;
}
