//! A queue of work.

use super::functions::Handle;
use super::graph::Graph;
use super::{Context, Event, StreamMake};
use crate::Error;

/// `CU_STREAM_NON_BLOCKING`: does not wait for the stream that is everyone's.
const NON_BLOCKING: u32 = 1;

/// A queue: what is put into it runs in that order, beside other queues.
pub struct Stream {
    pub(super) context: Context,
    pub(super) handle: Handle,
}

impl Stream {
    pub(super) fn new(context: &Context) -> Result<Self, Error> {
        Self::with(context, NON_BLOCKING)
    }

    pub(super) fn ordered(context: &Context) -> Result<Self, Error> {
        Self::with(context, 0)
    }

    /// As a program made one: its flags and its priority.
    pub(super) fn made(context: &Context, make: StreamMake) -> Result<Self, Error> {
        let driver = context.enter()?;
        let Some(create) = driver.functions().cuStreamCreateWithPriority else {
            return Self::with(context, make.flags);
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer; a priority out of bounds is taken for the nearest one.
        let status = unsafe { create(&raw mut handle, make.flags, make.priority) };
        driver.check("cuStreamCreateWithPriority", status)?;
        let context = context.clone();
        Ok(Self { context, handle })
    }

    fn with(context: &Context, flags: u32) -> Result<Self, Error> {
        let driver = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let status = unsafe { (driver.functions().cuStreamCreate)(&raw mut handle, flags) };
        driver.check("cuStreamCreate", status)?;
        let context = context.clone();
        Ok(Self { context, handle })
    }

    /// Waits until all that is in the queue is done.
    ///
    /// # Errors
    ///
    /// What went wrong in that work.
    pub fn synchronize(&self) -> Result<(), Error> {
        let driver = self.context.enter()?;
        // SAFETY: the stream is ours and alive.
        let status = unsafe { (driver.functions().cuStreamSynchronize)(self.handle) };
        driver.check("cuStreamSynchronize", status)
    }

    /// Lets what follows in this queue wait for an event of any queue.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        let driver = self.context.enter()?;
        // SAFETY: stream and event are alive; the driver keeps what it needs of the event.
        let status = unsafe { (driver.functions().cuStreamWaitEvent)(self.handle, event.handle, 0) };
        driver.check("cuStreamWaitEvent", status)
    }

    /// Takes down what `work` puts into this queue instead of doing it, as a
    /// graph that can then be launched as often as one likes.
    ///
    /// The graph keeps `work` and so all that it borrows: the memory that the
    /// graph works on lives as long as the graph.
    ///
    /// # Errors
    ///
    /// What `work` or the driver says.
    pub fn capture<'a>(&self, work: impl Fn(&Stream) -> Result<(), Error> + 'a) -> Result<Graph<'a>, Error> {
        Graph::capture(self, work)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Nobody is there to hear of a failure.
        self.context.leave_to(|driver| {
            // SAFETY: made by us and not used again; work in it runs on to its end.
            let _ = unsafe { (driver.functions().cuStreamDestroy_v2)(self.handle) };
        });
    }
}
