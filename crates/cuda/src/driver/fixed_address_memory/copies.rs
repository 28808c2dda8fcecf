//! Copies to, from and within memory at fixed addresses, and memsets.

use super::FixedAddressMemory;
use crate::Error;
use crate::cupti::parameters::{Planes, SIDE_HOST, Side};
use crate::driver::functions::{DeviceAddress, Handle};
use crate::driver::{Array, HostMemory, Stream, missing};

/// What memory is set to, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it begins.
    pub address: u64,
    /// The element's bits.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub width: u8,
    /// Elements of a row.
    pub count: u64,
    /// Rows; 0 and 1 are one.
    pub rows: u64,
    /// Bytes from row to row.
    pub pitch: u64,
}

/// An end of a copy that lies in an array: so many bytes behind its first, row
/// upon row.
#[derive(Clone, Copy)]
pub struct InArray<'a> {
    /// The array.
    pub array: &'a Array,
    /// Where in it.
    pub offset: u64,
}

impl FixedAddressMemory {
    /// Copies from the host. Work that is under way in streams goes on beside it.
    ///
    /// # Errors
    ///
    /// When it is not memory of this stage, or what the driver says.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(address, bytes.len() as u64)?;
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpy.ok_or_else(|| missing("cuMemcpy"))?;
        // SAFETY: reads so many bytes of the slice, and writes memory of ours, before it returns.
        let status = unsafe { call(address, bytes.as_ptr() as DeviceAddress, bytes.len()) };
        driver.check("cuMemcpy", status)
    }

    /// Copies to the host.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        self.check(address, to.len() as u64)?;
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpy.ok_or_else(|| missing("cuMemcpy"))?;
        // SAFETY: writes so many bytes of the slice before it returns.
        let status = unsafe { call(to.as_mut_ptr() as DeviceAddress, address, to.len()) };
        driver.check("cuMemcpy", status)
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
        let call = driver
            .functions()
            .cuMemcpyAsync
            .ok_or_else(|| missing("cuMemcpyAsync"))?;
        // SAFETY: memory of ours, as checked.
        let status = unsafe { call(to, from, bytes as usize, handle) };
        driver.check("cuMemcpyAsync", status)
    }

    /// Copies from memory of the host, in a stream: `bytes` from `offset` on.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn bring(
        &self,
        to: u64,
        from: &HostMemory<u32>,
        offset: u64,
        bytes: u64,
        stream: Option<&Stream>,
    ) -> Result<(), Error> {
        self.check(to, bytes)?;
        let address = from.place(offset, bytes).ok_or(Error::NoMemoryThere {
            address: offset,
            bytes,
        })?;
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpyAsync
            .ok_or_else(|| missing("cuMemcpyAsync"))?;
        let handle = stream.map_or(std::ptr::null_mut(), |stream| stream.handle);
        // SAFETY: memory of ours, as checked; the host's waits for all work before it goes.
        let status = unsafe { call(to, address, bytes as usize, handle) };
        driver.check("cuMemcpyAsync", status)
    }

    /// Copies rows or planes, in a stream. A source on the host is memory of ours,
    /// from `offset` on; either end may lie in an array, first the source.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn copy_planes(
        &self,
        planes: &Planes,
        brought: Option<(&HostMemory<u32>, u64)>,
        [from, to]: [Option<InArray<'_>>; 2],
        stream: Option<&Stream>,
    ) -> Result<(), Error> {
        let mut planes = *planes;
        let size = [planes.width, planes.height, planes.depth];
        let within = |place: InArray<'_>| {
            let side = place.array.side(place.offset, size);
            side.ok_or(Error::NoMemoryThere {
                address: place.offset,
                bytes: size.into_iter().fold(1, usize::saturating_mul) as u64,
            })
        };
        match to {
            Some(to) => planes.destination = within(to)?,
            None => self.check_planes(&planes.destination, &planes)?,
        }
        match brought {
            None => match from {
                Some(from) => planes.source = within(from)?,
                None => self.check_planes(&planes.source, &planes)?,
            },
            Some((host, offset)) => {
                let rows = planes.height.saturating_mul(planes.depth);
                let bytes = planes.width.saturating_mul(rows) as u64;
                let address = host.place(offset, bytes).ok_or(Error::NoMemoryThere {
                    address: offset,
                    bytes,
                })?;
                planes.source = Side {
                    kind: u64::from(SIDE_HOST),
                    host: address,
                    pitch: planes.width,
                    height: planes.height,
                    ..Side::default()
                };
            }
        }
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpy3DAsync_v2
            .ok_or_else(|| missing("cuMemcpy3DAsync"))?;
        let handle = stream.map_or(std::ptr::null_mut(), |stream| stream.handle);
        // SAFETY: memory of ours from the first byte to the last, as checked.
        let status = unsafe { call(&raw const planes, handle) };
        driver.check("cuMemcpy3DAsync", status)
    }

    /// All from the first byte of one end of such a copy to its last is ours.
    fn check_planes(&self, side: &Side, planes: &Planes) -> Result<(), Error> {
        let address = side.address().unwrap_or(0);
        let span = || {
            let last = planes.depth.checked_sub(1)?.checked_mul(side.height)?;
            let last = last.checked_add(planes.height.checked_sub(1)?)?;
            last.checked_mul(side.pitch)?.checked_add(planes.width)
        };
        self.check(address, span().unwrap_or(usize::MAX) as u64)
    }

    /// Sets elements of one, two or four bytes, in a stream.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn set(&self, set: &Setting, stream: Option<&Stream>) -> Result<(), Error> {
        let row = set.count.saturating_mul(u64::from(set.width));
        let rows = set.rows.max(1);
        self.check(
            set.address,
            (rows - 1).saturating_mul(set.pitch).saturating_add(row),
        )?;
        let driver = self.context.enter()?;
        let functions = driver.functions();
        let handle = stream.map_or(std::ptr::null_mut(), |stream| stream.handle);
        let (to, value, count) = (set.address, set.value, set.count as usize);
        if rows > 1 {
            return self.set_rows(set, handle);
        }
        let (name, status) = match set.width {
            1 => {
                let call = functions
                    .cuMemsetD8Async
                    .ok_or_else(|| missing("cuMemsetD8Async"))?;
                // SAFETY: memory of ours, as checked; so below.
                ("cuMemsetD8Async", unsafe { call(to, value as u8, count, handle) })
            }
            2 => {
                let call = functions
                    .cuMemsetD16Async
                    .ok_or_else(|| missing("cuMemsetD16Async"))?;
                // SAFETY: as above.
                ("cuMemsetD16Async", unsafe {
                    call(to, value as u16, count, handle)
                })
            }
            // SAFETY: as above.
            _ => ("cuMemsetD32Async", unsafe {
                (functions.cuMemsetD32Async)(to, value, count, handle)
            }),
        };
        driver.check(name, status)
    }

    /// Memory that was checked.
    fn set_rows(&self, set: &Setting, stream: Handle) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let functions = driver.functions();
        let (to, pitch, value) = (set.address, set.pitch as usize, set.value);
        let (width, height) = (set.count as usize, set.rows as usize);
        let missing = || missing("cuMemsetD2DAsync");
        let status = match set.width {
            1 => {
                let call = functions.cuMemsetD2D8Async.ok_or_else(missing)?;
                // SAFETY: memory of ours, as our caller checked; so below.
                unsafe { call(to, pitch, value as u8, width, height, stream) }
            }
            2 => {
                let call = functions.cuMemsetD2D16Async.ok_or_else(missing)?;
                // SAFETY: as above.
                unsafe { call(to, pitch, value as u16, width, height, stream) }
            }
            _ => {
                let call = functions.cuMemsetD2D32Async.ok_or_else(missing)?;
                // SAFETY: as above.
                unsafe { call(to, pitch, value, width, height, stream) }
            }
        };
        driver.check("cuMemsetD2DAsync", status)
    }

    /// Copies memory of this stage to memory of ours that is as long.
    pub(crate) fn copy_out(&self, to: u64, from: u64, bytes: u64, stream: &Stream) -> Result<(), Error> {
        self.check(from, bytes)?;
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpyAsync
            .ok_or_else(|| missing("cuMemcpyAsync"))?;
        // SAFETY: both are ours and so long.
        let status = unsafe { call(to, from, bytes as usize, stream.handle) };
        driver.check("cuMemcpyAsync", status)
    }
}
