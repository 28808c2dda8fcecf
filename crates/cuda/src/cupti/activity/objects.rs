//! Layouts of records of devices, contexts and streams.

use crate::cupti::layout::layout;

layout! {
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
}
