//! Looking at graphs that a program has made.

use std::ffi::c_uint;

use super::TargetDriver;
use crate::cupti::parameters::{AllocateNode, KernelNode, LaunchAttribute, Planes, SetNode};
use crate::driver::functions::Handle;

/// `CUgraphEdgeData`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct EdgeData {
    bytes: [u8; 8],
}

/// A graph of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphHandle(pub u64);

/// A node of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeHandle(pub u64);

/// That a node comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The one before.
    pub from: NodeHandle,
    /// The one behind.
    pub to: NodeHandle,
}

/// What a node does.
#[derive(Clone, Copy, Debug)]
pub enum NodeKind {
    /// Launches a kernel.
    Kernel(KernelNode),
    /// Copies.
    Copy(Planes),
    /// Sets memory.
    Set(SetNode),
    /// Calls a function of the host.
    Host,
    /// Runs another graph.
    Graph(GraphHandle),
    /// Does nothing.
    Empty,
    /// Waits for an event.
    WaitEvent(u64),
    /// Records an event.
    RecordEvent(u64),
    /// Takes memory.
    Allocate(AllocateNode),
    /// Gives memory back.
    Free(u64),
    /// Something else: a number of `CUgraphNodeType`.
    Other(u32),
}

/// The launch attributes that are read from a node: `CU_LAUNCH_ATTRIBUTE_` COOPERATIVE, CLUSTER_DIMENSION,
/// CLUSTER_SCHEDULING_POLICY_PREFERENCE and PRIORITY.
const ATTRIBUTES: [c_uint; 4] = [2, 4, 5, 8];

/// More nodes or edges than this are not believed.
const MOST: usize = 1 << 24;

impl TargetDriver {
    /// The nodes of a graph.
    pub fn nodes(&self, graph: GraphHandle) -> Option<Vec<NodeHandle>> {
        let ask = self.functions.cuGraphGetNodes?;
        let mut count = 0;
        // SAFETY: without room only the number is written; the graph is the program's.
        if unsafe { ask(graph.0 as Handle, std::ptr::null_mut(), &raw mut count) } != 0 || count > MOST {
            return None;
        }
        let mut nodes = vec![std::ptr::null_mut(); count];
        if count != 0 {
            // SAFETY: writes as many as there is room for.
            let status = unsafe { ask(graph.0 as Handle, nodes.as_mut_ptr(), &raw mut count) };
            if status != 0 {
                return None;
            }
        }
        Some(nodes.into_iter().map(|node| NodeHandle(node as u64)).collect())
    }

    /// The edges of a graph.
    pub fn edges(&self, graph: GraphHandle) -> Option<Vec<Edge>> {
        let graph = graph.0 as Handle;
        let ask = |from: &mut [Handle], to: &mut [Handle], kinds: &mut [EdgeData], count: &mut usize| {
            let (from, to, kinds) = if *count == 0 {
                (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
            } else {
                (from.as_mut_ptr(), to.as_mut_ptr(), kinds.as_mut_ptr())
            };
            if let Some(ask) = self.functions.cuGraphGetEdges_v2 {
                // SAFETY: writes as many of each as there is room for, or only the number.
                return Some(unsafe { ask(graph, from, to, kinds, count) });
            }
            // SAFETY: as above.
            Some(unsafe { self.functions.cuGraphGetEdges?(graph, from, to, count) })
        };
        let mut count = 0;
        if ask(&mut [], &mut [], &mut [], &mut count)? != 0 || count > MOST {
            return None;
        }
        let mut from = vec![std::ptr::null_mut(); count];
        let mut to = from.clone();
        let mut kinds = vec![EdgeData::default(); count];
        if count != 0 && ask(&mut from, &mut to, &mut kinds, &mut count)? != 0 {
            return None;
        }
        let edge = |(from, to): (Handle, Handle)| Edge {
            from: NodeHandle(from as u64),
            to: NodeHandle(to as u64),
        };
        Some(from.into_iter().zip(to).map(edge).collect())
    }

    /// What a node does; none when the driver does not tell.
    pub fn node(&self, node: NodeHandle) -> Option<NodeKind> {
        let handle = node.0 as Handle;
        let functions = &self.functions;
        let mut kind = 0;
        // SAFETY: writes one word; the node is the program's.
        if unsafe { functions.cuGraphNodeGetType?(handle, &raw mut kind) } != 0 {
            return None;
        }
        /// Asks with a function that fills in one value.
        macro_rules! asked {
            ($function:ident, $empty:expr) => {{
                let mut value = $empty;
                // SAFETY: the function for this kind of node, which writes one value of this type.
                (unsafe { functions.$function?(handle, &raw mut value) } == 0).then_some(value)?
            }};
        }
        Some(match kind {
            0 => NodeKind::Kernel(asked!(cuGraphKernelNodeGetParams_v2, EMPTY_KERNEL)),
            1 => NodeKind::Copy(asked!(cuGraphMemcpyNodeGetParams, Planes::default())),
            2 => NodeKind::Set(asked!(cuGraphMemsetNodeGetParams, SetNode::default())),
            3 => NodeKind::Host,
            4 => {
                let graph = asked!(cuGraphChildGraphNodeGetGraph, std::ptr::null_mut());
                NodeKind::Graph(GraphHandle(graph as u64))
            }
            5 => NodeKind::Empty,
            6 => NodeKind::WaitEvent(asked!(cuGraphEventWaitNodeGetEvent, std::ptr::null_mut()) as u64),
            7 => NodeKind::RecordEvent(asked!(cuGraphEventRecordNodeGetEvent, std::ptr::null_mut()) as u64),
            10 => NodeKind::Allocate(asked!(cuGraphMemAllocNodeGetParams, EMPTY_ALLOCATION)),
            11 => NodeKind::Free(asked!(cuGraphMemFreeNodeGetParams, 0)),
            other => NodeKind::Other(other),
        })
    }

    /// Attributes of a kernel's node that are set.
    pub fn node_attributes(&self, node: NodeHandle) -> Vec<LaunchAttribute> {
        let Some(ask) = self.functions.cuGraphKernelNodeGetAttribute else {
            return Vec::new();
        };
        ATTRIBUTES
            .into_iter()
            .filter_map(|id| {
                let mut value = [0; 64];
                // SAFETY: writes at most the union's 64 bytes; the node is the program's.
                let status = unsafe { ask(node.0 as Handle, id, &raw mut value) };
                let is_set = status == 0 && value.iter().any(|byte| *byte != 0);
                is_set.then_some(LaunchAttribute {
                    id,
                    padding: 0,
                    value,
                })
            })
            .collect()
    }
}

const EMPTY_KERNEL: KernelNode = KernelNode {
    function: std::ptr::null_mut(),
    grid: [0; 3],
    block: [0; 3],
    shared: 0,
    parameters: std::ptr::null_mut(),
    extra: std::ptr::null_mut(),
    kernel: std::ptr::null_mut(),
    context: std::ptr::null_mut(),
};

const EMPTY_ALLOCATION: AllocateNode = AllocateNode {
    pool: [0; 11],
    access: std::ptr::null(),
    access_count: 0,
    bytes: 0,
    address: 0,
};
