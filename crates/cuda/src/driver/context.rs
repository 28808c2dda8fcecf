//! A device's primary context: where memory, code and streams live.

use std::cell::Cell;
use std::rc::Rc;

use super::functions::Handle;
use super::memory::{DeviceMemory, HostMemory, Word};
use super::{Device, Driver, Event, Module, Stream, StreamMake};
use crate::Error;

thread_local! {
    /// The context that this thread was last told to work in. The driver keeps
    /// one for each thread; asking it each time would show in our own traces.
    static CURRENT: Cell<Handle> = const { Cell::new(std::ptr::null_mut()) };
}

/// The context that a device shares among all users within a process.
///
/// Copies share it. It is bound to its thread (it is neither `Send` nor
/// `Sync`), since every call works on the thread's current context.
#[derive(Clone)]
pub struct Context {
    inner: Rc<Inner>,
}

struct Inner {
    device: Device,
    handle: Handle,
}

impl Context {
    /// The primary context of a device, made if this process has none yet.
    ///
    /// # Errors
    ///
    /// What the driver says: 2 when the device's memory is full, 46 when it is
    /// in use and exclusive.
    pub fn of(device: &Device) -> Result<Self, Error> {
        let driver = &device.driver;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (driver.functions().cuDevicePrimaryCtxRetain)(&raw mut handle, device.handle) };
        driver.check("cuDevicePrimaryCtxRetain", status)?;
        let inner = Rc::new(Inner {
            device: device.clone(),
            handle,
        });
        let context = Self { inner };
        context.enter()?;
        Ok(context)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Waits until all work of this context is done.
    ///
    /// # Errors
    ///
    /// What went wrong in that work.
    pub fn synchronize(&self) -> Result<(), Error> {
        let driver = self.enter()?;
        // SAFETY: takes nothing; the context is current.
        driver.check("cuCtxSynchronize", unsafe {
            (driver.functions().cuCtxSynchronize)()
        })
    }

    /// Bytes of the device's memory that are free, and of all of it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn free_memory(&self) -> Result<(u64, u64), Error> {
        let driver = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two size_t.
        let status = unsafe { (driver.functions().cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        driver.check("cuMemGetInfo", status)?;
        Ok((free as u64, total as u64))
    }

    /// A new stream that waits for no other.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn stream(&self) -> Result<Stream, Error> {
        Stream::new(self)
    }

    /// A new event.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn event(&self) -> Result<Event, Error> {
        Event::new(self)
    }

    /// Memory on the device, its content unknown.
    ///
    /// # Errors
    ///
    /// 2 when there is not enough.
    pub fn memory<T: Word>(&self, length: usize) -> Result<DeviceMemory<T>, Error> {
        DeviceMemory::new(self, length)
    }

    /// Memory of the host that the device copies from and to by itself, zeroed.
    ///
    /// # Errors
    ///
    /// 2 when there is not enough.
    pub fn host_memory<T: Word>(&self, length: usize) -> Result<HostMemory<T>, Error> {
        HostMemory::new(self, length)
    }

    /// Code, compiled by the driver.
    ///
    /// # Errors
    ///
    /// 218 when the text is not valid, 222 when it is newer than the driver.
    pub fn module(&self, ptx: &str) -> Result<Module, Error> {
        Module::from_ptx(self, ptx)
    }

    /// Code as the driver had it in another process.
    ///
    /// # Errors
    ///
    /// 209 when it is for another kind of device, 200 when it is no code.
    pub fn module_of(&self, code: &[u8]) -> Result<Module, Error> {
        Module::from_code(self, code)
    }

    /// A new stream that waits for the one which is everyone's, and is waited for
    /// by it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn ordered_stream(&self) -> Result<Stream, Error> {
        Stream::ordered(self)
    }

    /// A new stream, made as another one was.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn stream_like(&self, make: StreamMake) -> Result<Stream, Error> {
        Stream::made(self, make)
    }

    /// Makes this the thread's context for the calls to come.
    pub(super) fn enter(&self) -> Result<&Driver, Error> {
        self.inner.enter()?;
        Ok(&self.inner.device.driver)
    }

    /// As [`enter`](Self::enter) for what is dropped: nobody is there to hear
    /// that the context is gone, and then so is what was to be given back.
    pub(super) fn leave_to(&self, give_back: impl FnOnce(&Driver)) {
        if let Ok(driver) = self.enter() {
            give_back(driver);
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({})", self.inner.device.ordinal())
    }
}

impl Inner {
    fn enter(&self) -> Result<(), Error> {
        if CURRENT.get() == self.handle {
            return Ok(());
        }
        let driver = &self.device.driver;
        // SAFETY: the handle is retained for as long as we live.
        let status = unsafe { (driver.functions().cuCtxSetCurrent)(self.handle) };
        driver.check("cuCtxSetCurrent", status)?;
        CURRENT.set(self.handle);
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if CURRENT.get() == self.handle {
            CURRENT.set(std::ptr::null_mut());
        }
        let functions = self.device.driver.functions();
        // Nobody is there to hear of a failure.
        // SAFETY: retained once, in `Context::of`.
        let _ = unsafe { (functions.cuDevicePrimaryCtxRelease_v2)(self.device.handle) };
    }
}
