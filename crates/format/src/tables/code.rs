//! Code: strings, mapped images, frames, stacks and what they turned out to be; device modules.
//!
//! Strings, frames and stacks are dictionaries: a row's id is its place, counted from 1 over all pieces of the file. A
//! piece says in its block header where it starts, so that a lost piece does not shift the ids behind it.

use crate::blob::Blob;
use crate::ids::{
    Address, Bytes, ContextId, FrameId, ImageId, ModuleId, ProcessId, StackId, StringId, Timestamp, codes,
};
use crate::table::table;

table! {
    /// One text of the string dictionary, in UTF-8.
    Text, Texts, STRINGS, times();
    /// Its bytes.
    1 text: Blob, plain;
}

impl Texts {
    /// Adds a text without making a row of it first.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.row_count += 1;
        self.text.push(bytes);
    }
}

table! {
    /// A program or library mapped into a process.
    Image, Images, IMAGES, times();
    /// Its id.
    1 id: ImageId, delta;
    /// The process.
    2 process: ProcessId, plain;
    /// Where it is mapped.
    3 address: Address, delta;
    /// How much of it.
    4 size: Bytes, plain;
    /// Where in the file the mapping starts.
    5 file_offset: Bytes, plain;
    /// The file.
    6 path: StringId, plain;
    /// Its build id in hexadecimal.
    7 build_id: StringId, plain;
    /// When it was mapped.
    8 loaded: Timestamp, delta;
    /// When it was unmapped.
    9 unloaded: Timestamp, plain;
}

table! {
    /// One place in code.
    Frame, Frames, FRAMES, times();
    /// What kind of code it is.
    1 kind: FrameKind, plain;
    /// The image that the address lies in.
    2 image: ImageId, plain;
    /// The address: within its image, or absolute when there is none.
    3 address: Address, delta;
    /// The function, when known at once.
    4 function: StringId, plain;
    /// The source file, when known at once.
    5 file: StringId, plain;
    /// The line, when known at once.
    6 line: u32, plain;
}

table! {
    /// One node of the stack tree: a frame, called from the stack `parent`.
    Stack, Stacks, STACKS, times();
    /// The caller's stack.
    1 parent: StackId, delta;
    /// The frame.
    2 frame: FrameId, delta;
    /// How the stack ends, for its outermost frame.
    3 end: StackEnd, plain;
}

table! {
    /// What a frame turned out to be; several rows for one frame when functions were inlined there.
    Symbol, Symbols, SYMBOLS, times();
    /// The frame.
    1 frame: FrameId, delta;
    /// 0 for the outermost function, counted inwards.
    2 inline_depth: u16, plain;
    /// The function, demangled.
    3 function: StringId, plain;
    /// The source file.
    4 file: StringId, plain;
    /// The line.
    5 line: u32, plain;
    /// The column.
    6 column: u32, plain;
}

table! {
    /// Device code that was loaded.
    Module, Modules, MODULES, times(loaded, unloaded);
    /// When it was loaded.
    1 loaded: Timestamp, delta;
    /// When it was unloaded.
    2 unloaded: Timestamp, plain;
    /// The process.
    3 process: ProcessId, plain;
    /// The context.
    4 context: ContextId, plain;
    /// The driver's number of it.
    5 module: ModuleId, delta;
    /// Its bytes.
    6 size: Bytes, plain;
    /// First half of the hash of its content.
    7 hash_high: u64, plain;
    /// Second half of the hash of its content.
    8 hash_low: u64, plain;
    /// The file or library that it came from, when known.
    9 origin: StringId, plain;
    /// The code itself, stored with the first module of the same hash when recorded; a long one continues in rows
    /// of the same hash.
    10 code: Blob, plain;
    /// What commands of a recording know it by: in a row of its own, once it is known.
    11 handle: u64, plain;
}

codes! {
    /// A kind of code.
    FrameKind {
        /// Machine code.
        NATIVE = 0 "native",
        /// Python.
        PYTHON = 1 "python",
        /// Machine code made at run time.
        JIT = 2 "jit",
        /// The operating system's kernel.
        KERNEL = 3 "kernel",
        /// Device code.
        DEVICE = 4 "device",
    }

    /// How a stack ends.
    StackEnd {
        /// At the thread's first function.
        ROOT = 0 "root",
        /// At the depth limit.
        LIMIT = 1 "limit",
        /// At a frame that could not be unwound.
        BROKEN = 2 "broken",
    }
}
