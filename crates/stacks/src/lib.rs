//! Stacks of the calling thread, taken from within, cheaply enough for every launch.
//!
//! This crate lives in other people's processes. Taking a stack allocates nothing, takes no lock and makes no system
//! call once a thread has begun; what must be learned (libraries that were loaded, a thread's limits) is learned before or
//! elsewhere. Nothing that it reads is believed: a corrupt stack ends the walk and is marked, it never ends the program.
//!
//! - `images`: the program and its libraries, with the tables that say how to leave a function.
//! - `rules`, `kept`: how to leave one function, worked out from those tables once and kept.
//! - `walk`: from frame to frame.
//! - `known`: walks that were made before.
//! - `program`: the program's own file.
//! - `bounds`: where a thread's stack is.
//! - `interned`: stacks that were seen before.
//! - `budget`: what all threads may keep of both.
//! - `python`: frames of Python code, and one stack from both kinds.
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
