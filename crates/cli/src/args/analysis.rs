//! Arguments of the commands that say what a trace means.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::time_arg::TimeArg;

#[derive(ClapArgs)]
pub(crate) struct AnalyzeArgs {
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// Only this analysis
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) only: Option<AnalysisArg>,
    /// What makes two kernels the same, in the table of kernels
    #[arg(long, value_enum, default_value = "name", value_name = "KEY")]
    pub(crate) by: KernelKeyArg,
    /// Only from this time on
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) from: Option<TimeArg>,
    /// Only before this time
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) to: Option<TimeArg>,
    /// Only this step, counted from 0; 'tracesmith analyze FILE --only steps' lists them
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<usize>,
    /// At most this many rows of a table; 0 is all [default: 10 in tables, all in json]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnalysisArg {
    #[value(alias = "gpu-util")]
    Utilization,
    Streams,
    Idle,
    Steps,
    #[value(alias = "hotspots")]
    Kernels,
    Copies,
    Launches,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelKeyArg {
    /// Their names
    Name,
    /// Their names without arguments of templates and functions
    Short,
    /// Their names and the shapes of grid and block
    Shape,
    /// The line of code that launched them
    Stack,
    /// The NVTX ranges that were open when they were launched
    Nvtx,
}
