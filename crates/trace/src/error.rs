//! What can go wrong with a trace.

use std::io;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot open")]
    Open {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The file is not a trace, or cannot be read.
    #[error(transparent)]
    Format(#[from] tracesmith_format::Error),
    /// A cut was asked for that holds nothing.
    #[error("the time range is empty: it ends at {to} ns and starts at {from} ns")]
    EmptyRange {
        /// Where it starts.
        from: u64,
        /// Where it ends.
        to: u64,
    },
    /// Nothing was given to merge.
    #[error("no traces to merge")]
    NothingToMerge,
}
