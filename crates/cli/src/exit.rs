//! How this program ends.

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, Signal, getpid, kill_process, set_dumpable_behavior};

/// How this program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The check said no.
    No,
    /// As the program did that was run.
    Code(u8),
    /// By the signal that ended the program that was run.
    Signal(i32),
}

impl Exit {
    /// What a check says.
    pub(crate) fn from_check(is_good: bool) -> Self {
        if is_good { Exit::Done } else { Exit::No }
    }

    /// The exit code; does not come back for a signal, unless that is ignored.
    pub(crate) fn into_code(self) -> ExitCode {
        match self {
            Exit::Done => ExitCode::SUCCESS,
            Exit::No => ExitCode::from(1),
            Exit::Code(code) => ExitCode::from(code),
            Exit::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    // Whoever waits for us wants to know the signal; a second core would only hide the program's.
                    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
                    // Twice: Rust catches the signals of bad memory accesses, and lets go at the first one.
                    let _ = kill_process(getpid(), signal);
                    let _ = kill_process(getpid(), signal);
                }
                // As a shell would put it.
                ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX))
            }
        }
    }
}

/// The code for an error that we report: as a shell's where a program could not be run.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    use tracesmith_collect::Error;
    match error.chain().find_map(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::NoSuchProgram { .. }) => 127,
        Some(Error::NotStarted { .. }) => 126,
        _ => 2,
    }
}
