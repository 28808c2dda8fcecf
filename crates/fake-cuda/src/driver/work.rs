//! Work on its way to a stream: a stream that is captured gives it to the graph, any other gets it queued together with
//! the record of it.

use std::sync::Arc;

use crate::call;
use crate::clock;
use crate::code::Code;
use crate::cupti::{activity, device_work, graph_callbacks};
use crate::engine::context::Context;
use crate::engine::graph::{Graph, NODES, Node};
use crate::engine::operation::Operation;
use crate::engine::registry::Registry;
use crate::engine::stream::Stream;
use crate::engine::ticket::Ticket;

/// Which node of which graph work belongs to; zeros for work outside of graphs.
#[derive(Clone, Copy, Default)]
pub(crate) struct GraphPlace {
    pub(crate) graph_id: u32,
    pub(crate) node_id: u64,
}

/// Hands an operation to a stream. None: a graph took it.
pub(crate) fn submit(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    operation: Operation,
) -> Result<Option<Ticket>, Code> {
    context.check()?;
    if let Some(graph) = stream.captured_by() {
        let node = add_node(&graph, operation, graph.tips().to_vec());
        graph.set_tips(vec![Registry::handle_of(&node)]);
        return Ok(None);
    }
    Ok(Some(queue(context, stream, operation, GraphPlace::default())))
}

/// Queues an operation and its record.
pub(crate) fn queue(
    context: &Arc<Context>,
    stream: &Arc<Stream>,
    operation: Operation,
    place: GraphPlace,
) -> Ticket {
    let queued = if activity::has_latency_timestamps() {
        clock::now()
    } else {
        0
    };
    let record = device_work::begin(context, stream, &operation, place, call::correlation_id(), queued);
    context.submit(stream, Vec::new(), move || {
        let start = clock::now();
        let outcome = operation.run();
        let end = clock::now();
        if let Some(record) = record {
            record.finish(start, end);
        }
        outcome
    })
}

/// Adds a node and tells the subscriber of it.
pub(crate) fn add_node(graph: &Arc<Graph>, operation: Operation, follows: Vec<usize>) -> Arc<Node> {
    let before: Vec<Arc<Node>> = follows
        .iter()
        .filter_map(|handle| NODES.get(*handle).ok())
        .collect();
    let node = graph.add(operation, follows);
    graph_callbacks::node_created(Registry::handle_of(graph), &node, &before);
    node
}
