//! What can go wrong with a replay.

use crate::recording::Command;

/// Why a recording could not be read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is none, or could not be read.
    #[error(transparent)]
    Format(#[from] tracesmith_format::Error),
    /// It could not be opened.
    #[error("cannot read the file")]
    Open(#[from] std::io::Error),
    /// A file could not be written.
    #[error("cannot write the file: {0}")]
    Write(std::io::Error),
    /// It is a trace without a recording.
    #[error("the trace contains no replay recording; make one with `tracesmith profile --record`")]
    NoRecording,
    /// A part of the file is lost, and no recording is in the rest.
    #[error(
        "the file is {state}: its replay recording is lost ({damage}); record it again, or use an intact copy"
    )]
    LostRecording {
        /// Truncated or damaged.
        state: &'static str,
        /// What was found first.
        damage: tracesmith_format::Damage,
    },
    /// Something that the recording refers to is not in the file.
    #[error("the file does not contain {0}")]
    Missing(String),
    /// It holds what cannot be run.
    #[error("not replayable: {0}")]
    Obstacle(String),
    /// The file alone does not say what memory holds.
    #[error("the memory at {address:#x} is known only after a replay on a GPU: {why}")]
    NeedsDevice {
        /// Where the memory lies.
        address: u64,
        /// What can have written it.
        why: String,
    },
    /// A kernel that cannot take the place of a recorded one.
    #[error("cannot replace the kernel: {0}")]
    Replacement(String),
    /// The driver, or what it was asked to do.
    #[error("{what}: {words}")]
    Device {
        /// The number of the call that was being made, if it was one.
        call: Option<u64>,
        /// What was being done.
        what: String,
        /// The driver's words.
        words: tracesmith_cuda::Error,
    },
}

impl Error {
    /// With what was being done.
    pub(crate) fn device(what: impl Into<String>) -> impl FnOnce(tracesmith_cuda::Error) -> Self {
        let what = what.into();
        move |source| Self::Device {
            call: None,
            what,
            words: source,
        }
    }

    /// Whether work on the device went wrong, after which nothing of this process can be done there.
    pub fn is_fault(&self) -> bool {
        // From CUDA_ERROR_ILLEGAL_ADDRESS to CUDA_ERROR_LAUNCH_FAILED: of a kernel that ran, and it stays.
        const FAULTS: [i64; 9] = [700, 702, 710, 714, 715, 716, 717, 718, 719];
        match self {
            Self::Device { words, .. } => words.code().is_some_and(|code| FAULTS.contains(&code)),
            _ => false,
        }
    }

    /// Whether there is no driver here, or no device.
    pub fn is_without_device(&self) -> bool {
        const NO_DEVICE: i64 = 100;
        match self {
            Self::Device { words, .. } => {
                matches!(words, tracesmith_cuda::Error::Missing { .. }) || words.code() == Some(NO_DEVICE)
            }
            _ => false,
        }
    }

    /// Whether memory could not be had where it was.
    pub fn is_address_taken(&self) -> bool {
        let taken =
            |source: &tracesmith_cuda::Error| matches!(source, tracesmith_cuda::Error::AddressTaken { .. });
        matches!(self, Self::Device { words, .. } if taken(words))
    }

    /// With the call that was being made.
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
