//! From addresses in programs and libraries to functions, files and lines.
//!
//! Recording keeps addresses, as their files number them, and says which files they are of. This crate reads those files:
//! debug information, inlined functions included, from the file or from the one that was split off it; else its symbol
//! tables. It works where the program ran, after it has ended, or on any machine that has the files.
//!
//! - `sources`: where the files are looked for.
//! - `module`: one file, ready to be asked.
//! - `resolver`: many addresses of many files.
//! - `opening`: files that someone else may have put there.
//! - `sections`, `table`: its debug information, its symbols.
//! - `names`: names as people write them.
//! - `perf_map`: code that was made at run time.
//!
//! ```
//! use tracesmith_symbols::{Module, Sources};
//!
//! let program = std::env::current_exe().unwrap();
//! let module = Module::open(&program, "", &Sources::default()).unwrap();
//! assert!(module.functions(0).is_empty(), "nothing is at the beginning of a file");
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may stop on any error"))]

mod module;
mod names;
mod opening;
mod perf_map;
mod resolver;
mod sections;
mod sources;
mod table;

pub use module::{Extent, Function, Module, Unresolved};
pub use names::demangle_cpp;
pub use perf_map::PerfMap;
pub use resolver::{File, ModuleReport, Resolver};
pub use sources::Sources;
