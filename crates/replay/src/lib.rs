//! Runs recorded GPU work again and judges it.
//!
//! A recording is part of a trace: the calls of a window in the order in which the program made them, the code that they
//! ran, and the contents of the memory that they could reach, before and after. Memory is taken at the addresses that it
//! had, so nothing has to be translated: pointers within buffers stay what they are.
//!
//! - [`Recording`]: what a file holds.
//! - [`Plan`]: what a replay will do, and what stands against it. Needs no GPU.
//! - [`Replay`]: the plan on a device, or a [`Part`] of it, with other kernels ([`Replacement`]) and [`Tolerance`].
//! - [`Verdict`]: whether the memory came out as it was recorded.
//!
//! ```no_run
//! use tracesmith_replay::{Part, Plan, Recording, Replacement, Replay};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut recording = Recording::open("step.sbt".as_ref())?;
//! let plan = Plan::of(&mut recording)?;
//! let place = recording.launch("flash_attn", 3).ok_or("it is not launched so often")?;
//! let mut replay = Replay::prepare(&mut recording, &plan, 0)?;
//! assert!(replay.run()?.verdict.is_good());
//! // One launch, with another kernel and the memory that it had.
//! replay.replace(&Replacement {
//!     kernel: "flash_attn".to_owned(),
//!     nth: Some(3),
//!     code: std::fs::read("new.cubin")?,
//!     symbol: None,
//! })?;
//! let mut part = Part::whole(replay.recording().commands.len());
//! part.places = place..place + 1;
//! for run in replay.run_part(&part, 10)? {
//!     println!("{:?} in {:?}", run.verdict, run.device_time);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A replay wants its process for itself: its addresses must be free. The command `tracesmith replay` starts itself again
//! without random addresses first, and lets another process look on ([`Watch`]), since a kernel may fault or never end.

mod check;
mod clocks;
mod compare;
mod contents;
mod copies;
mod cuda;
mod error;
mod extract;
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod load;
pub mod npy;
mod offline;
mod pace;
mod part;
mod plan;
mod progress;
mod race;
mod recorded;
mod recording;
mod relocate;
mod replace;
mod run;
mod snapshots;
mod textures;
mod timing;
mod tolerance;
mod trail;
mod verdict;
mod watch;

pub use check::{Cause, Determinism, FirstDivergence};
pub use clocks::Clocks;
pub use error::Error;
pub use extract::Extracted;
pub use offline::Content;
pub use pace::Pace;
pub use part::{Against, Part};
pub use plan::{Obstacle, Plan};
pub use progress::ProgressFn;
pub use recording::{Buffer, Command, Origin, Recording};
pub use replace::{Comparison, Replacement};
pub use run::{Order, Replay, Run, has_device};
pub use timing::Timing;
pub use tolerance::{Close, Float, Tolerance};
pub use tracesmith_cuda::driver::Placing;
pub use verdict::{Difference, Verdict};
pub use watch::{Pulse, Watch};
