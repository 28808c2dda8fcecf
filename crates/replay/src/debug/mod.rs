//! Looks into the memory of a recording, call by call.
//!
//! [`Debugger`] runs the calls on a GPU. [`Recorded`] runs nothing, and knows only what the file determines. Both are a
//! [`Memory`], on which [`stats()`], [`grid()`] and [`diff()`] work. Contents are read in chunks, so buffers can be large.

mod buffers;
mod changes;
mod diff;
mod grid;
mod live;
mod mean;
mod memory;
mod number;
mod recorded;
mod stats;

pub use buffers::{CallBuffer, Extent, Role};
pub use changes::{BufferDiff, EndDiff};
pub use diff::{Diff, DiffLimits, ElementChange, diff};
pub use grid::{Grid, Shape, grid};
pub use live::Debugger;
pub use memory::{Memory, Moment};
pub use number::Number;
pub use recorded::Recorded;
pub use stats::{Stats, stats};
