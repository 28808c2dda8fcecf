//! Launches of kernels and of host functions.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::module::{announce_use, function_by_handle};
use super::state::check_initialised;
use super::work;
use crate::call::api;
use crate::code::Code;
use crate::config::config;
use crate::engine::context::stream_by_handle;
use crate::engine::module::Function;
use crate::engine::operation::{HostCall, Launch, Operation};
use crate::pointer::In;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    attributes: In<u8>,
    attribute_count: u32,
}

const _: () = assert!(size_of::<LaunchConfig>() == 56);

/// Where the arguments of a launch are: one pointer for each, or one block.
#[derive(Clone, Copy)]
pub(crate) struct ArgumentPointers {
    pub(crate) each: In<u64>,
    pub(crate) extra: In<u64>,
}

api! { Driver:
    fn cuLaunchKernel = 307 (
        f: usize,
        gridDimX: u32, gridDimY: u32, gridDimZ: u32,
        blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: usize, kernelParams: In<u64>, extra: In<u64>,
    ) for name_of(f) => launch(
        f,
        [gridDimX, gridDimY, gridDimZ],
        [blockDimX, blockDimY, blockDimZ],
        sharedMemBytes,
        hStream,
        ArgumentPointers { each: kernelParams, extra },
    );
    fn cuLaunchKernelEx = 652 (config: In<LaunchConfig>, f: usize, kernelParams: In<u64>, extra: In<u64>)
        for name_of(f) => {
        let config = config.get().ok_or(Code::INVALID_VALUE)?;
        let arguments = ArgumentPointers { each: kernelParams, extra };
        launch(f, config.grid, config.block, config.shared_bytes, config.stream, arguments)
    };
    fn cuLaunchCooperativeKernel = 477 (
        f: usize,
        gridDimX: u32, gridDimY: u32, gridDimZ: u32,
        blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: usize, kernelParams: In<u64>,
    ) for name_of(f) => launch(
        f,
        [gridDimX, gridDimY, gridDimZ],
        [blockDimX, blockDimY, blockDimZ],
        sharedMemBytes,
        hStream,
        ArgumentPointers { each: kernelParams, extra: In::from_address(0) },
    );
    fn cuLaunchHostFunc = 527 (hStream: usize, function: Option<extern "C" fn(*mut c_void)>, userData: usize) => {
        check_initialised()?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        let (context, stream) = stream_by_handle(hStream)?;
        let call = HostCall { function, data: userData };
        work::submit(&context, &stream, Operation::Host(call)).map(|_| ())
    };
}

/// The name that callbacks about a launch carry.
fn name_of(handle: usize) -> Option<CString> {
    let function = function_by_handle(handle).ok()?;
    Some(function.name.clone())
}

fn launch(
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    arguments: ArgumentPointers,
) -> Result<(), Code> {
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    check_initialised()?;
    let function = function_by_handle(function)?;
    let (context, stream) = stream_by_handle(stream)?;
    let launch = launch_from(&function, grid, block, shared_bytes, arguments)?;
    let count = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    let every = config().launch_failure_every;
    if every != 0 && count.is_multiple_of(every) {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    if config().slow_launch_millis != 0 {
        std::thread::sleep(Duration::from_millis(config().slow_launch_millis));
    }
    if !stream.is_capturing() {
        announce_use(&context, &function);
    }
    work::submit(&context, &stream, Operation::Kernel(launch)).map(|_| ())
}

/// A launch with its arguments copied out of the caller's memory.
pub(crate) fn launch_from(
    function: &Arc<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: ArgumentPointers,
) -> Result<Launch, Code> {
    let threads: u64 = block.iter().map(|&size| u64::from(size)).product();
    if grid.contains(&0) || !(1..=1024).contains(&threads) {
        return Err(Code::INVALID_VALUE);
    }
    if shared_bytes as i32 > function.max_dynamic_shared_bytes.load(Ordering::Relaxed) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Launch {
        function: function.clone(),
        grid,
        block,
        shared_bytes,
        arguments: argument_block(function, arguments)?,
    })
}

fn argument_block(function: &Function, arguments: ArgumentPointers) -> Result<Vec<u8>, Code> {
    let mut block = vec![0; function.parameter_bytes()];
    if block.is_empty() {
        return Ok(block);
    }
    if !arguments.extra.is_null() {
        return block_from_extra(arguments.extra, block.len());
    }
    for (index, parameter) in function.parameters.iter().enumerate() {
        let pointer = arguments.each.at(index).ok_or(Code::INVALID_VALUE)?;
        let bytes = In::<u8>::from_address(pointer).list(parameter.size);
        if bytes.len() != parameter.size {
            return Err(Code::INVALID_VALUE);
        }
        block[parameter.offset..parameter.offset + parameter.size].copy_from_slice(&bytes);
    }
    Ok(block)
}

/// The `extra` list: pairs of a tag and a pointer, ended by 0. Tag 1 is the block, 2 points to its size.
fn block_from_extra(extra: In<u64>, wanted: usize) -> Result<Vec<u8>, Code> {
    let (mut base, mut size) = (0, 0);
    for index in (0..16).step_by(2) {
        let value = extra.at(index + 1).unwrap_or(0);
        match extra.at(index) {
            Some(1) => base = value,
            Some(2) => size = In::<usize>::from_address(value).get().unwrap_or(0),
            _ => break,
        }
    }
    let mut block = In::<u8>::from_address(base).list(size);
    if block.len() < wanted {
        return Err(Code::INVALID_VALUE);
    }
    block.truncate(wanted);
    Ok(block)
}
