//! What keeps a server from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is in use, or is none of this machine.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The folder below which files can be opened cannot be read.
    #[error("cannot read the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A file that was named does not exist.
    #[error("cannot open {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The operating system has no random numbers for a key.
    #[error("cannot make a random key")]
    Random {
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The server's threads could not be started.
    #[error("cannot start the server")]
    Start {
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}
