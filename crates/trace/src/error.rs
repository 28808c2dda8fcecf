//! What can go wrong with a trace.

use std::io;

use crate::units;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A step that the trace does not have.
    #[error("there is no step {number}: {}", match steps {
        0 => "no steps were found in the trace".to_owned(),
        1 => "the trace has 1 step, number 0".to_owned(),
        steps => format!("the trace has {steps} steps, counted from 0"),
    })]
    NoSuchStep {
        /// The number of the step.
        number: usize,
        /// The number of steps that were found.
        steps: usize,
    },
    /// A time range, process, rank, GPU or stream that the trace does not have.
    #[error("{problem}")]
    NotInTrace {
        /// What is missing, and what the trace has instead.
        problem: String,
    },
    /// An analysis of a part of the work that it can only judge as a whole.
    #[error("the analysis {analysis} needs {needs}, and the selection leaves some of it out")]
    SelectionTooNarrow {
        /// The analysis.
        analysis: &'static str,
        /// What it must see as a whole.
        needs: &'static str,
    },
    /// Memory was asked for by stream.
    #[error(
        "the analysis {analysis} cannot be restricted to streams: memory belongs to a process and a device"
    )]
    NotByStream {
        /// The analysis.
        analysis: &'static str,
    },
    /// A row that a table does not have.
    #[error("{table} has no row {row}: it has {} rows, counted from 0", units::count(*.rows))]
    NoSuchRow {
        /// The table.
        table: &'static str,
        /// The number of the row.
        row: u64,
        /// The rows of the table, by the headers of its blocks.
        rows: u64,
    },
    /// A row that cannot be read.
    #[error("row {row} of {table} is in a damaged part of the file and cannot be read")]
    DamagedRow {
        /// The table.
        table: &'static str,
        /// The number of the row.
        row: u64,
    },
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
    /// There is no table of this name.
    #[error("there is no table {name}")]
    NoSuchTable {
        /// The name.
        name: String,
    },
    /// A table has no column of this name.
    #[error("the table {table} has no column {column}")]
    NoSuchColumn {
        /// The table.
        table: &'static str,
        /// The name.
        column: String,
    },
    /// A scan was ended from outside.
    #[error("cancelled")]
    Cancelled,
    /// Arrow refused an array.
    #[error("cannot make an Arrow array: {0}")]
    Arrow(String),
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
    /// A name pattern is not a regular expression.
    #[error("reading the regular expression {pattern}")]
    Regex {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: Box<regex::Error>,
    },
    /// A name pattern is not a glob.
    #[error("reading the glob {pattern}")]
    Glob {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: Box<globset::Error>,
    },
    /// Nothing was given to merge.
    #[error("no traces to merge")]
    NothingToMerge,
}
