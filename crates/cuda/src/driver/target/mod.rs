//! The driver of the target process: queries about its kernels, memory and graphs.
//!
//! For the injected library. It uses the program's own handles, from callbacks, in
//! the program's own context.

mod array;
mod graph;
mod stall;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::cupti::parameters::{AllocateNode, ArrayShape, KernelNode, Planes, Resource, SetNode};
use crate::driver::functions::{DeviceAddress, Handle, Status};
use crate::{Error, functions::functions, library::Library};
use graph::EdgeData;

pub use array::{ArrayHandle, ArrayRows};
pub use graph::{Edge, GraphHandle, NodeHandle, NodeKind};
pub use stall::{StallRelease, StreamStall};

functions! {
    /// Query functions, and copies to the host.
    Functions from "libcuda.so.1";
    required {
        fn cuCtxSynchronize() -> Status;
        fn cuCtxPushCurrent_v2(context: Handle) -> Status;
        fn cuCtxPopCurrent_v2(context: *mut Handle) -> Status;
        fn cuMemcpyDtoH_v2(to: *mut c_void, from: DeviceAddress, bytes: usize) -> Status;
        fn cuMemGetAddressRange_v2(base: *mut DeviceAddress, bytes: *mut usize, address: DeviceAddress) -> Status;
        fn cuPointerGetAttribute(value: *mut c_void, attribute: c_uint, address: DeviceAddress) -> Status;
        fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) -> Status;
    }
    optional {
        fn cuStreamGetCtx(stream: Handle, context: *mut Handle) -> Status;
        /// Since CUDA 12.3.
        fn cuFuncGetName(name: *mut *const c_char, function: Handle) -> Status;
        fn cuKernelGetName(name: *mut *const c_char, kernel: Handle) -> Status;
        /// Since CUDA 12.4.
        fn cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, bytes: *mut usize) -> Status;
        fn cuKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, bytes: *mut usize) -> Status;
        fn cuFuncGetModule(module: *mut Handle, function: Handle) -> Status;
        /// Since CUDA 12.4.
        fn cuModuleGetFunctionCount(count: *mut c_uint, module: Handle) -> Status;
        fn cuModuleEnumerateFunctions(functions: *mut Handle, count: c_uint, module: Handle) -> Status;
        /// Since CUDA 12.0.
        fn cuLibraryGetModule(module: *mut Handle, library: Handle) -> Status;
        fn cuKernelGetFunction(function: *mut Handle, kernel: Handle) -> Status;
        fn cuModuleGetGlobal_v2(
            address: *mut DeviceAddress,
            bytes: *mut usize,
            module: Handle,
            name: *const c_char,
        ) -> Status;
        fn cuStreamGetFlags(stream: Handle, flags: *mut c_uint) -> Status;
        fn cuStreamGetPriority(stream: Handle, priority: *mut c_int) -> Status;
        fn cuStreamQuery(stream: Handle) -> Status;

        fn cuArray3DGetDescriptor_v2(shape: *mut ArrayShape, array: Handle) -> Status;
        fn cuMipmappedArrayGetLevel(array: *mut Handle, whole: Handle, level: c_uint) -> Status;
        fn cuMemcpy3D_v2(copy: *const Planes) -> Status;
        fn cuTexObjectGetResourceDesc(resource: *mut Resource, texture: u64) -> Status;
        fn cuSurfObjectGetResourceDesc(resource: *mut Resource, surface: u64) -> Status;

        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status;
        fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> Status;
        fn cuMemFreeHost(address: *mut c_void) -> Status;
        fn cuMemHostGetDevicePointer_v2(device: *mut DeviceAddress, host: *mut c_void, flags: c_uint) -> Status;
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: DeviceAddress, bytes: usize, stream: Handle) -> Status;
        fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> Status;
        fn cuStreamDestroy_v2(stream: Handle) -> Status;
        fn cuStreamSynchronize(stream: Handle) -> Status;
        /// Since CUDA 11.7.
        fn cuStreamWaitValue32_v2(stream: Handle, address: DeviceAddress, value: u32, flags: c_uint) -> Status;
        /// Since CUDA 12.4.
        fn cuFuncLoad(function: Handle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html>
        fn cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) -> Status;
        fn cuGraphGetEdges(graph: Handle, from: *mut Handle, to: *mut Handle, count: *mut usize) -> Status;
        /// Since CUDA 12.3; the older one refuses graphs whose edges have kinds.
        fn cuGraphGetEdges_v2(
            graph: Handle,
            from: *mut Handle,
            to: *mut Handle,
            kinds: *mut EdgeData,
            count: *mut usize,
        ) -> Status;
        fn cuGraphNodeGetType(node: Handle, kind: *mut c_uint) -> Status;
        fn cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut KernelNode) -> Status;
        fn cuGraphKernelNodeGetAttribute(node: Handle, attribute: c_uint, value: *mut [u8; 64]) -> Status;
        fn cuGraphMemcpyNodeGetParams(node: Handle, parameters: *mut Planes) -> Status;
        fn cuGraphMemsetNodeGetParams(node: Handle, parameters: *mut SetNode) -> Status;
        fn cuGraphMemAllocNodeGetParams(node: Handle, parameters: *mut AllocateNode) -> Status;
        fn cuGraphMemFreeNodeGetParams(node: Handle, address: *mut DeviceAddress) -> Status;
        fn cuGraphChildGraphNodeGetGraph(node: Handle, graph: *mut Handle) -> Status;
        fn cuGraphEventRecordNodeGetEvent(node: Handle, event: *mut Handle) -> Status;
        fn cuGraphEventWaitNodeGetEvent(node: Handle, event: *mut Handle) -> Status;
    }
}

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `_IS_MANAGED`.
const MEMORY_TYPE: c_uint = 2;
const IS_MANAGED: c_uint = 8;
/// `CU_MEMORYTYPE_HOST`.
const HOST: c_uint = 1;

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPlace {
    /// On a device.
    Device,
    /// On the host, page-locked.
    Host,
    /// Where it was used last.
    Managed,
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub address: u64,
    /// How much it is.
    pub bytes: u64,
    /// Where it is.
    pub place: MemoryPlace,
}

/// Where a parameter lies among a kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Where it begins.
    pub offset: usize,
    /// How long it is.
    pub bytes: usize,
}

/// A function of the program's, or what stands for one until it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionHandle(pub usize);

/// The driver that the program has loaded.
#[derive(Clone)]
pub struct TargetDriver {
    functions: Functions,
}

/// How a stream was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamMake {
    /// As given to `cuStreamCreate`.
    pub flags: u32,
    /// The lower the more urgent.
    pub priority: i32,
}

impl TargetDriver {
    /// The driver's functions.
    ///
    /// # Errors
    ///
    /// When the program has no driver, or one without a function that we need.
    pub fn open() -> Result<Self, Error> {
        let library = Library::loaded(crate::driver::LIBRARY)
            .ok_or_else(|| Error::missing(crate::driver::LIBRARY, "the program has not loaded it"))?;
        Ok(Self {
            functions: Functions::load(&library)?,
        })
    }

    /// Waits for all work of the current context. False when the driver refuses,
    /// as it does while a stream captures.
    pub fn synchronize(&self) -> bool {
        // SAFETY: takes nothing.
        unsafe { (self.functions.cuCtxSynchronize)() == 0 }
    }

    /// Runs `body` with a context of the program's as the current one.
    pub fn within<T>(&self, context: usize, body: impl FnOnce() -> T) -> Option<T> {
        // SAFETY: a handle that the program uses.
        if unsafe { (self.functions.cuCtxPushCurrent_v2)(context as Handle) } != 0 {
            return None;
        }
        let value = body();
        let mut popped = std::ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { (self.functions.cuCtxPopCurrent_v2)(&raw mut popped) };
        Some(value)
    }

    /// The context that a stream was made in.
    pub fn context_of(&self, stream: usize) -> Option<usize> {
        let get = self.functions.cuStreamGetCtx?;
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one handle; a stream that the program uses.
        let code = unsafe { get(stream as Handle, &raw mut context) };
        (code == 0).then_some(context as usize)
    }

    /// Copies from device memory.
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        // SAFETY: writes so many bytes of the slice; the driver checks the address.
        unsafe { (self.functions.cuMemcpyDtoH_v2)(to.as_mut_ptr().cast(), address, to.len()) == 0 }
    }

    /// The allocation that an address lies in.
    pub fn extent(&self, address: u64) -> Option<Extent> {
        let mut kind: c_uint = 0;
        // SAFETY: writes one word; the driver knows which addresses are its own.
        let status =
            unsafe { (self.functions.cuPointerGetAttribute)((&raw mut kind).cast(), MEMORY_TYPE, address) };
        if status != 0 {
            return None;
        }
        let mut managed: c_uint = 0;
        // SAFETY: as above.
        let asked =
            unsafe { (self.functions.cuPointerGetAttribute)((&raw mut managed).cast(), IS_MANAGED, address) };
        let place = match kind {
            _ if asked == 0 && managed != 0 => MemoryPlace::Managed,
            HOST => MemoryPlace::Host,
            _ => MemoryPlace::Device,
        };
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: writes an address and a size.
        let status =
            unsafe { (self.functions.cuMemGetAddressRange_v2)(&raw mut base, &raw mut bytes, address) };
        (status == 0).then_some(Extent {
            address: base,
            bytes: bytes as u64,
            place,
        })
    }

    /// Bytes that all processes use on the device of the current context.
    pub fn used_bytes(&self) -> Option<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        let status = unsafe { self.functions.cuMemGetInfo_v2?(&raw mut free, &raw mut total) };
        (status == 0).then_some(total.saturating_sub(free) as u64)
    }

    /// Whether what goes into a stream becomes part of a graph.
    pub fn is_capturing(&self, stream: usize) -> bool {
        let mut status = 0;
        // SAFETY: writes one word; the stream is the program's.
        let asked = unsafe { (self.functions.cuStreamIsCapturing)(stream as Handle, &raw mut status) };
        asked == 0 && status != 0
    }

    /// The function's name, as the compiler made it.
    pub fn name(&self, function: FunctionHandle) -> Option<Vec<u8>> {
        [self.functions.cuFuncGetName, self.functions.cuKernelGetName]
            .into_iter()
            .flatten()
            .find_map(|ask| {
                let mut name = std::ptr::null();
                // SAFETY: writes one pointer, to a string that lives as long as the function.
                let status = unsafe { ask(&raw mut name, function.0 as Handle) };
                if status != 0 || name.is_null() {
                    return None;
                }
                // SAFETY: the driver's text.
                Some(unsafe { CStr::from_ptr(name) }.to_bytes().to_owned())
            })
    }

    /// The function's parameters; none when the driver is too old to tell.
    pub fn parameters(&self, function: FunctionHandle) -> Option<Vec<Parameter>> {
        /// `CUDA_ERROR_INVALID_VALUE`: behind the last one.
        const BEHIND: Status = 1;
        let asking = [
            self.functions.cuFuncGetParamInfo,
            self.functions.cuKernelGetParamInfo,
        ];
        asking.into_iter().flatten().find_map(|ask| {
            let mut found = Vec::new();
            loop {
                let (mut offset, mut bytes) = (0, 0);
                // SAFETY: writes two sizes.
                let status =
                    unsafe { ask(function.0 as Handle, found.len(), &raw mut offset, &raw mut bytes) };
                match status {
                    0 => found.push(Parameter { offset, bytes }),
                    BEHIND => return Some(found),
                    _ => return None,
                }
            }
        })
    }

    /// Where a variable of a module lies, and how long it is.
    pub fn variable(&self, module: u64, name: &CStr) -> Option<(u64, u64)> {
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: writes an address and a size; the module is the program's.
        let status = unsafe {
            (self.functions.cuModuleGetGlobal_v2?)(
                &raw mut address,
                &raw mut bytes,
                module as Handle,
                name.as_ptr(),
            )
        };
        (status == 0 && address != 0).then_some((address, bytes as u64))
    }

    /// How a stream was made.
    pub fn stream(&self, stream: usize) -> StreamMake {
        let mut make = StreamMake::default();
        if let (Some(flags), Some(priority)) = (
            self.functions.cuStreamGetFlags,
            self.functions.cuStreamGetPriority,
        ) {
            // SAFETY: writes one word; the stream is the program's.
            let _ = unsafe { flags(stream as Handle, &raw mut make.flags) };
            // SAFETY: as above.
            let _ = unsafe { priority(stream as Handle, &raw mut make.priority) };
        }
        make
    }

    /// Whether all work in a stream is done.
    pub fn is_done(&self, stream: usize) -> bool {
        // SAFETY: the stream is the program's.
        self.functions
            .cuStreamQuery
            .is_none_or(|ask| unsafe { ask(stream as Handle) } == 0)
    }

    /// The kernels of a module; none when the driver is too old to list them.
    pub fn functions(&self, module: u64) -> Option<Vec<FunctionHandle>> {
        let (ask_count, ask) = (
            self.functions.cuModuleGetFunctionCount?,
            self.functions.cuModuleEnumerateFunctions?,
        );
        let mut count = 0;
        // SAFETY: writes one number; the module is the program's.
        if unsafe { ask_count(&raw mut count, module as Handle) } != 0 {
            return None;
        }
        let mut functions = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: writes so many handles; as above.
        let status = unsafe { ask(functions.as_mut_ptr(), count, module as Handle) };
        let handles = functions
            .into_iter()
            .map(|function| FunctionHandle(function as usize));
        (status == 0).then(|| handles.collect())
    }

    /// The module of a library in the current context, which is loaded if need be.
    pub fn module_of_library(&self, library: u64) -> Option<u64> {
        let mut module = std::ptr::null_mut();
        // SAFETY: writes one handle; the library is the program's.
        let status = unsafe { (self.functions.cuLibraryGetModule?)(&raw mut module, library as Handle) };
        (status == 0 && !module.is_null()).then_some(module as u64)
    }

    /// The module that a function is of.
    pub fn module(&self, function: FunctionHandle) -> Option<u64> {
        let ask = self.functions.cuFuncGetModule?;
        let module = |function: Handle| {
            let mut module = std::ptr::null_mut();
            // SAFETY: writes one handle.
            let status = unsafe { ask(&raw mut module, function) };
            (status == 0 && !module.is_null()).then_some(module as u64)
        };
        module(function.0 as Handle).or_else(|| {
            let mut loaded = std::ptr::null_mut();
            // SAFETY: writes one handle.
            let status =
                unsafe { (self.functions.cuKernelGetFunction?)(&raw mut loaded, function.0 as Handle) };
            (status == 0).then(|| module(loaded)).flatten()
        })
    }
}

impl std::fmt::Debug for TargetDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TargetDriver")
    }
}
