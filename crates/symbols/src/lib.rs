//! Resolves addresses in programs and libraries to functions, files and lines.
//!
//! A trace contains addresses relative to files. This crate reads those files. It uses debug information, including
//! inlined functions, from the file or from a separate debug file. Otherwise it uses symbol tables. It works on the
//! machine that ran the program, after the program has exited, and on any machine with the files.
//!
//! - `sources`: where files are searched.
//! - `module`: one opened file.
//! - `resolver`: many addresses in many files.
//! - `cache`: what was read before, in the user's cache folder.
//! - `opening`: safely opens files that other users may have created.
//! - `sections`, `table`: debug information and symbols.
//! - `names`: demangles names.
//! - `perf_map`: JIT-compiled code.
//!
//! ```
//! use tracesmith_symbols::{Module, Sources};
//!
//! let program = std::env::current_exe().unwrap();
//! let module = Module::open(&program, "", &Sources::default()).unwrap();
//! assert!(module.functions(0).is_empty(), "nothing is at the beginning of a file");
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may stop on any error"))]

mod cache;
pub mod fuzz;
mod module;
mod names;
mod opening;
mod perf_map;
mod resolver;
mod sections;
mod sources;
mod table;

pub use cache::Cache;
pub use module::{Extent, Function, Module, Unresolved};
pub use names::demangle_cpp;
pub use perf_map::PerfMap;
pub use resolver::{File, ModuleReport, Resolver};
pub use sources::Sources;
