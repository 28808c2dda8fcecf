//! What other records refer to.

use super::records;

records! {
    /// A text; its bytes stand behind it. Never redefined.
    1 Text {
        /// Its number, counted from 1.
        id: u32,
        /// Zero.
        reserved: u32,
    }

    /// A context.
    2 Context {
        /// When it was seen, host clock.
        time: u64,
        /// Its number.
        context: u32,
        /// The device, as this process numbers it.
        device: u32,
        /// Its default stream.
        default_stream: u32,
        /// The context that it is a part of.
        parent: u32,
        /// Multiprocessors that it may use; 0 is all.
        multiprocessors: u32,
        /// 1 when it is being destroyed.
        destroyed: u32,
    }

    /// A stream.
    3 Stream {
        /// When it was seen, host clock.
        time: u64,
        /// Its context.
        context: u32,
        /// Its number.
        stream: u32,
        /// Its priority.
        priority: i32,
        /// What orders it: a code of the format.
        kind: u8,
        /// 1 when it is being destroyed.
        destroyed: u8,
        /// Zero.
        reserved: [u8; 2],
    }

    /// A device as this process sees it; its name stands behind.
    4 Device {
        /// Tells it from all others.
        uuid: [u8; 16],
        /// Memory in bytes.
        memory: u64,
        /// Memory bandwidth in bytes a second.
        memory_bandwidth: u64,
        /// The process's number of it.
        device: u32,
        /// Compute capability.
        capability: [u32; 2],
        /// Multiprocessors.
        multiprocessors: u32,
        /// Threads of a warp.
        warp_size: u32,
        /// Most warps on a multiprocessor.
        warps_per_multiprocessor: u32,
        /// Most blocks on a multiprocessor.
        blocks_per_multiprocessor: u32,
        /// Registers of a multiprocessor.
        registers_per_multiprocessor: u32,
        /// Shared memory of a multiprocessor, in bytes.
        shared_per_multiprocessor: u32,
        /// Shared memory that a block may take, in bytes.
        shared_per_block: u32,
        /// Second-level cache, in bytes.
        cache: u32,
        /// Top clock of the multiprocessors, in kHz.
        clock_khz: u32,
        /// Copy engines.
        copy_engines: u32,
        /// Zero.
        reserved: u32,
    }

    /// Device code that was loaded or unloaded.
    5 Module {
        /// When, host clock.
        time: u64,
        /// Bytes.
        size: u64,
        /// Hash of the content, first half.
        hash_high: u64,
        /// Hash of the content, second half.
        hash_low: u64,
        /// Its context.
        context: u32,
        /// Its number.
        module: u32,
        /// 1 when it is unloaded.
        unloaded: u32,
        /// Zero.
        reserved: u32,
    }

    /// A program or library mapped into the process; its build id and then its
    /// path stand behind.
    6 Image {
        /// Where it is mapped.
        address: u64,
        /// How much, in bytes.
        size: u64,
        /// Where in the file the mapping starts, in bytes.
        file_offset: u64,
        /// What is added to the file's own addresses.
        bias: u64,
        /// When it was seen, host clock.
        time: u64,
        /// Bytes of the build id.
        build_id_bytes: u32,
        /// Zero.
        reserved: u32,
    }

    /// A stack; its frames stand behind it, the innermost first, a word each:
    /// a return address, or [`PYTHON_FRAME`] with a code's number and a line.
    7 Stack {
        /// Its number, counted from 1.
        stack: u32,
        /// How it ends: a code of the format.
        end: u32,
    }

    /// A Python function; its name and then its file stand behind.
    8 PythonCode {
        /// Its number, counted from 1.
        code: u32,
        /// Bytes of the name.
        name_bytes: u32,
    }

    /// What nodes of a graph that is ready to run wait for; pairs stand behind,
    /// a word each: a node, and one that it waits for.
    9 GraphEdges {
        /// Pairs.
        count: u64,
    }
}

/// The bit that tells a frame of Python from a return address. Below it stand
/// the code's number, from bit 24 on, and the line.
pub const PYTHON_FRAME: u64 = 1 << 63;
