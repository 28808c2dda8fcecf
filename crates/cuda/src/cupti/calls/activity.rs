//! CUPTI's activity API: kinds, attributes, buffers.

use std::ffi::c_void;

use super::{
    ApiDomain, BufferCompleted, BufferRequested, Code, ContextHandle, Cupti, Flush, Switch,
    TimestampFunction, missing,
};
use crate::{cupti::abi::result, error::Error};

impl Cupti {
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

    /// Has CUPTI take its times from a clock.
    ///
    /// # Errors
    ///
    /// CUPTI's code, or that the function is missing.
    ///
    /// # Safety
    ///
    /// The function may be called at any time, on any thread.
    pub unsafe fn register_clock(&self, function: TimestampFunction) -> Result<(), Error> {
        let name = "cuptiActivityRegisterTimestampCallback";
        let register = self
            .functions
            .cuptiActivityRegisterTimestampCallback
            .ok_or(missing(name))?;
        // SAFETY: the caller vouches for the function.
        let code = unsafe { register(function) };
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
    pub(in crate::cupti) fn next_record(&self, buffer: &mut [u8], record: *mut u8) -> Option<*mut u8> {
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
}
