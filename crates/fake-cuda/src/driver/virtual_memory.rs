//! Addresses and physical memory apart from each other: reserving, creating, mapping.

#![allow(unsafe_code, reason = "exports C functions and maps memory")]

use std::sync::{Arc, Mutex, PoisonError};

use super::state::check_initialised;
use crate::call::api;
use crate::code::Code;
use crate::config::config;
use crate::cupti::memory_use::{self, Change};
use crate::engine::memory::{self, Access, Allocation, MemoryKind, Origin};
use crate::engine::registry::Registry;
use crate::pointer::{In, Out};

/// `CU_MEM_LOCATION_TYPE_DEVICE`; the others are the host's.
const ON_DEVICE: u32 = 1;

/// All sizes and addresses are multiples of this.
const GRANULARITY: usize = 2 << 20;

/// Physical memory: a shared mapping that others are made from, so that all mappings show the same bytes.
struct Physical {
    base: u64,
    size: usize,
    device: u32,
    kind: MemoryKind,
}

static PHYSICAL: Registry<Physical> = Registry::new();
static RESERVED: Mutex<Vec<(u64, usize)>> = Mutex::new(Vec::new());

/// `CUmemAllocationProp`, up to what is read.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationProperties {
    kind: u32,
    handle_types: u32,
    location_type: u32,
    location_id: i32,
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AccessDescription {
    location_type: u32,
    location_id: i32,
    flags: u32,
}

api! { Driver:
    fn cuMemGetAllocationGranularity = 556 (granularity: Out<usize>, _prop: In<AllocationProperties>, _option: u32)
        => granularity.put(GRANULARITY);
    fn cuMemAddressReserve = 547 (ptr: Out<u64>, size: usize, _alignment: usize, addr: u64, _flags: u64)
        => reserve(size, addr).and_then(|base| ptr.put(base));
    fn cuMemAddressFree = 548 (ptr: u64, size: usize) => release_address(ptr, size);
    fn cuMemCreate = 549 (handle: Out<u64>, size: usize, prop: In<AllocationProperties>, _flags: u64)
        => create(size, prop).and_then(|physical| handle.put(physical as u64));
    fn cuMemRelease = 550 (handle: u64) => PHYSICAL.remove(handle as usize).map(|_| ());
    fn cuMemMap = 551 (ptr: u64, size: usize, offset: usize, handle: u64, _flags: u64)
        => map(ptr, size, offset, &PHYSICAL.get(handle as usize)?);
    fn cuMemUnmap = 552 (ptr: u64, size: usize) => unmap(ptr, size);
    fn cuMemSetAccess = 553 (ptr: u64, size: usize, desc: In<AccessDescription>, count: usize)
        => set_access(ptr, size, &desc.list(count));
    fn cuMemGetAccess = 558 (flags: Out<u64>, _location: In<u8>, ptr: u64)
        => flags.put(if memory::find(ptr).is_some() { 3 } else { 0 });
}

fn lock() -> std::sync::MutexGuard<'static, Vec<(u64, usize)>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address that is asked for is given if it is free, else another.
fn reserve(size: usize, wanted: u64) -> Result<u64, Code> {
    check_initialised()?;
    if size == 0 || !size.is_multiple_of(GRANULARITY) {
        return Err(Code::INVALID_VALUE);
    }
    let is_aligned = wanted != 0 && wanted.is_multiple_of(GRANULARITY as u64);
    if is_aligned && !config().is_elsewhere && memory::map_fixed(wanted, size as u64, Access::None) {
        lock().push((wanted, size));
        return Ok(wanted);
    }
    const FIRST: u64 = 0x0600_0000_0000;
    let mut address = lock()
        .iter()
        .map(|(base, size)| base + *size as u64)
        .fold(FIRST, u64::max);
    for _ in 0..4096 {
        address = address.next_multiple_of(GRANULARITY as u64);
        if memory::map_fixed(address, size as u64, Access::None) {
            lock().push((address, size));
            return Ok(address);
        }
        address += GRANULARITY as u64;
    }
    Err(Code::OUT_OF_MEMORY)
}

fn release_address(base: u64, size: usize) -> Result<(), Code> {
    let mut reserved = lock();
    let index = reserved.iter().position(|&range| range == (base, size));
    reserved.swap_remove(index.ok_or(Code::INVALID_VALUE)?);
    // SAFETY: the range was reserved by `reserve` and is nobody else's.
    unsafe { libc::munmap(base as *mut libc::c_void, size) };
    Ok(())
}

fn create(size: usize, properties: In<AllocationProperties>) -> Result<usize, Code> {
    check_initialised()?;
    let properties = properties.get().ok_or(Code::INVALID_VALUE)?;
    if size == 0 || !size.is_multiple_of(GRANULARITY) {
        return Err(Code::INVALID_VALUE);
    }
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            Access::ReadWrite.protection(),
            flags,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(Code::OUT_OF_MEMORY);
    }
    Ok(PHYSICAL.add(Arc::new(Physical {
        base: base as u64,
        size,
        device: u32::try_from(properties.location_id).unwrap_or(0),
        kind: if properties.location_type == ON_DEVICE {
            MemoryKind::Device
        } else {
            MemoryKind::Pinned
        },
    })))
}

fn is_reserved(base: u64, size: usize) -> bool {
    let inside =
        |&(start, length): &(u64, usize)| base >= start && base + size as u64 <= start + length as u64;
    lock().iter().any(inside)
}

fn map(address: u64, size: usize, offset: usize, physical: &Arc<Physical>) -> Result<(), Code> {
    let is_multiple = size.is_multiple_of(GRANULARITY) && offset.is_multiple_of(GRANULARITY);
    if !is_multiple || offset + size > physical.size || !is_reserved(address, size) {
        return Err(Code::INVALID_VALUE);
    }
    memory::note(Allocation {
        base: address,
        size: size as u64,
        kind: physical.kind,
        device: physical.device,
        // Mapped memory belongs to no context.
        context_id: u32::MAX,
        origin: Origin::Mapped,
    })?;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let source = (physical.base as usize + offset) as *mut libc::c_void;
    // SAFETY: an old size of 0 makes a second mapping of the shared pages; the target range was reserved by us.
    let mapped = unsafe { libc::mremap(source, 0, size, flags, address as *mut libc::c_void) };
    if mapped == libc::MAP_FAILED {
        memory::forget(address, Origin::Mapped)?;
        return Err(Code::INVALID_VALUE);
    }
    // Nothing may touch it before cuMemSetAccess.
    protect(address, size, Access::None)
}

fn unmap(address: u64, size: usize) -> Result<(), Code> {
    let end = address + size as u64;
    let mut at = address;
    while at < end {
        let found = memory::find(at).ok_or(Code::INVALID_VALUE)?;
        memory::forget(found.base, Origin::Mapped)?;
        memory_use::record(Change::Released, &found, None);
        at = found.base + found.size;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the range is a reservation of ours; what was mapped there is forgotten.
    unsafe { libc::mmap(address as *mut libc::c_void, size, libc::PROT_NONE, flags, -1, 0) };
    Ok(())
}

fn set_access(address: u64, size: usize, descriptions: &[AccessDescription]) -> Result<(), Code> {
    if descriptions.is_empty() || !memory::is_known(address, size as u64) {
        return Err(Code::INVALID_VALUE);
    }
    let is_open = descriptions.iter().any(|description| description.flags != 0);
    if !is_open {
        return protect(address, size, Access::None);
    }
    protect(address, size, Access::ReadWrite)?;
    // Mapped memory counts as allocated when it can be used.
    if let Some(found) = memory::find(address) {
        memory_use::record(Change::Allocated, &found, None);
    }
    Ok(())
}

fn protect(address: u64, size: usize, access: Access) -> Result<(), Code> {
    // SAFETY: the range is mapped memory of ours.
    let result = unsafe { libc::mprotect(address as *mut libc::c_void, size, access.protection()) };
    if result == 0 {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}
