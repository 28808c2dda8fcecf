//! Code: strings, mapped images, frames, stacks, symbols and modules.
//!
//! Strings, frames and stacks are dictionaries. The ID of a row is its position, counted from 1 over all pieces of the
//! file. The block header of a piece states its first position, so a lost piece does not shift later IDs.

use crate::blob::Blob;
use crate::ids::{
    Address, Bytes, ContextId, FrameId, ImageId, ModuleId, ProcessId, StackId, StringId, Timestamp, codes,
};
use crate::table::table;

table! {
    /// One string of the dictionary, in UTF-8.
    Text, Texts, STRINGS, times();
    /// The bytes.
    1 text: Blob, plain;
}

impl Texts {
    /// Adds a string without creating a row first.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.row_count += 1;
        self.text.push(bytes);
    }
}

table! {
    /// A program or library mapped into a process.
    Image, Images, IMAGES, times();
    /// The ID of the row.
    1 id: ImageId, delta;
    /// The process.
    2 process: ProcessId, plain;
    /// The start address of the mapping.
    3 address: Address, delta;
    /// The size of the mapping.
    4 size: Bytes, plain;
    /// The file offset of the mapping.
    5 file_offset: Bytes, plain;
    /// The file.
    6 path: StringId, plain;
    /// The build ID in hexadecimal.
    7 build_id: StringId, plain;
    /// When it was mapped.
    8 loaded: Timestamp, delta;
    /// When it was unmapped.
    9 unloaded: Timestamp, plain;
}

table! {
    /// One code location.
    Frame, Frames, FRAMES, times();
    /// The kind of code.
    1 kind: FrameKind, plain;
    /// The image that contains the address.
    2 image: ImageId, plain;
    /// The address: relative to the image, or absolute if there is no image.
    3 address: Address, delta;
    /// The function, if it was known at capture time.
    4 function: StringId, plain;
    /// The source file, if it was known at capture time.
    5 file: StringId, plain;
    /// The line, if it was known at capture time.
    6 line: u32, plain;
}

table! {
    /// One node of the stack tree: a frame, called from the stack `parent`.
    Stack, Stacks, STACKS, times();
    /// The caller's stack.
    1 parent: StackId, delta;
    /// The frame.
    2 frame: FrameId, delta;
    /// For the outermost frame: how the stack ends.
    3 end: StackEnd, plain;
}

table! {
    /// The symbol of a frame. A frame with inlined functions has several rows.
    Symbol, Symbols, SYMBOLS, times();
    /// The frame.
    1 frame: FrameId, delta;
    /// The inlining depth: 0 for the outermost function.
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
    /// A loaded module (device code).
    Module, Modules, MODULES, times(loaded, unloaded);
    /// When it was loaded.
    1 loaded: Timestamp, delta;
    /// When it was unloaded.
    2 unloaded: Timestamp, plain;
    /// The process.
    3 process: ProcessId, plain;
    /// The context.
    4 context: ContextId, plain;
    /// The ID that CUPTI or the driver uses.
    5 module: ModuleId, delta;
    /// The size of the code in bytes.
    6 size: Bytes, plain;
    /// The first half of the hash of the content.
    7 hash_high: u64, plain;
    /// The second half of the hash of the content.
    8 hash_low: u64, plain;
    /// The file or library of the module, if known.
    9 origin: StringId, plain;
    /// The code, if recorded. It is stored with the first module of a hash. Long code continues in further rows of
    /// the same hash.
    10 code: Blob, plain;
    /// The ID that recorded calls use for the module. It is in a row of its own.
    11 handle: u64, plain;
}

codes! {
    /// A kind of code.
    FrameKind {
        /// Machine code.
        NATIVE = 0 "native",
        /// Python.
        PYTHON = 1 "python",
        /// Machine code generated at run time.
        JIT = 2 "jit",
        /// The operating system's kernel.
        KERNEL = 3 "kernel",
        /// Device code.
        DEVICE = 4 "device",
    }

    /// How a stack ends.
    StackEnd {
        /// The unwind reached the first function of the thread.
        ROOT = 0 "root",
        /// The unwind reached the depth limit.
        LIMIT = 1 "limit",
        /// The unwind stopped at a frame that could not be unwound.
        BROKEN = 2 "broken",
    }
}
