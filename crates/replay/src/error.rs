//! Errors of a replay.

use crate::recording::Command;

/// Why a recording could not be read or replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not a trace, or could not be read.
    #[error(transparent)]
    Format(#[from] tracesmith_format::Error),
    /// The file could not be opened.
    #[error("cannot read the file")]
    Open(#[from] std::io::Error),
    /// A file could not be written.
    #[error("cannot write the file: {0}")]
    Write(std::io::Error),
    /// The trace has no replay recording.
    #[error("the trace contains no replay recording; make one with `tracesmith profile --record`")]
    NoRecording,
    /// A part of the file is lost, and the rest has no replay recording.
    #[error(
        "the file is {state}: its replay recording is lost ({damage}); record it again, or use an intact copy"
    )]
    LostRecording {
        /// Truncated or damaged.
        state: &'static str,
        /// The first damage.
        damage: tracesmith_format::Damage,
    },
    /// The file lacks data that the recording refers to.
    #[error("the file does not contain {0}")]
    Missing(String),
    /// The recording cannot be replayed.
    #[error("not replayable: {0}")]
    Obstacle(String),
    /// The file does not contain the contents of this memory at this time.
    #[error("the memory at {address:#x} is known only after a replay on a GPU: {why}")]
    NeedsDevice {
        /// The address.
        address: u64,
        /// The call that can have written it.
        why: String,
    },
    /// The new kernel cannot replace the recorded one.
    #[error("cannot replace the kernel: {0}")]
    Replacement(String),
    /// This memory cannot be read at this moment.
    #[error("{0}")]
    Unavailable(String),
    /// The driver reported an error.
    #[error("{what}: {words}")]
    Device {
        /// The number of the call, if a call failed.
        call: Option<u64>,
        /// The action that failed.
        what: String,
        /// The driver's error.
        words: tracesmith_cuda::Error,
    },
}

impl Error {
    /// Adds the action that failed.
    pub(crate) fn device(what: impl Into<String>) -> impl FnOnce(tracesmith_cuda::Error) -> Self {
        let what = what.into();
        move |source| Self::Device {
            call: None,
            what,
            words: source,
        }
    }

    /// Whether GPU work failed. After that, this process cannot use the device any more.
    pub fn is_fault(&self) -> bool {
        // CUDA_ERROR_ILLEGAL_ADDRESS to CUDA_ERROR_LAUNCH_FAILED: sticky errors of a kernel.
        const FAULTS: [i64; 9] = [700, 702, 710, 714, 715, 716, 717, 718, 719];
        match self {
            Self::Device { words, .. } => words.code().is_some_and(|code| FAULTS.contains(&code)),
            _ => false,
        }
    }

    /// Whether there is no driver or no device.
    pub fn is_without_device(&self) -> bool {
        const NO_DEVICE: i64 = 100;
        match self {
            Self::Device { words, .. } => {
                matches!(words, tracesmith_cuda::Error::Missing { .. }) || words.code() == Some(NO_DEVICE)
            }
            _ => false,
        }
    }

    /// Whether a recorded address is in use in this process.
    pub fn is_address_taken(&self) -> bool {
        let taken =
            |source: &tracesmith_cuda::Error| matches!(source, tracesmith_cuda::Error::AddressTaken { .. });
        matches!(self, Self::Device { words, .. } if taken(words))
    }

    /// Adds the call that failed.
    pub(crate) fn of_call(self, command: &Command) -> Self {
        match self {
            Self::Device {
                call: None,
                what,
                words,
            } => Self::Device {
                call: Some(command.number),
                what: format!("#{} {}: {what}", command.number, command.name()),
                words,
            },
            other => other,
        }
    }
}

impl From<tracesmith_cuda::Error> for Error {
    fn from(source: tracesmith_cuda::Error) -> Self {
        Self::device("creating a graph")(source)
    }
}
