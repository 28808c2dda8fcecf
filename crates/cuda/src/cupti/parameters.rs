//! The parameters of driver calls, as callbacks see them.
//!
//! CUPTI hands out a struct of the call's arguments in their order. Those that
//! differ only by being asynchronous, or by the default stream that they mean,
//! begin alike. <https://docs.nvidia.com/cupti/api/group__CUPTI__CALLBACK__API.html>

use std::ffi::c_void;

/// `cuLaunchKernel`; `cuLaunchCooperativeKernel` ends before `extra`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Launch {
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: *mut c_void,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

const _: () = assert!(std::mem::offset_of!(Launch, stream) == 40 && size_of::<Launch>() == 64);

/// `cuLaunchKernelEx`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct LaunchEx {
    pub config: *const LaunchConfig,
    pub function: *mut c_void,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// `CUlaunchConfig`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: *mut c_void,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: u32,
}

const _: () = assert!(size_of::<LaunchConfig>() == 56);

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
#[allow(missing_docs, reason = "its fields")]
pub struct LaunchAttribute {
    pub id: u32,
    pub padding: u32,
    pub value: [u8; 64],
}

const _: () = assert!(size_of::<LaunchAttribute>() == 72);

/// `cuMemcpyHtoD`, `DtoH`, `DtoD` and `cuMemcpy`, and their asynchronous forms:
/// only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Copy {
    pub destination: u64,
    pub source: u64,
    pub bytes: usize,
    pub stream: *mut c_void,
}

/// `cuMemsetD8`, `D16` and `D32`, and their asynchronous forms: only those have
/// the last. Of the value so many bytes count as the element has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Set {
    pub destination: u64,
    pub value: u32,
    pub count: usize,
    pub stream: *mut c_void,
}

/// `cuMemAlloc`, `cuMemAllocManaged`, `cuMemHostAlloc`, `cuMemAllocHost` and
/// `cuMemAllocAsync` begin so.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Allocate {
    pub address: *mut u64,
    pub bytes: usize,
    /// The stream, of `cuMemAllocAsync`; the pool, of `cuMemAllocFromPoolAsync`.
    pub third: *mut c_void,
    /// The stream, of `cuMemAllocFromPoolAsync`.
    pub fourth: *mut c_void,
}

/// `cuMemAllocPitch`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct AllocatePitch {
    pub address: *mut u64,
    pub pitch: *mut usize,
    pub width: usize,
    pub height: usize,
}

/// `cuMemFree`, `cuMemFreeHost`, `cuMemHostUnregister`, and with the second
/// `cuMemFreeAsync`, `cuMemUnmap`, `cuMemMap` and `cuMemHostRegister`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Range {
    pub address: u64,
    /// Bytes, or the stream.
    pub second: u64,
}

/// Calls about one or two handles: `cuEventRecord` (event, stream),
/// `cuStreamWaitEvent` (stream, event), `cuStreamSynchronize`,
/// `cuEventSynchronize`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Handles {
    pub first: u64,
    pub second: u64,
    pub flags: u32,
}

/// `cuFuncSetAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetFunctionAttribute {
    pub function: *mut c_void,
    pub attribute: u32,
    pub value: i32,
}

/// `cuKernelSetAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetKernelAttribute {
    pub attribute: u32,
    pub value: i32,
    pub kernel: *mut c_void,
}

/// `CUDA_MEMCPY3D`: a copy of planes, and what `cuMemcpy3D` points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Planes {
    pub source: Side,
    pub destination: Side,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Planes.
    pub depth: usize,
}

const _: () = assert!(size_of::<Planes>() == 200);

/// One end of a copy of planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Side {
    /// Bytes to the left of the first row's beginning.
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    /// `CUmemorytype`, in the lower half.
    pub kind: u64,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub reserved: u64,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Rows from plane to plane.
    pub height: usize,
}

/// `CU_MEMORYTYPE_HOST`.
pub const SIDE_HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`.
pub const SIDE_DEVICE: u32 = 2;
/// `CU_MEMORYTYPE_ARRAY`.
pub const SIDE_ARRAY: u32 = 3;
/// `CU_MEMORYTYPE_UNIFIED`.
pub const SIDE_UNIFIED: u32 = 4;

/// `CUDA_MEMCPY2D`, what `cuMemcpy2D` points to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Rows {
    pub source: RowSide,
    pub destination: RowSide,
    pub width: usize,
    pub height: usize,
}

const _: () = assert!(size_of::<Rows>() == 128);

/// One end of a copy of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct RowSide {
    pub x: usize,
    pub y: usize,
    pub kind: u64,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub pitch: usize,
}

impl From<Rows> for Planes {
    fn from(rows: Rows) -> Self {
        let side = |side: RowSide| Side {
            x: side.x,
            y: side.y,
            kind: side.kind,
            host: side.host,
            device: side.device,
            array: side.array,
            pitch: side.pitch,
            height: rows.height,
            ..Side::default()
        };
        Self {
            source: side(rows.source),
            destination: side(rows.destination),
            width: rows.width,
            height: rows.height,
            depth: 1,
        }
    }
}

impl Side {
    /// Where its first byte lies; none in an array.
    pub fn address(&self) -> Option<u64> {
        let base = match self.kind as u32 {
            SIDE_HOST => self.host,
            SIDE_DEVICE | SIDE_UNIFIED => self.device,
            _ => return None,
        };
        let rows = self.z.checked_mul(self.height)?.checked_add(self.y)?;
        let offset = rows.checked_mul(self.pitch)?.checked_add(self.x)?;
        base.checked_add(offset as u64)
    }
}

/// `cuMemcpy2D`, `cuMemcpy3D` and their asynchronous forms: only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct CopyOf<T> {
    pub what: *const T,
    pub stream: *mut c_void,
}

/// `cuMemsetD2D8`, `D16` and `D32`, and their asynchronous forms: only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetRows {
    pub destination: u64,
    pub pitch: usize,
    pub value: u32,
    pub width: usize,
    pub height: usize,
    pub stream: *mut c_void,
}

/// `cuModuleGetGlobal` and `cuLibraryGetGlobal`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct GetVariable {
    pub address: *const u64,
    pub bytes: *const usize,
    pub module: u64,
    pub name: *const std::ffi::c_char,
}

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

/// Words of `extra` that say what follows: `CU_LAUNCH_PARAM_END`,
/// `_BUFFER_POINTER` and `_BUFFER_SIZE`.
pub const EXTRA_END: usize = 0;
/// The next word points to the parameters.
pub const EXTRA_POINTER: usize = 1;
/// The next word points to their size.
pub const EXTRA_SIZE: usize = 2;
