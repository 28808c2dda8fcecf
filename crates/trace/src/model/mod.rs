//! The model of a trace. One subject a file; the files that bear a table's name say how its rows look as events.

mod allocation;
pub(crate) mod clocks;
mod collective;
pub(crate) mod copy;
pub(crate) mod event;
pub(crate) mod health;
mod host;
mod kernel;
mod marker;
pub(crate) mod native;
pub(crate) mod stacks;
pub(crate) mod strings;
mod sync;
pub(crate) mod table;
pub(crate) mod trace;
