//! How the two processes find each other and pass the ring's memory.
//!
//! The collector listens on a Unix socket in a directory that only its user can
//! enter; the target connects, says who it is and how much room it would like;
//! the collector answers with the memory and its configuration, or with a
//! reason why not. Then the connection is closed on both sides: the target
//! keeps no descriptor of ours, because a program that closes or counts its
//! descriptors must not notice us.
//!
//! ```no_run
//! # use std::{path::Path, time::Duration};
//! # use tracesmith_wire::{Capacity, Config, Error, Policy, handshake::{self, Listener, Purpose}};
//! # fn collector() -> Result<(), Error> {
//! let limit = Duration::from_secs(2);
//! let listener = Listener::in_runtime_directory()?;
//! let connection = listener.accept(limit)?;
//! let capacity = connection.hello().capacity;
//! let granted = connection.grant(Config { capacity, policy: Policy::DropNewest }, limit)?;
//! # Ok(()) }
//! # fn target(path: &Path) -> Result<(), Error> {
//! # let limit = Duration::from_secs(2);
//! // in the target
//! let producer = handshake::connect(path, Purpose::Activity, Capacity::at_least(4 << 20), limit)?;
//! # Ok(()) }
//! ```
//!
//! Neither side trusts the other before it has checked: the kernel's word for
//! the other's user, magic and version of each message, seals, size and header
//! of the memory. Every step has a time limit, so a dead or hostile peer costs
//! that much and no more. Messages are packets of fixed size (`SOCK_SEQPACKET`)
//! with their bytes stated in `docs/reference/wire.md`.
//!
//! There are no abstract socket names: any user could take or connect to one.

mod credentials;
mod directory;
mod exit_status;
mod listener;
mod message;
mod peer;
mod socket;
mod target;

pub(crate) use credentials::Credentials;
pub use listener::{Granted, Listener, PendingConnection};
pub use message::{Hello, PROTOCOL_VERSION, Purpose};
pub(crate) use message::{decode_any, encoded_samples, refusal};
pub use peer::{Life, Peer, PeerId};
pub(crate) use socket::{Deadline, Identity, Socket, open as open_socket};
pub use target::{connect, connect_control};

pub(crate) use directory::check as check_directory;
