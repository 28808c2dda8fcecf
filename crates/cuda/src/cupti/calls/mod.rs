//! The library, and its calls.

use std::{
    ffi::{CStr, c_char, c_void},
    path::{Path, PathBuf},
};

use crate::cupti::{abi::result, search};
use crate::{error::Error, functions::functions, library::Library};

/// Asks for an empty buffer: `CUpti_BuffersCallbackRequestFunc`.
pub type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);

/// Hands a filled buffer back: `CUpti_BuffersCallbackCompleteFunc`.
pub type BufferCompleted =
    unsafe extern "C" fn(context: *mut c_void, stream: u32, buffer: *mut u8, size: usize, valid: usize);

/// Is called at calls and resources: `CUpti_CallbackFunc`.
pub type CallbackFunction =
    unsafe extern "C" fn(user: *mut c_void, domain: u32, id: u32, data: *const c_void);

/// A clock of a client's own: `CUpti_TimestampCallbackFunc`.
pub type TimestampFunction = unsafe extern "C" fn() -> u64;

/// A `CUptiResult`.
pub type Code = u32;

/// A `CUpti_SubscriberHandle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscriber(pub *mut c_void);

// SAFETY: CUPTI's handles may be used from any thread.
unsafe impl Send for Subscriber {}

// SAFETY: as above.
unsafe impl Sync for Subscriber {}

/// A `CUcontext`, as an address that is only handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextHandle(pub usize);

/// `CUgraphNode`, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeHandle(pub usize);

/// A `CUstream`, as an address that is only handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHandle(pub usize);

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Off.
    Off = 0,
    /// On.
    On = 1,
}

/// What a flush returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Buffers whose records are all complete.
    Complete,
    /// All buffers, also with records that have no end yet.
    Forced,
}

/// Which interface a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiDomain {
    /// The driver's.
    Driver,
    /// The runtime's.
    Runtime,
}

functions! {
    /// What we call of libcupti.
    Functions from "libcupti";
    required {
        fn cuptiGetVersion(version: *mut u32) -> Code;
        fn cuptiGetResultString(result: Code, text: *mut *const c_char) -> Code;
        fn cuptiGetTimestamp(time: *mut u64) -> Code;
        fn cuptiGetCallbackName(domain: u32, id: u32, name: *mut *const c_char) -> Code;
        fn cuptiActivityRegisterCallbacks(requested: BufferRequested, completed: BufferCompleted) -> Code;
        fn cuptiActivityEnable(kind: u32) -> Code;
        fn cuptiActivityDisable(kind: u32) -> Code;
        fn cuptiActivityFlushAll(flag: u32) -> Code;
        fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> Code;
        fn cuptiActivityGetNumDroppedRecords(context: *mut c_void, stream: u32, dropped: *mut usize) -> Code;
        fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) -> Code;
        fn cuptiSubscribe(subscriber: *mut *mut c_void, callback: CallbackFunction, user: *mut c_void) -> Code;
        fn cuptiUnsubscribe(subscriber: *mut c_void) -> Code;
        fn cuptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: u32, id: u32) -> Code;
        fn cuptiEnableDomain(enable: u32, subscriber: *mut c_void, domain: u32) -> Code;
        fn cuptiGetContextId(context: *mut c_void, id: *mut u32) -> Code;
        fn cuptiGetStreamIdEx(context: *mut c_void, stream: *mut c_void, per_thread: u8, id: *mut u32) -> Code;
    }
    optional {
        fn cuptiActivityEnableAndDump(kind: u32) -> Code;
        fn cuptiActivityEnableLatencyTimestamps(enable: u8) -> Code;
        fn cuptiActivityEnableDriverApi(id: u32, enable: u8) -> Code;
        fn cuptiActivityEnableRuntimeApi(id: u32, enable: u8) -> Code;
        fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) -> Code;
        fn cuptiSetThreadIdType(kind: u32) -> Code;
        fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64) -> Code;
    }
}

/// An open libcupti.
pub struct Cupti {
    functions: Functions,
    library: Library,
    path: PathBuf,
    version: u32,
}

impl Cupti {
    /// Opens the libcupti that this process should use: see [`search`].
    ///
    /// The driver must be loaded: CUPTI 13 crashes without one.
    ///
    /// # Errors
    ///
    /// When there is none, or it lacks a function.
    pub fn open() -> Result<Self, Error> {
        let found = search::open()?;
        let functions = Functions::load(&found.library)?;
        let mut version = 0;
        // SAFETY: writes one word.
        let code = unsafe { (functions.cuptiGetVersion)(&raw mut version) };
        let cupti = Self {
            functions,
            library: found.library,
            path: found.path,
            version,
        };
        cupti.checked("cuptiGetVersion", code)?;
        Ok(cupti)
    }

    /// Its version: 18 to 28 for CUDA 12, 130000 and up for 13.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library itself, to look up what this crate does not wrap.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Now, on CUPTI's clock: nanoseconds since 1970.
    #[inline]
    pub fn timestamp(&self) -> u64 {
        let mut time = 0;
        // SAFETY: writes one word. It cannot fail once the library is open; 0
        // would say "not known".
        unsafe { (self.functions.cuptiGetTimestamp)(&raw mut time) };
        time
    }

    /// What a result means.
    pub fn describe(&self, code: Code) -> String {
        let mut text = std::ptr::null();
        // SAFETY: writes the address of a text that is part of the library.
        unsafe { (self.functions.cuptiGetResultString)(code, &raw mut text) };
        // SAFETY: as the call above left it.
        unsafe { static_text(text) }.unwrap_or("unknown").to_owned()
    }

    /// The name of a function by its callback number.
    pub fn function_name(&self, domain: ApiDomain, id: u32) -> Option<&'static str> {
        let domain = match domain {
            ApiDomain::Driver => crate::cupti::abi::domain::DRIVER,
            ApiDomain::Runtime => crate::cupti::abi::domain::RUNTIME,
        };
        let mut name = std::ptr::null();
        // SAFETY: writes the address of a text that is part of the library.
        let code = unsafe { (self.functions.cuptiGetCallbackName)(domain, id, &raw mut name) };
        if code != result::SUCCESS {
            return None;
        }
        // SAFETY: as the call above left it; the library is never closed.
        unsafe { static_text(name) }
    }

    /// Registers who hands out buffers and who takes them back.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    ///
    /// # Safety
    ///
    /// The functions keep CUPTI's contract: buffers are aligned to eight bytes,
    /// as large as stated, and live until they are handed back.
    pub unsafe fn register_buffers(
        &self,
        requested: BufferRequested,
        completed: BufferCompleted,
    ) -> Result<(), Error> {
        // SAFETY: the caller vouches for the functions.
        let code = unsafe { (self.functions.cuptiActivityRegisterCallbacks)(requested, completed) };
        self.checked("cuptiActivityRegisterCallbacks", code)
    }

    /// Starts records of a kind.
    ///
    /// # Errors
    ///
    /// CUPTI's code, for kinds that it does not have too.
    pub fn enable(&self, kind: u32) -> Result<(), Error> {
        // SAFETY: takes a number.
        let code = unsafe { (self.functions.cuptiActivityEnable)(kind) };
        self.checked("cuptiActivityEnable", code)
    }

    /// Starts records of a kind of objects, and gives records of those that
    /// exist already. From CUDA 12.0 on.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing.
    pub fn enable_and_dump(&self, kind: u32) -> Result<(), Error> {
        let name = "cuptiActivityEnableAndDump";
        let function = self.functions.cuptiActivityEnableAndDump.ok_or(missing(name))?;
        // SAFETY: takes a number.
        let code = unsafe { function(kind) };
        self.checked(name, code)
    }

    /// Ends records of a kind.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn disable(&self, kind: u32) -> Result<(), Error> {
        // SAFETY: takes a number.
        let code = unsafe { (self.functions.cuptiActivityDisable)(kind) };
        self.checked("cuptiActivityDisable", code)
    }

    /// Starts or ends records of one function. Needs CUDA 12.5.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing.
    pub fn enable_function(&self, domain: ApiDomain, id: u32, switch: Switch) -> Result<(), Error> {
        let (name, function) = match domain {
            ApiDomain::Driver => (
                "cuptiActivityEnableDriverApi",
                self.functions.cuptiActivityEnableDriverApi,
            ),
            ApiDomain::Runtime => (
                "cuptiActivityEnableRuntimeApi",
                self.functions.cuptiActivityEnableRuntimeApi,
            ),
        };
        let function = function.ok_or(missing(name))?;
        // SAFETY: takes numbers.
        let code = unsafe { function(id, switch as u8) };
        self.checked(name, code)
    }

    /// Whether kernels tell when they were queued and submitted.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing.
    pub fn enable_latency(&self, switch: Switch) -> Result<(), Error> {
        let name = "cuptiActivityEnableLatencyTimestamps";
        let function = self
            .functions
            .cuptiActivityEnableLatencyTimestamps
            .ok_or(missing(name))?;
        // SAFETY: takes a number.
        let code = unsafe { function(switch as u8) };
        self.checked(name, code)
    }

    /// Whether event records tell when the device passed them.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing (before CUDA 12.8).
    pub fn enable_event_times(&self, switch: Switch) -> Result<(), Error> {
        let name = "cuptiActivityEnableCudaEventDeviceTimestamps";
        let function = self
            .functions
            .cuptiActivityEnableCudaEventDeviceTimestamps
            .ok_or(missing(name))?;
        // SAFETY: takes a number.
        let code = unsafe { function(switch as u8) };
        self.checked(name, code)
    }

    /// Lets records name threads as the operating system does.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing.
    pub fn use_system_thread_ids(&self) -> Result<(), Error> {
        let name = "cuptiSetThreadIdType";
        let function = self.functions.cuptiSetThreadIdType.ok_or(missing(name))?;
        // SAFETY: takes a number.
        let code = unsafe { function(crate::cupti::abi::THREAD_ID_SYSTEM) };
        self.checked(name, code)
    }

    /// Whether each thread has a buffer of its own; before buffers are
    /// registered. From CUDA 12.3 on.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn set_buffer_per_thread(&self, switch: Switch) -> Result<(), Error> {
        self.set_switch(crate::cupti::abi::ATTRIBUTE_PER_THREAD_BUFFER, switch)
    }

    /// Promises that buffers are all zeros when they are handed out, so that
    /// CUPTI need not clear them on the program's threads.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn promise_zeroed_buffers(&self) -> Result<(), Error> {
        self.set_switch(crate::cupti::abi::ATTRIBUTE_ZEROED_BUFFER, Switch::On)
    }

    fn set_switch(&self, attribute: u32, switch: Switch) -> Result<(), Error> {
        let mut value = switch as u8;
        let mut size = size_of::<u8>();
        // SAFETY: a value of the size that goes with it.
        let code = unsafe {
            (self.functions.cuptiActivitySetAttribute)(attribute, &raw mut size, (&raw mut value).cast())
        };
        self.checked("cuptiActivitySetAttribute", code)
    }

    /// Hands buffers back; returns when they are.
    ///
    /// # Errors
    ///
    /// CUPTI's code.
    pub fn flush(&self, flush: Flush) -> Result<(), Error> {
        // SAFETY: takes a number.
        let code = unsafe { (self.functions.cuptiActivityFlushAll)(u32::from(flush == Flush::Forced)) };
        self.checked("cuptiActivityFlushAll", code)
    }

    /// Records dropped since the last question.
    pub fn dropped(&self, context: ContextHandle, stream: u32) -> u64 {
        let mut dropped = 0;
        // SAFETY: writes one word; context and stream are as the completed
        // buffer's callback was given them, and a wrong one is refused.
        unsafe {
            (self.functions.cuptiActivityGetNumDroppedRecords)(
                context.0 as *mut c_void,
                stream,
                &raw mut dropped,
            )
        };
        dropped as u64
    }

    /// The record after `record` (null: the first) in the filled part of a
    /// buffer.
    #[inline]
    pub(super) fn next_record(&self, buffer: &mut [u8], record: *mut u8) -> Option<*mut u8> {
        let mut next = record;
        // SAFETY: a buffer with as many bytes as stated, and null or a record
        // of it.
        let code = unsafe {
            (self.functions.cuptiActivityGetNextRecord)(buffer.as_mut_ptr(), buffer.len(), &raw mut next)
        };
        (code == result::SUCCESS && !next.is_null()).then_some(next)
    }

    /// `cuptiActivityGetNextRecord`, as it is.
    ///
    /// # Safety
    ///
    /// CUPTI's contract.
    pub unsafe fn raw_next_record(&self, buffer: *mut u8, valid: usize, record: *mut *mut u8) -> Code {
        // SAFETY: the caller vouches for it.
        unsafe { (self.functions.cuptiActivityGetNextRecord)(buffer, valid, record) }
    }

    /// `cuptiActivitySetAttribute`, as it is.
    ///
    /// # Safety
    ///
    /// CUPTI's contract.
    pub unsafe fn raw_set_attribute(&self, attribute: u32, size: *mut usize, value: *mut c_void) -> Code {
        // SAFETY: the caller vouches for it.
        unsafe { (self.functions.cuptiActivitySetAttribute)(attribute, size, value) }
    }

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

    fn checked(&self, function: &'static str, code: Code) -> Result<(), Error> {
        if code == result::SUCCESS {
            return Ok(());
        }
        Err(Error::Call {
            function,
            code: i64::from(code),
            name: self.describe(code),
        })
    }
}

fn missing(function: &'static str) -> Error {
    Error::MissingFunction {
        library: "libcupti",
        function,
    }
}

/// The text at `text`.
///
/// # Safety
///
/// Null, or a text of the library's that ends with a zero byte.
unsafe fn static_text(text: *const c_char) -> Option<&'static str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
