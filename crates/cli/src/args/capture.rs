//! Arguments of the commands that record.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::units::{DurationArg, RangeArg, SizeArg, StepsArg};

#[derive(ClapArgs)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// Do not set LD_PRELOAD; profilers inside the program may then conflict with the recording
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Also write NAME.pftrace, for ui.perfetto.dev
    #[arg(long)]
    pub(crate) perfetto: bool,
    /// Stop when the program exits (primary), or when all processes that it started have exited (all)
    #[arg(long, value_enum, default_value = "primary", value_name = "WHOM")]
    pub(crate) wait: WaitArg,
    /// Pass SIGINT, SIGQUIT and SIGHUP on to all processes of this process group, for programs that start this command in a
    /// group of its own
    #[arg(long, hide = true)]
    pub(crate) signal_group: bool,
    /// Record with NVIDIA's nsys and import the result; other capture options than -o and --force are ignored
    #[arg(long, group = "recorder")]
    pub(crate) nsys: bool,
    /// More arguments for 'nsys profile', quoted as in a shell
    #[arg(long, requires = "nsys", value_name = "ARGS", allow_hyphen_values = true)]
    pub(crate) nsys_args: Option<String>,
    /// Record with Apple's Instruments (macOS) and import its tables; other capture options than -o, --force and -d are
    /// ignored
    #[arg(long, group = "recorder")]
    pub(crate) xctrace: bool,
    /// The Instruments template
    #[arg(
        long,
        requires = "xctrace",
        default_value = "Metal System Trace",
        value_name = "NAME"
    )]
    pub(crate) xctrace_template: String,
    /// Record with MetaX's mcTracer and import its trace; other capture options are ignored
    #[arg(long, group = "recorder")]
    pub(crate) mctracer: bool,
    /// Keep the other profiler's files next to the trace
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
    /// Only these processes [default: all of this user that were started with the 'tracesmith env' variables]
    #[arg(long, short, value_delimiter = ',', value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Write the contents of a process's flight recorder, and exit
    #[arg(long, requires = "pid")]
    pub(crate) dump: bool,
    /// Take orders from standard input, and answer on standard output, for programs
    #[arg(long, hide = true, requires = "pid", conflicts_with = "dump")]
    pub(crate) control: bool,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

#[derive(ClapArgs)]
pub(crate) struct EnvArgs {
    /// Do not set LD_PRELOAD
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Initialize CUPTI when a process initializes CUDA. Costs 3 % per launch, and avoids a rare crash if
    /// recording starts while the program instantiates a CUDA graph
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
    /// Record only these kinds of events
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub(crate) trace: Vec<KindArg>,
    /// Record CUDA graphs node by node, or as a whole (cheaper)
    #[arg(long, value_enum, default_value = "nodes", value_name = "HOW")]
    pub(crate) graphs: GraphsArg,
    /// Frames in the stacks of launches, copies, allocations and waits [default: native,python; none with --level light
    /// or -t]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FRAMES")]
    pub(crate) stacks: Vec<StackArg>,
    /// Wait this long before recording starts
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delay: DurationArg,
    /// Record for this long [default: until the program exits]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<DurationArg>,
    /// Record only inside these ranges: cuda-profiler-api, nvtx:NAME, nvtx:NAME@DOMAIN, or signal (SIGUSR2 to
    /// tracesmith starts and stops)
    #[arg(long, value_name = "RANGE")]
    pub(crate) capture_range: Option<RangeArg>,
    /// Record only ranges A to B-1, counted from 0
    #[arg(long, value_name = "A..B", requires = "capture_range")]
    pub(crate) steps: Option<StepsArg>,
    /// Record only one launch of a kernel whose name matches this pattern (* and ? are wildcards); see --nth
    #[arg(long, value_name = "NAME", conflicts_with = "capture_range")]
    pub(crate) kernel: Option<String>,
    /// Which launch of that kernel, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) nth: u64,
    /// Keep only the latest records, up to this size per process; written on SIGUSR2, crash or exit
    #[arg(long, value_name = "SIZE")]
    pub(crate) flight_recorder: Option<SizeArg>,
    /// Also record what 'tracesmith replay' needs: calls, code and memory contents
    #[arg(long, conflicts_with = "flight_recorder")]
    pub(crate) record: bool,
    /// Store the result of each NCCL collective; a replay writes it instead of running the collective
    #[arg(long, requires = "record")]
    pub(crate) stub_collectives: bool,
    /// Memory limit for buffers in each recorded process
    #[arg(short, long, value_name = "SIZE", default_value = "64M")]
    pub(crate) buffer_size: SizeArg,
    /// Time between samples of GPU counters
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) counter_period: DurationArg,
    /// Exit with 1 if any data was lost
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
    /// Kernels, memcpys, memsets and GPU counters
    Light,
    /// light, plus API calls, waits, allocations, NVTX, modules, streams, overhead and stacks
    Standard,
    /// standard, plus query calls (cudaGetDevice, cudaEventQuery, …) and queue and submit times
    Full,
}

/// Frames that a stack may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackArg {
    /// No stacks
    None,
    /// Native functions
    Native,
    /// Python functions, in place of the interpreter's frames
    Python,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Kernels
    Kernels,
    /// Memcpys and memsets
    Copies,
    /// CUDA runtime and driver API calls
    Api,
    /// api, plus query calls
    Queries,
    /// Synchronization and CUDA events
    Sync,
    /// Allocations and memory pools
    Memory,
    /// NVTX ranges and marks
    Nvtx,
    /// CUDA graph launches
    Graphs,
    /// Loaded modules
    Modules,
    /// Contexts and streams
    Streams,
    /// CUPTI's own overhead, and JIT compilations
    Overhead,
    /// Queue and submit times of launches
    Latency,
    /// GPU counters
    Counters,
}
