//! Graphs seen from within: what nodes do and follow, and how that is changed.

#![allow(unsafe_code, reason = "exports C functions")]

use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use super::graph::KernelNodeParameters;
use super::planes::Planes;
use crate::call::api;
use crate::code::Code;
use crate::engine::context::stream_by_handle;
use crate::engine::graph::{EXECUTABLES, GRAPHS, NODES};
use crate::engine::operation::Operation;
use crate::engine::registry::Registry;
use crate::pointer::{In, Out};

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SetNodeParameters {
    destination: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

const _: () = assert!(size_of::<SetNodeParameters>() == 40);

/// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`; the other adds to them.
const SET: u32 = 1;

/// Lists that callers were pointed to: they may look at them until the next call.
static HANDED_OUT: Mutex<Vec<Arc<Vec<usize>>>> = Mutex::new(Vec::new());

api! { Driver:
    fn cuGraphGetEdges = 535 (hGraph: usize, from: Out<usize>, to: Out<usize>, numEdges: Out<usize>) => {
        let nodes = GRAPHS.get(hGraph)?.nodes();
        let edges: Vec<(usize, usize)> = nodes
            .iter()
            .flat_map(|node| node.follows.iter().map(|before| (*before, Registry::handle_of(node))))
            .collect();
        let room = numEdges.get().unwrap_or(0).min(edges.len());
        from.put_all(&edges.iter().take(room).map(|edge| edge.0).collect::<Vec<_>>());
        to.put_all(&edges.iter().take(room).map(|edge| edge.1).collect::<Vec<_>>());
        numEdges.put(edges.len())
    };
    fn cuGraphMemcpyNodeGetParams = 505 (hNode: usize, nodeParams: Out<Planes>) => match &NODES.get(hNode)?.operation {
        Operation::Copy(copy) => nodeParams.put(Planes::of(copy)),
        _ => Err(Code::INVALID_VALUE),
    };
    fn cuGraphMemsetNodeGetParams = 507 (hNode: usize, nodeParams: Out<SetNodeParameters>)
        => match &NODES.get(hNode)?.operation {
        Operation::Set(set) => nodeParams.put(SetNodeParameters {
            destination: set.destination,
            pitch: set.pitch as usize,
            value: set.value,
            element: set.width.into(),
            width: (set.size / u64::from(set.width)) as usize,
            height: set.rows as usize,
        }),
        _ => Err(Code::INVALID_VALUE),
    };
    fn cuGraphExecKernelNodeSetParams_v2 = 692 (hGraphExec: usize, hNode: usize, nodeParams: In<KernelNodeParameters>) => {
        let operation = nodeParams.get().ok_or(Code::INVALID_VALUE)?.operation()?;
        EXECUTABLES.get(hGraphExec)?.set(hNode, operation)
    };
    fn cuStreamGetCaptureInfo_v2 = 629 (
        hStream: usize, captureStatus_out: Out<u32>, id_out: Out<u64>, graph_out: Out<usize>,
        dependencies_out: Out<usize>, numDependencies_out: Out<usize>,
    ) => {
        let (_, stream) = stream_by_handle(hStream)?;
        let Some(graph) = stream.captured_by() else {
            return captureStatus_out.put(0);
        };
        let tips = graph.tips();
        captureStatus_out.put(1)?;
        id_out.put_if_wanted(graph.id.into());
        graph_out.put_if_wanted(Registry::handle_of(&graph));
        dependencies_out.put_if_wanted(tips.as_ptr() as usize);
        numDependencies_out.put_if_wanted(tips.len());
        HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner).push(tips);
        Ok(())
    };
    fn cuStreamUpdateCaptureDependencies = 631 (
        hStream: usize, dependencies: In<usize>, numDependencies: usize, flags: u32,
    ) => {
        let (_, stream) = stream_by_handle(hStream)?;
        let graph = stream.captured_by().ok_or(Code::ILLEGAL_STATE)?;
        let mut tips = if flags == SET { Vec::new() } else { graph.tips().to_vec() };
        tips.extend(dependencies.list(numDependencies));
        if tips.iter().any(|node| NODES.get(*node).is_err()) {
            return Err(Code::INVALID_VALUE);
        }
        graph.set_tips(tips);
        Ok(())
    };
}
