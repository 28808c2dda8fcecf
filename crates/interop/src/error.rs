//! What can go wrong with files of other tools.

use std::io;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot open")]
    Open {
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read")]
    Read {
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The export could not be written.
    #[error("cannot write after {written} bytes")]
    Write {
        /// Bytes written before.
        written: u64,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// Rows that an export sorts could not be stored in a temporary file.
    #[error("cannot keep rows in a temporary file")]
    Spill {
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// Neither a native trace nor of a format that an importer knows.
    #[error("not a trace: this looks like {looks_like}")]
    UnknownFormat {
        /// What the content looks like.
        looks_like: String,
    },
    /// A foreign file is not what its format promises.
    #[error("bad {format} file: {problem}, at {position}")]
    Foreign {
        /// The format's name.
        format: &'static str,
        /// What is wrong.
        problem: String,
        /// Where: a byte, a line, a table.
        position: String,
    },
    /// A trace cannot be put into a format.
    #[error("cannot export to {format}: {problem}")]
    Export {
        /// The format's name.
        format: &'static str,
        /// Why.
        problem: String,
    },
    /// This program was built without what the format needs.
    #[error("this build cannot write {format}")]
    NotBuilt {
        /// The format.
        format: &'static str,
        /// The feature that it was built without.
        feature: &'static str,
    },
    /// The trace itself cannot be read.
    #[error(transparent)]
    Trace(#[from] tracesmith_trace::Error),
}

impl From<tracesmith_format::Error> for Error {
    fn from(error: tracesmith_format::Error) -> Self {
        Error::Trace(error.into())
    }
}
