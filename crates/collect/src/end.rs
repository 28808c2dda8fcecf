//! How a process ended.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use tracesmith_format::tables::ProcessEnd;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process exited with this code.
    Exited(i32),
    /// This signal killed the process.
    Killed(i32),
    /// The process executed another program (exec).
    Replaced,
    /// The process was still running when recording ended.
    Running,
    /// The exit status is unknown.
    Unknown,
}

impl End {
    /// Decodes a wait status of the kernel.
    pub(crate) fn from_raw_status(status: i32) -> Self {
        let status = ExitStatus::from_raw(status);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Killed(signal),
            (None, None) => Self::Unknown,
        }
    }

    /// The trace's code for this end, and the exit code or signal number.
    pub(crate) fn code(self) -> (ProcessEnd, i32) {
        match self {
            Self::Exited(code) => (ProcessEnd::EXITED, code),
            Self::Killed(signal) => (ProcessEnd::KILLED, signal),
            Self::Replaced => (ProcessEnd::REPLACED, 0),
            Self::Running => (ProcessEnd::RUNNING, 0),
            Self::Unknown => (ProcessEnd::UNKNOWN, 0),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Killed(signal) => write!(f, "killed by signal {signal}"),
            Self::Replaced => f.write_str("replaced by another program (exec)"),
            Self::Running => f.write_str("still running"),
            Self::Unknown => f.write_str("exit status unknown"),
        }
    }
}
