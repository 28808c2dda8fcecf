//! What can go wrong with a replay.

/// Why a recording could not be read or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is none, or could not be read.
    #[error(transparent)]
    Format(#[from] tracesmith_format::Error),
    /// It could not be opened.
    #[error("cannot be read: {0}")]
    Open(#[from] std::io::Error),
    /// It is a trace without a recording.
    #[error("it holds no recording: record one with `tracesmith profile --record`")]
    NoRecording,
    /// Something that the recording refers to is not in the file.
    #[error("the file lacks {0}")]
    Missing(String),
    /// It holds what cannot be run.
    #[error("not replayable: {0}")]
    Obstacle(String),
    /// The driver, or what it was asked to do.
    #[error("{what}: {source}")]
    Device {
        /// What was being done.
        what: String,
        /// The driver's words.
        source: tracesmith_cuda::Error,
    },
}

impl Error {
    /// With what was being done.
    pub(crate) fn device(what: impl Into<String>) -> impl FnOnce(tracesmith_cuda::Error) -> Self {
        let what = what.into();
        move |source| Self::Device { what, source }
    }
}
