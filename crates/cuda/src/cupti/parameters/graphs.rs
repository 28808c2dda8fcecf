//! Nodes of graphs.

use std::ffi::c_void;

/// `CUDA_KERNEL_NODE_PARAMS`, second version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct KernelNode {
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kernel: *mut c_void,
    pub context: *mut c_void,
}

const _: () = assert!(size_of::<KernelNode>() == 72);

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct SetNode {
    pub destination: u64,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

const _: () = assert!(size_of::<SetNode>() == 40);

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct AllocateNode {
    pub pool: [u64; 11],
    pub access: *const c_void,
    pub access_count: usize,
    pub bytes: usize,
    pub address: u64,
}

const _: () = assert!(size_of::<AllocateNode>() == 120);

/// `cuGraphInstantiate` in all its forms.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Instantiate {
    pub executable: *const u64,
    pub graph: u64,
}

/// `cuGraphExec…SetParams` of a node: the executable, the node, and what is set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetNodeParameters {
    pub executable: u64,
    pub node: u64,
    pub parameters: *const c_void,
}
