//! CUPTI's numbers, and the structs that callbacks are handed.

use std::ffi::{c_char, c_void};

/// Kinds of activity: `CUpti_ActivityKind`.
#[allow(missing_docs, reason = "CUPTI's own names")]
pub mod kind {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const KERNEL: u32 = 3;
    pub const DRIVER: u32 = 4;
    pub const RUNTIME: u32 = 5;
    pub const DEVICE: u32 = 8;
    pub const CONTEXT: u32 = 9;
    pub const CONCURRENT_KERNEL: u32 = 10;
    pub const NAME: u32 = 11;
    pub const MARKER: u32 = 12;
    pub const MARKER_DATA: u32 = 13;
    pub const OVERHEAD: u32 = 17;
    pub const MEMCPY2: u32 = 22;
    pub const CUDA_EVENT: u32 = 36;
    pub const STREAM: u32 = 37;
    pub const SYNCHRONIZATION: u32 = 38;
    pub const EXTERNAL_CORRELATION: u32 = 39;
    pub const MEMORY2: u32 = 49;
    pub const MEMORY_POOL: u32 = 50;
    pub const GRAPH_TRACE: u32 = 51;
    pub const JIT: u32 = 52;
    /// One more than the largest kind that any version is known to have.
    pub const COUNT: usize = 128;
}

/// Domains of callbacks: `CUpti_CallbackDomain`.
#[allow(missing_docs, reason = "CUPTI's own names")]
pub mod domain {
    pub const DRIVER: u32 = 1;
    pub const RUNTIME: u32 = 2;
    pub const RESOURCE: u32 = 3;
    pub const SYNCHRONIZE: u32 = 4;
    pub const NVTX: u32 = 5;
    pub const STATE: u32 = 6;
    /// One more than the largest domain that any version is known to have.
    pub const COUNT: usize = 8;
}

/// Resource callbacks: `CUpti_CallbackIdResource`.
#[allow(missing_docs, reason = "CUPTI's own names")]
pub mod resource {
    pub const CONTEXT_CREATED: u32 = 1;
    pub const CONTEXT_DESTROY_STARTING: u32 = 2;
    pub const STREAM_DESTROY_STARTING: u32 = 4;
    pub const MODULE_LOADED: u32 = 6;
    pub const MODULE_UNLOAD_STARTING: u32 = 7;
    pub const MODULE_PROFILED: u32 = 8;
    pub const GRAPH_CREATED: u32 = 9;
    pub const GRAPH_CLONED: u32 = 11;
    pub const GRAPHNODE_CREATED: u32 = 13;
    pub const GRAPHNODE_DESTROY_STARTING: u32 = 14;
    pub const GRAPHNODE_DEPENDENCY_CREATED: u32 = 15;
    pub const GRAPHNODE_DEPENDENCY_DESTROY_STARTING: u32 = 16;
    pub const GRAPHEXEC_CREATED: u32 = 18;
    pub const GRAPHNODE_CLONED: u32 = 20;
}

/// Driver functions that are watched: `CUpti_driver_api_trace_cbid`.
#[allow(missing_docs, reason = "CUPTI's own names")]
pub mod driver {
    pub const CU_PROFILER_START: u32 = 308;
    pub const CU_PROFILER_STOP: u32 = 309;
}

/// Results: `CUptiResult`.
#[allow(missing_docs, reason = "CUPTI's own names")]
pub mod result {
    pub const SUCCESS: u32 = 0;
    pub const INVALID_PARAMETER: u32 = 1;
    pub const INVALID_KIND: u32 = 21;
    pub const NOT_COMPATIBLE: u32 = 14;
    pub const MULTIPLE_SUBSCRIBERS: u32 = 39;
}

/// `CUPTI_API_EXIT` of `CUpti_ApiCallbackSite`.
pub const SITE_EXIT: u32 = 1;

/// `CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER`.
pub const ATTRIBUTE_PER_THREAD_BUFFER: u32 = 9;

/// `CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER`.
pub const ATTRIBUTE_ZEROED_BUFFER: u32 = 5;

/// `CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM`.
pub const THREAD_ID_SYSTEM: u32 = 1;

/// `CUpti_CallbackData`: what a callback of the driver or runtime domain gets.
#[repr(C)]
#[derive(Debug)]
pub struct ApiCallback {
    /// Entry (0) or exit (1).
    pub site: u32,
    /// The function's name.
    pub function_name: *const c_char,
    /// Its parameters.
    pub parameters: *const c_void,
    /// What it gave back; at exit only.
    pub result: *mut c_void,
    /// The kernel's name, for launches.
    pub symbol_name: *const c_char,
    /// The current context.
    pub context: *mut c_void,
    /// Its number.
    pub context_id: u32,
    /// A word that goes from entry to exit.
    pub correlation_data: *mut u64,
    /// Joins activity records.
    pub correlation: u32,
}

const _: () = assert!(size_of::<ApiCallback>() == 72);
const _: () = assert!(std::mem::offset_of!(ApiCallback, correlation) == 64);

/// `CUpti_ResourceData`: what a callback of the resource domain gets.
#[repr(C)]
#[derive(Debug)]
pub struct ResourceCallback {
    /// The context.
    pub context: *mut c_void,
    /// The stream, for those of streams.
    pub stream: *mut c_void,
    /// What depends on the callback.
    pub descriptor: *mut c_void,
}

const _: () = assert!(size_of::<ResourceCallback>() == 24);

/// `CUpti_ModuleResourceData`: the descriptor of module callbacks.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleResource {
    /// The module's number.
    pub module: u32,
    /// Bytes of code.
    pub size: usize,
    /// The code, valid during the callback.
    pub code: *const u8,
}

const _: () = assert!(size_of::<ModuleResource>() == 24);

/// `CUpti_GraphData`: the descriptor of graph callbacks.
#[repr(C)]
#[derive(Debug)]
pub struct GraphResource {
    /// The graph.
    pub graph: *mut c_void,
    /// The graph that it is a copy of.
    pub original_graph: *mut c_void,
    /// The node.
    pub node: *mut c_void,
    /// The node that it is a copy of.
    pub original_node: *mut c_void,
    /// What kind of node it is.
    pub node_kind: u32,
    /// The node that it depends on, for those of dependencies.
    pub dependency: *mut c_void,
    /// The executable graph.
    pub executable: *mut c_void,
}

const _: () = assert!(size_of::<GraphResource>() == 56);
