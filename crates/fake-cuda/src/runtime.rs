//! A few functions of the runtime library, on top of the driver's as in reality: a runtime call shows driver calls inside
//! it, all under one number. Launches take kernels of libraries: others need code that only nvcc makes.
//! <https://docs.nvidia.com/cuda/cuda-runtime-api/index.html>

#![allow(unsafe_code, reason = "exports C functions")]

use std::cell::Cell;

use crate::call::api;
use crate::code::Code;
use crate::driver::context::{cuCtxSetCurrent, cuCtxSynchronize, retain_primary};
use crate::driver::copy::{cuMemcpy, cuMemcpyAsync};
use crate::driver::graph::cuGraphLaunch;
use crate::driver::init::initialise;
use crate::driver::launch::cuLaunchKernel;
use crate::driver::memory::{cuMemAlloc_v2, cuMemFree_v2, cuMemFreeHost, cuMemHostAlloc};
use crate::driver::profiler::{cuProfilerStart, cuProfilerStop};
use crate::driver::set::cuMemsetD8_v2;
use crate::driver::stream::{cuStreamCreate, cuStreamDestroy_v2, cuStreamSynchronize};
use crate::engine::context;
use crate::pointer::{In, Out};

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    x: u32,
    y: u32,
    z: u32,
}

api! { Runtime:
    fn cudaLaunchKernel = 211 (
        func: usize, gridDim: Extent, blockDim: Extent, args: In<u64>, sharedMem: usize, stream: usize,
    ) => with_context(|| {
        let (grid, block, none) = (gridDim, blockDim, In::from_address(0));
        cuLaunchKernel(func, grid.x, grid.y, grid.z, block.x, block.y, block.z, sharedMem as u32, stream, args, none)
    });
    fn cudaGraphLaunch = 311 (graphExec: usize, stream: usize) => with_context(|| cuGraphLaunch(graphExec, stream));
    fn cudaMalloc = 20 (devPtr: Out<u64>, size: usize) => with_context(|| cuMemAlloc_v2(devPtr, size));
    fn cudaMallocHost = 25 (ptr: Out<u64>, size: usize) => with_context(|| cuMemHostAlloc(ptr, size, 0));
    fn cudaFree = 22 (devPtr: u64) => with_context(|| cuMemFree_v2(devPtr));
    fn cudaFreeHost = 26 (ptr: u64) => with_context(|| cuMemFreeHost(ptr));
    fn cudaMemcpy = 31 (dst: u64, src: u64, count: usize, _kind: u32)
        => with_context(|| cuMemcpy(dst, src, count));
    fn cudaMemcpyAsync = 41 (dst: u64, src: u64, count: usize, _kind: u32, stream: usize)
        => with_context(|| cuMemcpyAsync(dst, src, count, stream));
    fn cudaMemset = 49 (devPtr: u64, value: i32, count: usize)
        => with_context(|| cuMemsetD8_v2(devPtr, value as u8, count));
    fn cudaStreamCreate = 129 (pStream: Out<usize>) => with_context(|| cuStreamCreate(pStream, 0));
    fn cudaStreamDestroy = 201 (stream: usize) => with_context(|| cuStreamDestroy_v2(stream));
    fn cudaStreamSynchronize = 131 (stream: usize) => with_context(|| cuStreamSynchronize(stream));
    fn cudaDeviceSynchronize = 165 () => with_context(|| cuCtxSynchronize());
    fn cudaProfilerStart = 171 () => with_context(|| cuProfilerStart());
    fn cudaProfilerStop = 172 () => with_context(|| cuProfilerStop());
    fn cudaSetDevice = 16 (device: i32) => {
        DEVICE.set(device);
        initialise(0)?;
        let primary = retain_primary(device)?;
        remembered(cuCtxSetCurrent(primary.handle()))
    };
    fn cudaGetLastError = 10 () => match LAST_ERROR.replace(0) {
        0 => Ok(()),
        code => Err(Code(code)),
    };
}

/// Runs a driver call in the thread's context, which the first call of a thread makes current.
fn with_context(call: impl FnOnce() -> u32) -> Result<(), Code> {
    initialise(0)?;
    if context::current_or_none().is_none() {
        let primary = retain_primary(DEVICE.get())?;
        Code::result(cuCtxSetCurrent(primary.handle()))?;
    }
    remembered(call())
}

fn remembered(result: u32) -> Result<(), Code> {
    if result != 0 {
        LAST_ERROR.set(result);
    }
    Code::result(result)
}
