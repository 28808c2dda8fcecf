//! Why a recording could not be made.

use std::{io, path::PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is such a file, and nobody said that it may go.
    #[error("the file exists: {}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The trace could not be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The trace could not be written to its end.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: tracesmith_format::Error,
    },
    /// No such program.
    #[error("no such program: {program}")]
    NoSuchProgram {
        /// As it was named.
        program: String,
    },
    /// The program could not be started.
    #[error("cannot start {program}")]
    NotStarted {
        /// As it was named.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The process has no socket for collectors.
    #[error(
        "process {process} cannot be recorded: it has not initialized CUDA with the TraceSmith library loaded"
    )]
    NotArmed {
        /// Its number.
        process: u32,
    },
    /// The flight recorder was not written out.
    #[error("the flight recorder of process {process} was not written: {reason}")]
    NotDumped {
        /// The process that was asked.
        process: u32,
        /// What it said.
        reason: String,
    },
    /// The other side could not be talked to.
    #[error(transparent)]
    Wire(#[from] tracesmith_wire::Error),
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
