//! How records leave a profiled program.
//!
//! An injected library inside the target writes records into a ring that lies
//! in shared memory; the collector, another process, reads them. One writer,
//! one reader, no locks, no system call on the way. A target that is killed at
//! any instruction leaves only whole records behind.
//!
//! ```
//! use std::num::NonZeroU16;
//! use tracesmith_wire::{Capacity, Config, Consumer, Kind, Policy, Producer, Pushed, Tag};
//!
//! # fn main() -> Result<(), tracesmith_wire::Error> {
//! const LAUNCH: Kind = Kind::new(NonZeroU16::MIN);
//! let config = Config { capacity: Capacity::at_least(1 << 16), policy: Policy::DropNewest };
//!
//! // The collector makes the ring; the target joins it by its descriptor,
//! // which in earnest travels through `handshake`.
//! let (mut consumer, memory) = Consumer::create(config)?;
//! let mut producer = Producer::attach(memory, config)?;
//!
//! assert_eq!(producer.push(Tag::from(LAUNCH), b"vector_add"), Pushed::Written);
//!
//! for record in consumer.read()? {
//!     assert_eq!(record?.payload, b"vector_add");
//! }
//! assert_eq!(consumer.losses().dropped_records, 0);
//! # Ok(())
//! # }
//! ```
//!
//! - [`handshake`]: how the two processes find each other and pass the memory.
//! - [`control`]: orders to a target, and its answers.
//! - [`environment`]: environment variables and the name of the injected library.
//! - [`record`]: what the records are.
//! - [`frame`]: how one record lies in the ring.
//! - [`ring`]: a ring within one process.
//! - [`wall_clock`]: how far this machine's time of day can be off.
//! - [`fuzz`]: what reads bytes of the other side, for fuzzers.
//!
//! The rest is re-exported here: [`Producer`] for the target,
//! [`Consumer`] for the collector, [`Config`] for both, [`Losses`] for what did
//! not arrive. `docs/reference/wire.md` has the layout to the byte.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is no shared memory"))]

mod buffer;
mod config;
mod consumer;
#[cfg(not(loom))]
pub mod control;
mod cursor;
pub mod environment;
mod error;
mod fork;
pub mod frame;
#[cfg(not(loom))]
pub mod fuzz;
#[cfg(not(loom))]
pub mod handshake;
mod layout;
mod losses;
mod memory;
mod producer;
pub mod record;
mod records;
pub mod ring;
mod sleep;
mod sync;
#[cfg(not(loom))]
pub mod wall_clock;

pub use config::{Capacity, Config, Policy};
pub use consumer::Consumer;
pub use error::Error;
pub use frame::{Kind, Record, Tag};
pub use layout::LAYOUT_VERSION;
pub use losses::Losses;
pub use producer::{Producer, Pushed};
pub use records::Records;
#[cfg(loom)]
pub use sleep::model;
