//! The library, and its calls.

mod activity;
mod callbacks;

use std::{
    ffi::{CStr, c_char, c_void},
    path::{Path, PathBuf},
};

use crate::cupti::{abi::result, search};
use crate::{error::Error, functions::functions, library::Library};

/// Requests an empty buffer: `CUpti_BuffersCallbackRequestFunc`.
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
        fn cuptiActivityRegisterTimestampCallback(function: TimestampFunction) -> Code;
        fn cuptiGetCallbackState(enabled: *mut u32, subscriber: *mut c_void, domain: u32, id: u32) -> Code;
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
