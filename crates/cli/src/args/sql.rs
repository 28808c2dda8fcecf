//! Arguments of `tracesmith sql`.

use std::path::PathBuf;

use clap::Args;

use super::units::DurationArg;

#[derive(Args)]
pub(crate) struct SqlArgs {
    /// Trace files, of any format that can be read, then the query. Without a query, a terminal opens a prompt;
    /// otherwise the query is read from standard input
    #[arg(required = true, value_name = "FILE... [QUERY]")]
    pub(crate) files_and_query: Vec<String>,
    /// Read the query from a file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// End the query after this time
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<DurationArg>,
    /// Maximum number of rows with --format table; 0 for all. Other formats have all rows
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
    /// The file to write with --format parquet, or - for standard output
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}
