//! How the program exits.

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, Signal, getpid, kill_process, set_dumpable_behavior};

/// How the program exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// The check failed.
    No,
    /// With the exit code of the recorded program.
    Code(u8),
    /// By the signal that killed the recorded program.
    Signal(i32),
}

impl Exit {
    /// The result of a check.
    pub(crate) fn from_check(is_good: bool) -> Self {
        if is_good { Exit::Done } else { Exit::No }
    }

    /// The exit code. Does not return for a signal, unless the signal is ignored.
    pub(crate) fn into_code(self) -> ExitCode {
        match self {
            Exit::Done => ExitCode::SUCCESS,
            Exit::No => ExitCode::from(1),
            Exit::Code(code) => ExitCode::from(code),
            Exit::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    // The parent process must see the signal. A second core dump would only hide the program's.
                    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
                    // Send it twice: Rust's handler for invalid memory accesses removes itself after the first
                    // signal.
                    let _ = kill_process(getpid(), signal);
                    let _ = kill_process(getpid(), signal);
                }
                // As a shell does.
                ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX))
            }
        }
    }
}

/// The exit code for an error. As in a shell if a program could not be executed.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    use tracesmith_collect::Error;
    match error.chain().find_map(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::NoSuchProgram { .. }) => 127,
        Some(Error::NotStarted { .. }) => 126,
        _ => 2,
    }
}
