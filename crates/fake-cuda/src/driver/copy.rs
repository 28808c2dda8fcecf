//! Copies. The synchronous ones run in the default stream and are waited for.

#![allow(unsafe_code, reason = "exports C functions")]

use super::state::check_initialised;
use super::work;
use crate::call::api;
use crate::code::Code;
use crate::engine::context::{CONTEXTS, stream_by_handle};
use crate::engine::memory::{self, MemoryKind};
use crate::engine::operation::{Copy, Operation};

/// Whether the caller waits for the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    UntilDone,
    No,
}

/// What the call says about one side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host(u64),
    Device(u64),
    /// To be found out by the address.
    Any(u64),
}

use Side::{Any, Device, Host};

api! { Driver:
    fn cuMemcpyHtoD_v2 = 276 (dstDevice: u64, srcHost: u64, ByteCount: usize)
        => copy(Device(dstDevice), Host(srcHost), ByteCount, 0, Wait::UntilDone);
    fn cuMemcpyDtoH_v2 = 278 (dstHost: u64, srcDevice: u64, ByteCount: usize)
        => copy(Host(dstHost), Device(srcDevice), ByteCount, 0, Wait::UntilDone);
    fn cuMemcpyDtoD_v2 = 280 (dstDevice: u64, srcDevice: u64, ByteCount: usize)
        => copy(Device(dstDevice), Device(srcDevice), ByteCount, 0, Wait::No);
    fn cuMemcpyHtoDAsync_v2 = 277 (dstDevice: u64, srcHost: u64, ByteCount: usize, hStream: usize)
        => copy(Device(dstDevice), Host(srcHost), ByteCount, hStream, Wait::No);
    fn cuMemcpyDtoHAsync_v2 = 279 (dstHost: u64, srcDevice: u64, ByteCount: usize, hStream: usize)
        => copy(Host(dstHost), Device(srcDevice), ByteCount, hStream, Wait::No);
    fn cuMemcpyDtoDAsync_v2 = 281 (dstDevice: u64, srcDevice: u64, ByteCount: usize, hStream: usize)
        => copy(Device(dstDevice), Device(srcDevice), ByteCount, hStream, Wait::No);
    fn cuMemcpy = 305 (dst: u64, src: u64, ByteCount: usize) => copy(Any(dst), Any(src), ByteCount, 0, Wait::UntilDone);
    fn cuMemcpyAsync = 306 (dst: u64, src: u64, ByteCount: usize, hStream: usize)
        => copy(Any(dst), Any(src), ByteCount, hStream, Wait::No);
    fn cuMemcpyPeer = 318 (
        dstDevice: u64, dstContext: usize, srcDevice: u64, srcContext: usize, ByteCount: usize,
    ) => copy_between((dstDevice, dstContext), (srcDevice, srcContext), ByteCount, 0);
    fn cuMemcpyPeerAsync = 319 (
        dstDevice: u64, dstContext: usize, srcDevice: u64, srcContext: usize, ByteCount: usize, hStream: usize,
    ) => copy_between((dstDevice, dstContext), (srcDevice, srcContext), ByteCount, hStream);
}

pub(crate) fn copy(
    destination: Side,
    source: Side,
    size: usize,
    stream: usize,
    wait: Wait,
) -> Result<(), Code> {
    let (destination, destination_kind) = side(destination, size)?;
    let (source, source_kind) = side(source, size)?;
    let operation = Copy {
        destination,
        source,
        size: size as u64,
        destination_kind,
        source_kind,
        is_async: wait == Wait::No,
        peers: None,
        shape: None,
    };
    run(operation, stream, wait)
}

fn copy_between(
    destination: (u64, usize),
    source: (u64, usize),
    size: usize,
    stream: usize,
) -> Result<(), Code> {
    let (destination_address, destination_kind) = side(Device(destination.0), size)?;
    let (source_address, source_kind) = side(Device(source.0), size)?;
    let operation = Copy {
        destination: destination_address,
        source: source_address,
        size: size as u64,
        destination_kind,
        source_kind,
        is_async: true,
        peers: Some((CONTEXTS.get(source.1)?.id, CONTEXTS.get(destination.1)?.id)),
        shape: None,
    };
    run(operation, stream, Wait::No)
}

pub(crate) fn run(operation: Copy, stream: usize, wait: Wait) -> Result<(), Code> {
    check_initialised()?;
    let (context, stream) = stream_by_handle(stream)?;
    if operation.size == 0 {
        return Ok(());
    }
    // Of pageable memory the driver takes its own copy before the call returns, so the program may change it.
    let is_staged = operation.source_kind == MemoryKind::Pageable && wait == Wait::No;
    let ticket = work::submit(&context, &stream, Operation::Copy(operation))?;
    if let Some(ticket) = ticket
        && (wait == Wait::UntilDone || is_staged)
    {
        ticket.wait();
    }
    context.check()
}

/// The address and kind of one side; a device range must be allocated.
pub(crate) fn side(side: Side, size: usize) -> Result<(u64, MemoryKind), Code> {
    let address = match side {
        Host(address) | Device(address) | Any(address) => address,
    };
    match (memory::find(address), side) {
        (Some(found), _) if memory::is_known(address, size as u64) => Ok((address, found.kind)),
        (None, Host(_) | Any(_)) if address != 0 || size == 0 => Ok((address, MemoryKind::Pageable)),
        _ if size == 0 => Ok((address, MemoryKind::Pageable)),
        _ => Err(Code::INVALID_VALUE),
    }
}
