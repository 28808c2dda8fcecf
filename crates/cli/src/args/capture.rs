//! Arguments of the commands that record.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::units::{DurationArg, RangeArg, SizeArg, StepsArg};

#[derive(ClapArgs)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Leave LD_PRELOAD alone; other profilers in the program may then get in the way
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Also write the trace for ui.perfetto.dev, beside the trace: NAME.pftrace
    #[arg(long)]
    pub(crate) perfetto: bool,
    /// Whose end is the end of the recording: the program's, or that of all processes it started
    #[arg(long, value_enum, default_value = "primary", value_name = "WHOM")]
    pub(crate) wait: WaitArg,
    /// Have NVIDIA's nsys record, and import what it writes; of the options for recording only -o and --force count
    #[arg(long, group = "recorder")]
    pub(crate) nsys: bool,
    /// Further arguments for 'nsys profile', as in a shell
    #[arg(long, requires = "nsys", value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) nsys_args: Option<String>,
    /// Have Apple's Instruments record, on macOS, and import its tables; likewise
    #[arg(long, group = "recorder")]
    pub(crate) xctrace: bool,
    /// The template that Instruments records with
    #[arg(
        long,
        requires = "xctrace",
        default_value = "Metal System Trace",
        value_name = "NAME"
    )]
    pub(crate) xctrace_template: String,
    /// Have MetaX's mcTracer record, and import its trace; likewise
    #[arg(long, group = "recorder")]
    pub(crate) mctracer: bool,
    /// Keep the other profiler's own files beside the trace
    #[arg(long, requires = "recorder")]
    pub(crate) keep_trace: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(ClapArgs)]
pub(crate) struct RecordArgs {
    /// Only these processes [default: every armed one of this user, also those that start meanwhile]
    #[arg(long, short, value_delimiter = ',', value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Have the flight recorder of a process written out, and do nothing else
    #[arg(long, requires = "pid")]
    pub(crate) dump: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

#[derive(ClapArgs)]
pub(crate) struct EnvArgs {
    /// Leave LD_PRELOAD alone
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Have CUPTI ready in each process that initialises CUDA, for programs that make graphs all the time: then no moment
    /// of a first window is dangerous to them
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(ClapArgs)]
pub(crate) struct CaptureArgs {
    /// The trace to write [default: the program's name with .sbt]
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the trace if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// How much to record
    #[arg(
        long,
        value_enum,
        default_value = "standard",
        conflicts_with = "trace",
        value_name = "LEVEL"
    )]
    pub(crate) level: LevelArg,
    /// Just these kinds
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub(crate) trace: Vec<KindArg>,
    /// Whether CUDA graphs are recorded node by node or, at less cost, as a whole
    #[arg(long, value_enum, default_value = "nodes", value_name = "HOW")]
    pub(crate) graphs: GraphsArg,
    /// Take the stack of every launch, copy, allocation and wait, with such frames [default: native,python; none at the
    /// level light and with -t]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FRAMES")]
    pub(crate) stacks: Vec<StackArg>,
    /// Time before recording begins
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delay: DurationArg,
    /// Time that recording goes on [default: to the end]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<DurationArg>,
    /// Record only within such ranges: cuda-profiler-api, nvtx:NAME, nvtx:NAME@DOMAIN, or from one SIGUSR2 that tracesmith
    /// gets to the next (signal)
    #[arg(long, value_name = "RANGE")]
    pub(crate) capture_range: Option<RangeArg>,
    /// Record only these of the ranges, counted from 0; the second number is not among them
    #[arg(long, value_name = "A..B", requires = "capture_range")]
    pub(crate) steps: Option<StepsArg>,
    /// Record only the launch of a kernel with such a name: '*' and '?' stand for anything
    #[arg(long, value_name = "NAME", conflicts_with = "capture_range")]
    pub(crate) kernel: Option<String>,
    /// Which of its launches, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) nth: u64,
    /// Keep only the last part, this much for each process; SIGUSR2 or the program's death writes it
    #[arg(long, value_name = "SIZE")]
    pub(crate) flight_recorder: Option<SizeArg>,
    /// Also record what is needed to run the window again (`tracesmith replay`): calls, code, and the memory that they reach
    #[arg(long, conflicts_with = "flight_recorder")]
    pub(crate) record: bool,
    /// Record what a collective of NCCL left in memory in its place, which no replay could make again
    #[arg(long, requires = "record")]
    pub(crate) stub_collectives: bool,
    /// The most memory that we take within each process
    #[arg(short, long, value_name = "SIZE", default_value = "64M")]
    pub(crate) buffer_size: SizeArg,
    /// Time between two samples of the GPUs' counters
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) counter_period: DurationArg,
    /// Exit with 1 when anything was lost
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitArg {
    Primary,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphsArg {
    Nodes,
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    /// Kernels, copies and counters
    Light,
    /// Also calls, waits, memory, markers, modules, streams, overhead and stacks
    Standard,
    /// Also calls that only ask, and when launches were queued
    Full,
}

/// Frames that a stack may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackArg {
    /// No stacks
    None,
    /// Functions of the program and its libraries
    Native,
    /// Functions of Python, where the interpreter's own frames were
    Python,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Kernels
    Kernels,
    /// Copies and sets
    Copies,
    /// Calls of the CUDA runtime and driver
    Api,
    /// Also the calls that only ask
    Queries,
    /// Waits, events
    Sync,
    /// Allocations and pools
    Memory,
    /// Ranges and marks
    Nvtx,
    /// Launches of graphs
    Graphs,
    /// Device code that is loaded
    Modules,
    /// Contexts and streams
    Streams,
    /// The profiler's own work, and compilations
    Overhead,
    /// When launches were queued and submitted
    Latency,
    /// The GPUs' counters
    Counters,
}
