//! What memory at fixed addresses held at one time.

use std::ops::Range;

use super::{FixedAddressMemory, Mapped, Setting};
use crate::Error;
use crate::driver::functions::DeviceAddress;
use crate::driver::{DeviceMemory, missing};

/// What a [`FixedAddressMemory`] held.
pub struct Snapshot {
    copies: Vec<(Range<u64>, DeviceMemory<u32>)>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl FixedAddressMemory {
    /// Sets every byte of its own memory, but not of memory that was [admitted](Self::admit).
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn fill(&self, byte: u8) -> Result<(), Error> {
        for Mapped { range, .. } in &self.mapped {
            let set = Setting {
                address: range.start,
                value: u32::from(byte),
                width: 1,
                count: range.end - range.start,
                rows: 1,
                pitch: 0,
            };
            self.set(&set, None)?;
        }
        self.context.synchronize()
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
            .map(|mapped| &mapped.range)
            .chain(&self.admitted)
            .map(|range| {
                let words = (range.end - range.start).div_ceil(4) as usize;
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

    /// Copies to the host what memory held when a snapshot was taken.
    ///
    /// # Errors
    ///
    /// When it was not memory of the stage, or what the driver says.
    pub fn read_snapshot(&self, snapshot: &Snapshot, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len() as u64;
        let holds = |(range, _): &&(Range<u64>, _)| range.contains(&address) && bytes <= range.end - address;
        let (range, copy) = snapshot
            .copies
            .iter()
            .find(holds)
            .ok_or(Error::NoMemoryThere { address, bytes })?;
        let from = copy.address() + (address - range.start);
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpy.ok_or_else(|| missing("cuMemcpy"))?;
        // SAFETY: reads memory of the snapshot, writes so many bytes of the slice before it returns.
        let status = unsafe { call(to.as_mut_ptr() as DeviceAddress, from, to.len()) };
        driver.check("cuMemcpy", status)
    }

    /// Bytes of device memory that a snapshot takes.
    pub fn snapshot_bytes(&self) -> u64 {
        let mapped = self.mapped.iter().map(|mapped| &mapped.range);
        mapped
            .chain(&self.admitted)
            .map(|range| range.end - range.start)
            .sum()
    }

    /// One of the two is memory of this stage, the other of a snapshot.
    fn transfer(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpyAsync
            .ok_or_else(|| missing("cuMemcpyAsync"))?;
        // SAFETY: both are ours and so long.
        let status = unsafe { call(to, from, bytes as usize, std::ptr::null_mut()) };
        driver.check("cuMemcpyAsync", status)
    }
}
