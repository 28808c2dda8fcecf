//! Memory at chosen addresses, where recorded work is replayed.
//!
//! Addresses are reserved and physical memory is mapped there. The driver treats a
//! requested address as a hint. It uses the address if the reservation begins and
//! ends at multiples of 32 MiB that no other reservation touches (H200, driver
//! 580).

mod copies;
mod snapshot;

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::ops::Range;
use std::time::Duration;

use crate::Error;
use crate::driver::functions::DeviceAddress;
use crate::driver::{Context, missing};

pub use copies::{InArray, Setting};
pub use snapshot::Snapshot;

/// Reservations begin and end at multiples of this.
const UNIT: u64 = 32 << 20;

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: c_uint = 1;
const ON_DEVICE: c_uint = 1;
/// `CU_MEM_LOCATION_TYPE_HOST_NUMA`: memory of the host, by its node.
const ON_HOST: c_uint = 3;
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

/// Whether memory must lie where it is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placing {
    /// There and nowhere else.
    #[default]
    Exact,
    /// There if that is free.
    Anywhere,
}

/// Memory that lies elsewhere than wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifted {
    /// Where it is wanted.
    pub was: Range<u64>,
    /// Where it begins.
    pub is: u64,
}

/// How often an address is requested before it counts as taken.
const TRIES: u32 = 3;

/// The time from one try to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// Memory of a device and of the host at chosen addresses.
pub struct FixedAddressMemory {
    context: Context,
    reserved: Vec<Range<u64>>,
    mapped: Vec<Mapped>,
    /// By where it is wanted.
    shifted: Vec<Shifted>,
    /// Memory of others that counts as part of it: variables of loaded code.
    admitted: Vec<Range<u64>>,
}

struct Mapped {
    range: Range<u64>,
    physical: Physical,
    location: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Device,
    Host,
}

impl FixedAddressMemory {
    /// Takes memory of the device for all of `wanted`, and of the host, which both
    /// can use, for as much of `host` as the driver gives. What it holds is
    /// unknown.
    ///
    /// # Errors
    ///
    /// When an address is not to be had and must be, or there is not enough memory.
    pub fn at(
        context: &Context,
        wanted: &[Range<u64>],
        host: &[Range<u64>],
        placing: Placing,
    ) -> Result<Self, Error> {
        let granularity = granularity(context)?;
        let mut stage = Self {
            context: context.clone(),
            reserved: Vec::new(),
            mapped: Vec::new(),
            shifted: Vec::new(),
            admitted: Vec::new(),
        };
        let pages = widened(wanted, granularity);
        // Memory of the host that shares a page with the device's stays the host's own affair.
        let apart = |page: &Range<u64>| {
            !pages
                .iter()
                .any(|own| own.start < page.end && page.start < own.end)
        };
        let host_pages: Vec<Range<u64>> = widened(host, granularity).into_iter().filter(apart).collect();
        let all: Vec<Range<u64>> = pages.iter().chain(&host_pages).cloned().collect();
        for unit in widened(&all, UNIT.max(granularity)) {
            let got = stage.reserve(&unit, placing)?;
            if got != unit.start {
                let within = all.iter().filter(|page| unit.contains(&page.start));
                stage.shifted.extend(within.map(|page| Shifted {
                    was: page.clone(),
                    is: got + (page.start - unit.start),
                }));
            }
        }
        stage.shifted.sort_by_key(|shifted| shifted.was.start);
        for range in pages {
            stage.map(stage.shift(&range), Location::Device)?;
        }
        for range in host_pages {
            // A driver without it leaves this memory to copies alone, which need no address.
            let _ = stage.map(stage.shift(&range), Location::Host);
        }
        Ok(stage)
    }

    /// Memory that lies elsewhere may be used like that of the stage: a variable
    /// of code that stays loaded as long as the stage is there.
    pub fn admit(&mut self, range: Range<u64>) {
        self.admitted.push(range);
    }

    /// Memory that lies elsewhere than wanted, by where that is.
    pub fn shifted(&self) -> &[Shifted] {
        &self.shifted
    }

    /// Where that lies which is wanted at an address.
    pub fn place(&self, address: u64) -> u64 {
        let behind = self
            .shifted
            .partition_point(|shifted| shifted.was.start <= address);
        let before = behind.checked_sub(1).map(|before| &self.shifted[before]);
        match before.filter(|shifted| shifted.was.contains(&address)) {
            Some(shifted) => shifted.is + (address - shifted.was.start),
            None => address,
        }
    }

    fn shift(&self, range: &Range<u64>) -> Range<u64> {
        let start = self.place(range.start);
        start..start + (range.end - range.start)
    }

    /// Bytes of physical memory that it takes.
    pub fn bytes(&self) -> u64 {
        let on_device = self
            .mapped
            .iter()
            .filter(|mapped| mapped.location == Location::Device);
        on_device
            .map(|mapped| mapped.range.end - mapped.range.start)
            .sum()
    }

    /// Memory of the device that is none of `taken`, which need not be sorted.
    pub fn beside(&self, taken: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut taken: Vec<&Range<u64>> = taken.iter().collect();
        taken.sort_by_key(|range| range.start);
        let mut beside = Vec::new();
        for Mapped { range, location, .. } in &self.mapped {
            if *location != Location::Device {
                continue;
            }
            let mut at = range.start;
            for own in taken
                .iter()
                .filter(|own| own.start < range.end && range.start < own.end)
            {
                if own.start > at {
                    beside.push(at..own.start);
                }
                at = at.max(own.end);
            }
            if at < range.end {
                beside.push(at..range.end);
            }
        }
        beside
    }

    /// Whether all of a range is memory of this stage.
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let mapped = self.mapped.iter().map(|mapped| &mapped.range);
        mapped
            .chain(&self.admitted)
            .any(|range| range.contains(&address) && bytes <= range.end - address)
    }

    fn check(&self, address: u64, bytes: u64) -> Result<(), Error> {
        if self.holds(address, bytes) {
            return Ok(());
        }
        Err(Error::NoMemoryThere { address, bytes })
    }

    /// Reserves addresses, and says where. Something else may be there for a moment, so the request is repeated.
    fn reserve(&mut self, unit: &Range<u64>, placing: Placing) -> Result<u64, Error> {
        let bytes = unit.end - unit.start;
        for attempt in 1..=TRIES {
            let got = self.reserve_near(unit)?;
            if got == unit.start || attempt == TRIES && placing == Placing::Anywhere {
                self.reserved.push(got..got + bytes);
                return Ok(got);
            }
            self.release_addresses(got..got + bytes);
            if attempt < TRIES {
                std::thread::sleep(PAUSE);
            }
        }
        Err(Error::AddressTaken {
            address: unit.start,
            bytes,
        })
    }

    fn reserve_near(&self, unit: &Range<u64>) -> Result<u64, Error> {
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemAddressReserve
            .ok_or_else(|| missing("cuMemAddressReserve"))?;
        let bytes = (unit.end - unit.start) as usize;
        let mut got: DeviceAddress = 0;
        // SAFETY: writes one address.
        let status = unsafe { call(&raw mut got, bytes, 0, unit.start, 0) };
        driver.check("cuMemAddressReserve", status)?;
        Ok(got)
    }

    fn release_addresses(&self, range: Range<u64>) {
        self.context.leave_to(|driver| {
            if let Some(free) = driver.functions().cuMemAddressFree {
                // SAFETY: reserved by us a moment ago, and nothing was mapped there.
                let _ = unsafe { free(range.start, (range.end - range.start) as usize) };
            }
        });
    }

    fn map(&mut self, range: Range<u64>, location: Location) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let functions = driver.functions();
        let bytes = (range.end - range.start) as usize;
        let create = functions.cuMemCreate.ok_or_else(|| missing("cuMemCreate"))?;
        let map = functions.cuMemMap.ok_or_else(|| missing("cuMemMap"))?;
        let allow = functions
            .cuMemSetAccess
            .ok_or_else(|| missing("cuMemSetAccess"))?;
        let mut properties = properties(&self.context);
        let device = properties.location;
        if location == Location::Host {
            (properties.location_type, properties.location) = (ON_HOST, 0);
        }
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
        let to = |location_type, location| AccessDescription {
            location_type,
            location,
            flags: READ_WRITE,
        };
        let access = match location {
            Location::Device => vec![to(ON_DEVICE, device)],
            Location::Host => vec![to(ON_DEVICE, device), to(ON_HOST, 0)],
        };
        // SAFETY: reads so many descriptions; the range was mapped above.
        let status = unsafe { allow(range.start, bytes, access.as_ptr(), access.len()) };
        if status != 0
            && let (Some(unmap), Some(release)) = (functions.cuMemUnmap, functions.cuMemRelease)
        {
            // SAFETY: mapped above, and nothing has used it.
            let _ = unsafe { unmap(range.start, bytes) };
            // SAFETY: created above, and mapped nowhere.
            let _ = unsafe { release(physical) };
        }
        driver.check("cuMemSetAccess", status)?;
        self.mapped.push(Mapped {
            range,
            physical,
            location,
        });
        Ok(())
    }
}

impl Drop for FixedAddressMemory {
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
            for Mapped { range, physical, .. } in mapped {
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
pub fn widened(ranges: &[Range<u64>], unit: u64) -> Vec<Range<u64>> {
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

impl std::fmt::Debug for FixedAddressMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FixedAddressMemory")
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
