//! Reading memory while a stream of the program is stalled.
//!
//! Some facts about a kernel are known only after its launch. The memory that it
//! will change can still be read then, if its stream waits for a word of ours.
//! Nothing that waits for the stream may be called meanwhile. So copies use a
//! stream of our own, and the host waits only for that one.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{FunctionHandle, TargetDriver};
use crate::driver::functions::Handle;

/// `CU_STREAM_NON_BLOCKING`: it waits for no other stream.
const NON_BLOCKING: u32 = 1;
/// `CU_MEMHOSTALLOC_PORTABLE` and `_DEVICEMAP`.
const FOR_ALL: u32 = 1 | 2;
/// `CU_STREAM_WAIT_VALUE_GEQ`.
const AT_LEAST: u32 = 0;

/// Bytes that are copied at once.
const STAGING: usize = 64 << 10;
/// The word that streams wait for stands before them.
const WORD_BYTES: usize = 256;

/// A word that streams can wait for, and a stream to copy with.
pub struct StreamStall {
    driver: TargetDriver,
    stream: Handle,
    memory: *mut c_void,
    /// The word, as the device knows it.
    word: u64,
}

// SAFETY: handles and memory of the process, which any thread may use.
unsafe impl Send for StreamStall {}

/// Resumes a stalled stream.
#[derive(Clone, Copy, Debug)]
pub struct StallRelease(*const AtomicU32);

// SAFETY: a word that any thread may write.
unsafe impl Send for StallRelease {}

impl StallRelease {
    /// What waits goes on.
    ///
    /// # Safety
    ///
    /// The [`StreamStall`] that it is of has not been given back.
    pub unsafe fn now(self) {
        // SAFETY: the caller vouches for it.
        unsafe { &*self.0 }.store(1, Ordering::Release);
    }
}

impl TargetDriver {
    /// Loads a function now, if that was put off: when a kernel waits it may not
    /// be possible.
    pub fn load(&self, function: FunctionHandle) {
        if let Some(load) = self.functions.cuFuncLoad {
            // SAFETY: the function is the program's. One that is no function but stands for one is loaded elsewhere.
            let _ = unsafe { load(function.0 as Handle) };
        }
    }

    /// What is needed to stall streams, in the current context; none if the driver
    /// cannot do it.
    pub fn stream_stall(&self) -> Option<StreamStall> {
        let functions = &self.functions;
        functions.cuStreamWaitValue32_v2?;
        functions.cuMemcpyDtoHAsync_v2?;
        functions.cuStreamSynchronize?;
        let mut memory = std::ptr::null_mut();
        // SAFETY: writes one address.
        if unsafe { functions.cuMemHostAlloc?(&raw mut memory, WORD_BYTES + STAGING, FOR_ALL) } != 0 {
            return None;
        }
        let mut stall = StreamStall {
            driver: self.clone(),
            stream: std::ptr::null_mut(),
            memory,
            word: 0,
        };
        // SAFETY: writes one address; the memory is ours.
        let found = unsafe { functions.cuMemHostGetDevicePointer_v2?(&raw mut stall.word, memory, 0) };
        // SAFETY: writes one handle.
        let made = unsafe { functions.cuStreamCreate?(&raw mut stall.stream, NON_BLOCKING) };
        if found != 0 || made != 0 {
            stall.free();
            return None;
        }
        Some(stall)
    }
}

impl StreamStall {
    /// Stalls a stream: work that is enqueued from now on waits until
    /// [`StreamStall::go`]. False if the driver refuses.
    pub fn stop(&self, stream: usize) -> bool {
        let Some(wait) = self.driver.functions.cuStreamWaitValue32_v2 else {
            return false;
        };
        self.flag().store(0, Ordering::Release);
        // SAFETY: the word is ours and stays; the stream is the program's.
        unsafe { wait(stream as Handle, self.word, 1, AT_LEAST) == 0 }
    }

    /// What waits goes on.
    pub fn go(&self) {
        self.flag().store(1, Ordering::Release);
    }

    /// The same, by whoever has it.
    pub fn release(&self) -> StallRelease {
        StallRelease(self.flag())
    }

    /// Copies from device memory while streams wait.
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let functions = &self.driver.functions;
        let (Some(copy), Some(wait)) = (functions.cuMemcpyDtoHAsync_v2, functions.cuStreamSynchronize) else {
            return false;
        };
        let staging = self.memory.cast::<u8>().wrapping_add(WORD_BYTES);
        for (index, part) in to.chunks_mut(STAGING).enumerate() {
            let from = address + (index * STAGING) as u64;
            // SAFETY: writes so many bytes of our memory; the driver checks the address.
            let status = unsafe { copy(staging.cast(), from, part.len(), self.stream) };
            // SAFETY: a stream of ours.
            if status != 0 || unsafe { wait(self.stream) } != 0 {
                return false;
            }
            // SAFETY: as many bytes as were just copied there.
            unsafe { std::ptr::copy_nonoverlapping(staging, part.as_mut_ptr(), part.len()) };
        }
        true
    }

    fn flag(&self) -> &AtomicU32 {
        // SAFETY: the first word of our memory, which is aligned and written as a whole by everyone.
        unsafe { &*self.memory.cast::<AtomicU32>() }
    }

    /// Frees the stream and the memory, in the context in which they were made.
    pub fn free(self) {
        self.go();
        let functions = &self.driver.functions;
        if let Some(destroy) = functions.cuStreamDestroy_v2.filter(|_| !self.stream.is_null()) {
            // SAFETY: ours, and not used again.
            let _ = unsafe { destroy(self.stream) };
        }
        if let Some(free) = functions.cuMemFreeHost {
            // SAFETY: as above.
            let _ = unsafe { free(self.memory) };
        }
    }
}
