//! Arguments of the commands that look at this machine and its GPUs.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

#[derive(ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Also check whether this program can be recorded
    pub(crate) program: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct BenchmarkArgs {
    /// Kernels to launch
    #[arg(short = 'n', long = "kernels", value_name = "N", default_value_t = 10_000)]
    pub(crate) kernels: u64,
    /// Number of streams, used in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) streams: u32,
    /// The GPU's CUDA index
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: u32,
    /// Also capture the stack of every launch
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Keep the trace in this file
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// The trace to write [default: tracesmith-demo.sbt]
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Record a small CUDA program on this machine's GPU instead
    #[arg(long)]
    pub(crate) live: bool,
    /// Has no effect: the included recording is the default
    #[arg(long, hide = true, conflicts_with = "live")]
    pub(crate) recorded: bool,
    /// Rows and columns of the matrices that are multiplied
    #[arg(long, hide = true, default_value_t = 512)]
    pub(crate) side: u32,
}

#[derive(ClapArgs)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    pub(crate) kind: WorkloadKind,
}

#[derive(Subcommand)]
pub(crate) enum WorkloadKind {
    /// Empty kernels
    Benchmark {
        /// Kernels to launch
        #[arg(short = 'n', long = "kernels", default_value_t = 10_000)]
        kernels: u64,
        /// Number of streams, used in turn
        #[arg(long, default_value_t = 1)]
        streams: u32,
        /// The GPU's CUDA index
        #[arg(long, default_value_t = 0)]
        device: u32,
    },
    /// A little of everything
    Demo {
        /// Steps
        #[arg(long, default_value_t = 20)]
        steps: u32,
        /// Elements of a batch
        #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(..=4 << 20))]
        elements: u32,
        /// Rows and columns of the matrices
        #[arg(long, default_value_t = 512)]
        side: u32,
        /// The GPU's CUDA index
        #[arg(long, default_value_t = 0)]
        device: u32,
    },
    /// The version that a libcupti states
    CuptiVersion {
        /// Its file
        file: PathBuf,
    },
}
