//! Device memory, which is host memory in a part of the address space of its own: low enough that neither programs nor
//! libraries are mapped there. An address that was recorded in one process can so be reserved again in another, which
//! is what replay does on a real GPU.

#![allow(
    unsafe_code,
    reason = "maps memory and reads what kernels and copies name by address"
)]

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use super::device;
use crate::code::Code;

/// What an allocation is, by the number that records use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    Pageable = 1,
    Pinned = 2,
    Device = 3,
    Managed = 5,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) kind: MemoryKind,
    pub(crate) device: u32,
    pub(crate) context_id: u32,
    pub(crate) origin: Origin,
}

/// Which call made an allocation, and so which one ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Alloc,
    AllocAsync,
    HostAlloc,
    HostRegister,
    Mapped,
    /// A module was loaded.
    Variable,
}

const CHUNK: u64 = 2 << 20;
const GRAIN: u64 = 512;
const FIRST_ADDRESS: u64 = 0x0200_0000_0000;
const DEVICE_STRIDE: u64 = 0x0080_0000_0000;
/// More than there are devices.
const HOST_ARENAS: u32 = 64;

static TABLE: Mutex<Table> = Mutex::new(Table {
    allocations: BTreeMap::new(),
    arenas: BTreeMap::new(),
});

struct Table {
    allocations: BTreeMap<u64, Allocation>,
    arenas: BTreeMap<u32, Arena>,
}

/// The address space of one device. Freed space is used again for the next allocation of the same size, as allocators
/// on a GPU do; small allocations share chunks.
struct Arena {
    next: u64,
    chunk_end: u64,
    free: BTreeMap<u64, Vec<u64>>,
    used: u64,
}

/// Allocates `size` bytes of a device; fresh memory is zero, memory that was used before is as it was left.
pub(crate) fn allocate(wanted: Allocation) -> Result<u64, Code> {
    if wanted.size == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut table = lock();
    let arena = table.arenas.entry(arena_of(&wanted)).or_insert_with(|| Arena {
        next: FIRST_ADDRESS + u64::from(arena_of(&wanted)) * DEVICE_STRIDE,
        chunk_end: 0,
        free: BTreeMap::new(),
        used: 0,
    });
    let rounded = rounded(wanted.size);
    if arena.used + rounded > device::MEMORY_BYTES {
        return Err(Code::OUT_OF_MEMORY);
    }
    let base = arena.take(rounded)?;
    arena.used += rounded;
    table.allocations.insert(base, Allocation { base, ..wanted });
    Ok(base)
}

/// Gives back what `allocate` gave.
pub(crate) fn free(base: u64, origins: &[Origin]) -> Result<Allocation, Code> {
    let mut table = lock();
    let allocation = *table.allocations.get(&base).ok_or(Code::INVALID_VALUE)?;
    if !origins.contains(&allocation.origin) {
        return Err(Code::INVALID_VALUE);
    }
    table.allocations.remove(&base);
    let rounded = rounded(allocation.size);
    if let Some(arena) = table.arenas.get_mut(&arena_of(&allocation)) {
        arena.used -= rounded;
        arena.free.entry(rounded).or_default().push(base);
    }
    Ok(allocation)
}

/// Notes memory that lives elsewhere: registered host memory, mapped physical memory.
pub(crate) fn note(allocation: Allocation) -> Result<(), Code> {
    let mut table = lock();
    if overlap(&table, allocation.base, allocation.size).is_some() {
        return Err(Code::INVALID_VALUE);
    }
    table.allocations.insert(allocation.base, allocation);
    Ok(())
}

pub(crate) fn forget(base: u64, origin: Origin) -> Result<Allocation, Code> {
    let mut table = lock();
    match table.allocations.get(&base) {
        Some(allocation) if allocation.origin == origin => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    table.allocations.remove(&base).ok_or(Code::INVALID_VALUE)
}

/// The allocation that an address lies in.
pub(crate) fn find(address: u64) -> Option<Allocation> {
    overlap(&lock(), address, 1)
}

/// Bytes in use on a device.
pub(crate) fn used_bytes(device: u32) -> u64 {
    lock().arenas.get(&device).map_or(0, |arena| arena.used)
}

/// Whether a range lies in known memory: one allocation, or several without a gap.
pub(crate) fn is_known(address: u64, size: u64) -> bool {
    let table = lock();
    let end = address.saturating_add(size);
    let mut at = address;
    while at < end {
        match overlap(&table, at, 1) {
            Some(allocation) => at = allocation.base + allocation.size,
            None => return false,
        }
    }
    true
}

fn lock() -> std::sync::MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn overlap(table: &Table, address: u64, size: u64) -> Option<Allocation> {
    let (_, last) = table
        .allocations
        .range(..address.saturating_add(size.max(1)))
        .next_back()?;
    (last.base + last.size > address).then_some(*last)
}

/// Memory of the host has pages of its own.
fn arena_of(allocation: &Allocation) -> u32 {
    match allocation.kind {
        MemoryKind::Pinned | MemoryKind::Pageable => HOST_ARENAS + allocation.device,
        MemoryKind::Device | MemoryKind::Managed => allocation.device,
    }
}

fn rounded(size: u64) -> u64 {
    let grain = if size >= CHUNK / 2 { CHUNK } else { GRAIN };
    size.next_multiple_of(grain)
}

impl Arena {
    fn take(&mut self, rounded: u64) -> Result<u64, Code> {
        if let Some(base) = self.free.get_mut(&rounded).and_then(Vec::pop) {
            return Ok(base);
        }
        if rounded >= CHUNK {
            let base = self.map(rounded)?;
            self.chunk_end = 0;
            return Ok(base);
        }
        if self.chunk_end == 0 || self.next + rounded > self.chunk_end {
            let base = self.map(CHUNK)?;
            self.next = base;
            self.chunk_end = base + CHUNK;
        }
        let base = self.next;
        self.next += rounded;
        Ok(base)
    }

    /// Maps fresh memory at the next free address.
    fn map(&mut self, size: u64) -> Result<u64, Code> {
        let mut address = self.next.max(self.chunk_end).next_multiple_of(CHUNK);
        for _ in 0..4096 {
            if map_fixed(address, size, Access::ReadWrite) {
                self.next = address + size;
                return Ok(address);
            }
            address += CHUNK;
        }
        Err(Code::OUT_OF_MEMORY)
    }
}

/// What a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    None,
    ReadWrite,
}

impl Access {
    pub(crate) fn protection(self) -> i32 {
        match self {
            Self::None => libc::PROT_NONE,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// Maps memory at exactly that address; false when something is there already.
pub(crate) fn map_fixed(address: u64, size: u64, access: Access) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE leaves every existing mapping alone.
    let got = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            size as usize,
            access.protection(),
            flags,
            -1,
            0,
        )
    };
    if got == libc::MAP_FAILED {
        return false;
    }
    if got as u64 != address {
        // A kernel older than 4.17 takes the address as a hint only.
        // SAFETY: the mapping was made just now and nobody knows of it.
        unsafe { libc::munmap(got, size as usize) };
        return false;
    }
    true
}

/// Moves bytes between any two known ranges.
pub(crate) fn copy(destination: u64, source: u64, size: u64) {
    // SAFETY: callers checked that device ranges are allocated; host ranges are the program's promise, as with memcpy.
    unsafe { std::ptr::copy(source as *const u8, destination as *mut u8, size as usize) };
}

/// Writes `pattern` over and over until `size` bytes are written.
pub(crate) fn set(destination: u64, pattern: &[u8], size: u64) {
    for offset in (0..size).step_by(pattern.len()) {
        copy(
            destination + offset,
            pattern.as_ptr() as u64,
            pattern.len() as u64,
        );
    }
}

/// An array in device memory, as a kernel sees it.
pub(crate) struct View<T> {
    base: u64,
    count: usize,
    element: PhantomData<T>,
}

impl<T: Copy> View<T> {
    pub(crate) fn new(base: u64, count: usize) -> Result<Self, Code> {
        if !is_known(base, (count * size_of::<T>()) as u64) {
            return Err(Code::ILLEGAL_ADDRESS);
        }
        if count > 0 && !base.is_multiple_of(align_of::<T>() as u64) {
            return Err(Code::MISALIGNED_ADDRESS);
        }
        Ok(Self {
            base,
            count,
            element: PhantomData,
        })
    }

    pub(crate) fn get(&self, index: usize) -> T {
        // SAFETY: `address` stays inside the range that `new` found allocated and aligned.
        unsafe { std::ptr::read_volatile(self.address(index) as *const T) }
    }

    pub(crate) fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { std::ptr::write_volatile(self.address(index) as *mut T, value) };
    }

    fn address(&self, index: usize) -> u64 {
        assert!(index < self.count, "a kernel of ours reads past its array");
        self.base + (index * size_of::<T>()) as u64
    }
}
