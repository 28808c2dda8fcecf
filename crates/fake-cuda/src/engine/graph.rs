//! Graphs: work that was described once and is launched as a whole.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::operation::Operation;
use super::registry::Registry;
use crate::code::Code;

pub(crate) static GRAPHS: Registry<Graph> = Registry::new();
pub(crate) static NODES: Registry<Node> = Registry::new();
pub(crate) static EXECUTABLES: Registry<Executable> = Registry::new();

pub(crate) struct Graph {
    /// The number in records.
    pub(crate) id: u32,
    nodes: Mutex<Vec<Arc<Node>>>,
    /// Handles of the nodes that the next one follows, while a stream is captured.
    tips: Mutex<Arc<Vec<usize>>>,
}

pub(crate) struct Node {
    /// The number in records: the graph's in the upper half, the node's own in the lower.
    pub(crate) id: u64,
    pub(crate) operation: Operation,
    /// Handles of those that it follows.
    pub(crate) follows: Vec<usize>,
    /// Where each argument of a kernel lies in the operation's parameter block, as C wants to see it.
    argument_pointers: Vec<usize>,
}

impl Node {
    fn new(id: u64, operation: Operation, follows: Vec<usize>) -> Arc<Self> {
        let argument_pointers = match &operation {
            Operation::Kernel(launch) => {
                let base = launch.arguments.as_ptr() as usize;
                let parameters = launch.function.parameters.iter();
                parameters.map(|parameter| base + parameter.offset).collect()
            }
            _ => Vec::new(),
        };
        Arc::new(Self {
            id,
            operation,
            follows,
            argument_pointers,
        })
    }

    /// The address of the list of argument addresses.
    pub(crate) fn argument_pointers(&self) -> usize {
        self.argument_pointers.as_ptr() as usize
    }
}

/// A graph made ready to run. Its nodes are those that the graph had at that moment; they run in the order they were
/// added, which satisfies every dependency that can be stated.
pub(crate) struct Executable {
    pub(crate) id: u32,
    /// The number that records of its launches carry.
    pub(crate) graph_id: u32,
    nodes: Mutex<Vec<Arc<Node>>>,
    /// Handles of the nodes that these were made of, in the same order.
    originals: Vec<usize>,
    /// Nodes that the driver puts between one on which several wait and those; nothing runs for them.
    links: Vec<Arc<Node>>,
    /// The driver keeps a second copy for itself, which shows in callbacks only.
    pub(crate) inner: Arc<Graph>,
}

impl Graph {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            id: next_graph_id(),
            nodes: Mutex::default(),
            tips: Mutex::default(),
        })
    }

    /// The nodes that the next one follows.
    pub(crate) fn tips(&self) -> Arc<Vec<usize>> {
        self.tips.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tips(&self, tips: Vec<usize>) {
        *self.tips.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tips);
    }

    pub(crate) fn add(&self, operation: Operation, follows: Vec<usize>) -> Arc<Node> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = Node::new(node_id(self.id, nodes.len()), operation, follows);
        NODES.add(node.clone());
        nodes.push(node.clone());
        node
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another graph with the same nodes.
    pub(crate) fn copy(&self) -> Arc<Self> {
        let copy = Self::new();
        let originals = self.nodes();
        for (index, original) in originals.iter().enumerate() {
            let nodes = copy.nodes();
            let follows = places(&originals[..index], original);
            let follows = follows.iter().map(|at| Registry::handle_of(&nodes[*at]));
            copy.add(original.operation.clone(), follows.collect());
        }
        copy
    }
}

/// Where those that a node follows are among the nodes that were added before it.
fn places(before: &[Arc<Node>], node: &Node) -> Vec<usize> {
    let place = |handle: &usize| {
        let is_meant = |other: &Arc<Node>| Registry::handle_of(other) == *handle;
        before.iter().position(is_meant)
    };
    node.follows.iter().filter_map(place).collect()
}

impl Executable {
    /// Instantiating clones the graph: the clone and its nodes have numbers of their own.
    pub(crate) fn of(graph: &Graph) -> Arc<Self> {
        let graph_id = next_graph_id();
        let originals = graph.nodes();
        let mut nodes: Vec<Arc<Node>> = Vec::with_capacity(originals.len());
        let mut links: Vec<Arc<Node>> = Vec::new();
        let inner = graph.copy();
        for (index, original) in originals.iter().enumerate() {
            let follows = places(&originals[..index], original);
            let follows = follows.iter().map(|at| Registry::handle_of(&nodes[*at]));
            let node = Node::new(
                node_id(graph_id, index),
                original.operation.clone(),
                follows.collect(),
            );
            NODES.add(node.clone());
            nodes.push(node);
        }
        for node in nodes.iter().filter(|node| node.follows.len() > 1) {
            for before in &node.follows {
                if !links.iter().any(|link| link.follows == [*before]) {
                    let id = node_id(graph_id, nodes.len() + links.len());
                    let link = Node::new(id, Operation::Empty, vec![*before]);
                    NODES.add(link.clone());
                    links.push(link);
                }
            }
        }
        Arc::new(Self {
            id: graph_id,
            graph_id,
            nodes: Mutex::new(nodes),
            originals: originals.iter().map(Registry::handle_of).collect(),
            links,
            inner,
        })
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The nodes that the driver put in.
    pub(crate) fn links(&self) -> &[Arc<Node>] {
        &self.links
    }

    /// The node that was made of another does something else from now on.
    pub(crate) fn set(&self, original: usize, operation: Operation) -> Result<(), Code> {
        let place = self.originals.iter().position(|handle| *handle == original);
        let place = place.ok_or(Code::INVALID_VALUE)?;
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = nodes[place].clone();
        if old.operation.node_type() != operation.node_type() {
            return Err(Code::INVALID_VALUE);
        }
        let node = Node::new(old.id, operation, old.follows.clone());
        NODES.remove(Registry::handle_of(&old))?;
        NODES.add(node.clone());
        nodes[place] = node;
        Ok(())
    }
}

fn next_graph_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The graph's number in the upper half, the place among its nodes in the lower.
fn node_id(graph_id: u32, index: usize) -> u64 {
    (u64::from(graph_id) << 32) | index as u64
}
