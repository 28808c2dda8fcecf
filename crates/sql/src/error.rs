//! What can go wrong with a query.

use std::time::Duration;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query is wrong.
    #[error("{message}")]
    Query {
        /// SQLite's message, with the place in the query where it is known.
        message: String,
    },
    /// The query did more than it may.
    #[error("queries only read traces; this statement is not allowed")]
    NotAllowed,
    /// The query took too long.
    #[error("the query did not end within {limit:?}")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The query was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The query needs too much memory.
    #[error("the query needs more than {limit_bytes} bytes of memory")]
    OutOfMemory {
        /// The limit.
        limit_bytes: i64,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] tracesmith_trace::Error),
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}
