//! What the nodes of graphs wait for.
//!
//! A graph that is made ready to run is copied, and the copies of its nodes are
//! what runs. CUPTI tells of each copy and of each edge between copies, and then
//! of the driver's own changes to them: nodes without work are taken out, others
//! put in between, and the nodes of a graph within the graph are moved into the
//! outer one, which gives them new numbers. So edges are kept by the nodes'
//! handles until the driver is done, and are numbered then; nodes that have
//! another number by then take their stacks along. All of it happens within one
//! call on one thread.

use std::{collections::HashMap, sync::Mutex, thread, time::Duration};

use tracesmith_cuda::cupti::{
    Cupti, NodeHandle,
    abi::{GraphResource, resource},
};
use tracesmith_wire::record::GraphEdges;

use crate::{agent::Agent, guard::lock, sink::Cause, threads};

/// The callbacks that tell of them.
pub(super) const WATCHED: [u32; 6] = [
    resource::GRAPHNODE_CREATED,
    resource::GRAPHNODE_CLONED,
    resource::GRAPHNODE_DESTROY_STARTING,
    resource::GRAPHNODE_DEPENDENCY_CREATED,
    resource::GRAPHNODE_DEPENDENCY_DESTROY_STARTING,
    resource::GRAPHEXEC_CREATED,
];

/// Edges of one graph that are kept until it is ready: they take some of the
/// memory that capture may have.
const MAX_EDGES: usize = 1 << 18;

/// Edges in one record.
const IN_RECORD: usize = 1024;

/// Edges that half fill the ring, and the time that the collector is then given
/// to empty it.
const IN_RING: usize = 32 * IN_RECORD;
const PAUSE: Duration = Duration::from_millis(5);

/// Graphs that are being made ready, by thread.
#[derive(Default)]
pub(super) struct Edges(Mutex<HashMap<u32, Making>>);

/// What a thread has copied since it made a graph ready.
#[derive(Default)]
struct Making {
    /// Handles of graphs and of their copies, in the order in which they began.
    copies: Vec<(usize, usize)>,
    /// Handles of nodes that exist, with their numbers at first.
    nodes: HashMap<usize, u64>,
    /// Pairs of nodes, with the number of copies there were then.
    edges: HashMap<(usize, usize), usize>,
    refused: u64,
}

/// An edge by the handles of its nodes: the one that waits, and the other.
fn edge_of(graph: &GraphResource) -> (usize, usize) {
    (graph.node as usize, graph.dependency as usize)
}

impl Edges {
    /// Forgets all: nodes that were destroyed while nobody watched are no handles
    /// any more.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// A callback about a graph.
    pub(super) fn tell(&self, agent: &Agent, cupti: &Cupti, id: u32, graph: &GraphResource) {
        let thread = threads::thread_id();
        // Asked before the lock is taken: CUPTI may hold one of its own around a callback of another thread.
        let number = match id {
            resource::GRAPHNODE_CREATED | resource::GRAPHNODE_CLONED => {
                cupti.graph_node_id(NodeHandle(graph.node as usize))
            }
            _ => None,
        };
        let mut all = lock(&self.0);
        match id {
            resource::GRAPHNODE_CLONED => all.entry(thread).or_default().cloned(number, graph),
            // Its memory may be another's from now on, whoever made it.
            resource::GRAPHNODE_DESTROY_STARTING => {
                for making in all.values_mut() {
                    making.nodes.remove(&(graph.node as usize));
                }
            }
            resource::GRAPHEXEC_CREATED => {
                let made = all.remove(&thread);
                drop(all);
                if let Some(made) = made {
                    made.hand_over(agent, cupti, graph.graph as usize);
                }
            }
            _ => {
                // A thread that copies nothing builds a graph, which is copied before it runs.
                if let Some(making) = all.get_mut(&thread) {
                    making.changed(number, id, graph);
                }
            }
        }
    }
}

impl Making {
    fn cloned(&mut self, number: Option<u64>, graph: &GraphResource) {
        let copy = (graph.original_graph as usize, graph.graph as usize);
        if !self.copies.contains(&copy) {
            self.copies.push(copy);
        }
        self.created(number, graph);
    }

    fn created(&mut self, number: Option<u64>, graph: &GraphResource) {
        if let Some(number) = number {
            self.nodes.insert(graph.node as usize, number);
        }
    }

    fn changed(&mut self, number: Option<u64>, id: u32, graph: &GraphResource) {
        match id {
            resource::GRAPHNODE_CREATED => self.created(number, graph),
            resource::GRAPHNODE_DEPENDENCY_CREATED if self.edges.len() >= MAX_EDGES => self.refused += 1,
            resource::GRAPHNODE_DEPENDENCY_CREATED => {
                self.edges.insert(edge_of(graph), self.copies.len());
            }
            resource::GRAPHNODE_DEPENDENCY_DESTROY_STARTING => {
                self.edges.remove(&edge_of(graph));
            }
            _ => {}
        }
    }

    /// The graph is ready: the last copy of it runs, with what was copied behind
    /// that. Other graphs that the thread copied were not made ready.
    fn hand_over(self, agent: &Agent, cupti: &Cupti, original: usize) {
        let Some(first) = self.copies.iter().rposition(|copy| copy.0 == original) else {
            return;
        };
        let numbers: HashMap<usize, u64> = self
            .nodes
            .iter()
            .filter_map(|(handle, first)| {
                let number = cupti.graph_node_id(NodeHandle(*handle))?;
                if number != *first {
                    agent.stacks.copy_node(*first, number);
                }
                Some((*handle, number))
            })
            .collect();
        let number = |handle: &usize| numbers.get(handle).copied();
        let mut edges: Vec<(u64, u64)> = self
            .edges
            .iter()
            .filter(|(_, copies)| **copies > first)
            .filter_map(|((node, before), _)| Some((number(node)?, number(before)?)))
            .collect();
        edges.sort_unstable();
        for (count, part) in edges.chunks(IN_RECORD).enumerate() {
            if count > 0 && (count * IN_RECORD).is_multiple_of(IN_RING) {
                thread::sleep(PAUSE);
            }
            let words = part.iter().flat_map(|(node, before)| [*node, *before]);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            let count = part.len() as u64;
            agent.sink.define_with(&GraphEdges { count }, &bytes);
        }
        if self.refused > 0 {
            let words = format!(
                "a graph has more than {MAX_EDGES} edges: {} are not recorded",
                self.refused
            );
            agent.sink.note(Cause::Other, &words);
        }
    }
}
