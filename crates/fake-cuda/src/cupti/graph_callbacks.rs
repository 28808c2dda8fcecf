//! The callbacks around graphs, in the order seen on an H200: nodes as they are captured or added, and all of them again
//! when a graph is made ready to run, because that clones it. No context comes with most of them.

use std::sync::Arc;

use super::callbacks::{self, GraphData, resource};
use crate::engine::context::Context;
use crate::engine::graph::{Executable, Graph, Node};
use crate::engine::registry::{Handle, Registry};

pub(crate) fn graph_created(graph: Handle) {
    send(
        resource::GRAPH_CREATED,
        &GraphData {
            graph,
            ..GraphData::default()
        },
    );
}

/// `before` are the nodes that this one depends on.
pub(crate) fn node_created(graph: Handle, node: &Arc<Node>, before: &[Arc<Node>]) {
    send(resource::GRAPHNODE_CREATE_STARTING, &about(graph, node));
    for before in before {
        node_depends(graph, node, before);
    }
    send(resource::GRAPHNODE_CREATED, &about(graph, node));
}

pub(crate) fn executable_created(
    context: Option<&Arc<Context>>,
    original: &Arc<Graph>,
    made: &Arc<Executable>,
) {
    let clone = Registry::handle_of(made);
    graph_created(clone);
    let nodes = made.nodes();
    for (node, original_node) in nodes.iter().zip(original.nodes()) {
        node_created(clone, node, &[]);
        send(
            resource::GRAPHNODE_CLONED,
            &GraphData {
                original_graph: Registry::handle_of(original),
                original_node: Registry::handle_of(&original_node),
                ..about(clone, node)
            },
        );
    }
    depend_in_order(clone, &nodes);
    let inner = Registry::handle_of(&made.inner);
    graph_created(inner);
    for node in made.inner.nodes() {
        send(resource::GRAPHNODE_CREATE_STARTING, &about(inner, &node));
    }
    depend_in_order(inner, &made.inner.nodes());
    let data = GraphData {
        graph: Registry::handle_of(original),
        executable: clone,
        ..GraphData::default()
    };
    callbacks::about_graph(resource::GRAPHEXEC_CREATE_STARTING, context, &data);
    callbacks::about_graph(resource::GRAPHEXEC_CREATED, context, &data);
}

pub(crate) fn executable_destroyed(handle: Handle, executable: &Executable) {
    send(
        resource::GRAPHEXEC_DESTROY_STARTING,
        &GraphData {
            executable: handle,
            ..GraphData::default()
        },
    );
    let inner = Registry::handle_of(&executable.inner);
    graph_destroy_starting(handle);
    graph_destroy_starting(inner);
    nodes_destroyed(handle, &executable.nodes());
    nodes_destroyed(inner, &executable.inner.nodes());
}

pub(crate) fn graph_destroyed(graph: Handle, nodes: &[Arc<Node>]) {
    graph_destroy_starting(graph);
    nodes_destroyed(graph, nodes);
}

fn graph_destroy_starting(graph: Handle) {
    send(
        resource::GRAPH_DESTROY_STARTING,
        &GraphData {
            graph,
            ..GraphData::default()
        },
    );
}

fn nodes_destroyed(graph: Handle, nodes: &[Arc<Node>]) {
    for node in nodes {
        send(resource::GRAPHNODE_DESTROY_STARTING, &about(graph, node));
    }
}

/// Each node on the one before it.
fn depend_in_order(graph: Handle, nodes: &[Arc<Node>]) {
    for pair in nodes.windows(2) {
        node_depends(graph, &pair[1], &pair[0]);
    }
}

fn node_depends(graph: Handle, node: &Arc<Node>, before: &Arc<Node>) {
    send(
        resource::GRAPHNODE_DEPENDENCY_CREATED,
        &GraphData {
            dependency: Registry::handle_of(before),
            ..about(graph, node)
        },
    );
}

fn about(graph: Handle, node: &Arc<Node>) -> GraphData {
    GraphData {
        graph,
        node: Registry::handle_of(node),
        node_type: node.operation.node_type(),
        ..GraphData::default()
    }
}

fn send(id: u32, data: &GraphData) {
    callbacks::about_graph(id, None, data);
}
