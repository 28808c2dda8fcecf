//! The records in a buffer that CUPTI has filled.
//!
//! Offsets are those of `cupti_activity.h` from CUDA 12.0 on; later versions
//! only add at the end. Fields that came later have structs of their own, which
//! [`Activity`] fills when the version has them.
//!
//! <https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html>

mod device;
mod host;
mod objects;

use std::ffi::{CStr, c_char};

use crate::cupti::{abi::kind, calls::Cupti};

pub use device::*;
pub use host::*;
pub use objects::*;

/// CUPTI 13.0.
pub const VERSION_13_0: u32 = 130_000;
/// CUPTI 13.1: the first with a kernel's priority.
pub const VERSION_13_1: u32 = 130_100;
/// CUPTI 13.4 Update 1, the first version that records latency timestamps safely.
pub const VERSION_13_4_1: u32 = 130_401;
/// CUPTI of CUDA 12.4, 12.5, 12.6 and 12.8.
pub const VERSION_12_4: u32 = 22;
/// CUPTI of CUDA 12.5.
pub const VERSION_12_5: u32 = 23;
/// CUPTI of CUDA 12.6.
pub const VERSION_12_6: u32 = 24;
/// CUPTI of CUDA 12.8.
pub const VERSION_12_8: u32 = 26;

/// One record.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each names its struct")]
pub enum Activity<'b> {
    Kernel(Kernel<'b>, Option<KernelFrom13_0<'b>>, Option<KernelFrom13_1<'b>>),
    Copy(Copy<'b>, Option<CopyFrom12_8<'b>>),
    PeerCopy(PeerCopy<'b>),
    Set(Set<'b>),
    Driver(Api<'b>),
    Runtime(Api<'b>),
    Synchronization(Synchronization<'b>, Option<SynchronizationFrom12_8<'b>>),
    Event(Event<'b>, Option<EventFrom12_8<'b>>),
    Memory(Memory<'b>, Option<MemoryFrom12_6<'b>>),
    Pool(Pool<'b>),
    Context(Context<'b>, Option<ContextFrom12_4<'b>>),
    Stream(Stream<'b>),
    Device(Device<'b>),
    Overhead(Overhead<'b>, Option<OverheadFrom12_3<'b>>),
    GraphTrace(GraphTrace<'b>),
    Jit(Jit<'b>),
    /// A kind that this crate does not read.
    Other(u32),
}

impl<'b> Activity<'b> {
    /// The record at the beginning of `bytes`, as `version` lays it out; none
    /// when the bytes end before it does.
    #[inline]
    pub fn new(bytes: &'b [u8], version: u32) -> Option<Self> {
        let from = |minimum: u32| version >= minimum;
        let number = u32::from_ne_bytes(*bytes.first_chunk()?);
        Some(match number {
            kind::CONCURRENT_KERNEL | kind::KERNEL => Self::Kernel(
                Kernel::new(bytes)?,
                KernelFrom13_0::new(bytes).filter(|_| from(VERSION_13_0)),
                KernelFrom13_1::new(bytes).filter(|_| from(VERSION_13_1)),
            ),
            kind::DRIVER => Self::Driver(Api::new(bytes)?),
            kind::RUNTIME => Self::Runtime(Api::new(bytes)?),
            kind::MEMCPY => Self::Copy(
                Copy::new(bytes)?,
                CopyFrom12_8::new(bytes).filter(|_| from(VERSION_12_8)),
            ),
            kind::MEMCPY2 => Self::PeerCopy(PeerCopy::new(bytes)?),
            kind::MEMSET => Self::Set(Set::new(bytes)?),
            kind::SYNCHRONIZATION => Self::Synchronization(
                Synchronization::new(bytes)?,
                SynchronizationFrom12_8::new(bytes).filter(|_| from(VERSION_12_8)),
            ),
            kind::CUDA_EVENT => Self::Event(
                Event::new(bytes)?,
                EventFrom12_8::new(bytes).filter(|_| from(VERSION_12_8)),
            ),
            kind::MEMORY2 => Self::Memory(
                Memory::new(bytes)?,
                MemoryFrom12_6::new(bytes).filter(|_| from(VERSION_12_6)),
            ),
            kind::MEMORY_POOL => Self::Pool(Pool::new(bytes)?),
            kind::CONTEXT => Self::Context(
                Context::new(bytes)?,
                ContextFrom12_4::new(bytes).filter(|_| from(VERSION_12_4)),
            ),
            kind::STREAM => Self::Stream(Stream::new(bytes)?),
            kind::DEVICE => Self::Device(Device::new(bytes)?),
            kind::OVERHEAD => Self::Overhead(
                Overhead::new(bytes)?,
                OverheadFrom12_3::new(bytes).filter(|_| from(VERSION_12_4)),
            ),
            kind::GRAPH_TRACE => Self::GraphTrace(GraphTrace::new(bytes)?),
            kind::JIT => Self::Jit(Jit::new(bytes)?),
            other => Self::Other(other),
        })
    }
}

/// The records of one buffer, in the order in which CUPTI wrote them.
pub struct Activities<'b> {
    cupti: &'b Cupti,
    buffer: &'b mut [u8],
    record: *mut u8,
}

impl<'b> Activities<'b> {
    /// Over the filled part of a buffer.
    pub fn new(cupti: &'b Cupti, buffer: &'b mut [u8]) -> Self {
        Self {
            cupti,
            buffer,
            record: std::ptr::null_mut(),
        }
    }

    /// The next record's bytes, up to the buffer's end: its own length is the
    /// version's business.
    #[inline]
    pub fn next_bytes(&mut self) -> Option<&[u8]> {
        self.record = self.cupti.next_record(self.buffer, self.record)?;
        let start = self.buffer.as_ptr();
        let offset = (self.record as usize).checked_sub(start as usize)?;
        self.buffer.get(offset..)
    }
}

/// The text at `address`, which a record that was just read names.
///
/// # Safety
///
/// `address` is 0 or that of a text that ends with a zero byte and lives as
/// long as `'t`: CUPTI keeps names alive until their module is unloaded.
pub unsafe fn text<'t>(address: usize) -> Option<&'t [u8]> {
    if address == 0 {
        return None;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(address as *const c_char) };
    Some(text.to_bytes())
}

/// Where in a record of this kind the times stand; the first is its beginning.
pub fn time_offsets(number: u32) -> &'static [usize] {
    match number {
        kind::KERNEL | kind::CONCURRENT_KERNEL => &[16, 24, 32, 120, 128],
        kind::MEMCPY | kind::MEMCPY2 | kind::MEMSET | kind::JIT => &[16, 24],
        kind::DRIVER | kind::RUNTIME | kind::SYNCHRONIZATION | kind::GRAPH_TRACE => &[8, 16],
        kind::OVERHEAD => &[24, 32],
        kind::MEMORY2 => &[32],
        kind::MEMORY_POOL => &[56],
        kind::MARKER => &[8],
        _ => &[],
    }
}
