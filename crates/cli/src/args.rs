//! What can be asked on the command line. Parsing only: commands get plain structs.

mod analysis;
mod capture;
mod machine;
mod replay;
#[cfg(feature = "sqlite")]
mod sql;
mod stacks;
mod studio;
mod units;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tracesmith_interop::export::{self, EXPORTERS, Exporter};
use tracesmith_interop::import::{IMPORTERS, Importer};
use tracesmith_trace::{EventKind, SortKey};

use crate::select::{Moment, RowRef};
pub(crate) use analysis::{
    AnalyzeArgs, DiffArgs, DiffKeyArg, KernelKeyArg, SelectArgs, StatesArgs, StreamsArg, TimeRangeArgs,
};
pub(crate) use capture::{
    CaptureArgs, EnvArgs, GraphsArg, KindArg, LevelArg, ProfileArgs, RecordArgs, StackArg, WaitArg,
};
pub(crate) use machine::{BenchmarkArgs, DemoArgs, DoctorArgs, WorkloadArgs, WorkloadKind};
pub(crate) use replay::{
    ElementArg, ExtractArgs, KernelArg, OpsArg, ReplaceArg, ReplayArgs, ReplayMode, ToleranceArg,
};
#[cfg(feature = "sqlite")]
pub(crate) use sql::SqlArgs;
pub(crate) use stacks::{FlameArgs, SymbolizeArgs};
pub(crate) use studio::StudioArgs;
#[cfg(feature = "sqlite")]
pub(crate) use units::DurationArg;

/// Profile GPU programs, analyze the traces, and replay recorded GPU work
#[derive(Parser)]
#[command(
    name = "tracesmith",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Example: tracesmith profile -- python train.py\n\nExit codes: 0 success, 1 a check failed, 2 error. profile exits with the program's exit code.\n\nDocumentation: docs/introduction.md. 'mdbook serve --open' shows it as a book."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(ClapArgs, Clone)]
pub(crate) struct GlobalArgs {
    /// Output format: table for people, json or csv for programs
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub(crate) format: FormatArg,
    /// No color; the variable NO_COLOR does the same
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_color: bool,
    /// Print no progress bars and no notes
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Global options",
        conflicts_with = "verbose"
    )]
    pub(crate) quiet: bool,
    /// Print more notes to standard error
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
}

/// How output is written, as the command line names it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    Table,
    Json,
    Csv,
    /// Only `sql` writes it.
    #[value(hide = true)]
    Parquet,
}

/// How text is written to standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program and record its GPU work
    #[command(after_help = "\
Examples:
  tracesmith profile -- python train.py
  tracesmith profile -o step.sbt --capture-range nvtx:step --steps 10..12 -- python train.py
  tracesmith profile --flight-recorder 64M -- ./server    (SIGUSR2 to tracesmith writes a trace)

The program keeps its input, output, signals and exit code. Ctrl-C stops the program; the trace is
still written. Child processes, and workers of torchrun and mpirun, are in the same trace.

Guide: docs/guides/capture.md")]
    Profile(Box<ProfileArgs>),
    /// Record running programs that were started with the 'tracesmith env' variables
    #[command(after_help = "\
Examples:
  tracesmith record --pid 4711 -d 5 -o now.sbt
  tracesmith record -d 10
  tracesmith record --dump --pid 4711

Guide: docs/guides/attach.md")]
    Record(Box<RecordArgs>),
    /// Print environment variables that let 'record' attach to a program later
    #[command(after_help = "Example: eval \"$(tracesmith env)\" && ./server")]
    Env(EnvArgs),
    /// Describe a trace: origin, devices, tables, time span, sizes, lost data
    #[command(after_help = "Example: tracesmith info train.sbt")]
    Info(InfoArgs),
    /// List events, or show totals or a timeline
    #[command(after_help = "\
Examples:
  tracesmith view train.sbt --kind kernel --name 'flash*' --sort duration --limit 20
  tracesmith view train.sbt --from 1.5s --to 1.6s --stream 7 --format csv > rows.csv
  tracesmith view train.sbt --stats
  tracesmith view train.sbt --timeline --from 1.5s --to 1.6s

A time is an offset from the start of the trace (1.5s, 200ms, 10us, 7ns), a share of its time span
(25%), or absolute nanoseconds on its clock (@1700000000000000000).
A name pattern with *, ? or [ is a glob. Between slashes it is a regular expression
(/gemm_[0-9]+/). Any other pattern matches a part of the name.")]
    View(Box<ViewArgs>),
    /// Analyze a trace: GPU utilization, idle causes, top kernels, findings
    #[command(after_help = "\
Examples:
  tracesmith analyze train.sbt
  tracesmith analyze train.sbt --only kernels --by line --limit 20
  tracesmith analyze trace.json.gz --step 3 --format json
  tracesmith analyze train.sbt --scale 'flash*=0.5'

Busy time is the union of all GPU work: work that overlaps counts once. 'tracesmith view --help'
describes how to write times.

Guide: docs/guides/analyze.md")]
    Analyze(Box<AnalyzeArgs>),
    /// Query traces with SQL: tables, views and functions over one or several files
    #[cfg(feature = "sqlite")]
    #[command(after_help = "\
Examples:
  tracesmith sql train.sbt \"select name, sum(dur) from kernel group by 1 order by 2 desc\"
  tracesmith sql train.sbt \"select * from kernel_stats() limit 10\"
  tracesmith sql before.sbt after.sbt --format csv \"select trace, count(*) from kernels group by 1\"
  tracesmith sql train.sbt -f query.sql --timeout 10s
  tracesmith sql train.sbt --format parquet -o kernels.parquet \"select * from kernels\"
  tracesmith sql train.sbt                             (opens a prompt; .help lists its commands)

docs/reference/sql.md lists all tables, views and functions. Queries only read.")]
    Sql(SqlArgs),
    /// Show the states of streams, contexts and devices: idle, pending, waiting, running
    #[command(after_help = "\
Examples:
  tracesmith states train.sbt
  tracesmith states train.sbt --at 1.5s
  tracesmith states train.sbt --stream 7 --intervals --from 1s --to 1.01s

'tracesmith view --help' describes how to write times.")]
    States(StatesArgs),
    /// Write a report as one HTML page: timeline, utilization, kernels, memory, findings
    #[command(after_help = "Example: tracesmith report train.sbt -o report.html")]
    Report(ReportArgs),
    /// Compare two traces: what changed, per step and kernel, and how certain that is
    #[command(after_help = "\
Examples:
  tracesmith diff before.sbt after.sbt
  tracesmith diff before.sbt after.sbt --fail-over 5%

Exit code 1 if the second trace takes more time than --fail-over allows.

Guide: docs/guides/compare.md")]
    Diff(DiffArgs),
    /// Browse a trace in the terminal: zoom, search, inspect
    #[command(after_help = "\
Example: tracesmith top train.sbt

? shows the keys. 'tracesmith view --help' describes how to write times.")]
    Top(TopArgs),
    /// Browse traces in a browser: timeline, search, idle causes, findings, SQL
    #[command(after_help = "\
Examples:
  tracesmith studio train.sbt
  tracesmith studio before.sbt after.sbt
  tracesmith studio                          (the page lists the files below the current folder)
  tracesmith studio train.sbt --no-browser --port 8000

On a remote machine: run the last example there, 'ssh -L 8000:127.0.0.1:8000 MACHINE' here, and open
the address that it prints. The address has a key; without it, nobody gets anything. Ctrl-C ends it.")]
    Studio(StudioArgs),
    /// Replay recorded GPU work and compare the resulting memory
    #[command(after_help = "\
Examples:
  tracesmith profile --record --capture-range cuda-profiler-api -o step.sbt -- python train.py
  tracesmith replay step.sbt --repeat 3
  tracesmith replay step.sbt --mode dry-run
  tracesmith replay step.sbt --mode timing --kernel flash_attn#3 --repeat 200
  tracesmith replay step.sbt --replace flash_attn=new.cubin --tolerance f16=1e-3
  tracesmith replay step.sbt --until 40 --dump 0x7f2a40000000 --type f32 -o before.npy

Exit codes: 0 the memory is the same, 1 it differs or cannot be compared, 2 error.

Guide: docs/guides/replay.md")]
    Replay(Box<ReplayArgs>),
    /// Extract one kernel launch as a standalone C++ and Python reproducer
    #[command(after_help = "\
Example: tracesmith extract step.sbt --kernel flash_attn#3 -o flash && cd flash && python3 reproduce.py

The folder contains a C++ program and a Python program. Both need only the CUDA driver. They print
whether the memory is as recorded. If other kernels ran before the launch, extract needs a GPU.")]
    Extract(ExtractArgs),
    /// Save the readable part of a damaged or unfinished trace
    #[command(after_help = "Example: tracesmith repair crashed.sbt -o saved.sbt")]
    Repair(RepairArgs),
    /// Merge several traces into one: ranks, hosts, processes
    #[command(after_help = "\
Example: tracesmith merge rank0.sbt rank1.sbt -o job.sbt

Hosts, processes, devices and clocks that occur in several traces are merged. Hosts are placed on one timeline
if the traces contain clock readings that link them.")]
    Merge(MergeArgs),
    /// Copy a time range, processes, GPUs or streams into a new trace
    #[command(after_help = "\
Examples:
  tracesmith cut train.sbt --from 1.5s --to 2s -o part.sbt
  tracesmith cut job.sbt --rank 1 -o rank1.sbt

Events that overlap the range are kept whole. CPU events are kept for processes with selected GPU
work. 'tracesmith view --help' describes how to write times.")]
    Cut(CutArgs),
    /// Convert a trace to another tool's format
    #[command(after_help = export_help())]
    Export(ExportArgs),
    /// Draw a flame graph of the code that launched GPU work
    #[command(after_help = "\
Examples:
  tracesmith flame train.sbt -o flame.svg
  tracesmith flame train.sbt --by allocated-bytes -o memory.svg
  tracesmith flame train.sbt --folded -o - | flamegraph.pl > other.svg

Open the picture in a browser. Click a function to zoom in; press / to search. Work without a stack
is shown below the NVTX ranges and calls that were open at its launch.

Guide: docs/guides/stacks.md")]
    Flame(FlameArgs),
    /// Resolve the function names of a trace's stacks, with local or other debug files
    #[command(after_help = "\
Examples:
  tracesmith symbolize train.sbt -o named.sbt
  tracesmith symbolize train.sbt --debug-dir ./debug -o named.sbt

Recording already resolves names from the files on this machine. A debug directory contains
.build-id/ab/cdef.debug as in debug packages, or the files by name. Files with another build ID
are not used. Files without symbols are listed.")]
    Symbolize(SymbolizeArgs),
    /// Convert other tools' files to a trace
    #[command(after_help = import_help())]
    Import(ImportArgs),
    /// Record a small program on this machine's GPU, or open an included H200 trace
    #[command(after_help = "\
Example: tracesmith demo

With a GPU, a small built-in program runs and is recorded. Without one, a trace recorded on an H200
is opened. In both cases the trace is written to tracesmith-demo.sbt.")]
    Demo(DemoArgs),
    /// Show the GPUs of this machine and how they are connected
    #[command(after_help = "\
Example: tracesmith devices --format json

Exit code 1 if there is no GPU.")]
    Devices,
    /// Check whether this machine can record programs, and show fixes
    #[command(after_help = "\
Examples:
  tracesmith doctor
  tracesmith doctor ./train

Exit code 0 if recording works, 1 if not.

Guide: docs/troubleshooting.md")]
    Doctor(DoctorArgs),
    /// Measure the overhead of recording: launch kernels, unprofiled and recorded
    #[command(after_help = "\
Example: tracesmith benchmark -n 10000

Exit code 1 if a kernel is missing from the recording.")]
    Benchmark(BenchmarkArgs),
    /// Run the built-in work of demo and benchmark on a GPU
    #[command(hide = true)]
    Workload(WorkloadArgs),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example: tracesmith completions bash > ~/.local/share/bash-completion/completions/tracesmith"
    )]
    Completions(CompletionsArgs),
    /// Print the versions of the program and of the file format
    #[command(after_help = "Example: tracesmith version --format json")]
    Version,
}

#[derive(ClapArgs)]
pub(crate) struct InfoArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    /// Read and check every block of the file
    #[arg(long)]
    pub(crate) verify: bool,
    /// Show the size of each column in the file
    #[arg(long)]
    pub(crate) columns: bool,
}

#[derive(ClapArgs)]
pub(crate) struct ViewArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    /// Only these kinds of event
    #[arg(long, short = 't', value_delimiter = ',', value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Vec<EventKind>,
    /// Only events whose name matches: a part of it, a glob, or /a regular expression/
    #[arg(long, value_name = "PATTERN")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Only these rows, as findings name them: kernels:9094
    #[arg(long, value_delimiter = ',', value_name = "TABLE:ROW",
          conflicts_with_all = ["kind", "name", "stream", "device", "process", "rank", "from", "to", "step", "stats", "timeline", "sort"])]
    pub(crate) row: Vec<RowRef>,
    /// Show at most this many rows; 0 for all [default: 100 for tables, all for json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = units::number_from_0)]
    pub(crate) limit: Option<usize>,
    /// Print lean JSON, on one line: lists have as many entries as tables have rows, and entries have no lists
    #[arg(long, conflicts_with = "stacks")]
    pub(crate) lean: bool,
    /// Sort rows by this key
    #[arg(long, value_name = "KEY", default_value = "start", value_parser = sort_parser())]
    pub(crate) sort: SortKey,
    /// Show totals by kind and name instead of rows
    #[arg(long, conflicts_with = "sort")]
    pub(crate) stats: bool,
    /// Show the stack of each row below it, the innermost function first
    #[arg(long, conflicts_with = "stats")]
    pub(crate) stacks: bool,
    /// Draw a timeline of GPUs and streams; with --kind api,marker,host also of threads
    #[arg(long, conflicts_with_all = ["stats", "stacks", "sort"])]
    pub(crate) timeline: bool,
    /// Width of the timeline in columns [default: the terminal's]; for json and csv, the number of cells
    #[arg(long, value_name = "N", requires = "timeline", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) width: Option<u16>,
    /// Draw the timeline in plain ASCII
    #[arg(long, requires = "timeline")]
    pub(crate) ascii: bool,
}

#[derive(ClapArgs)]
pub(crate) struct TopArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Start at this time, or at this row: kernels:9094
    #[arg(long, value_name = "TIME|TABLE:ROW", conflicts_with_all = ["from", "to", "step"])]
    pub(crate) at: Option<Moment>,
    /// Only these kinds of event
    #[arg(long, short = 't', value_delimiter = ',', value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Vec<EventKind>,
    /// Draw in plain ASCII
    #[arg(long)]
    pub(crate) ascii: bool,
}

#[derive(ClapArgs)]
pub(crate) struct OutArgs {
    /// The file to write, or - for standard output
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    /// The page's title [default: the trace's name]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) stretch: TimeRangeArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(ClapArgs)]
pub(crate) struct RepairArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(ClapArgs)]
pub(crate) struct MergeArgs {
    /// The traces
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Clock that aligns hosts: the time of day, or PTP clocks with a common grandmaster
    #[arg(long, value_enum, default_value_t, value_name = "CLOCK")]
    pub(crate) clock: ClockArg,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// What places hosts on one timeline.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockArg {
    /// The time of day
    #[default]
    Utc,
    /// PTP clocks, on hosts that have one
    Ptp,
}

#[derive(ClapArgs)]
pub(crate) struct CutArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(ClapArgs)]
pub(crate) struct ExportArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    /// The format [default: from the output's suffix]
    #[arg(short = 'f', long = "as", value_name = "FORMAT", value_parser = exporter_parser())]
    pub(crate) exporter: Option<&'static Exporter>,
    /// The file or folder to write, or - for standard output [default: the trace's name with the
    /// format's ending]
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Only this table, as one file (for table formats)
    #[arg(long, value_name = "NAME", value_parser = table_parser())]
    pub(crate) table: Option<String>,
    /// What to add up per stack, for formats that contain only stacks
    #[arg(long, value_enum, default_value = "gpu-time", value_name = "WHAT")]
    pub(crate) weight: WeightArg,
    /// How GPU work is stored in a Perfetto trace: as tracks, which every version of Perfetto shows, as render stages, for
    /// newer versions, or as both
    #[arg(long, value_enum, default_value = "tracks", value_name = "FORM")]
    pub(crate) gpu_form: GpuFormArg,
    /// Do not compress a Perfetto trace
    #[arg(long)]
    pub(crate) no_compression: bool,
    /// Split a Perfetto trace by time into files of about this size: NAME.1.pftrace, NAME.2.pftrace…
    #[arg(long, value_name = "SIZE")]
    pub(crate) split: Option<units::SizeArg>,
    /// Write one Kineto file with renumbered correlation IDs, instead of one per process: NAME.rank0.pt.trace.json…
    #[arg(long)]
    pub(crate) single_file: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuFormArg {
    Tracks,
    RenderStages,
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightArg {
    GpuTime,
    Launches,
    AllocatedBytes,
    Samples,
}

#[derive(ClapArgs)]
pub(crate) struct ImportArgs {
    /// The files; several files become one trace
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
    /// The format [default: detected from the content]
    #[arg(short = 'f', long = "as", value_name = "FORMAT", value_parser = importer_parser())]
    pub(crate) importer: Option<&'static Importer>,
    /// The traced program, for function names (XRay)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) binary: Option<PathBuf>,
    /// The unit of times, if the file does not specify it (JSON)
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnitArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeUnitArg {
    Ns,
    Us,
}

#[derive(ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

fn kind_parser() -> impl clap::builder::TypedValueParser<Value = EventKind> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(EventKind::ALL.iter().map(|kind| kind.name())).map(|name| {
        *EventKind::ALL
            .iter()
            .find(|kind| kind.name() == name)
            .expect("the parser admits only these names")
    })
}

fn sort_parser() -> impl clap::builder::TypedValueParser<Value = SortKey> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(["start", "duration", "bytes", "name"]).map(|name| match name.as_str() {
        "duration" => SortKey::Duration,
        "bytes" => SortKey::Bytes,
        "name" => SortKey::Name,
        _ => SortKey::Start,
    })
}

fn exporter_parser() -> impl clap::builder::TypedValueParser<Value = &'static Exporter> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = EXPORTERS
        .iter()
        .map(|exporter| PossibleValue::new(exporter.name).aliases(exporter.aliases));
    PossibleValuesParser::new(values)
        .map(|name| export::exporter(&name).expect("the parser admits only these names"))
}

fn table_parser() -> impl clap::builder::TypedValueParser<Value = String> {
    clap::builder::PossibleValuesParser::new(export::table_names())
}

fn importer_parser() -> impl clap::builder::TypedValueParser<Value = &'static Importer> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(IMPORTERS.iter().map(|importer| importer.name)).map(|name| {
        IMPORTERS
            .iter()
            .find(|importer| importer.name == name)
            .expect("the parser admits only these names")
    })
}

fn export_help() -> String {
    let mut help = String::from(
        "\
Examples:
  tracesmith export train.sbt -f perfetto
  tracesmith export train.sbt -o part.pftrace --from 1.5s --to 1.6s

Formats:
",
    );
    for exporter in EXPORTERS {
        help += &format!(
            "  {:<10} {} (.{})\n",
            exporter.name, exporter.title, exporter.extension
        );
    }
    help + "\n'tracesmith view --help' describes how to write times.\n\nGuide: docs/guides/convert.md"
}

fn import_help() -> String {
    let mut help = String::from(
        "\
Example: tracesmith import trace.json.gz -o trace.sbt

Every command that reads a trace also reads these files directly. Files compressed with gzip or zstd
are decompressed.

Formats, detected from the content:
",
    );
    for importer in IMPORTERS {
        help += &format!("  {:<10} {}\n", importer.name, importer.title);
    }
    help + "\nGuide: docs/guides/convert.md"
}
