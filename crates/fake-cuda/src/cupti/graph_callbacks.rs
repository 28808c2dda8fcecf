//! The callbacks around graphs, in the order seen on an H200: nodes as they are captured or added, and all of them again
//! when a graph is made ready to run, because that clones it. No context comes with most of them.

use std::sync::Arc;

use super::callbacks::{self, GraphData, resource};
use crate::engine::context::Context;
use crate::engine::graph::{Executable, Graph, NODES, Node};
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
    let nodes = made.nodes();
    nodes_cloned(original, clone, &nodes);
    let inner = Registry::handle_of(&made.inner);
    graph_created(inner);
    for node in made.inner.nodes() {
        send(resource::GRAPHNODE_CREATE_STARTING, &about(inner, &node));
    }
    depend(inner, &made.inner.nodes());
    let mut told = Vec::new();
    for node in nodes.iter().filter(|node| node.follows.len() > 1) {
        link(clone, node, made.links(), &mut told);
    }
    let data = GraphData {
        graph: Registry::handle_of(original),
        executable: clone,
        ..GraphData::default()
    };
    callbacks::about_graph(resource::GRAPHEXEC_CREATE_STARTING, context, &data);
    callbacks::about_graph(resource::GRAPHEXEC_CREATED, context, &data);
}

pub(crate) fn graph_cloned(original: &Arc<Graph>, clone: &Arc<Graph>) {
    let graph = Registry::handle_of(clone);
    nodes_cloned(original, graph, &clone.nodes());
    let data = GraphData {
        graph,
        original_graph: Registry::handle_of(original),
        ..GraphData::default()
    };
    send(resource::GRAPH_CLONED, &data);
}

fn nodes_cloned(original: &Arc<Graph>, clone: Handle, nodes: &[Arc<Node>]) {
    graph_created(clone);
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
    depend(clone, nodes);
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
    nodes_destroyed(handle, executable.links());
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

/// Each node on those that it follows.
fn depend(graph: Handle, nodes: &[Arc<Node>]) {
    for node in nodes {
        for before in followed(node) {
            node_depends(graph, node, &before);
        }
    }
}

/// A node waits for links instead of those that it follows, and the links for them.
fn link(graph: Handle, node: &Arc<Node>, links: &[Arc<Node>], told: &mut Vec<u64>) {
    for before in followed(node) {
        let handle = Registry::handle_of(&before);
        for link in links.iter().filter(|link| link.follows == [handle]) {
            let is_new = !told.contains(&link.id);
            if is_new {
                told.push(link.id);
                node_created(graph, link, &[]);
            }
            node_depends(graph, node, link);
            send(
                resource::GRAPHNODE_DEPENDENCY_DESTROY_STARTING,
                &GraphData {
                    dependency: handle,
                    ..about(graph, node)
                },
            );
            if is_new {
                node_depends(graph, link, &before);
            }
        }
    }
}

fn followed(node: &Node) -> Vec<Arc<Node>> {
    let handles = node.follows.iter();
    handles.filter_map(|handle| NODES.get(*handle).ok()).collect()
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
