//! What can be asked on the command line. Parsing only: commands get plain structs.

mod analysis;
mod capture;
mod machine;
mod replay;
#[cfg(feature = "sqlite")]
mod sql;
mod stacks;
mod units;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tracesmith_interop::export::{self, EXPORTERS, Exporter};
use tracesmith_interop::import::{IMPORTERS, Importer};
use tracesmith_trace::{EventKind, SortKey};

use crate::time_arg::TimeArg;
pub(crate) use analysis::{
    AnalysisArg, AnalyzeArgs, DiffArgs, KernelKeyArg, StatesArgs, StreamsArg, StretchArgs,
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

/// Record what programs do on GPUs, and look into the traces
#[derive(Parser)]
#[command(
    name = "tracesmith",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(
    after_help = "Example: tracesmith profile -- python train.py\n\nExit codes: 0 done, 1 the check said no, 2 failed; after profile the program's own."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(ClapArgs, Clone)]
pub(crate) struct GlobalArgs {
    /// How the answer is written; tables are for people, json and csv for programs
    #[arg(
        long,
        global = true,
        help_heading = "Everywhere",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub(crate) format: Format,
    /// No colours, also when NO_COLOR is set
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) no_color: bool,
    /// No progress bars and notes
    #[arg(
        short,
        long,
        global = true,
        help_heading = "Everywhere",
        conflicts_with = "verbose"
    )]
    pub(crate) quiet: bool,
    /// More notes on standard error
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub(crate) verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program and record what it does on GPUs
    #[command(after_help = "\
Examples:
  tracesmith profile -- python train.py
  tracesmith profile -o step.sbt --capture-range nvtx:step --steps 10..12 -- python train.py
  tracesmith profile --flight-recorder 64M -- ./server    (then: kill -USR2 to this process)

The program's input, output, signals and exit code are its own. Ctrl-C ends the program, not the
trace. Children, torchrun and mpirun workers land in the same trace.")]
    Profile(Box<ProfileArgs>),
    /// Record programs that run already and were armed with 'tracesmith env'
    #[command(after_help = "\
Examples:
  tracesmith record --pid 4711 -d 5 -o now.sbt
  tracesmith record -d 10
  tracesmith record --dump --pid 4711")]
    Record(Box<RecordArgs>),
    /// Print the variables that arm a program: our library is loaded, and sleeps until 'record'
    #[command(after_help = "Example: eval \"$(tracesmith env)\" && ./server")]
    Env(EnvArgs),
    /// Show what a trace is: origin, devices, tables, time span, sizes, health
    #[command(after_help = "Example: tracesmith info train.sbt")]
    Info(InfoArgs),
    /// Show events as rows, as totals or as a timeline
    #[command(after_help = "\
Examples:
  tracesmith view train.sbt --kind kernel --name 'flash*' --sort duration --limit 20
  tracesmith view train.sbt --from 1.5s --to 1.6s --stream 7 --format csv > rows.csv
  tracesmith view train.sbt --stats
  tracesmith view train.sbt --timeline --from 1.5s --to 1.6s

Times are offsets from the trace's start (1.5s, 200ms, 10us, 7ns), shares of its span (25%), or
absolute nanoseconds of its clock (@1700000000000000000).
Names are matched as a glob when they hold *, ? or [, as a regular expression between slashes
(/gemm_[0-9]+/), and as a part of the name otherwise.")]
    View(Box<ViewArgs>),
    /// Say what a trace means: how busy devices were, why not, and with what
    #[command(after_help = "\
Examples:
  tracesmith analyze train.sbt
  tracesmith analyze train.sbt --only kernels --by stack --limit 20
  tracesmith analyze trace.json.gz --step 3 --format json
  tracesmith analyze train.sbt --scale 'flash*=0.5'

Busy time is the union of all that ran: what ran at once counts once. Times as in
'tracesmith view --help'.")]
    Analyze(Box<AnalyzeArgs>),
    /// Query traces with SQL: tables, views and functions over one or several files
    #[cfg(feature = "sqlite")]
    #[command(after_help = "\
Examples:
  tracesmith sql train.sbt \"select name, sum(dur) from kernel group by 1 order by 2 desc\"
  tracesmith sql train.sbt \"select * from kernel_stats() limit 10\"
  tracesmith sql before.sbt after.sbt --format csv \"select trace, count(*) from kernels group by 1\"
  tracesmith sql train.sbt -f query.sql --timeout 10s

docs/reference/sql.md lists all tables, views and functions. Queries only read.")]
    Sql(SqlArgs),
    /// Show what streams, contexts and devices were doing: idle, pending, waiting, running
    #[command(after_help = "\
Examples:
  tracesmith states train.sbt
  tracesmith states train.sbt --at 1.5s
  tracesmith states train.sbt --stream 7 --intervals --from 1s --to 1.01s

Times as in 'tracesmith view --help'.")]
    States(StatesArgs),
    /// Write a page about a trace to send around: timeline, busy and idle time, kernels, memory, findings
    #[command(after_help = "Example: tracesmith report train.sbt -o report.html")]
    Report(ReportArgs),
    /// Compare two traces: what got slower, and whether that is more than noise
    #[command(after_help = "\
Examples:
  tracesmith diff before.sbt after.sbt
  tracesmith diff before.sbt after.sbt --fail-over 5%

Exit code 1 when the second takes more time than --fail-over allows.")]
    Diff(DiffArgs),
    /// Move around in a trace: zoom, search, inspect, in the terminal
    #[command(after_help = "\
Example: tracesmith top train.sbt

? shows the keys. Times as in 'tracesmith view --help'.")]
    Top(TopArgs),
    /// Run a recorded window again on a GPU, and compare what it leaves in memory
    #[command(after_help = "\
Examples:
  tracesmith profile --record --capture-range cuda-profiler-api -o step.sbt -- python train.py
  tracesmith replay step.sbt --repeat 3
  tracesmith replay step.sbt --mode dry-run
  tracesmith replay step.sbt --mode timing --kernel flash_attn#3 --repeat 200
  tracesmith replay step.sbt --replace flash_attn=new.cubin --tolerance f16=1e-3
  tracesmith replay step.sbt --until 40 --dump 0x7f2a40000000 --type f32 -o before.npy

Exit codes: 0 the memory came out the same, 1 it differs or cannot be replayed, 2 failed.")]
    Replay(Box<ReplayArgs>),
    /// Take one launch out of a recording: its code and memory, and programs that run it without us
    #[command(after_help = "\
Example: tracesmith extract step.sbt --kernel flash_attn#3 -o flash && cd flash && python3 reproduce.py

The folder holds a program in C++ and one in Python that need the driver and nothing else, and print
whether the memory came out as it was recorded. What comes before the launch is run on a GPU once.")]
    Extract(ExtractArgs),
    /// Save what is left of a damaged or unfinished trace
    #[command(after_help = "Example: tracesmith repair crashed.sbt -o saved.sbt")]
    Repair(RepairArgs),
    /// Make one trace of several: ranks, hosts, processes
    #[command(after_help = "\
Example: tracesmith merge rank0.sbt rank1.sbt -o job.sbt

The same host, process, device or clock in two traces becomes one. Clocks of different hosts stay
apart unless the traces hold readings that link them.")]
    Merge(MergeArgs),
    /// Take a stretch of time out of a trace
    #[command(after_help = "\
Example: tracesmith cut train.sbt --from 1.5s --to 2s -o part.sbt

Events that reach into the stretch are kept whole. Strings and stacks are kept as far as they are
used. Times as in 'tracesmith view --help'.")]
    Cut(CutArgs),
    /// Write a trace in the format of another tool
    #[command(after_help = export_help())]
    Export(ExportArgs),
    /// Draw who launched the work: a flame graph of stacks
    #[command(after_help = "\
Examples:
  tracesmith flame train.sbt -o flame.svg
  tracesmith flame train.sbt --by allocated-bytes -o memory.svg
  tracesmith flame train.sbt --folded -o - | flamegraph.pl > other.svg

Open the picture in a browser: a click makes a function as wide as the picture, / searches.
Work without a stack stands below the ranges and calls that were open when it was launched.")]
    Flame(FlameArgs),
    /// Name the functions of a trace's stacks, here or with files from elsewhere
    #[command(after_help = "\
Examples:
  tracesmith symbolize train.sbt -o named.sbt
  tracesmith symbolize train.sbt --debug-dir ./debug -o named.sbt

Recording names them already where the files are. A debug directory holds .build-id/ab/cdef.debug
as debug packages do, or the files by their names. Files that do not fit the recorded build ids
are not used; files without names are listed.")]
    Symbolize(SymbolizeArgs),
    /// Make a trace of files of other tools
    #[command(after_help = import_help())]
    Import(ImportArgs),
    /// Show a recording of real GPU work: of this machine's GPU, or of one that comes along
    #[command(after_help = "\
Example: tracesmith demo

With a GPU, a small built-in program runs on it and is recorded. Without one, a recording that was
taken on an H200 is opened. Either way the trace is left in tracesmith-demo.sbt.")]
    Demo(DemoArgs),
    /// Show the GPUs of this machine and how they are connected
    #[command(after_help = "\
Example: tracesmith devices --format json

Exit code 1 when there is none.")]
    Devices,
    /// Check whether programs can be recorded here, and say what to do if not
    #[command(after_help = "\
Examples:
  tracesmith doctor
  tracesmith doctor ./train

Exit code 0 when recording works, 1 when it does not.")]
    Doctor(DoctorArgs),
    /// Measure what recording costs: launch real kernels, bare and recorded
    #[command(after_help = "\
Example: tracesmith benchmark -n 10000

Exit code 1 when a kernel is missing from the recording.")]
    Benchmark(BenchmarkArgs),
    /// Run built-in work on a GPU; what demo and benchmark start
    #[command(hide = true)]
    Workload(WorkloadArgs),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example: tracesmith completions bash > ~/.local/share/bash-completion/completions/tracesmith"
    )]
    Completions(CompletionsArgs),
    /// Print versions of the program and of the file format
    #[command(after_help = "Example: tracesmith version --format json")]
    Version,
}

#[derive(ClapArgs)]
pub(crate) struct InfoArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    /// Read every block and check it, not only what is shown
    #[arg(long)]
    pub(crate) verify: bool,
    /// Show what each column takes in the file
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
    /// Only events with such a name: a part of it, a glob, or /a regular expression/
    #[arg(long, value_name = "PATTERN")]
    pub(crate) name: Option<String>,
    /// Only work of these streams
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
    /// Only events of these GPUs: a number as the driver counts, HOST:NUMBER, or #ID
    #[arg(long, value_delimiter = ',', value_name = "GPU")]
    pub(crate) device: Vec<String>,
    /// Only events of these processes: a pid, or #ID
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pub(crate) process: Vec<String>,
    /// Only events that are not over before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<TimeArg>,
    /// Only events that start before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<TimeArg>,
    /// At most this many rows; 0 is all [default: 100 for tables, all for json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = units::number_from_0)]
    pub(crate) limit: Option<usize>,
    /// The order of rows
    #[arg(long, value_name = "KEY", default_value = "start", value_parser = sort_parser())]
    pub(crate) sort: SortKey,
    /// Totals by kind and by name instead of rows
    #[arg(long, conflicts_with = "sort")]
    pub(crate) stats: bool,
    /// Below each row the code that asked for it, the innermost function first
    #[arg(long, conflicts_with = "stats")]
    pub(crate) stacks: bool,
    /// What every GPU and stream was busy with, as a picture; with --kind api,marker,host threads too
    #[arg(long, conflicts_with_all = ["stats", "stacks", "sort"])]
    pub(crate) timeline: bool,
    /// Columns of the timeline [default: those of the terminal]; for json and csv its cells
    #[arg(long, value_name = "N", requires = "timeline", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) width: Option<u16>,
    /// Draw the timeline in plain ASCII, also when the locale is not UTF-8
    #[arg(long, requires = "timeline")]
    pub(crate) ascii: bool,
}

#[derive(ClapArgs)]
pub(crate) struct TopArgs {
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// Where to start looking
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<TimeArg>,
    /// Where the first window ends
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<TimeArg>,
    /// Only these kinds of event
    #[arg(long, short = 't', value_delimiter = ',', value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Vec<EventKind>,
    /// Only work of these streams
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
    /// Only events of these GPUs: a number as the driver counts, HOST:NUMBER, or #ID
    #[arg(long, value_delimiter = ',', value_name = "GPU")]
    pub(crate) device: Vec<String>,
    /// Only events of these processes: a pid, or #ID
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pub(crate) process: Vec<String>,
    /// Draw in plain ASCII, also when the locale is not UTF-8
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
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// The page's heading; the trace's name without it
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) stretch: StretchArgs,
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
    /// What places hosts on one timeline: their time of day, or PTP clocks that one grandmaster keeps
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
    /// PTP clocks, where hosts have them
    Ptp,
}

#[derive(ClapArgs)]
pub(crate) struct CutArgs {
    /// The trace, or - for standard input
    pub(crate) file: PathBuf,
    /// Where the stretch starts
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<TimeArg>,
    /// Where the stretch ends
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<TimeArg>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(ClapArgs)]
pub(crate) struct ExportArgs {
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// The format; without it, the name of the output decides
    #[arg(short = 'f', long = "as", value_name = "FORMAT", value_parser = exporter_parser())]
    pub(crate) exporter: Option<&'static Exporter>,
    /// The file or folder to write, or - for standard output [default: the trace's name with the
    /// format's ending]
    #[arg(short, long = "output", value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Only events that are not over before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<TimeArg>,
    /// Only events that start before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<TimeArg>,
    /// Only device work of these streams; what the host did is kept
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
    /// Only this table, as one file, for formats of tables
    #[arg(long, value_name = "NAME", value_parser = table_parser())]
    pub(crate) table: Option<String>,
    /// What stacks are weighed by, for formats that hold nothing else
    #[arg(long, value_enum, default_value = "gpu-time", value_name = "WHAT")]
    pub(crate) weight: WeightArg,
    /// How a Perfetto trace holds GPU work: as tracks, which every version of Perfetto shows, as render stages, which newer
    /// ones know more about, or as both
    #[arg(long, value_enum, default_value = "tracks", value_name = "FORM")]
    pub(crate) gpu_form: GpuFormArg,
    /// Write a Perfetto trace without compression
    #[arg(long)]
    pub(crate) no_compression: bool,
    /// Write a Perfetto trace as files of about this size, one after the other in time: NAME.1.pftrace, NAME.2.pftrace…
    #[arg(long, value_name = "SIZE")]
    pub(crate) split: Option<units::SizeArg>,
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
    /// The files; several that belong together become one trace
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
    /// The format, when the content shall not decide
    #[arg(short = 'f', long = "as", value_name = "FORMAT", value_parser = importer_parser())]
    pub(crate) importer: Option<&'static Importer>,
    /// The program that was traced, for its functions' names (XRay)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) binary: Option<PathBuf>,
    /// What times count, where the file does not say so (JSON)
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
    help + "\nTimes as in 'tracesmith view --help'."
}

fn import_help() -> String {
    let mut help = String::from(
        "\
Example: tracesmith import trace.json.gz -o trace.sbt

Every command that reads a trace takes these files too. Files packed with gzip or zstd are unpacked
on the way.

Formats, told apart by content:
",
    );
    for importer in IMPORTERS {
        help += &format!("  {:<10} {}\n", importer.name, importer.title);
    }
    help
}
