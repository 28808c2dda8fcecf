//! The data that callbacks about resources and synchronisation carry.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Arc;

use super::subscriber::{self, Domain};
use crate::engine::context::Context;
use crate::engine::registry::{Handle, Registry};
use crate::engine::stream::Stream;

/// `CUpti_CallbackIdResource`.
pub(crate) mod resource {
    pub(crate) const CONTEXT_CREATED: u32 = 1;
    pub(crate) const CONTEXT_DESTROY_STARTING: u32 = 2;
    pub(crate) const STREAM_CREATED: u32 = 3;
    pub(crate) const STREAM_DESTROY_STARTING: u32 = 4;
    pub(crate) const CU_INIT_FINISHED: u32 = 5;
    pub(crate) const MODULE_LOADED: u32 = 6;
    pub(crate) const MODULE_UNLOAD_STARTING: u32 = 7;
    pub(crate) const MODULE_PROFILED: u32 = 8;
    pub(crate) const GRAPH_CREATED: u32 = 9;
    pub(crate) const GRAPH_DESTROY_STARTING: u32 = 10;
    pub(crate) const GRAPH_CLONED: u32 = 11;
    pub(crate) const GRAPHNODE_CREATE_STARTING: u32 = 12;
    pub(crate) const GRAPHNODE_CREATED: u32 = 13;
    pub(crate) const GRAPHNODE_DESTROY_STARTING: u32 = 14;
    pub(crate) const GRAPHNODE_DEPENDENCY_CREATED: u32 = 15;
    pub(crate) const GRAPHNODE_DEPENDENCY_DESTROY_STARTING: u32 = 16;
    pub(crate) const GRAPHEXEC_CREATE_STARTING: u32 = 17;
    pub(crate) const GRAPHEXEC_CREATED: u32 = 18;
    pub(crate) const GRAPHEXEC_DESTROY_STARTING: u32 = 19;
    pub(crate) const GRAPHNODE_CLONED: u32 = 20;
}

/// `CUpti_CallbackIdSync`.
pub(crate) mod synchronize {
    pub(crate) const STREAM: u32 = 1;
    pub(crate) const CONTEXT: u32 = 2;
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: Handle,
    /// The stream, where it is about one.
    handle: Handle,
    descriptor: *const c_void,
}

/// `CUpti_ModuleResourceData`.
#[repr(C)]
pub(crate) struct ModuleData {
    pub(crate) module_id: u32,
    pub(crate) cubin_size: usize,
    pub(crate) cubin: *const u8,
}

/// `CUpti_GraphData`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct GraphData {
    pub(crate) graph: Handle,
    pub(crate) original_graph: Handle,
    pub(crate) node: Handle,
    pub(crate) original_node: Handle,
    pub(crate) node_type: u32,
    pub(crate) dependency: Handle,
    pub(crate) executable: Handle,
}

/// `CUpti_SynchronizeData`.
#[repr(C)]
struct SynchronizeData {
    context: Handle,
    stream: Handle,
}

const _: () = {
    assert!(size_of::<ResourceData>() == 24);
    assert!(size_of::<ModuleData>() == 24 && offset_of!(ModuleData, cubin) == 16);
    assert!(size_of::<GraphData>() == 56 && offset_of!(GraphData, executable) == 48);
    assert!(size_of::<SynchronizeData>() == 16);
};

/// Tells the subscriber that the driver is ready: without any data, as seen on an H200.
pub(crate) fn about_initialisation() {
    subscriber::call(Domain::Resource, resource::CU_INIT_FINISHED, std::ptr::null());
}

/// Tells the subscriber about a context.
pub(crate) fn about_context(id: u32, context: &Arc<Context>) {
    send(id, Some(context), 0, std::ptr::null());
}

pub(crate) fn about_stream(id: u32, context: &Arc<Context>, stream: &Arc<Stream>) {
    send(id, Some(context), Registry::handle_of(stream), std::ptr::null());
}

pub(crate) fn about_module(id: u32, context: Option<&Arc<Context>>, module: &ModuleData) {
    send(id, context, 0, (&raw const *module).cast());
}

pub(crate) fn about_graph(id: u32, context: Option<&Arc<Context>>, graph: &GraphData) {
    send(id, context, 0, (&raw const *graph).cast());
}

fn send(id: u32, context: Option<&Arc<Context>>, handle: Handle, descriptor: *const c_void) {
    let data = ResourceData {
        context: context.map_or(0, Context::handle),
        handle,
        descriptor,
    };
    subscriber::call(Domain::Resource, id, (&raw const data).cast());
}

/// Tells the subscriber that a wait is over; `stream` is 0 for a whole context.
pub(crate) fn synchronized(id: u32, context: &Arc<Context>, stream: Handle) {
    let data = SynchronizeData {
        context: context.handle(),
        stream,
    };
    subscriber::call(Domain::Synchronize, id, (&raw const data).cast());
}
