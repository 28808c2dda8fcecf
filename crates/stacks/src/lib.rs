//! Captures stacks of the calling thread, cheaply enough for every kernel launch.
//!
//! This crate runs inside other programs. After the first call in a thread, capturing a stack does not allocate, lock
//! or make system calls. Everything else (loaded libraries, the bounds of a thread's stack) is read in advance or
//! elsewhere. The crate trusts nothing that it reads. A corrupt stack ends the unwind and is marked. It never crashes
//! the program.
//!
//! - `images`: the program and its libraries, with their unwind tables.
//! - `rules`, `rule_cache`: the unwind rule of each return address, computed once and cached.
//! - `walk`: unwinds frame by frame.
//! - `unwind_cache`: earlier unwinds.
//! - [`loaded`]: the program and its libraries, as the dynamic loader lists them.
//! - `program`: the program's own file.
//! - `bounds`: the bounds of a thread's stack.
//! - `interned`: stacks that were captured before.
//! - `budget`: the memory limit of the caches of all threads.
//! - `python`: Python frames, and stacks with native and Python frames.
//!
//! ```
//! use tracesmith_stacks::{Images, Walker, StackEnd};
//!
//! let images = Images::list(None);
//! let mut walker = Walker::of_this_thread();
//! let mut frames = [0; 128];
//! let stack = walker.walk(&images, &mut frames);
//! assert_eq!(stack.end, StackEnd::Root);
//! assert!(stack.depth > 2);
//! ```

#![allow(
    unsafe_code,
    reason = "a stack is read as raw memory, and libraries are listed by C; see each block"
)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod bounds;
mod budget;
#[doc(hidden)]
pub mod fuzz;
mod images;
mod interned;
pub mod loaded;
mod program;
mod python;
mod rule_cache;
mod rules;
mod unwind_cache;
mod walk;

pub use images::{Image, Images};
pub use interned::{Interned, Seen, StackHash};
pub use program::program_file;
pub use python::{
    CodeId, CodeNames, Fit, InterpreterFrames, Mixed, MixedFrame, NativeStack, Python, PythonEnd,
    PythonFrame, PythonWalk, PythonWalker, Unknown, Version,
};
pub use walk::{StackEnd, Walk, Walker};
