//! Work that is taken down once and launched many times.

use super::functions::Handle;
use super::{Context, Stream, missing};
use crate::Error;

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: calls that would break the capture
/// are refused to this thread, and to no other.
const THREAD_LOCAL: u32 = 1;

/// What puts work into a queue.
type Work<'a> = dyn Fn(&Stream) -> Result<(), Error> + 'a;

/// A graph, ready to be launched.
pub struct Graph<'a> {
    context: Context,
    handle: Handle,
    executable: Handle,
    /// Kept for what it borrows and owns: the graph works on it.
    _work: Box<Work<'a>>,
}

impl<'a> Graph<'a> {
    pub(super) fn capture(
        stream: &Stream,
        work: impl Fn(&Stream) -> Result<(), Error> + 'a,
    ) -> Result<Self, Error> {
        let driver = stream.context.enter()?;
        let functions = driver.functions();
        let begin = functions
            .cuStreamBeginCapture_v2
            .ok_or_else(|| missing("cuStreamBeginCapture"))?;

        // SAFETY: the stream is alive.
        driver.check("cuStreamBeginCapture", unsafe {
            begin(stream.handle, THREAD_LOCAL)
        })?;
        let worked = work(stream);
        let mut graph = Graph::empty(&stream.context);
        graph._work = Box::new(work);
        // A capture that went wrong is ended by this, too.
        let ended = graph.end_capture(stream);
        worked?;
        ended?;
        graph.instantiate()?;
        Ok(graph)
    }

    /// One that holds nothing yet.
    pub(super) fn empty(context: &Context) -> Self {
        Self {
            context: context.clone(),
            handle: std::ptr::null_mut(),
            executable: std::ptr::null_mut(),
            _work: Box::new(|_| Ok(())),
        }
    }

    /// Holds what a stream took down.
    pub(super) fn end_capture(&mut self, stream: &Stream) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let end = driver
            .functions()
            .cuStreamEndCapture
            .ok_or_else(|| missing("cuStreamEndCapture"))?;
        // SAFETY: writes one pointer.
        let status = unsafe { end(stream.handle, &raw mut self.handle) };
        driver.check("cuStreamEndCapture", status)
    }

    pub(super) fn instantiate(&mut self) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let instantiate = driver
            .functions()
            .cuGraphInstantiateWithFlags
            .ok_or_else(|| missing("cuGraphInstantiateWithFlags"))?;
        // SAFETY: writes one pointer; the graph is alive.
        let status = unsafe { instantiate(&raw mut self.executable, self.handle, 0) };
        driver.check("cuGraphInstantiate", status)
    }

    /// Puts the whole graph into the queue that is everyone's.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn launch_everywhere(&self) -> Result<(), Error> {
        self.launch_in(std::ptr::null_mut())
    }

    /// Puts the whole graph into a queue. Returns before it is done.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        self.launch_in(stream.handle)
    }

    fn launch_in(&self, stream: Handle) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuGraphLaunch
            .ok_or_else(|| missing("cuGraphLaunch"))?;
        // SAFETY: graph and stream are alive, and what the graph works on is kept by it.
        let status = unsafe { call(self.executable, stream) };
        driver.check("cuGraphLaunch", status)
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // What the graph works on may go right after it. Nobody is there to hear of a failure.
        let _ = self.context.synchronize();
        self.context.leave_to(|driver| {
            let functions = driver.functions();
            if let Some(destroy) = functions.cuGraphExecDestroy
                && !self.executable.is_null()
            {
                // SAFETY: made by us, not used again.
                let _ = unsafe { destroy(self.executable) };
            }
            if let Some(destroy) = functions.cuGraphDestroy
                && !self.handle.is_null()
            {
                // SAFETY: made by us, not used again.
                let _ = unsafe { destroy(self.handle) };
            }
        });
    }
}
