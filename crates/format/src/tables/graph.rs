//! Graphs: the dependencies between their nodes.

use crate::ids::{GraphNodeId, ProcessId};
use crate::table::table;

table! {
    /// One dependency between two nodes of an instantiated graph. Nodes without rows, such as host functions, appear
    /// here, too.
    GraphEdge, GraphEdges, GRAPH_EDGES, times();
    /// The process.
    1 process: ProcessId, plain;
    /// The node that waits.
    2 node: GraphNodeId, delta;
    /// The node that must end first.
    3 before: GraphNodeId, delta;
}
