//! Arguments of the commands that are about stacks.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{OutArgs, SelectArgs, WeightArg};

#[derive(ClapArgs)]
pub(crate) struct FlameArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    /// What the width of a box means
    #[arg(long, value_enum, default_value = "gpu-time", value_name = "WHAT")]
    pub(crate) by: WeightArg,
    /// Write folded stacks as text; default if the output's name ends in .folded or .txt
    #[arg(long)]
    pub(crate) folded: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(ClapArgs)]
pub(crate) struct SymbolizeArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    /// Look for debug files in this folder first
    #[arg(long, value_name = "DIR")]
    pub(crate) debug_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}
