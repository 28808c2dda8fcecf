//! Callbacks about modules, contexts, streams, graphs and API calls.

use std::ffi::{CStr, c_void};

use tracesmith_cuda::cupti::{
    ApiDomain, ContextHandle, NodeHandle, StreamHandle,
    abi::{
        ApiCallback, GraphResource, ModuleResource, ResourceCallback, SITE_EXIT, domain, driver, resource,
    },
};
use tracesmith_wire::record::{Context, Module, Stream};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    calls, edges,
    multiplexer::{CallbackId, CuptiMultiplexer, Reason},
};
use crate::{agent, agent::Agent, clock, range::RangeEdge, replay_capture};

/// The program's calls that open and close a window.
pub(super) const PROFILER_CALLS: [u32; 2] = [driver::CU_PROFILER_START, driver::CU_PROFILER_STOP];

/// Callbacks for [`Reason::Stacks`]: the stacks of those who make graph nodes.
pub(super) const STACKED_NODES: [CallbackId; 3] = [
    (domain::RESOURCE, resource::GRAPHNODE_CREATED),
    (domain::RESOURCE, resource::GRAPHNODE_CLONED),
    (domain::RESOURCE, resource::GRAPHNODE_DESTROY_STARTING),
];

/// Callbacks for [`Reason::Resources`]. Without them modules are missing from the trace, and nothing else.
pub(super) const RESOURCES: [CallbackId; 4] = [
    (domain::RESOURCE, resource::CONTEXT_DESTROY_STARTING),
    (domain::RESOURCE, resource::STREAM_DESTROY_STARTING),
    (domain::RESOURCE, resource::MODULE_LOADED),
    (domain::RESOURCE, resource::MODULE_UNLOAD_STARTING),
];

/// Callbacks for [`Reason::ReplayCapture`]. Without them the capture has no code and is marked incomplete.
pub(super) const REPLAY_MODULES: [CallbackId; 3] = [
    (domain::RESOURCE, resource::MODULE_LOADED),
    (domain::RESOURCE, resource::MODULE_PROFILED),
    (domain::RESOURCE, resource::MODULE_UNLOAD_STARTING),
];

/// Handles one callback that is on for TraceSmith.
///
/// # Safety
///
/// `data` is what CUPTI gives for this domain.
pub(super) unsafe fn callback(multiplexer: &CuptiMultiplexer, number: u32, id: u32, data: *const c_void) {
    let Some(agent) = agent::current() else {
        return;
    };
    match number {
        domain::DRIVER => {
            // SAFETY: the caller vouches for it.
            if let Some(call) = unsafe { data.cast::<ApiCallback>().as_ref() } {
                driver_call(agent, multiplexer, id, call);
            }
        }
        domain::RUNTIME => {
            // SAFETY: the caller vouches for it.
            if let Some(call) = unsafe { data.cast::<ApiCallback>().as_ref() } {
                runtime_call(agent, multiplexer, id, call);
            }
        }
        domain::RESOURCE => {
            // SAFETY: the caller vouches for it.
            if let Some(data) = unsafe { data.cast::<ResourceCallback>().as_ref() } {
                // SAFETY: as above.
                unsafe { resource(agent, multiplexer, id, data) };
            }
        }
        _ => {}
    }
}

/// A runtime call whose callback is on.
fn runtime_call(agent: &Agent, multiplexer: &CuptiMultiplexer, id: u32, call: &ApiCallback) {
    if multiplexer
        .reasons((domain::RUNTIME, id))
        .has(Reason::CallsInProgress)
    {
        calls::call(agent, multiplexer, ApiDomain::Runtime, id, call);
    }
}

/// A driver call whose callback is on.
fn driver_call(agent: &Agent, multiplexer: &CuptiMultiplexer, id: u32, call: &ApiCallback) {
    if agent.replay_capture.is_on() && replay_capture::is_inside() {
        // SAFETY: CUPTI's text.
        let name = unsafe { CStr::from_ptr(call.function_name) };
        let time = multiplexer.cupti().timestamp();
        agent.replay_capture.note_own(call, name.to_bytes(), time);
        return;
    }
    let callback = (domain::DRIVER, id);
    let opens = multiplexer.reasons(callback).has(Reason::LaunchRange) && opens_window(agent, call);
    if opens && call.site != SITE_EXIT {
        agent.range_edge(RangeEdge::Begin);
    }
    // A window that has just opened has added reasons.
    let reasons = multiplexer.reasons(callback);
    if call.site != SITE_EXIT && reasons.has(Reason::Stacks) {
        agent.stacks.take(&agent.sink, call.correlation);
    }
    if reasons.has(Reason::CallsInProgress) {
        calls::call(agent, multiplexer, ApiDomain::Driver, id, call);
    }
    agent.cuda.waits.call(agent, multiplexer.cupti(), id, call);
    if reasons.has(Reason::ReplayCapture) {
        agent.replay_capture.call(id, call);
    }
    if reasons.has(Reason::ProfilerRange) {
        profiler_call(agent, id, call.site);
    }
    if opens && call.site == SITE_EXIT {
        agent.range_edge(RangeEdge::End);
    }
}

/// Whether the window is open during this launch.
fn opens_window(agent: &Agent, call: &ApiCallback) -> bool {
    if call.symbol_name.is_null() {
        return false;
    }
    // SAFETY: CUPTI's text.
    let symbol = unsafe { CStr::from_ptr(call.symbol_name) };
    agent.cuda.wants_kernel(symbol)
}

/// Recording begins when the start call is left and ends when the stop call is
/// entered: neither is part of it.
fn profiler_call(agent: &Agent, id: u32, site: u32) {
    match (id, site == SITE_EXIT) {
        (driver::CU_PROFILER_START, true) => agent.range_edge(RangeEdge::Begin),
        (driver::CU_PROFILER_STOP, false) => agent.range_edge(RangeEdge::End),
        _ => {}
    }
}

/// # Safety
///
/// The descriptor is what CUPTI gives for this resource.
unsafe fn resource(agent: &Agent, multiplexer: &CuptiMultiplexer, id: u32, data: &ResourceCallback) {
    if edges::WATCHED.contains(&(domain::RESOURCE, id)) {
        // SAFETY: the caller vouches for it.
        if let Some(graph) = unsafe { data.descriptor.cast::<GraphResource>().as_ref() } {
            graph_node(agent, multiplexer, id, graph);
        }
        return;
    }
    let handle = ContextHandle(data.context as usize);
    let context = multiplexer.cupti().context_id(handle).unwrap_or(0);
    match id {
        resource::MODULE_LOADED | resource::MODULE_UNLOAD_STARTING | resource::MODULE_PROFILED => {
            // SAFETY: the caller vouches for it.
            if let Some(module) = unsafe { data.descriptor.cast::<ModuleResource>().as_ref() } {
                // SAFETY: as above; valid during the callback.
                unsafe { send_module(agent, context, id, module) };
            }
        }
        resource::CONTEXT_DESTROY_STARTING => agent.sink.define(&Context {
            time: clock::now(),
            context,
            destroyed: 1,
            ..Context::default()
        }),
        resource::STREAM_DESTROY_STARTING => {
            if let Some(stream) = multiplexer
                .cupti()
                .stream_id(handle, StreamHandle(data.stream as usize))
            {
                agent.sink.define(&Stream {
                    time: clock::now(),
                    context,
                    stream,
                    destroyed: 1,
                    ..Stream::default()
                });
            }
        }
        _ => {}
    }
}

/// A node is made by the thread that captures it, or copied when its graph is
/// made ready to run: the copies are what runs, and have the stack that made
/// their originals.
fn graph_node(agent: &Agent, multiplexer: &CuptiMultiplexer, id: u32, graph: &GraphResource) {
    let reasons = multiplexer.reasons((domain::RESOURCE, id));
    if reasons.has(Reason::GraphEdges) {
        agent
            .cuda
            .edges
            .on_callback(agent, multiplexer.cupti(), id, graph);
    }
    if !reasons.has(Reason::Stacks) {
        return;
    }
    let Some(node) = multiplexer.cupti().graph_node_id(NodeHandle(graph.node as usize)) else {
        return;
    };
    match id {
        resource::GRAPHNODE_CREATED => agent.stacks.take_for_node(&agent.sink, node),
        resource::GRAPHNODE_CLONED => {
            if let Some(original) = multiplexer
                .cupti()
                .graph_node_id(NodeHandle(graph.original_node as usize))
            {
                agent.stacks.copy_node(original, node);
            }
        }
        _ => agent.stacks.forget_node(node),
    }
}

/// # Safety
///
/// The module's code is readable.
unsafe fn send_module(agent: &Agent, context: u32, id: u32, module: &ModuleResource) {
    let capture = agent.replay_capture.is_on().then_some(&agent.replay_capture);
    // One that is used is news when it was loaded before anyone watched.
    if id == resource::MODULE_PROFILED {
        match capture {
            Some(capture) if !capture.knows_module(context, module.module) => {}
            Some(capture) => return capture.module_used(context, module.module),
            None => return,
        }
    }
    let code = if module.code.is_null() {
        &[][..]
    } else {
        // SAFETY: the caller vouches for it.
        unsafe { std::slice::from_raw_parts(module.code, module.size) }
    };
    let hash = if code.is_empty() { 0 } else { xxh3_128(code) };
    match capture {
        Some(capture) if id == resource::MODULE_UNLOAD_STARTING => {
            capture.module_unloaded(context, module.module);
        }
        Some(capture) => capture.module_loaded(context, module.module, hash, code),
        None => {}
    }
    agent.sink.define(&Module {
        time: clock::now(),
        size: module.size as u64,
        hash_high: (hash >> 64) as u64,
        hash_low: hash as u64,
        context,
        module: module.module,
        unloaded: u32::from(id == resource::MODULE_UNLOAD_STARTING),
        reserved: 0,
    });
}
