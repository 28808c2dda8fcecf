//! A graph whose nodes follow each other as one likes.

use super::functions::Handle;
use super::graph::Graph;
use super::{Stream, missing};
use crate::Error;

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL` and `CU_STREAM_SET_CAPTURE_DEPENDENCIES`.
const THREAD_LOCAL: u32 = 1;
const SET: u32 = 1;

/// A stream that takes down what is put into it.
pub struct Capture<'s> {
    stream: &'s Stream,
    is_over: bool,
}

/// What was put into it in one go: the nodes that what follows must wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes(Vec<Handle>);

impl<'s> Capture<'s> {
    /// From now on the stream does nothing by itself.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn begin(stream: &'s Stream) -> Result<Self, Error> {
        let driver = stream.context.enter()?;
        let call = driver
            .functions()
            .cuStreamBeginCapture_v2
            .ok_or_else(|| missing("cuStreamBeginCapture"))?;
        // SAFETY: the stream is alive.
        driver.check("cuStreamBeginCapture", unsafe {
            call(stream.handle, THREAD_LOCAL)
        })?;
        Ok(Self {
            stream,
            is_over: false,
        })
    }

    /// What `work` puts into the stream follows these and nothing else.
    ///
    /// # Errors
    ///
    /// What `work` or the driver says.
    pub fn follow<E: From<Error>>(
        &self,
        before: &[&Nodes],
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Nodes, E> {
        let driver = self.stream.context.enter()?;
        let functions = driver.functions();
        let mut nodes: Vec<Handle> = before.iter().flat_map(|nodes| &nodes.0).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let (handle, count) = (self.stream.handle, nodes.len());
        let status = match (
            functions.cuStreamUpdateCaptureDependencies_v2,
            functions.cuStreamUpdateCaptureDependencies,
        ) {
            // SAFETY: nodes of the graph that is captured; without a list the edges are of the plain kind.
            (Some(call), _) => unsafe { call(handle, nodes.as_mut_ptr(), std::ptr::null(), count, SET) },
            // SAFETY: as above.
            (None, Some(call)) => unsafe { call(handle, nodes.as_mut_ptr(), count, SET) },
            (None, None) => return Err(missing("cuStreamUpdateCaptureDependencies").into()),
        };
        driver.check("cuStreamUpdateCaptureDependencies", status)?;
        work(self.stream)?;
        Ok(self.last()?)
    }

    /// The nodes that what comes next would follow.
    fn last(&self) -> Result<Nodes, Error> {
        let driver = self.stream.context.enter()?;
        let functions = driver.functions();
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (mut nodes, mut kinds, mut count) = (std::ptr::null(), std::ptr::null(), 0);
        let handle = self.stream.handle;
        let code = match (
            functions.cuStreamGetCaptureInfo_v3,
            functions.cuStreamGetCaptureInfo_v2,
        ) {
            // SAFETY: each pointer is to one value of its type.
            (Some(call), _) => unsafe {
                call(
                    handle,
                    &raw mut status,
                    &raw mut id,
                    &raw mut graph,
                    &raw mut nodes,
                    &raw mut kinds,
                    &raw mut count,
                )
            },
            // SAFETY: as above.
            (None, Some(call)) => unsafe {
                call(
                    handle,
                    &raw mut status,
                    &raw mut id,
                    &raw mut graph,
                    &raw mut nodes,
                    &raw mut count,
                )
            },
            (None, None) => return Err(missing("cuStreamGetCaptureInfo")),
        };
        driver.check("cuStreamGetCaptureInfo", code)?;
        if nodes.is_null() || count == 0 {
            return Ok(Nodes::default());
        }
        // SAFETY: the driver's list, which stands until the next call on the stream.
        Ok(Nodes(
            unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec(),
        ))
    }

    /// The graph, ready to be launched.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn end(mut self) -> Result<Graph<'static>, Error> {
        self.is_over = true;
        let mut graph = Graph::empty(&self.stream.context);
        graph.end_capture(self.stream)?;
        graph.instantiate()?;
        Ok(graph)
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // The stream must be one again; what was captured is freed with the graph.
            let _ = Graph::empty(&self.stream.context).end_capture(self.stream);
        }
    }
}

impl std::fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}
