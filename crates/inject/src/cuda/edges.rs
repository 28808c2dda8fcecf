//! Dependencies between the nodes of graphs.
//!
//! Instantiation copies a graph, and the copies of its nodes run. CUPTI reports
//! each copy and each edge between copies, and then the driver's own changes: it
//! removes nodes without work, inserts others, and moves the nodes of child graphs
//! into the outer graph, which gives them new IDs. So edges are stored by node
//! handle until instantiation ends, and get their IDs then. Stacks of nodes whose
//! ID has changed are moved to the new ID. All of this happens within one call on
//! one thread.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    thread,
    time::Duration,
};

use tracesmith_cuda::cupti::{
    Cupti, NodeHandle,
    abi::{GraphResource, domain, resource},
};
use tracesmith_wire::record::GraphEdges;

use super::multiplexer::CallbackId;
use crate::{agent::Agent, guard::lock, sink::Cause, threads};

/// Callbacks for [`Reason::GraphEdges`](super::multiplexer::Reason::GraphEdges). Without them the order within
/// graphs is not known.
pub(super) const WATCHED: [CallbackId; 8] = [
    (domain::RESOURCE, resource::GRAPH_CREATED),
    (domain::RESOURCE, resource::GRAPH_CLONED),
    (domain::RESOURCE, resource::GRAPHNODE_CREATED),
    (domain::RESOURCE, resource::GRAPHNODE_CLONED),
    (domain::RESOURCE, resource::GRAPHNODE_DESTROY_STARTING),
    (domain::RESOURCE, resource::GRAPHNODE_DEPENDENCY_CREATED),
    (domain::RESOURCE, resource::GRAPHNODE_DEPENDENCY_DESTROY_STARTING),
    (domain::RESOURCE, resource::GRAPHEXEC_CREATED),
];

/// Edges, and nodes, of one graph that are kept until it is ready: they take some
/// of the memory that capture may have.
const MAX_EDGES: usize = 1 << 18;

/// Graphs that a thread began since it made one ready.
const MAX_GRAPHS: usize = 1 << 14;

/// Edges in one record.
const IN_RECORD: usize = 1024;

/// Edges that half fill the ring, and the time that the collector is then given
/// to empty it.
const IN_RING: usize = 32 * IN_RECORD;
const PAUSE: Duration = Duration::from_millis(5);

/// Graphs that are being instantiated, by thread.
#[derive(Default)]
pub(super) struct Edges(Mutex<HashMap<u32, PendingInstantiation>>);

/// What a thread has copied since it made a graph ready.
#[derive(Default)]
struct PendingInstantiation {
    /// Handles of the graphs that it began: of another, the first nodes may have
    /// been copied before anyone watched.
    begun: HashSet<usize>,
    /// Graphs and their copies, in the order in which those began.
    copies: Vec<Copied>,
    /// Handles of nodes that exist, with their numbers at first.
    nodes: HashMap<usize, u64>,
    /// Pairs of nodes, with the number of copies there were then.
    edges: HashMap<Edge, usize>,
    size: Size,
}

/// Handles of a graph and of its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    original: usize,
    copy: usize,
}

/// Handles of the node that waits, and of the other.
type Edge = (usize, usize);

/// Whether it can be kept whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Kept,
    TooLarge,
}

/// A graph that is ready.
#[derive(Debug, PartialEq, Eq)]
enum Ready {
    /// It was not seen from the beginning.
    Unknown,
    TooLarge,
    /// Numbers of nodes that wait, with those that they wait for; and numbers that
    /// nodes had and have.
    Whole {
        edges: Vec<(u64, u64)>,
        renumbered: Vec<(u64, u64)>,
    },
}

fn edge_of(graph: &GraphResource) -> Edge {
    (graph.node as usize, graph.dependency as usize)
}

impl Edges {
    /// Forgets all: nodes that were destroyed while nobody watched are no handles
    /// any more.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// A callback about a graph.
    pub(super) fn on_callback(&self, agent: &Agent, cupti: &Cupti, id: u32, graph: &GraphResource) {
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
            resource::GRAPH_CREATED => all.entry(thread).or_default().begin(graph),
            // The program copied it for itself, and makes it ready by another copy.
            resource::GRAPH_CLONED => {
                all.remove(&thread);
            }
            // Its memory may be another's from now on, whoever made it.
            resource::GRAPHNODE_DESTROY_STARTING => {
                for pending in all.values_mut() {
                    pending.nodes.remove(&(graph.node as usize));
                }
            }
            resource::GRAPHEXEC_CREATED => {
                let made = all.remove(&thread).unwrap_or_default();
                drop(all);
                let number = |handle| cupti.graph_node_id(NodeHandle(handle));
                send_edges(agent, &made.ready(graph.graph as usize, number));
            }
            _ => {
                if let Some(pending) = all.get_mut(&thread) {
                    pending.change(number, id, graph);
                }
            }
        }
    }
}

impl PendingInstantiation {
    fn begin(&mut self, graph: &GraphResource) {
        let graph = graph.graph as usize;
        if self.begun.len() >= MAX_GRAPHS {
            *self = Self::default();
        }
        self.begun.insert(graph);
        // Whatever had this handle is gone.
        for copied in self.copies.iter_mut().filter(|copied| copied.copy == graph) {
            *copied = Copied { original: 0, copy: 0 };
        }
    }

    fn change(&mut self, number: Option<u64>, id: u32, graph: &GraphResource) {
        if id == resource::GRAPHNODE_CLONED && self.begun.contains(&(graph.graph as usize)) {
            let copied = Copied {
                original: graph.original_graph as usize,
                copy: graph.graph as usize,
            };
            if !self.copies.iter().rev().any(|known| *known == copied) {
                self.copies.push(copied);
            }
        }
        // A thread that copies nothing builds a graph, which is copied before it runs.
        if self.copies.is_empty() || self.size == Size::TooLarge {
            return;
        }
        match (id, number) {
            (resource::GRAPHNODE_CREATED | resource::GRAPHNODE_CLONED, Some(number)) => {
                self.nodes.insert(graph.node as usize, number);
            }
            (resource::GRAPHNODE_DEPENDENCY_CREATED, _) => {
                self.edges.insert(edge_of(graph), self.copies.len());
            }
            (resource::GRAPHNODE_DEPENDENCY_DESTROY_STARTING, _) => {
                self.edges.remove(&edge_of(graph));
            }
            _ => {}
        }
        if self.nodes.len().max(self.edges.len()) > MAX_EDGES {
            self.nodes = HashMap::new();
            self.edges = HashMap::new();
            self.size = Size::TooLarge;
        }
    }

    /// The graph is ready: the last copy of it runs, with what was copied behind
    /// that. Other graphs that the thread copied were not instantiated.
    fn ready(self, original: usize, number: impl Fn(usize) -> Option<u64>) -> Ready {
        let Some(first) = self.copies.iter().rposition(|copied| copied.original == original) else {
            return Ready::Unknown;
        };
        if self.size == Size::TooLarge {
            return Ready::TooLarge;
        }
        let numbers: HashMap<usize, u64> = self
            .nodes
            .keys()
            .filter_map(|handle| Some((*handle, number(*handle)?)))
            .collect();
        let mut renumbered: Vec<(u64, u64)> = numbers
            .iter()
            .map(|(handle, number)| (self.nodes[handle], *number))
            .filter(|(had, has)| had != has)
            .collect();
        renumbered.sort_unstable();
        let number = |handle: &usize| numbers.get(handle).copied();
        let mut edges: Vec<(u64, u64)> = self
            .edges
            .iter()
            .filter(|(_, copies)| **copies > first)
            .filter_map(|((node, before), _)| Some((number(node)?, number(before)?)))
            .collect();
        edges.sort_unstable();
        Ready::Whole { edges, renumbered }
    }
}

fn send_edges(agent: &Agent, ready: &Ready) {
    let (edges, renumbered) = match ready {
        Ready::Unknown => return,
        Ready::TooLarge => {
            let words = format!("the order within a graph of more than {MAX_EDGES} edges is not recorded");
            agent.sink.note(Cause::Other, &words);
            return;
        }
        Ready::Whole { edges, renumbered } => (edges, renumbered),
    };
    for (had, has) in renumbered {
        agent.stacks.copy_node(*had, *has);
    }
    for (count, part) in edges.chunks(IN_RECORD).enumerate() {
        if count > 0 && (count * IN_RECORD).is_multiple_of(IN_RING) {
            thread::sleep(PAUSE);
        }
        let words = part.iter().flat_map(|(node, before)| [*node, *before]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let count = part.len() as u64;
        agent.sink.define_with(&GraphEdges { count }, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: usize = 0x100;
    const COPY: usize = 0x200;
    const OTHER: usize = 0x300;

    fn about(graph: usize) -> GraphResource {
        GraphResource {
            graph: graph as _,
            original_graph: std::ptr::null_mut(),
            node: std::ptr::null_mut(),
            original_node: std::ptr::null_mut(),
            node_kind: 0,
            dependency: std::ptr::null_mut(),
            executable: std::ptr::null_mut(),
        }
    }

    /// Nodes have the handles `copy + 1` and on, and the same as numbers.
    fn copy(pending: &mut PendingInstantiation, original: usize, copy: usize, nodes: usize) {
        for node in 1..=nodes {
            let cloned = GraphResource {
                original_graph: original as _,
                node: (copy + node) as _,
                ..about(copy)
            };
            let number = Some((copy + node) as u64);
            pending.change(number, resource::GRAPHNODE_CREATED, &cloned);
            pending.change(number, resource::GRAPHNODE_CLONED, &cloned);
        }
        for node in 2..=nodes {
            depend(pending, copy, node, node - 1);
        }
    }

    fn depend(pending: &mut PendingInstantiation, graph: usize, node: usize, before: usize) {
        let data = GraphResource {
            node: (graph + node) as _,
            dependency: (graph + before) as _,
            ..about(graph)
        };
        pending.change(None, resource::GRAPHNODE_DEPENDENCY_CREATED, &data);
    }

    fn same(handle: usize) -> Option<u64> {
        Some(handle as u64)
    }

    fn whole(edges: &[(u64, u64)]) -> Ready {
        Ready::Whole {
            edges: edges.to_vec(),
            renumbered: Vec::new(),
        }
    }

    #[test]
    fn a_copy_that_is_seen_from_its_beginning_is_known() {
        let mut pending = PendingInstantiation::default();
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 3);
        assert_eq!(
            pending.ready(FIRST, same),
            whole(&[(0x202, 0x201), (0x203, 0x202)])
        );
    }

    #[test]
    fn one_that_had_begun_before_is_not() {
        let mut pending = PendingInstantiation::default();
        copy(&mut pending, FIRST, COPY, 3);
        pending.begin(&about(OTHER));
        assert_eq!(
            pending.ready(FIRST, same),
            Ready::Unknown,
            "half of an order is none"
        );
        assert_eq!(PendingInstantiation::default().ready(FIRST, same), Ready::Unknown);
    }

    #[test]
    fn other_copies_are_not_handed_over() {
        let mut pending = PendingInstantiation::default();
        pending.begin(&about(OTHER));
        copy(&mut pending, 0x50, OTHER, 2);
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 2);
        assert_eq!(pending.ready(FIRST, same), whole(&[(0x202, 0x201)]));
        // The same handles again: it is the later one.
        let mut pending = PendingInstantiation::default();
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 2);
        pending.begin(&about(OTHER));
        copy(&mut pending, 0x50, OTHER, 2);
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 2);
        assert_eq!(pending.ready(FIRST, same), whole(&[(0x202, 0x201)]));
    }

    #[test]
    fn nodes_that_are_moved_get_their_new_numbers() {
        let mut pending = PendingInstantiation::default();
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 2);
        let moved = |handle: usize| match handle {
            0x202 => Some(0x999),
            _ => same(handle),
        };
        let expected = Ready::Whole {
            edges: vec![(0x999, 0x201)],
            renumbered: vec![(0x202, 0x999)],
        };
        assert_eq!(pending.ready(FIRST, moved), expected);
    }

    #[test]
    fn a_graph_that_is_too_large_has_no_order_at_all() {
        let mut pending = PendingInstantiation::default();
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, MAX_EDGES + 1);
        depend(&mut pending, COPY, 2, 1);
        assert!(
            pending.edges.is_empty() && pending.nodes.is_empty(),
            "it takes no memory"
        );
        assert_eq!(pending.ready(FIRST, same), Ready::TooLarge);
    }

    #[test]
    fn graphs_that_are_never_made_ready_take_little() {
        let mut pending = PendingInstantiation::default();
        for graph in 1..10 * MAX_GRAPHS {
            pending.begin(&about(graph * 0x1000));
        }
        assert!(pending.begun.len() <= MAX_GRAPHS);
        pending.begin(&about(COPY));
        copy(&mut pending, FIRST, COPY, 2);
        assert_eq!(pending.ready(FIRST, same), whole(&[(0x202, 0x201)]));
    }
}
