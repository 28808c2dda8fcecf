//! Allocating and freeing: on the device, on the host, in stream order.

#![allow(unsafe_code, reason = "exports C functions")]

use std::ffi::c_void;

use super::state::check_initialised;
use super::work;
use crate::call::api;
use crate::code::Code;
use crate::cupti::memory_use::{self, Change};
use crate::engine::context::{self, stream_by_handle};
use crate::engine::device::MEMORY_BYTES;
use crate::engine::memory::{self, Allocation, MemoryKind, Origin};
use crate::engine::operation::Operation;
use crate::pointer::Out;

api! { Driver:
    fn cuMemAlloc_v2 = 243 (dptr: Out<u64>, bytesize: usize) => allocate(bytesize).and_then(|base| dptr.put(base));
    fn cuMemAllocPitch_v2 = 244 (
        dptr: Out<u64>, pPitch: Out<usize>, WidthInBytes: usize, Height: usize, _ElementSizeBytes: u32,
    ) => {
        let pitch = WidthInBytes.next_multiple_of(512);
        pPitch.put(pitch)?;
        allocate(pitch * Height).and_then(|base| dptr.put(base))
    };
    fn cuMemFree_v2 = 245 (dptr: u64) => free(dptr);
    fn cuMemAllocManaged = 371 (dptr: Out<u64>, bytesize: usize, _flags: u32)
        => allocate_as(bytesize, MemoryKind::Managed, Origin::Alloc).and_then(|base| dptr.put(base));
    fn cuMemAllocHost_v2 = 294 (pp: Out<u64>, bytesize: usize) => allocate_host(bytesize).and_then(|base| pp.put(base));
    fn cuMemHostAlloc = 39 (pp: Out<u64>, bytesize: usize, _Flags: u32)
        => allocate_host(bytesize).and_then(|base| pp.put(base));
    fn cuMemFreeHost = 38 (p: u64) => free_host(p);
    fn cuMemHostRegister_v2 = 379 (p: u64, bytesize: usize, _Flags: u32) => {
        let allocation = described(bytesize, MemoryKind::Pinned, Origin::HostRegister)?;
        memory::note(Allocation { base: p, ..allocation }).map_err(|_| Code::HOST_MEMORY_ALREADY_REGISTERED)
    };
    fn cuMemHostUnregister = 302 (p: u64) => memory::forget(p, Origin::HostRegister)
        .map(|_| ())
        .map_err(|_| Code::HOST_MEMORY_NOT_REGISTERED);
    fn cuMemHostGetDevicePointer_v2 = 247 (pdptr: Out<u64>, p: u64, _Flags: u32) => match memory::find(p) {
        Some(_) => pdptr.put(p),
        None => Err(Code::INVALID_VALUE),
    };
    fn cuMemAllocAsync = 598 (dptr: Out<u64>, bytesize: usize, hStream: usize)
        => allocate_in_stream(bytesize, hStream).and_then(|base| dptr.put(base));
    fn cuMemAllocFromPoolAsync = 611 (dptr: Out<u64>, bytesize: usize, _pool: usize, hStream: usize)
        => allocate_in_stream(bytesize, hStream).and_then(|base| dptr.put(base));
    fn cuMemFreeAsync = 600 (dptr: u64, hStream: usize) => free_in_stream(dptr, hStream);
    fn cuMemGetInfo_v2 = 242 (free: Out<usize>, total: Out<usize>) => {
        let context = context::current()?;
        let used = memory::used_bytes(context.device.ordinal);
        free.put((MEMORY_BYTES - used) as usize)?;
        total.put(MEMORY_BYTES as usize)
    };
    fn cuMemGetAddressRange_v2 = 246 (pbase: Out<u64>, psize: Out<usize>, dptr: u64) => {
        let allocation = memory::find(dptr).ok_or(Code::NOT_FOUND)?;
        pbase.put_if_wanted(allocation.base);
        psize.put_if_wanted(allocation.size as usize);
        Ok(())
    };
    fn cuPointerGetAttribute = 310 (data: Out<c_void>, attribute: u32, ptr: u64)
        => pointer_attribute(data.address(), attribute, ptr);
}

pub(crate) fn allocate(size: usize) -> Result<u64, Code> {
    allocate_as(size, MemoryKind::Device, Origin::Alloc)
}

fn allocate_as(size: usize, kind: MemoryKind, origin: Origin) -> Result<u64, Code> {
    let allocation = described(size, kind, origin)?;
    let base = memory::allocate(allocation)?;
    memory_use::record(Change::Allocated, &Allocation { base, ..allocation }, None);
    Ok(base)
}

/// Null is no error, as with `free`.
pub(crate) fn free(base: u64) -> Result<(), Code> {
    check_initialised()?;
    if base == 0 {
        return Ok(());
    }
    // Freeing waits for the work that may still use the memory.
    context::current()?.wait();
    let allocation = memory::free(base, &[Origin::Alloc, Origin::AllocAsync])?;
    memory_use::record(Change::Released, &allocation, None);
    Ok(())
}

pub(crate) fn allocate_host(size: usize) -> Result<u64, Code> {
    allocate_as(size, MemoryKind::Pinned, Origin::HostAlloc)
}

pub(crate) fn free_host(base: u64) -> Result<(), Code> {
    check_initialised()?;
    if let Ok(context) = context::current() {
        context.wait();
    }
    let allocation = memory::free(base, &[Origin::HostAlloc])?;
    memory_use::record(Change::Released, &allocation, None);
    Ok(())
}

fn allocate_in_stream(size: usize, stream: usize) -> Result<u64, Code> {
    check_initialised()?;
    let (_, stream) = stream_by_handle(stream)?;
    let allocation = described(size, MemoryKind::Device, Origin::AllocAsync)?;
    let base = memory::allocate(allocation)?;
    memory_use::take_from_pool(&allocation);
    let allocation = Allocation { base, ..allocation };
    memory_use::record(Change::Allocated, &allocation, Some(stream.id));
    Ok(base)
}

fn free_in_stream(base: u64, stream: usize) -> Result<(), Code> {
    check_initialised()?;
    let (context, stream) = stream_by_handle(stream)?;
    let allocation = memory::find(base)
        .filter(|found| found.base == base)
        .ok_or(Code::INVALID_VALUE)?;
    memory_use::record(Change::Released, &allocation, Some(stream.id));
    memory_use::give_to_pool(&allocation);
    if stream.is_capturing() {
        return work::submit(&context, &stream, Operation::Empty).map(|_| ());
    }
    context.submit(&stream, Vec::new(), move || {
        memory::free(base, &[Origin::Alloc, Origin::AllocAsync]).map(|_| ())
    });
    Ok(())
}

fn described(size: usize, kind: MemoryKind, origin: Origin) -> Result<Allocation, Code> {
    check_initialised()?;
    let context = context::current()?;
    context.check()?;
    Ok(Allocation {
        base: 0,
        size: size as u64,
        kind,
        device: context.device.ordinal,
        context_id: context.id,
        origin,
    })
}

/// `CUpointer_attribute` by number, written with the width that it has.
fn pointer_attribute(data: u64, attribute: u32, pointer: u64) -> Result<(), Code> {
    let allocation = memory::find(pointer).ok_or(Code::INVALID_VALUE)?;
    match attribute {
        // Context, device pointer, host pointer.
        1 => Out::from_address(data).put(context::Context::by_id(allocation.context_id)?.handle() as u64),
        3 => Out::from_address(data).put(pointer),
        4 if allocation.kind == MemoryKind::Device => Err(Code::INVALID_VALUE),
        4 => Out::from_address(data).put(pointer),
        // CU_MEMORYTYPE_HOST 1, CU_MEMORYTYPE_DEVICE 2.
        2 => Out::from_address(data).put(if allocation.kind == MemoryKind::Pinned {
            1_u32
        } else {
            2
        }),
        8 => Out::from_address(data).put(u32::from(allocation.kind == MemoryKind::Managed)),
        9 => Out::from_address(data).put(allocation.device),
        11 => Out::from_address(data).put(allocation.base),
        12 => Out::from_address(data).put(allocation.size as usize),
        13 => Out::from_address(data).put(1_u32),
        _ => Err(Code::INVALID_VALUE),
    }
}
