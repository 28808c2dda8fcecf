//! What can go wrong with a trace file, bad data and failed input or output told apart.

use serde::Serialize;
use std::io;

use crate::block::BlockKind;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system failed to read.
    #[error("cannot read")]
    Read {
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The operating system failed to write.
    #[error("cannot write after {written} bytes")]
    Write {
        /// Bytes of the trace written before.
        written: u64,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// Not even the header is whole.
    #[error("the file ends after {length} bytes, inside its header")]
    CutHeader {
        /// Bytes that there are.
        length: u64,
    },
    /// The file is of another kind.
    #[error("not an SBT trace")]
    NotATrace,
    /// A later major version of the format.
    #[error(
        "the trace is of format version {major}.{minor}; this program reads versions up to {supported}.x"
    )]
    NewerVersion {
        /// The file's major version.
        major: u16,
        /// The file's minor version.
        minor: u16,
        /// The newest major version that this program reads.
        supported: u16,
    },
    /// A block cannot be read; others can.
    #[error("{damage}")]
    Damaged {
        /// Which one, and why.
        damage: Damage,
    },
    /// A row was written that one block cannot hold.
    #[error("a row of {size} bytes is more than a block holds ({limit})")]
    RowTooLarge {
        /// The row's bytes.
        size: u64,
        /// The most that one block unpacks to.
        limit: u64,
    },
    /// A projection names a column that its table does not have.
    #[error("table {table} has no column {column}")]
    NoSuchColumn {
        /// The table.
        table: &'static str,
        /// The name asked for.
        column: String,
    },
    /// More ids were asked for than their type can number.
    #[error("more than {limit} {what} in one trace")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The most that can be numbered.
        limit: u64,
    },
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Error::Damaged { damage }
    }
}

/// A part of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Where it starts in the file.
    #[serde(rename = "offset_bytes")]
    pub offset: u64,
    /// How many bytes it spans.
    #[serde(rename = "length_bytes")]
    pub length: u64,
    /// How many rows it held, when its header could be read.
    pub rows: u32,
    /// The block's kind, when its header could be read.
    pub kind: Option<BlockKind>,
    /// The block's place among all blocks, when known.
    pub sequence: Option<u32>,
    /// What is wrong.
    #[serde(serialize_with = "words")]
    pub problem: Problem,
}

fn words<S: serde::Serializer>(problem: &Problem, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(problem)
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sequence {
            Some(sequence) => write!(f, "block {sequence}")?,
            None => f.write_str("the file")?,
        }
        if let Some(kind) = self.kind {
            write!(f, " ({kind})")?;
        }
        write!(f, " at byte {}: {}", self.offset, self.problem)?;
        match (self.length, self.rows) {
            (0, _) => Ok(()),
            (bytes, 0) => write!(f, " ({bytes} bytes)"),
            (bytes, rows) => write!(f, " ({bytes} bytes, {rows} rows)"),
        }
    }
}

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file's own header does not match its checksum.
    #[error("the file header does not match its checksum")]
    FileHeader,
    /// A block header does not match its checksum, or is none.
    #[error("the block header does not match its checksum")]
    BlockHeader,
    /// The payload does not match its checksum.
    #[error("the payload does not match its checksum")]
    Checksum,
    /// The file ends inside the block.
    #[error("the file ends inside it")]
    Cut,
    /// The operating system could not read it.
    #[error("it could not be read from the disk")]
    Unreadable,
    /// The file was finished longer than it is now.
    #[error("the file was longer when it was finished")]
    Shortened,
    /// There are bytes behind the end marker.
    #[error("bytes follow the end of the trace")]
    Trailing,
    /// The writer never finished the file: it was killed, or is still writing.
    #[error("the file was not finished: the end marker is missing")]
    Unfinished,
    /// The block claims more bytes or rows than any writer may put into one.
    #[error("it claims {claimed} {what}, more than the {limit} that a block may hold")]
    TooLarge {
        /// Bytes or rows.
        what: &'static str,
        /// How many it claims.
        claimed: u64,
        /// The most allowed.
        limit: u64,
    },
    /// The block is compressed in a way this version does not know.
    #[error("its codec {codec} is not known to this version")]
    UnknownCodec {
        /// The codec's number.
        codec: u8,
    },
    /// The list of columns at the payload's start makes no sense.
    #[error("its column list is broken")]
    Directory,
    /// One column cannot be decoded.
    #[error("column {column} cannot be decoded: {why}")]
    Column {
        /// The column's number.
        column: u16,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The index and the block disagree.
    #[error("the index describes another block here")]
    Index,
}
