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
        let end = functions
            .cuStreamEndCapture
            .ok_or_else(|| missing("cuStreamEndCapture"))?;
        let instantiate = functions
            .cuGraphInstantiateWithFlags
            .ok_or_else(|| missing("cuGraphInstantiateWithFlags"))?;

        // SAFETY: the stream is alive.
        driver.check("cuStreamBeginCapture", unsafe {
            begin(stream.handle, THREAD_LOCAL)
        })?;
        let worked = work(stream);
        let mut graph = Graph {
            context: stream.context.clone(),
            handle: std::ptr::null_mut(),
            executable: std::ptr::null_mut(),
            _work: Box::new(work),
        };
        // SAFETY: writes one pointer; a capture that went wrong is ended by this, too.
        let status = unsafe { end(stream.handle, &raw mut graph.handle) };
        worked?;
        driver.check("cuStreamEndCapture", status)?;
        // SAFETY: writes one pointer; the graph is alive.
        let status = unsafe { instantiate(&raw mut graph.executable, graph.handle, 0) };
        driver.check("cuGraphInstantiate", status)?;
        Ok(graph)
    }

    /// Puts the whole graph into a queue. Returns before it is done.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuGraphLaunch
            .ok_or_else(|| missing("cuGraphLaunch"))?;
        // SAFETY: graph and stream are alive, and what the graph works on is kept by it.
        let status = unsafe { call(self.executable, stream.handle) };
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
