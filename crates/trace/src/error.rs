//! What can go wrong with a trace.

use std::io;

use crate::units;

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
    /// The file could not be read.
    #[error("cannot read")]
    Read {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// What was exported could not be written.
    #[error("cannot write after {written} bytes")]
    Write {
        /// Bytes written before.
        written: u64,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// What an export puts in order could not wait in a temporary file.
    #[error("cannot keep rows in a temporary file")]
    Spill {
        /// What the operating system said.
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
    /// A trace holds more than can be looked at as a whole.
    #[error("more than four billion {what}; cut a part out of the trace")]
    TooLarge {
        /// Of what.
        what: &'static str,
    },
    /// A file of few bytes claims very many rows.
    #[error(
        "{rows} {what} would take {} of memory, more than a recorded trace of {} can need",
        units::bytes(*.needed_bytes), units::bytes(*.file_bytes)
    )]
    TooManyRows {
        /// Rows of what.
        what: &'static str,
        /// How many.
        rows: u64,
        /// What they would take.
        needed_bytes: u64,
        /// The file's size.
        file_bytes: u64,
    },
    /// Nothing was given to merge.
    #[error("no traces to merge")]
    NothingToMerge,
}
