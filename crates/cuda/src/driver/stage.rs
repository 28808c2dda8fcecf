//! Memory at addresses of one's own choice, where recorded work runs again.
//!
//! Addresses are reserved and physical memory is mapped there. The driver takes
//! a wanted address as a hint. It follows it when the reservation begins and ends
//! at a multiple of 32 MiB that no other one touches (H200, driver 580).

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::ops::Range;

use super::functions::DeviceAddress;
use super::{Context, DeviceMemory, Stream, missing};
use crate::Error;

/// Reservations begin and end at multiples of this.
const UNIT: u64 = 32 << 20;

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: c_uint = 1;
const ON_DEVICE: c_uint = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: c_uint = 3;

/// `CUmemAllocationProp`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct AllocationProperties {
    kind: c_uint,
    handle_types: c_uint,
    location_type: c_uint,
    location: c_int,
    windows: usize,
    flags: [u8; 8],
}

const _: () = assert!(size_of::<AllocationProperties>() == 32);

/// `CUmemAccessDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AccessDescription {
    location_type: c_uint,
    location: c_int,
    flags: c_uint,
}

const _: () = assert!(size_of::<AccessDescription>() == 12);

/// Physical memory.
pub(crate) type Physical = c_ulonglong;

/// Memory of a device at chosen addresses.
pub struct Stage {
    context: Context,
    reserved: Vec<Range<u64>>,
    mapped: Vec<(Range<u64>, Physical)>,
}

/// What a [`Stage`] held.
pub struct Snapshot {
    copies: Vec<(Range<u64>, DeviceMemory<u32>)>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Stage {
    /// Takes memory for all of `wanted`, its content unknown.
    ///
    /// # Errors
    ///
    /// When an address is not to be had, or there is not enough memory.
    pub fn at(context: &Context, wanted: &[Range<u64>]) -> Result<Self, Error> {
        let granularity = granularity(context)?;
        let mut stage = Self {
            context: context.clone(),
            reserved: Vec::new(),
            mapped: Vec::new(),
        };
        let pages = widened(wanted, granularity);
        for unit in widened(&pages, UNIT.max(granularity)) {
            stage.reserve(unit)?;
        }
        for range in pages {
            stage.map(range)?;
        }
        Ok(stage)
    }

    /// Bytes of physical memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.mapped.iter().map(|(range, _)| range.end - range.start).sum()
    }

    /// Copies from the host. Work that is under way in streams goes on beside it.
    ///
    /// # Errors
    ///
    /// When it is not memory of this stage, or what the driver says.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpyHtoD_v2
            .ok_or_else(|| missing("cuMemcpyHtoD_v2"))?;
        // SAFETY: reads so many bytes of the slice, and writes memory of ours, before it returns.
        let status = unsafe { call(address, bytes.as_ptr().cast(), bytes.len()) };
        driver.check("cuMemcpyHtoD", status)
    }

    /// Copies to the host.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        self.check(address, to.len() as u64)?;
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpyDtoH_v2
            .ok_or_else(|| missing("cuMemcpyDtoH_v2"))?;
        // SAFETY: writes so many bytes of the slice before it returns.
        let status = unsafe { call(to.as_mut_ptr().cast(), address, to.len()) };
        driver.check("cuMemcpyDtoH", status)
    }

    /// Copies within the stage, in a stream.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn copy(&self, to: u64, from: u64, bytes: u64, stream: Option<&Stream>) -> Result<(), Error> {
        self.check(to, bytes)?;
        self.check(from, bytes)?;
        let driver = self.context.enter()?;
        let handle = stream.map_or(std::ptr::null_mut(), |stream| stream.handle);
        // SAFETY: memory of ours, as checked.
        let status = unsafe { (driver.functions().cuMemcpyDtoDAsync_v2)(to, from, bytes as usize, handle) };
        driver.check("cuMemcpyDtoDAsync", status)
    }

    /// Sets elements of one, two or four bytes, in a stream.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn set(
        &self,
        address: u64,
        value: u32,
        width: u8,
        count: u64,
        stream: Option<&Stream>,
    ) -> Result<(), Error> {
        self.check(address, count.saturating_mul(u64::from(width)))?;
        let driver = self.context.enter()?;
        let functions = driver.functions();
        let handle = stream.map_or(std::ptr::null_mut(), |stream| stream.handle);
        let count = count as usize;
        let (name, status) = match width {
            1 => {
                let call = functions
                    .cuMemsetD8Async
                    .ok_or_else(|| missing("cuMemsetD8Async"))?;
                // SAFETY: memory of ours, as checked; so below.
                ("cuMemsetD8Async", unsafe {
                    call(address, value as u8, count, handle)
                })
            }
            2 => {
                let call = functions
                    .cuMemsetD16Async
                    .ok_or_else(|| missing("cuMemsetD16Async"))?;
                // SAFETY: as above.
                ("cuMemsetD16Async", unsafe {
                    call(address, value as u16, count, handle)
                })
            }
            // SAFETY: as above.
            _ => ("cuMemsetD32Async", unsafe {
                (functions.cuMemsetD32Async)(address, value, count, handle)
            }),
        };
        driver.check(name, status)
    }

    /// A copy of all its content, on the device.
    ///
    /// # Errors
    ///
    /// 2 when the device has not as much memory again.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let copies = self
            .mapped
            .iter()
            .map(|(range, _)| {
                let words = ((range.end - range.start) / 4) as usize;
                Ok((range.clone(), self.context.memory::<u32>(words)?))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let snapshot = Snapshot { copies };
        for (range, copy) in &snapshot.copies {
            self.transfer(copy.address(), range.start, range.end - range.start)?;
        }
        Ok(snapshot)
    }

    /// Has the content again that it had then.
    ///
    /// # Errors
    ///
    /// When the snapshot is of another stage, or what the driver says.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        for (range, copy) in &snapshot.copies {
            self.check(range.start, range.end - range.start)?;
            self.transfer(range.start, copy.address(), range.end - range.start)?;
        }
        Ok(())
    }

    /// One of the two is memory of this stage, the other of a snapshot.
    fn transfer(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpyDtoDAsync_v2;
        // SAFETY: both are ours and so long.
        let status = unsafe { call(to, from, bytes as usize, std::ptr::null_mut()) };
        driver.check("cuMemcpyDtoDAsync", status)
    }

    /// Whether all of a range is memory of this stage.
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        self.mapped
            .iter()
            .any(|(range, _)| range.contains(&address) && bytes <= range.end - address)
    }

    fn check(&self, address: u64, bytes: u64) -> Result<(), Error> {
        if self.holds(address, bytes) {
            return Ok(());
        }
        Err(Error::NoMemoryThere { address, bytes })
    }

    fn reserve(&mut self, unit: Range<u64>) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemAddressReserve
            .ok_or_else(|| missing("cuMemAddressReserve"))?;
        let bytes = unit.end - unit.start;
        let mut got: DeviceAddress = 0;
        // SAFETY: writes one address.
        let status = unsafe { call(&raw mut got, bytes as usize, 0, unit.start, 0) };
        driver.check("cuMemAddressReserve", status)?;
        self.reserved.push(got..got + bytes);
        if got == unit.start {
            return Ok(());
        }
        Err(Error::AddressTaken {
            address: unit.start,
            bytes,
        })
    }

    fn map(&mut self, range: Range<u64>) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let functions = driver.functions();
        let bytes = (range.end - range.start) as usize;
        let create = functions.cuMemCreate.ok_or_else(|| missing("cuMemCreate"))?;
        let map = functions.cuMemMap.ok_or_else(|| missing("cuMemMap"))?;
        let allow = functions
            .cuMemSetAccess
            .ok_or_else(|| missing("cuMemSetAccess"))?;
        let properties = properties(&self.context);
        let mut physical = 0;
        // SAFETY: writes one handle, reads the properties.
        driver.check("cuMemCreate", unsafe {
            create(&raw mut physical, bytes, &raw const properties, 0)
        })?;
        // SAFETY: addresses that we reserved, memory that we made.
        let status = unsafe { map(range.start, bytes, 0, physical, 0) };
        if status != 0
            && let Some(release) = functions.cuMemRelease
        {
            // SAFETY: made above and mapped nowhere.
            unsafe { release(physical) };
        }
        driver.check("cuMemMap", status)?;
        self.mapped.push((range.clone(), physical));
        let access = AccessDescription {
            location_type: ON_DEVICE,
            location: properties.location,
            flags: READ_WRITE,
        };
        // SAFETY: reads one description; the range was mapped above.
        let status = unsafe { allow(range.start, bytes, &raw const access, 1) };
        driver.check("cuMemSetAccess", status)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure. Memory may not go while it is worked on.
        let _ = self.context.synchronize();
        let (mapped, reserved) = (
            std::mem::take(&mut self.mapped),
            std::mem::take(&mut self.reserved),
        );
        self.context.leave_to(|driver| {
            let functions = driver.functions();
            let (Some(unmap), Some(release), Some(free)) = (
                functions.cuMemUnmap,
                functions.cuMemRelease,
                functions.cuMemAddressFree,
            ) else {
                return;
            };
            for (range, physical) in mapped {
                // SAFETY: mapped by us; nothing works on it any more.
                unsafe { unmap(range.start, (range.end - range.start) as usize) };
                // SAFETY: made by us.
                unsafe { release(physical) };
            }
            for range in reserved {
                // SAFETY: reserved by us, and nothing is mapped there any more.
                unsafe { free(range.start, (range.end - range.start) as usize) };
            }
        });
    }
}

fn properties(context: &Context) -> AllocationProperties {
    AllocationProperties {
        kind: PINNED,
        location_type: ON_DEVICE,
        location: context.device().handle,
        ..AllocationProperties::default()
    }
}

fn granularity(context: &Context) -> Result<u64, Error> {
    let driver = context.enter()?;
    let call = driver
        .functions()
        .cuMemGetAllocationGranularity
        .ok_or_else(|| missing("cuMemGetAllocationGranularity"))?;
    let properties = properties(context);
    let mut bytes = 0;
    // SAFETY: writes one size, reads the properties.
    let status = unsafe { call(&raw mut bytes, &raw const properties, 0) };
    driver.check("cuMemGetAllocationGranularity", status)?;
    Ok(bytes as u64)
}

/// Ranges that begin and end at multiples of `unit` and hold all of `ranges`;
/// those that touch are one.
fn widened(ranges: &[Range<u64>], unit: u64) -> Vec<Range<u64>> {
    let mut wide: Vec<Range<u64>> = ranges
        .iter()
        .filter(|range| !range.is_empty())
        .map(|range| range.start / unit * unit..range.end.div_ceil(unit) * unit)
        .collect();
    wide.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in wide {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_widened_and_joined() {
        let ranges = [5..6, 0..1, 12..13, 8..10];
        assert_eq!(widened(&ranges, 1), [0..1, 5..6, 8..10, 12..13]);
        let joined = widened(&ranges, 4);
        assert_eq!((joined.len(), joined[0].clone()), (1, 0..16));
        assert_eq!(widened(&[0..4, 8..9], 4), [0..4, 8..12]);
        assert!(widened(&[], 4).is_empty());
    }
}
