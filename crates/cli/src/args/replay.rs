//! Arguments of the commands that run recorded work again.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A trace that was recorded with 'tracesmith profile --record'
    pub(crate) file: PathBuf,
    /// What to do with it
    #[arg(long, value_enum, default_value = "full", value_name = "MODE")]
    pub(crate) mode: ReplayMode,
    /// Run it so often
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// The GPU to run it on
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Run it, and compare the memory with what was recorded
    Full,
    /// Only say what would be done; needs no GPU
    DryRun,
}
