//! CUPTI's callback API, and the IDs of contexts, streams and graph nodes.

use std::ffi::c_void;

use super::{CallbackFunction, ContextHandle, Cupti, NodeHandle, StreamHandle, Subscriber, Switch};
use crate::{cupti::abi::result, error::Error};

impl Cupti {
    /// Registers the one function that is called at calls and resources.
    ///
    /// # Errors
    ///
    /// CUPTI's code: 39 when another client has registered.
    ///
    /// # Safety
    ///
    /// The function keeps CUPTI's contract and may be called at any time, on
    /// any thread, until [`Cupti::unsubscribe`].
    pub unsafe fn subscribe(&self, callback: CallbackFunction) -> Result<Subscriber, Error> {
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: the caller vouches for the function.
        let code =
            unsafe { (self.functions.cuptiSubscribe)(&raw mut subscriber, callback, std::ptr::null_mut()) };
        self.checked("cuptiSubscribe", code)?;
        Ok(Subscriber(subscriber))
    }

    /// Where CUPTI's function for that is.
    pub fn subscribing(&self) -> *const c_void {
        self.functions.cuptiSubscribe as *const c_void
    }

    /// Ends the calls.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn unsubscribe(&self, subscriber: Subscriber) -> Result<(), Error> {
        // SAFETY: a handle that subscribe gave, or one that CUPTI refuses.
        let code = unsafe { (self.functions.cuptiUnsubscribe)(subscriber.0) };
        self.checked("cuptiUnsubscribe", code)
    }

    /// Whether a callback is on. None for a subscription or a callback that CUPTI does not have.
    pub fn callback_state(&self, subscriber: Subscriber, domain: u32, id: u32) -> Option<bool> {
        let function = self.functions.cuptiGetCallbackState?;
        let mut enabled = 0;
        // SAFETY: writes one word. A handle is compared with those that CUPTI has before it is used.
        let code = unsafe { function(&raw mut enabled, subscriber.0, domain, id) };
        (code == result::SUCCESS).then_some(enabled != 0)
    }

    /// Turns one callback on or off.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn enable_callback(
        &self,
        subscriber: Subscriber,
        domain: u32,
        id: u32,
        switch: Switch,
    ) -> Result<(), Error> {
        // SAFETY: a handle that subscribe gave, and numbers.
        let code = unsafe { (self.functions.cuptiEnableCallback)(switch as u32, subscriber.0, domain, id) };
        self.checked("cuptiEnableCallback", code)
    }

    /// Turns all callbacks of a domain on or off.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn enable_domain(&self, subscriber: Subscriber, domain: u32, switch: Switch) -> Result<(), Error> {
        // SAFETY: a handle that subscribe gave, and numbers.
        let code = unsafe { (self.functions.cuptiEnableDomain)(switch as u32, subscriber.0, domain) };
        self.checked("cuptiEnableDomain", code)
    }

    /// The number of a context, by its handle.
    pub fn context_id(&self, context: ContextHandle) -> Option<u32> {
        let mut id = 0;
        // SAFETY: writes one word; a wrong handle is refused.
        let code = unsafe { (self.functions.cuptiGetContextId)(context.0 as *mut c_void, &raw mut id) };
        (code == result::SUCCESS).then_some(id)
    }

    /// The number of a graph node, as records have it; none before CUDA 12.3.
    pub fn graph_node_id(&self, node: NodeHandle) -> Option<u64> {
        let get = self.functions.cuptiGetGraphNodeId?;
        let mut id = 0;
        // SAFETY: writes one word; the node is one that a callback is about.
        let code = unsafe { get(node.0 as *mut c_void, &raw mut id) };
        (code == result::SUCCESS).then_some(id)
    }

    /// The number of a stream, by its handle.
    pub fn stream_id(&self, context: ContextHandle, stream: StreamHandle) -> Option<u32> {
        let mut id = 0;
        // SAFETY: writes one word; a wrong handle is refused.
        let code = unsafe {
            (self.functions.cuptiGetStreamIdEx)(
                context.0 as *mut c_void,
                stream.0 as *mut c_void,
                0,
                &raw mut id,
            )
        };
        (code == result::SUCCESS).then_some(id)
    }
}
