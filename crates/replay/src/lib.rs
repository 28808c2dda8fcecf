//! Replays recorded GPU work and compares the result.
//!
//! A replay recording is part of a trace. It contains the calls of a window in program order, their modules, and the
//! memory that they can reach, before and after the window. A replay allocates memory at the recorded addresses. So
//! pointers inside buffers stay valid.
//!
//! - [`Recording`]: the recording in a file.
//! - [`Plan`]: what a replay will do, and what blocks it. Needs no GPU.
//! - [`Replay`]: runs the plan or a [`Part`] of it on a device, with other kernels ([`Replacement`]) and a
//!   [`Tolerance`].
//! - [`Verdict`]: whether the memory is the same as recorded.
//!
//! ```no_run
//! use tracesmith_replay::{Part, Plan, Recording, Replacement, Replay};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut recording = Recording::open("step.sbt".as_ref())?;
//! let plan = Plan::of(&mut recording)?;
//! let place = recording.launch("flash_attn", 3).ok_or("it has fewer launches")?;
//! let mut replay = Replay::prepare(&mut recording, &plan, 0)?;
//! assert!(replay.run()?.verdict.is_good());
//! // One launch with another kernel, on the recorded memory.
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
//! A replay needs its own process, because the recorded addresses must be free. `tracesmith replay` first restarts
//! itself without address randomization. A second process monitors it ([`Watch`]), because a kernel can fault or
//! never end.

mod check;
mod clocks;
mod compare;
mod contents;
mod copies;
mod cuda;
pub mod debug;
mod error;
mod extract;
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod load;
mod needs;
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
pub use needs::{Needs, RecordedGpu};
pub use offline::Content;
pub use pace::Pace;
pub use part::{Against, Part};
pub use plan::{Obstacle, Plan};
pub use progress::ProgressFn;
pub use recording::{Buffer, Command, Origin, Recording};
pub use replace::{Comparison, PlannedReplacement, Replacement};
pub use run::{Order, Replay, Run, has_device};
pub use timing::Timing;
pub use tolerance::{Close, Float, Tolerance};
pub use tracesmith_cuda::driver::Placing;
pub use verdict::{Difference, Verdict};
pub use watch::{Pulse, Watch};
