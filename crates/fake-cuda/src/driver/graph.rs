//! Graphs: captured from a stream or built by hand, made ready, launched.

#![allow(unsafe_code, reason = "exports C functions")]

use std::sync::Arc;

use super::launch::{ArgumentPointers, launch_from};
use super::module::function_by_handle;
use super::state::check_initialised;
use super::work::{self, GraphPlace};
use crate::call::{api, correlation_id};
use crate::clock;
use crate::code::Code;
use crate::cupti::{activity, device_work, graph_callbacks};
use crate::engine::context::{self, stream_by_handle};
use crate::engine::graph::{EXECUTABLES, Executable, GRAPHS, Graph, NODES};
use crate::engine::operation::Operation;
use crate::engine::registry::Registry;
use crate::pointer::{In, Out};

/// `CUDA_KERNEL_NODE_PARAMS`, second version.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelNodeParameters {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: In<u64>,
    extra: In<u64>,
    kernel: usize,
    context: usize,
}

const _: () = assert!(size_of::<KernelNodeParameters>() == 72);

impl KernelNodeParameters {
    pub(crate) fn operation(&self) -> Result<Operation, Code> {
        let handle = if self.function == 0 {
            self.kernel
        } else {
            self.function
        };
        let arguments = ArgumentPointers {
            each: self.arguments,
            extra: self.extra,
        };
        let function = function_by_handle(handle)?;
        launch_from(&function, self.grid, self.block, self.shared_bytes, arguments).map(Operation::Kernel)
    }
}

api! { Driver:
    fn cuStreamBeginCapture_v2 = 539 (hStream: usize, _mode: u32) => {
        check_initialised()?;
        let (_, stream) = stream_by_handle(hStream)?;
        if hStream < 2 || stream.is_capturing() {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        stream.set_capture(Some(created()));
        Ok(())
    };
    fn cuStreamEndCapture = 497 (hStream: usize, phGraph: Out<usize>) => {
        let (_, stream) = stream_by_handle(hStream)?;
        let graph = stream.set_capture(None).ok_or(Code::ILLEGAL_STATE)?;
        phGraph.put(Registry::handle_of(&graph))
    };
    fn cuStreamIsCapturing = 499 (hStream: usize, captureStatus: Out<u32>)
        => stream_by_handle(hStream).and_then(|(_, stream)| captureStatus.put(stream.is_capturing().into()));
    fn cuThreadExchangeStreamCaptureMode = 541 (mode: Out<u32>) => mode.put(0);
    fn cuGraphCreate = 501 (phGraph: Out<usize>, _flags: u32) => {
        check_initialised()?;
        phGraph.put(Registry::handle_of(&created()))
    };
    fn cuGraphClone = 523 (phGraphClone: Out<usize>, originalGraph: usize) => {
        let original = GRAPHS.get(originalGraph)?;
        let copy = original.copy();
        GRAPHS.add(copy.clone());
        graph_callbacks::graph_cloned(&original, &copy);
        phGraphClone.put(Registry::handle_of(&copy))
    };
    fn cuGraphAddKernelNode_v2 = 689 (
        phGraphNode: Out<usize>, hGraph: usize, dependencies: In<usize>, numDependencies: usize,
        nodeParams: In<KernelNodeParameters>,
    ) => {
        let graph = GRAPHS.get(hGraph)?;
        let operation = nodeParams.get().ok_or(Code::INVALID_VALUE)?.operation()?;
        let node = work::add_node(&graph, operation, dependencies.list(numDependencies));
        phGraphNode.put(Registry::handle_of(&node))
    };
    fn cuGraphKernelNodeGetParams_v2 = 690 (hNode: usize, nodeParams: Out<KernelNodeParameters>) => {
        let node = NODES.get(hNode)?;
        let Operation::Kernel(launch) = &node.operation else {
            return Err(Code::INVALID_VALUE);
        };
        nodeParams.put(KernelNodeParameters {
            function: Registry::handle_of(&launch.function),
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            arguments: In::from_address(node.argument_pointers() as u64),
            extra: In::from_address(0),
            kernel: 0,
            context: 0,
        })
    };
    fn cuGraphNodeGetType = 509 (hNode: usize, node_type: Out<u32>)
        => NODES.get(hNode).and_then(|node| node_type.put(node.operation.node_type()));
    fn cuGraphGetNodes = 534 (hGraph: usize, nodes: Out<usize>, numNodes: Out<usize>) => {
        let all: Vec<usize> = GRAPHS.get(hGraph)?.nodes().iter().map(Registry::handle_of).collect();
        let room = numNodes.get().unwrap_or(0).min(all.len());
        nodes.put_all(&all[..room]);
        numNodes.put(all.len())
    };
    fn cuGraphInstantiateWithFlags = 643 (phGraphExec: Out<usize>, hGraph: usize, _flags: u64)
        => instantiate(hGraph).and_then(|handle| phGraphExec.put(handle));
    fn cuGraphInstantiateWithParams = 656 (phGraphExec: Out<usize>, hGraph: usize, _instantiateParams: In<u8>)
        => instantiate(hGraph).and_then(|handle| phGraphExec.put(handle));
    fn cuGraphInstantiate_v2 = 578 (
        phGraphExec: Out<usize>, hGraph: usize, _phErrorNode: Out<usize>, _logBuffer: Out<u8>, _bufferSize: usize,
    ) => instantiate(hGraph).and_then(|handle| phGraphExec.put(handle));
    fn cuGraphUpload = 580 (hGraph: usize, _hStream: usize) => EXECUTABLES.get(hGraph).map(|_| ());
    fn cuGraphLaunch = 514 (hGraph: usize, hStream: usize) => launch(hGraph, hStream);
    fn cuGraphExecDestroy = 516 (hGraphExec: usize) => {
        let executable = EXECUTABLES.get(hGraphExec)?;
        graph_callbacks::executable_destroyed(hGraphExec, &executable);
        for node in executable.nodes().iter().chain(executable.links()).chain(&executable.inner.nodes()) {
            NODES.remove(Registry::handle_of(node))?;
        }
        EXECUTABLES.remove(hGraphExec).map(|_| ())
    };
    fn cuGraphDestroy = 517 (hGraph: usize) => {
        let graph = GRAPHS.remove(hGraph)?;
        graph_callbacks::graph_destroyed(hGraph, &graph.nodes());
        for node in graph.nodes() {
            NODES.remove(Registry::handle_of(&node))?;
        }
        Ok(())
    };
}

fn created() -> Arc<Graph> {
    let graph = Graph::new();
    GRAPHS.add(graph.clone());
    graph_callbacks::graph_created(Registry::handle_of(&graph));
    graph
}

fn instantiate(handle: usize) -> Result<usize, Code> {
    check_initialised()?;
    let graph = GRAPHS.get(handle)?;
    let executable = Executable::of(&graph);
    let executable_handle = EXECUTABLES.add(executable.clone());
    let context = context::current_or_none();
    graph_callbacks::executable_created(context.as_ref(), &graph, &executable);
    Ok(executable_handle)
}

/// Runs all nodes in the stream. With GRAPH_TRACE on there is one record of the whole, else one of each node.
fn launch(handle: usize, stream: usize) -> Result<(), Code> {
    check_initialised()?;
    let executable = EXECUTABLES.get(handle)?;
    let (context, stream) = stream_by_handle(stream)?;
    context.check()?;
    if activity::is_enabled(crate::cupti::record::kind::GRAPH_TRACE) {
        let record = device_work::begin_graph(&context, &stream, executable.graph_id, correlation_id());
        context.submit(&stream, Vec::new(), move || {
            let start = clock::now();
            let mut outcome = Ok(());
            for node in &executable.nodes() {
                outcome = outcome.and(node.operation.run());
            }
            record.finish(start, clock::now());
            outcome
        });
        return Ok(());
    }
    for node in &executable.nodes() {
        let place = GraphPlace {
            graph_id: executable.graph_id,
            node_id: node.id,
        };
        work::queue(&context, &stream, node.operation.clone(), place);
    }
    Ok(())
}
