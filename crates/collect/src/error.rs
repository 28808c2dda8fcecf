//! Errors of the collector.

use std::{io, path::PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file exists and may not be replaced.
    #[error("the file exists: {}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes the file at this moment.
    #[error("{} is being written by another recording", path.display())]
    BeingWritten {
        /// The file.
        path: PathBuf,
    },
    /// The trace could not be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The trace could not be completed.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: tracesmith_format::Error,
    },
    /// No such program.
    #[error("no such program: {program}")]
    NoSuchProgram {
        /// The program as the user named it.
        program: String,
    },
    /// The program could not be started.
    #[error("cannot start {program}")]
    NotStarted {
        /// The program as the user named it.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The process has no socket for collectors, so it is not attachable.
    #[error(
        "process {process} cannot be recorded: it has not initialized CUDA with the TraceSmith library loaded"
    )]
    NotArmed {
        /// The pid.
        process: u32,
    },
    /// A process, or CUPTI in it, does not let itself be recorded.
    #[error("cannot record: {words}")]
    Refused {
        /// The kind of reason.
        reason: Refusal,
        /// The reason that the process gave.
        words: String,
    },
    /// The flight recorder was not written.
    #[error("the flight recorder of process {process} was not written: {reason}")]
    NotDumped {
        /// The pid.
        process: u32,
        /// The reason that the process gave.
        reason: String,
    },
    /// Communication with a target failed.
    #[error(transparent)]
    Wire(#[from] tracesmith_wire::Error),
    /// A system call failed.
    #[error("{action} failed")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Why a process is not recorded, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is being recorded already.
    Busy,
    /// Another profiler uses CUPTI in it.
    Conflict,
    /// Another reason.
    Other,
}

impl Error {
    /// For `map_err`: adds the action that failed.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}
