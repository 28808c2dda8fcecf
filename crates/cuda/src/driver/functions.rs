//! The driver's functions that we call, by their names in the library.
//!
//! A name with `_v2` is what `cuda.h` maps the plain name to: the plain symbol
//! is the interface of CUDA 3 and 4 with 32-bit sizes.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use super::fixed_address_memory::{AccessDescription, AllocationProperties, Physical};
use crate::cupti::parameters::{ArrayShape, LaunchConfig, Planes, Resource, TEXTURE_BYTES, VIEW_BYTES};
use crate::functions::functions;

/// The result of a call; 0 is success.
pub(crate) type Status = c_uint;
/// A device's number among those that this process sees.
pub(crate) type DeviceHandle = c_int;
/// An address in the memory of a device.
pub(crate) type DeviceAddress = c_ulonglong;
/// Contexts, modules, functions, streams, events and graphs are all pointers to
/// things that only the driver knows.
pub(crate) type Handle = *mut c_void;

/// 16 bytes that tell devices apart.
/// <https://docs.nvidia.com/cuda/cuda-driver-api/structCUuuid.html>
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawUuid {
    pub(crate) bytes: [u8; 16],
}

const _: () = assert!(size_of::<RawUuid>() == 16);

functions! {
    /// The driver.
    Functions from "libcuda.so.1";
    required {
        /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html>
        fn cuInit(flags: c_uint) -> Status;
        /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VERSION.html>
        fn cuDriverGetVersion(version: *mut c_int) -> Status;
        /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__ERROR.html>
        fn cuGetErrorName(error: Status, name: *mut *const c_char) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html>
        fn cuDeviceGetCount(count: *mut c_int) -> Status;
        fn cuDeviceGet(device: *mut DeviceHandle, ordinal: c_int) -> Status;
        fn cuDeviceGetName(name: *mut c_char, length: c_int, device: DeviceHandle) -> Status;
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: DeviceHandle) -> Status;
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: DeviceHandle) -> Status;
        fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: DeviceHandle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PRIMARY__CTX.html>
        fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: DeviceHandle) -> Status;
        fn cuDevicePrimaryCtxRelease_v2(device: DeviceHandle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html>
        fn cuCtxSetCurrent(context: Handle) -> Status;
        fn cuCtxSynchronize() -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html>
        fn cuModuleLoadData(module: *mut Handle, image: *const c_void) -> Status;
        fn cuModuleUnload(module: Handle) -> Status;
        fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>
        fn cuLaunchKernel(
            function: Handle,
            grid_x: c_uint,
            grid_y: c_uint,
            grid_z: c_uint,
            block_x: c_uint,
            block_y: c_uint,
            block_z: c_uint,
            shared_bytes: c_uint,
            stream: Handle,
            arguments: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html>
        fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> Status;
        fn cuStreamDestroy_v2(stream: Handle) -> Status;
        fn cuStreamSynchronize(stream: Handle) -> Status;
        fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html>
        fn cuEventCreate(event: *mut Handle, flags: c_uint) -> Status;
        fn cuEventDestroy_v2(event: Handle) -> Status;
        fn cuEventRecord(event: Handle, stream: Handle) -> Status;
        fn cuEventSynchronize(event: Handle) -> Status;
        fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html>
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status;
        fn cuMemAlloc_v2(address: *mut DeviceAddress, bytes: usize) -> Status;
        fn cuMemFree_v2(address: DeviceAddress) -> Status;
        fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> Status;
        fn cuMemFreeHost(address: *mut c_void) -> Status;
        fn cuMemcpyHtoDAsync_v2(to: DeviceAddress, from: *const c_void, bytes: usize, stream: Handle) -> Status;
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: DeviceAddress, bytes: usize, stream: Handle) -> Status;
        fn cuMemcpyDtoDAsync_v2(to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: Handle) -> Status;
        fn cuMemsetD32Async(to: DeviceAddress, value: c_uint, count: usize, stream: Handle) -> Status;
    }
    optional {
        /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__ERROR.html>
        fn cuGetErrorString(error: Status, text: *mut *const c_char) -> Status;

        /// Since CUDA 11.4; tells the parts of a divided GPU apart, which the
        /// older call does not.
        fn cuDeviceGetUuid_v2(uuid: *mut RawUuid, device: DeviceHandle) -> Status;
        fn cuDeviceGetUuid(uuid: *mut RawUuid, device: DeviceHandle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VA.html>
        fn cuMemAddressReserve(
            address: *mut DeviceAddress,
            bytes: usize,
            alignment: usize,
            wanted: DeviceAddress,
            flags: c_ulonglong,
        ) -> Status;
        fn cuMemAddressFree(address: DeviceAddress, bytes: usize) -> Status;
        fn cuMemCreate(
            memory: *mut Physical,
            bytes: usize,
            properties: *const AllocationProperties,
            flags: c_ulonglong,
        ) -> Status;
        fn cuMemRelease(memory: Physical) -> Status;
        fn cuMemMap(
            address: DeviceAddress,
            bytes: usize,
            offset: usize,
            memory: Physical,
            flags: c_ulonglong,
        ) -> Status;
        fn cuMemUnmap(address: DeviceAddress, bytes: usize) -> Status;
        fn cuMemSetAccess(
            address: DeviceAddress,
            bytes: usize,
            access: *const AccessDescription,
            count: usize,
        ) -> Status;
        fn cuMemGetAllocationGranularity(
            bytes: *mut usize,
            properties: *const AllocationProperties,
            option: c_uint,
        ) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html>
        fn cuMemcpyAsync(to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: Handle) -> Status;
        fn cuMemcpy(to: DeviceAddress, from: DeviceAddress, bytes: usize) -> Status;
        fn cuMemcpy3DAsync_v2(copy: *const Planes, stream: Handle) -> Status;
        fn cuMemsetD2D8Async(
            to: DeviceAddress,
            pitch: usize,
            value: u8,
            width: usize,
            height: usize,
            stream: Handle,
        ) -> Status;
        fn cuMemsetD2D16Async(
            to: DeviceAddress,
            pitch: usize,
            value: u16,
            width: usize,
            height: usize,
            stream: Handle,
        ) -> Status;
        fn cuMemsetD2D32Async(
            to: DeviceAddress,
            pitch: usize,
            value: u32,
            width: usize,
            height: usize,
            stream: Handle,
        ) -> Status;
        fn cuMemsetD8Async(to: DeviceAddress, value: u8, count: usize, stream: Handle) -> Status;
        fn cuMemsetD16Async(to: DeviceAddress, value: u16, count: usize, stream: Handle) -> Status;

        fn cuArray3DCreate_v2(array: *mut Handle, shape: *const ArrayShape) -> Status;
        fn cuArrayDestroy(array: Handle) -> Status;
        fn cuMipmappedArrayCreate(array: *mut Handle, shape: *const ArrayShape, levels: c_uint) -> Status;
        fn cuMipmappedArrayGetLevel(array: *mut Handle, whole: Handle, level: c_uint) -> Status;
        fn cuMipmappedArrayDestroy(array: Handle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TEXOBJECT.html>
        fn cuTexObjectCreate(
            texture: *mut c_ulonglong,
            resource: *const Resource,
            how: *const [u8; TEXTURE_BYTES],
            view: *const [u8; VIEW_BYTES],
        ) -> Status;
        fn cuTexObjectDestroy(texture: c_ulonglong) -> Status;
        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__SURFOBJECT.html>
        fn cuSurfObjectCreate(surface: *mut c_ulonglong, resource: *const Resource) -> Status;
        fn cuSurfObjectDestroy(surface: c_ulonglong) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MODULE.html>
        fn cuModuleGetGlobal_v2(
            address: *mut DeviceAddress,
            bytes: *mut usize,
            module: Handle,
            name: *const c_char,
        ) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>
        /// Since CUDA 11.8.
        fn cuLaunchKernelEx(
            config: *const LaunchConfig,
            function: Handle,
            arguments: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) -> Status;
        fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) -> Status;
        /// Since CUDA 12.4.
        fn cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, bytes: *mut usize) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html>
        fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) -> Status;
        /// Since CUDA 11.3; the second version, since 12.3, has kinds of edges.
        fn cuStreamUpdateCaptureDependencies(
            stream: Handle,
            nodes: *mut Handle,
            count: usize,
            flags: c_uint,
        ) -> Status;
        fn cuStreamUpdateCaptureDependencies_v2(
            stream: Handle,
            nodes: *mut Handle,
            kinds: *const c_void,
            count: usize,
            flags: c_uint,
        ) -> Status;
        fn cuStreamGetCaptureInfo_v2(
            stream: Handle,
            status: *mut c_uint,
            id: *mut c_ulonglong,
            graph: *mut Handle,
            nodes: *mut *const Handle,
            count: *mut usize,
        ) -> Status;
        fn cuStreamGetCaptureInfo_v3(
            stream: Handle,
            status: *mut c_uint,
            id: *mut c_ulonglong,
            graph: *mut Handle,
            nodes: *mut *const Handle,
            kinds: *mut *const c_void,
            count: *mut usize,
        ) -> Status;
        fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> Status;
        fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> Status;

        // <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html>
        /// Since CUDA 11.4.
        fn cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: c_ulonglong) -> Status;
        fn cuGraphLaunch(executable: Handle, stream: Handle) -> Status;
        fn cuGraphExecDestroy(executable: Handle) -> Status;
        fn cuGraphDestroy(graph: Handle) -> Status;
    }
}
