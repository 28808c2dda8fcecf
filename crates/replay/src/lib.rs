//! Runs recorded GPU work again and judges it.
//!
//! A recording is part of a trace: the calls of a window in the order in which the program made them, the code that they
//! ran, and the contents of the memory that they could reach, before and after. Memory is taken at the addresses that it
//! had, so nothing has to be translated: pointers within buffers stay what they are.
//!
//! - [`Recording`]: what a file holds.
//! - [`Plan`]: what a replay will do, and what stands against it. Needs no GPU.
//! - [`Replay`]: the plan on a device.
//! - [`Verdict`]: whether the memory came out as it was recorded.

mod check;
mod compare;
mod contents;
mod cuda;
mod error;
mod extract;
mod graph;
pub mod npy;
mod pace;
mod part;
mod plan;
mod race;
mod recorded;
mod recording;
mod replace;
mod run;
mod snapshots;
mod timing;
mod tolerance;
mod verdict;
mod watch;

pub use check::{Cause, Culprit, Determinism};
pub use error::Error;
pub use extract::Extracted;
pub use pace::Pace;
pub use part::{Against, Part};
pub use plan::{Obstacle, Plan};
pub use recording::{Buffer, Command, Recording};
pub use replace::{Comparison, Replacement};
pub use run::{Order, Replay, Run};
pub use timing::Timing;
pub use tolerance::{Close, Float, Tolerance};
pub use verdict::{Difference, Verdict};
pub use watch::{Pulse, Watch};
