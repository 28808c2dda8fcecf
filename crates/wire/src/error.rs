//! What can go wrong between the two sides.
//!
//! Three families that a caller treats differently: the system refused
//! ([`Error::System`]), the other side is not one we can talk to (versions,
//! users, refusals), or what it wrote into the ring makes no sense
//! ([`Error::Corrupt`]).

use std::{io, path::PathBuf};

use crate::frame::Fault;

/// Why a ring could not be made, joined or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size that no ring can have.
    #[error("a ring cannot hold {bytes} bytes: it must be a power of two from 32 to 1 GiB")]
    Capacity {
        /// The requested size.
        bytes: u64,
    },
    /// An overflow policy that this build does not know.
    #[error("overflow policy {code} is not known to this build")]
    PolicyCode {
        /// The code found.
        code: u32,
    },
    /// The shared memory does not begin with a ring's header.
    #[error("the shared memory is not a ring (it begins with {found:#018x})")]
    NotARing {
        /// The first eight bytes.
        found: u64,
    },
    /// The other side speaks another version.
    #[error("the other side uses {what} version {theirs}, and this build uses {ours}")]
    Version {
        /// Which of the two versions differs: `protocol` or `layout`.
        what: &'static str,
        /// Ours.
        ours: u32,
        /// Theirs.
        theirs: u32,
    },
    /// The shared memory and its description disagree, or it could be cut.
    #[error("the shared memory is not as announced: {what}")]
    NotAsAnnounced {
        /// What differs.
        what: &'static str,
    },
    /// A ring has one producer in its life.
    #[error("the ring already has a producer")]
    AlreadyAttached,
    /// What the producer published is no sequence of records. The consumer
    /// stops here; the counters stay readable.
    #[error("the ring is corrupt at position {position}: {fault}")]
    Corrupt {
        /// Bytes published before the fault.
        position: u64,
        /// What is wrong there.
        fault: Fault,
    },
    /// The other side did not answer in time.
    #[error("no {what} within the time limit")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
    },
    /// A message of the handshake that makes no sense.
    #[error("the other side sent a malformed {message}: {what}")]
    Malformed {
        /// Which message.
        message: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The other end of the socket belongs to another user.
    #[error("the other side runs as user {theirs}, not as user {ours}")]
    ForeignUser {
        /// Our effective user id.
        ours: u32,
        /// Theirs, as the kernel states it.
        theirs: u32,
    },
    /// The collector would not hand out a ring.
    #[error("the collector refused: {reason}")]
    Refused {
        /// The collector's words.
        reason: String,
    },
    /// The socket's directory could be entered by others.
    #[error("{what}: {}", path.display())]
    RuntimeDirectory {
        /// What is wrong with it.
        what: &'static str,
        /// The directory.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("{action} failed")]
    System {
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names the call that failed.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}
