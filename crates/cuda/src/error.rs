//! What can go wrong at the door.

/// Why one of NVIDIA's libraries could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No file of this name could be opened.
    #[error("{library} cannot be opened: {reason}")]
    Missing {
        /// The library's name.
        library: &'static str,
        /// The loader's words.
        reason: String,
    },
    /// The library lacks a function that we cannot do without.
    #[error("{library} has no function {function}: it is too old or not what it seems")]
    MissingFunction {
        /// The library's name.
        library: &'static str,
        /// The function's name.
        function: &'static str,
    },
    /// The library is there and does not want to work.
    #[error("{library} cannot be used: {reason}")]
    Refused {
        /// The library's name.
        library: &'static str,
        /// Its words.
        reason: String,
    },
    /// Memory cannot be had at this address, because something else is there.
    #[error("the addresses from {address:#x} on ({bytes} bytes) are taken in this process")]
    AddressTaken {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
    },
    /// Something reaches beyond the memory that it may use.
    #[error("there is no memory at {address:#x} ({bytes} bytes)")]
    NoMemoryThere {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
    },
    /// A call failed.
    #[error("{function} failed with {code} ({name})")]
    Call {
        /// The function.
        function: &'static str,
        /// What it gave back.
        code: i64,
        /// The name of that code, when known.
        name: String,
    },
}

impl Error {
    /// A library that cannot be opened. The loader begins with the library's
    /// name, and so do we.
    pub(crate) fn missing(library: &'static str, loader_words: &str) -> Self {
        let reason = loader_words
            .strip_prefix(library)
            .and_then(|words| words.strip_prefix(": "));
        Self::Missing {
            library,
            reason: reason.unwrap_or(loader_words).to_owned(),
        }
    }

    /// The code that a call gave back, if it was a call that failed.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Call { code, .. } => Some(*code),
            _ => None,
        }
    }
}
