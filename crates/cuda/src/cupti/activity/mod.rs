//! The records in a buffer that CUPTI has filled.
//!
//! Offsets are those of `cupti_activity.h` from CUDA 12.0 on; later versions
//! only add at the end. Fields that came later have structs of their own, which
//! [`Activity`] fills when the version has them.
//!
//! <https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html>

use std::ffi::{CStr, c_char};

use crate::cupti::{abi::kind, calls::Cupti, layout::layout};

/// CUPTI 13.0.
pub const VERSION_13_0: u32 = 130_000;
/// CUPTI 13.1: the first with a kernel's priority.
pub const VERSION_13_1: u32 = 130_100;
/// CUPTI 13.4 Update 1: the first that can be asked for latencies without harm.
pub const VERSION_13_4_1: u32 = 130_401;
/// CUPTI of CUDA 12.4, 12.5, 12.6 and 12.8.
pub const VERSION_12_4: u32 = 22;
/// CUPTI of CUDA 12.5.
pub const VERSION_12_5: u32 = 23;
/// CUPTI of CUDA 12.6.
pub const VERSION_12_6: u32 = 24;
/// CUPTI of CUDA 12.8.
pub const VERSION_12_8: u32 = 26;

layout! {
    /// `CUpti_ActivityKernel9`, which later kernels begin with.
    Kernel[208] {
        /// Cache configuration: executed in the upper half, requested in the lower.
        cache_config: u8 = 4,
        /// Shared memory configuration.
        shared_config: u8 = 5,
        /// Registers of a thread.
        registers: u16 = 6,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// When it and its children had completed.
        completed: u64 = 32,
        /// The device.
        device: u32 = 40,
        /// The context.
        context: u32 = 44,
        /// The stream.
        stream: u32 = 48,
        /// Blocks.
        grid_x: u32 = 52,
        /// Blocks.
        grid_y: u32 = 56,
        /// Blocks.
        grid_z: u32 = 60,
        /// Threads.
        block_x: u32 = 64,
        /// Threads.
        block_y: u32 = 68,
        /// Threads.
        block_z: u32 = 72,
        /// Static shared memory.
        static_shared: u32 = 76,
        /// Dynamic shared memory.
        dynamic_shared: u32 = 80,
        /// Local memory of a thread.
        local_per_thread: u32 = 84,
        /// Joins the launch.
        correlation: u32 = 92,
        /// The driver's number of the launch.
        grid_id: i64 = 96,
        /// Where the name is.
        name_address: usize = 104,
        /// When it was queued.
        queued: u64 = 120,
        /// When it was submitted.
        submitted: u64 = 128,
        /// How it was launched.
        launch: u8 = 136,
        /// Whether the carveout was asked for.
        carveout_requested: u8 = 137,
        /// The carveout in percent.
        carveout: u8 = 138,
        /// Shared memory that was set aside.
        shared_executed: u32 = 140,
        /// The graph node.
        graph_node: u64 = 144,
        /// The graph.
        graph: u32 = 156,
        /// The channel.
        channel: u32 = 168,
        /// Its kind.
        channel_kind: u32 = 172,
        /// Blocks of a cluster.
        cluster_x: u32 = 176,
        /// Blocks of a cluster.
        cluster_y: u32 = 180,
        /// Blocks of a cluster.
        cluster_z: u32 = 184,
        /// How clusters are scheduled.
        cluster_policy: u32 = 188,
        /// Local memory of the launch.
        local_total: u64 = 192,
        /// Largest possible cluster.
        max_cluster_size: u32 = 200,
        /// Most clusters at once.
        max_active_clusters: u32 = 204,
    }

    /// What CUDA 13.0 added to a kernel.
    KernelFrom13_0[216] {
        /// Whether the device launched it.
        device_launched: u8 = 208,
    }

    /// What CUDA 13.1 added to a kernel.
    KernelFrom13_1[224] {
        /// Its priority.
        priority: i32 = 216,
    }

    /// `CUpti_ActivityMemcpy5`.
    Copy[88] {
        /// From where to where.
        direction: u8 = 4,
        /// Memory read.
        source_memory: u8 = 5,
        /// Memory written.
        destination_memory: u8 = 6,
        /// Whether the host went on: bit 0.
        flags: u8 = 7,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// Joins the call.
        correlation: u32 = 44,
        /// Joins the runtime call.
        runtime_correlation: u32 = 48,
        /// The graph node.
        graph_node: u64 = 64,
        /// The graph.
        graph: u32 = 72,
        /// The channel.
        channel: u32 = 76,
        /// Its kind.
        channel_kind: u32 = 80,
        /// Whether the device asked for it; padding before 13.0, and zero.
        device_launched: u8 = 84,
    }

    /// What CUDA 12.8 added to a copy.
    CopyFrom12_8[96] {
        /// Copies in the batch.
        copies: u64 = 88,
    }

    /// `CUpti_ActivityMemcpyPtoP4`.
    PeerCopy[96] {
        /// From where to where.
        direction: u8 = 4,
        /// Memory read.
        source_memory: u8 = 5,
        /// Memory written.
        destination_memory: u8 = 6,
        /// Whether the host went on: bit 0.
        flags: u8 = 7,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// The device read from.
        source_device: u32 = 44,
        /// The context read from.
        source_context: u32 = 48,
        /// The device written to.
        destination_device: u32 = 52,
        /// The context written to.
        destination_context: u32 = 56,
        /// Joins the call.
        correlation: u32 = 60,
        /// The graph node.
        graph_node: u64 = 72,
        /// The graph.
        graph: u32 = 80,
        /// The channel.
        channel: u32 = 84,
        /// Its kind.
        channel_kind: u32 = 88,
    }

    /// `CUpti_ActivityMemset4`.
    Set[88] {
        /// With what.
        value: u32 = 4,
        /// How much.
        bytes: u64 = 8,
        /// When it started.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// The device.
        device: u32 = 32,
        /// The context.
        context: u32 = 36,
        /// The stream.
        stream: u32 = 40,
        /// Joins the call.
        correlation: u32 = 44,
        /// Whether the host went on: bit 0.
        flags: u16 = 48,
        /// Memory filled.
        memory: u16 = 50,
        /// The graph node.
        graph_node: u64 = 64,
        /// The graph.
        graph: u32 = 72,
        /// The channel.
        channel: u32 = 76,
        /// Its kind.
        channel_kind: u32 = 80,
        /// Whether the device asked for it; padding before 13.0, and zero.
        device_launched: u8 = 84,
    }

    /// `CUpti_ActivityAPI`.
    Api[40] {
        /// The callback number of the function.
        function: u32 = 4,
        /// When it was entered.
        start: u64 = 8,
        /// When it was left.
        end: u64 = 16,
        /// The thread.
        thread: u32 = 28,
        /// Joins the work.
        correlation: u32 = 32,
        /// What it gave back.
        result: i32 = 36,
    }

    /// `CUpti_ActivitySynchronization`.
    Synchronization[40] {
        /// What was waited for.
        sync_kind: u32 = 4,
        /// When it began.
        start: u64 = 8,
        /// When it was over.
        end: u64 = 16,
        /// Joins the call.
        correlation: u32 = 24,
        /// The context.
        context: u32 = 28,
        /// The stream, or all ones.
        stream: u32 = 32,
        /// The event, or all ones.
        event: u32 = 36,
    }

    /// What CUDA 12.8 added to a synchronisation.
    SynchronizationFrom12_8[56] {
        /// Which record of the event.
        event_record: u64 = 40,
        /// What the call gave back.
        result: i32 = 48,
    }

    /// `CUpti_ActivityCudaEvent`.
    Event[24] {
        /// Joins the call.
        correlation: u32 = 4,
        /// The context.
        context: u32 = 8,
        /// The stream.
        stream: u32 = 12,
        /// The event.
        event: u32 = 16,
    }

    /// What CUDA 12.8 added to an event.
    EventFrom12_8[56] {
        /// The device.
        device: u32 = 24,
        /// When the device passed it.
        device_time: u64 = 40,
        /// Which record of the event.
        event_record: u64 = 48,
    }

    /// `CUpti_ActivityMemory3`.
    Memory[120] {
        /// Taken or given back.
        operation: u32 = 4,
        /// Kind of memory.
        memory: u32 = 8,
        /// Joins the call.
        correlation: u32 = 12,
        /// Which memory.
        address: u64 = 16,
        /// How much.
        bytes: u64 = 24,
        /// When.
        time: u64 = 32,
        /// Where in the program.
        code_address: u64 = 40,
        /// The device.
        device: u32 = 52,
        /// The context.
        context: u32 = 56,
        /// The stream, when ordered in one.
        stream: u32 = 60,
        /// Where the variable's name is.
        name_address: usize = 64,
        /// Whether it is ordered in a stream.
        asynchronous: u32 = 72,
        /// The pool's kind.
        pool_kind: u32 = 80,
        /// The pool.
        pool: u64 = 88,
        /// Bytes that the pool keeps.
        pool_threshold: u64 = 96,
        /// Bytes of the pool, or the process that owns it.
        pool_size: u64 = 104,
        /// Bytes of the pool in use.
        pool_used: u64 = 112,
    }

    /// What CUDA 12.6 added to an allocation.
    MemoryFrom12_6[128] {
        /// Where the name of the library that asked is.
        source_address: usize = 120,
    }

    /// `CUpti_ActivityMemoryPool2`.
    Pool[72] {
        /// Made, destroyed or trimmed.
        operation: u32 = 4,
        /// The pool's kind.
        pool_kind: u32 = 8,
        /// Joins the call.
        correlation: u32 = 12,
        /// The device.
        device: u32 = 20,
        /// What a trim keeps.
        min_bytes_to_keep: u64 = 24,
        /// The pool.
        pool: u64 = 32,
        /// Bytes of the pool.
        size: u64 = 40,
        /// Bytes that the pool keeps.
        threshold: u64 = 48,
        /// When.
        time: u64 = 56,
        /// Bytes in use.
        used: u64 = 64,
    }

    /// `CUpti_ActivityContext`.
    Context[16] {
        /// Its number.
        context: u32 = 4,
        /// Its device.
        device: u32 = 8,
        /// Its default stream.
        default_stream: u16 = 14,
    }

    /// What CUDA 12.4 added to a context.
    ContextFrom12_4[24] {
        /// The context that it is a part of.
        parent: u32 = 16,
        /// Whether it is a green context.
        green: u8 = 20,
        /// Multiprocessors of a green context.
        multiprocessors: u16 = 22,
    }

    /// `CUpti_ActivityStream`.
    Stream[24] {
        /// Its context.
        context: u32 = 4,
        /// Its number.
        stream: u32 = 8,
        /// Its priority.
        priority: i32 = 12,
        /// How it was made.
        flag: u32 = 16,
        /// The call that made it.
        correlation: u32 = 20,
    }

    /// `CUpti_ActivityDevice4`.
    Device[176] {
        /// Bandwidth in kB/s.
        memory_bandwidth: u64 = 8,
        /// Memory.
        memory: u64 = 16,
        /// Second-level cache.
        cache: u32 = 28,
        /// Threads of a warp.
        warp_size: u32 = 32,
        /// Clock in kHz.
        clock: u32 = 36,
        /// Copy engines.
        copy_engines: u32 = 40,
        /// Multiprocessors.
        multiprocessors: u32 = 44,
        /// Warps of a multiprocessor.
        warps: u32 = 52,
        /// Blocks of a multiprocessor.
        blocks: u32 = 56,
        /// Shared memory of a multiprocessor.
        shared: u32 = 60,
        /// Registers of a multiprocessor.
        registers: u32 = 64,
        /// Shared memory of a block.
        shared_per_block: u32 = 72,
        /// Compute capability.
        capability_major: u32 = 104,
        /// Compute capability.
        capability_minor: u32 = 108,
        /// Its number.
        device: u32 = 112,
        /// First half of its number in the world.
        uuid_high: u64 = 120,
        /// Second half.
        uuid_low: u64 = 128,
        /// Where its name is.
        name_address: usize = 136,
    }

    /// `CUpti_ActivityOverhead`.
    Overhead[40] {
        /// What for.
        overhead: u32 = 4,
        /// What it is tied to.
        object_kind: u32 = 8,
        /// The thread, when tied to one.
        thread: u32 = 16,
        /// When it began.
        start: u64 = 24,
        /// When it ended.
        end: u64 = 32,
    }

    /// What CUDA 12.3 added to overhead.
    OverheadFrom12_3[48] {
        /// Joins a call.
        correlation: u32 = 40,
    }

    /// `CUpti_ActivityGraphTrace2`.
    GraphTrace[56] {
        /// Joins the call.
        correlation: u32 = 4,
        /// When the first node started.
        start: u64 = 8,
        /// When the last node ended.
        end: u64 = 16,
        /// The first node's device.
        device: u32 = 24,
        /// The graph.
        graph: u32 = 28,
        /// The first node's context.
        context: u32 = 32,
        /// The stream.
        stream: u32 = 36,
        /// The last node's device.
        end_device: u32 = 48,
        /// The last node's context.
        end_context: u32 = 52,
    }

    /// `CUpti_ActivityJit2`.
    Jit[72] {
        /// From what to what.
        entry: u32 = 4,
        /// What was done.
        operation: u32 = 8,
        /// The device.
        device: u32 = 12,
        /// When it began.
        start: u64 = 16,
        /// When it ended.
        end: u64 = 24,
        /// Joins a call.
        correlation: u32 = 32,
        /// Bytes.
        bytes: u64 = 48,
        /// The thread.
        thread: u32 = 68,
    }
}

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
