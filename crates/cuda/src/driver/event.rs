//! A point in a queue that others can wait for, and that has a time.

use std::time::Duration;

use super::functions::Handle;
use super::{Context, Stream};
use crate::Error;

/// A point in a queue.
pub struct Event {
    context: Context,
    pub(super) handle: Handle,
}

impl Event {
    pub(super) fn new(context: &Context) -> Result<Self, Error> {
        let driver = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (driver.functions().cuEventCreate)(&raw mut handle, 0) };
        driver.check("cuEventCreate", status)?;
        let context = context.clone();
        Ok(Self { context, handle })
    }

    /// Marks where the queue stands now.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        let driver = self.context.enter()?;
        // SAFETY: event and stream are alive.
        let status = unsafe { (driver.functions().cuEventRecord)(self.handle, stream.handle) };
        driver.check("cuEventRecord", status)
    }

    /// Marks where the queue stands which is everyone's.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn record_everywhere(&self) -> Result<(), Error> {
        let driver = self.context.enter()?;
        // SAFETY: the event is alive; null is the default stream.
        let status = unsafe { (driver.functions().cuEventRecord)(self.handle, std::ptr::null_mut()) };
        driver.check("cuEventRecord", status)
    }

    /// Waits until the queue has come to this point.
    ///
    /// # Errors
    ///
    /// What went wrong in the work before it.
    pub fn synchronize(&self) -> Result<(), Error> {
        let driver = self.context.enter()?;
        // SAFETY: the event is alive.
        let status = unsafe { (driver.functions().cuEventSynchronize)(self.handle) };
        driver.check("cuEventSynchronize", status)
    }

    /// Device time from an earlier event to this one, to half a microsecond.
    ///
    /// # Errors
    ///
    /// 600 when one of the two is not reached yet.
    pub fn since(&self, earlier: &Event) -> Result<Duration, Error> {
        let driver = self.context.enter()?;
        let mut milliseconds = 0.0;
        let call = driver.functions().cuEventElapsedTime;
        // SAFETY: writes one float; both events are alive.
        let status = unsafe { call(&raw mut milliseconds, earlier.handle, self.handle) };
        driver.check("cuEventElapsedTime", status)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure.
        self.context.leave_to(|driver| {
            // SAFETY: made by us and not used again; the driver lets it go when it is reached.
            let _ = unsafe { (driver.functions().cuEventDestroy_v2)(self.handle) };
        });
    }
}
