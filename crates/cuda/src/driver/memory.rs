//! Memory of the device, and memory of the host that the device can reach.
//!
//! Copies run in a queue while the program goes on. What keeps that safe:
//! [`HostMemory`] is looked at and changed only through calls that first wait
//! for all work of its context, and so is its end.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::functions::DeviceAddress;
use super::{Context, Stream};
use crate::Error;

/// Values of four bytes of which every pattern is valid.
pub trait Word: Copy + Default + sealed::Sealed + 'static {
    /// The same bits as a number.
    fn bits(self) -> u32;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for f32 {}
}

impl Word for u32 {
    fn bits(self) -> u32 {
        self
    }
}

impl Word for f32 {
    fn bits(self) -> u32 {
        self.to_bits()
    }
}

/// Memory on a device.
pub struct DeviceMemory<T: Word> {
    context: Context,
    address: DeviceAddress,
    length: usize,
    values: PhantomData<T>,
}

impl<T: Word> DeviceMemory<T> {
    pub(super) fn new(context: &Context, length: usize) -> Result<Self, Error> {
        let driver = context.enter()?;
        let mut address = 0;
        // The driver refuses to allocate nothing.
        let bytes = (length * size_of::<T>()).max(1);
        // SAFETY: writes one address.
        let status = unsafe { (driver.functions().cuMemAlloc_v2)(&raw mut address, bytes) };
        driver.check("cuMemAlloc", status)?;
        Ok(Self {
            context: context.clone(),
            address,
            length,
            values: PhantomData,
        })
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where it lies on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Sets every value.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn fill(&self, value: T, stream: &Stream) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemsetD32Async;
        // SAFETY: so many words are ours from that address on.
        let status = unsafe { call(self.address, value.bits(), self.length, stream.handle) };
        driver.check("cuMemsetD32Async", status)
    }

    /// Copies from the host. Returns before it is done.
    ///
    /// # Panics
    ///
    /// When the lengths differ.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn copy_from_host(&self, from: &HostMemory<T>, stream: &Stream) -> Result<(), Error> {
        assert_eq!(self.length, from.length, "both sides of a copy are as long");
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpyHtoDAsync_v2;
        // SAFETY: both are that long, and the host's lives until the copy is done.
        let status = unsafe {
            call(
                self.address,
                from.address.as_ptr().cast(),
                self.bytes(),
                stream.handle,
            )
        };
        driver.check("cuMemcpyHtoDAsync", status)
    }

    /// Copies to the host. Returns before it is done.
    ///
    /// # Panics
    ///
    /// When the lengths differ.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn copy_to_host(&self, to: &HostMemory<T>, stream: &Stream) -> Result<(), Error> {
        assert_eq!(self.length, to.length, "both sides of a copy are as long");
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpyDtoHAsync_v2;
        // SAFETY: both are that long; the host's lives until the copy is done and is not looked at before.
        let status = unsafe {
            call(
                to.address.as_ptr().cast(),
                self.address,
                self.bytes(),
                stream.handle,
            )
        };
        driver.check("cuMemcpyDtoHAsync", status)
    }

    /// Copies within the device. Returns before it is done.
    ///
    /// # Panics
    ///
    /// When the lengths differ.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn copy_from(&self, from: &DeviceMemory<T>, stream: &Stream) -> Result<(), Error> {
        assert_eq!(self.length, from.length, "both sides of a copy are as long");
        let driver = self.context.enter()?;
        let call = driver.functions().cuMemcpyDtoDAsync_v2;
        // SAFETY: both are that long.
        let status = unsafe { call(self.address, from.address, self.bytes(), stream.handle) };
        driver.check("cuMemcpyDtoDAsync", status)
    }

    /// Waits for the queue, and for all that it holds, and gives the content.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        let driver = self.context.enter()?;
        let mut values = vec![T::default(); self.length];
        let call = driver.functions().cuMemcpyDtoHAsync_v2;
        // SAFETY: the vector is that long and lives until the queue is waited for.
        let status = unsafe {
            call(
                values.as_mut_ptr().cast(),
                self.address,
                self.bytes(),
                stream.handle,
            )
        };
        let copied = driver.check("cuMemcpyDtoHAsync", status);
        // In any case: nothing may write to the vector once it is handed on or dropped.
        stream.synchronize()?;
        copied.map(|()| values)
    }

    fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }
}

impl<T: Word> Drop for DeviceMemory<T> {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure.
        self.context.leave_to(|driver| {
            // SAFETY: allocated by us; the driver waits for work that uses it.
            let _ = unsafe { (driver.functions().cuMemFree_v2)(self.address) };
        });
    }
}

/// Memory of the host that is pinned in place, so that the device copies from
/// and to it by itself.
pub struct HostMemory<T: Word> {
    context: Context,
    address: NonNull<T>,
    length: usize,
}

impl<T: Word> HostMemory<T> {
    pub(super) fn new(context: &Context, length: usize) -> Result<Self, Error> {
        let driver = context.enter()?;
        let mut address = std::ptr::null_mut();
        let bytes = (length * size_of::<T>()).max(1);
        // SAFETY: writes one pointer.
        let status = unsafe { (driver.functions().cuMemHostAlloc)(&raw mut address, bytes, 0) };
        driver.check("cuMemHostAlloc", status)?;
        let address = NonNull::new(address.cast::<T>()).ok_or_else(|| super::missing("cuMemHostAlloc"))?;
        // SAFETY: so many bytes are ours now, and nobody else knows of them.
        unsafe { address.as_ptr().write_bytes(0, length) };
        Ok(Self {
            context: context.clone(),
            address,
            length,
        })
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where some of its bytes lie; none when it has not so many.
    pub(super) fn place(&self, offset: u64, bytes: u64) -> Option<DeviceAddress> {
        let end = offset.checked_add(bytes)?;
        (end <= (self.length * size_of::<T>()) as u64).then(|| self.address.as_ptr() as u64 + offset)
    }

    /// Waits for all work of the context and gives the content.
    ///
    /// # Errors
    ///
    /// What went wrong in that work.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.context.synchronize()?;
        // SAFETY: allocated for so many words, zeroed then, and no copy is under way.
        Ok(unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.length) }.to_vec())
    }

    /// Waits for all work of the context and sets the content.
    ///
    /// # Panics
    ///
    /// When the lengths differ.
    ///
    /// # Errors
    ///
    /// What went wrong in that work.
    pub fn write(&mut self, values: &[T]) -> Result<(), Error> {
        assert_eq!(self.length, values.len(), "both sides of a copy are as long");
        self.context.synchronize()?;
        // SAFETY: both are that long, ours is exclusively borrowed, and no copy is under way.
        unsafe {
            self.address
                .as_ptr()
                .copy_from_nonoverlapping(values.as_ptr(), values.len())
        };
        Ok(())
    }
}

impl<T: Word> Drop for HostMemory<T> {
    fn drop(&mut self) {
        // A device that failed copies no more: freeing is right in either case.
        let _ = self.context.synchronize();
        self.context.leave_to(|driver| {
            // SAFETY: allocated by us, and no copy is under way.
            let _ = unsafe { (driver.functions().cuMemFreeHost)(self.address.as_ptr().cast()) };
        });
    }
}
