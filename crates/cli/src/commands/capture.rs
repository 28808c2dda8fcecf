//! What `profile` and `record` have in common.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use tracesmith_collect::{
    Capture, CaptureRange, Destination, Existing, Kinds, ReplayCaptureStart, Report, RowCounts, Steps,
    WindowSchedule,
};
use tracesmith_trace::units;

use crate::args::{CaptureArgs, GraphsArg, KindArg, LevelArg, StackArg};
use crate::counters::counter_source;
use crate::exit::Exit;
use crate::output::Output;

/// Prefixes of environment variables to store in a trace, because they affect GPU programs.
const KEPT_PREFIXES: [&str; 8] = [
    "CUDA_",
    "NCCL_",
    "NVIDIA_",
    "OMPI_COMM_WORLD_",
    "PMI_",
    "PYTORCH_",
    "TORCH_",
    "TRITON_",
];
const KEPT: [&str; 7] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
];

/// The capture settings from the arguments.
pub(crate) fn capture(args: &CaptureArgs, output: &Output) -> anyhow::Result<Capture> {
    let kinds = kinds(args);
    if args.steps.is_some() && !matches!(range(args), CaptureRange::Marker { .. }) {
        bail!("--steps needs --capture-range nvtx:NAME, which names the ranges to count");
    }
    if args.duration.is_some_and(|duration| duration.0.is_zero()) {
        bail!("--duration 0 records nothing; use a longer time, such as 5s, or remove the option");
    }
    if args.buffer_size.0 < 4 << 20 {
        bail!("--buffer-size must be at least 4M");
    }
    if args.stacks.len() > 1 && args.stacks.contains(&StackArg::None) {
        bail!("--stacks none cannot be combined with other values");
    }
    let mut metadata = vec![
        (
            "recorder".to_owned(),
            format!("tracesmith {}", env!("CARGO_PKG_VERSION")),
        ),
        ("capture.kinds".to_owned(), names(&kinds)),
        ("capture.stacks".to_owned(), stacks_in_words(args)),
        ("capture.range".to_owned(), range_in_words(args)),
    ];
    metadata.extend(environment());
    Ok(Capture {
        level: level_name(args).to_owned(),
        kinds: wire_kinds(&kinds, args),
        range: range(args),
        steps: steps(args),
        window: WindowSchedule {
            delay: args.delay.0,
            duration: args.duration.map(|duration| duration.0),
        },
        memory_bytes: args.buffer_size.0,
        flight_recorder: args.flight_recorder.map(|size| size.0),
        counters: kinds.contains(&KindArg::Counters).then_some(counter_source),
        announce: (!output.is_quiet()).then_some(announce),
        counter_period: args.counter_period.0,
        metadata,
    })
}

/// The output file: the given one, or a new file named after the program.
pub(crate) fn destination(args: &CaptureArgs, program: &OsStr) -> anyhow::Result<Destination> {
    let existing = if args.force {
        Existing::Replace
    } else {
        Existing::Refuse
    };
    if let Some(path) = &args.out {
        if path == Path::new("-") {
            bail!("cannot write the trace to standard output, which the program uses; name a file with -o");
        }
        if path.is_dir() {
            bail!("{} is a directory; name a file in it", path.display());
        }
        let path = path.clone();
        return Ok(Destination { path, existing });
    }
    let name = Path::new(program).file_name().unwrap_or(OsStr::new("trace"));
    let path = |number: u32| {
        let mut file = name.to_owned();
        if number > 1 {
            file.push(format!("-{number}"));
        }
        file.push(".sbt");
        PathBuf::from(file)
    };
    let path = match existing {
        Existing::Replace => path(1),
        Existing::Refuse => (1..)
            .map(path)
            .find(|path| !path.exists())
            .unwrap_or_else(|| path(1)),
    };
    Ok(Destination { path, existing })
}

/// Prints the result of a recording to standard error.
pub(crate) fn show(report: &Report, output: &mut Output) {
    for (path, bytes) in &report.files {
        output.note(&format!("wrote {} ({})", path.display(), units::bytes(*bytes)));
    }
    output.note(&contents(report));
    if let Some(words) = recorded(report) {
        output.note(&words);
    }
    let is_empty = report.processes == 0 && report.uncaptured_processes == 0;
    for loss in &report.losses {
        // The command prints a longer explanation if nothing was recorded.
        if is_empty && loss.is_no_process() {
            continue;
        }
        if loss.is_missing_data() {
            output.warning(&format!("incomplete: {loss}"));
        } else {
            output.note(&loss.to_string());
        }
    }
    show_nameless(report, output);
    if let Some((path, _)) = report.files.last().filter(|_| !is_empty) {
        output.note(&format!("next: tracesmith view {} --stats", path.display()));
    }
}

/// Prints the programs and libraries without symbols, at most the first few.
fn show_nameless(report: &Report, output: &mut Output) {
    const SHOWN: usize = 5;
    let mut nameless: Vec<_> = report
        .modules
        .iter()
        .filter_map(|module| Some((module.unnamed, module.path.display(), module.extent.err()?)))
        .collect();
    nameless.sort_by_key(|(frames, ..)| std::cmp::Reverse(*frames));
    for (frames, path, why) in nameless.iter().take(SHOWN) {
        output.note(&format!(
            "{} in {path} not symbolized: {why}",
            units::counted(*frames, "frame", "frames")
        ));
    }
    if nameless.len() > SHOWN {
        output.note(&format!(
            "frames in {} more files not symbolized",
            nameless.len() - SHOWN
        ));
    }
    if !nameless.is_empty() {
        output.note("add symbols later with: tracesmith symbolize FILE --debug-dir DIR");
    }
}

/// The exit code after a recording: the program's, unless it succeeded and recording failed.
pub(crate) fn exit(
    report: Report,
    program: Exit,
    args: &CaptureArgs,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let is_whole = report.is_whole();
    let went_well = matches!(program, Exit::Done | Exit::Code(0));
    match report.failure {
        Some(failure) if went_well => Err(failure.into()),
        Some(failure) => {
            output.error(&failure.into());
            Ok(program)
        }
        None if went_well && args.strict && !is_whole => Ok(Exit::No),
        None => Ok(program),
    }
}

fn contents(report: &Report) -> String {
    let RowCounts {
        kernels,
        copies,
        api_calls,
        syncs,
        allocations,
        markers,
        graph_launches,
        host_calls: _,
        counters,
        recorded_calls: _,
        recorded_bytes: _,
        recorded_nanos: _,
    } = report.rows;
    let mut parts = vec![
        units::counted(kernels, "kernel", "kernels"),
        units::counted(copies, "memcpy or memset", "memcpys and memsets"),
        units::counted(api_calls, "API call", "API calls"),
    ];
    for (count, one, many) in [
        (graph_launches, "graph launch", "graph launches"),
        (syncs, "wait", "waits"),
        (allocations, "allocation", "allocations"),
        (markers, "marker", "markers"),
        (counters, "counter sample", "counter samples"),
    ] {
        if count > 0 {
            parts.push(units::counted(count, one, many));
        }
    }
    let processes = units::counted(u64::from(report.processes), "process", "processes");
    format!("{} from {processes}", parts.join(", "))
}

/// Prints how much memory a replay capture can reach.
fn announce(start: &ReplayCaptureStart) {
    let reachable = units::bytes(start.reachable_bytes);
    let room = start.free_bytes.map(|free| {
        // Memory is read before and after the window. Equal contents are written once.
        let needed = start
            .reachable_bytes
            .saturating_mul(2)
            .saturating_add(start.kept_bytes);
        let doubt = if needed > free {
            ": not enough if the window reaches all of it; the recording then stops"
        } else {
            ""
        };
        format!(", {} of disk space free{doubt}", units::bytes(free))
    });
    let words = format!(
        "recording a window for replay: it can reach {reachable} of memory{}",
        room.unwrap_or_default()
    );
    let mut errors = io::stderr();
    // A closed standard error must not stop the recording.
    let _ = writeln!(errors, "{words}");
}

/// Describes the replay capture, if there is one.
fn recorded(report: &Report) -> Option<String> {
    let rows = report.rows;
    let (path, _) = report.files.last()?;
    (rows.recorded_calls > 0).then(|| {
        format!(
            "recorded for replay: {}, {} of memory (the program was stopped for {}); run: tracesmith replay {}",
            units::counted(rows.recorded_calls, "call", "calls"),
            units::bytes(rows.recorded_bytes),
            units::nanos(rows.recorded_nanos),
            path.display()
        )
    })
}

fn level_name(args: &CaptureArgs) -> &'static str {
    match args.level {
        _ if !args.trace.is_empty() => "custom",
        LevelArg::Light => "light",
        LevelArg::Standard => "standard",
        LevelArg::Full => "full",
    }
}

/// The kinds of a level or a list.
fn kinds(args: &CaptureArgs) -> Vec<KindArg> {
    use KindArg::*;
    if !args.trace.is_empty() {
        return args.trace.clone();
    }
    let mut kinds = vec![Kernels, Copies, Counters];
    if args.level != LevelArg::Light {
        kinds.extend([Api, Sync, Memory, Nvtx, Modules, Streams, Overhead]);
    }
    if args.level == LevelArg::Full {
        kinds.extend([Queries, Latency]);
    }
    kinds
}

/// The kinds that targets receive. Graphs are recorded per node if kernels are recorded, and otherwise as a whole.
fn wire_kinds(kinds: &[KindArg], args: &CaptureArgs) -> Kinds {
    let mut wire = Kinds::NONE;
    for kind in kinds {
        wire |= match kind {
            KindArg::Kernels => Kinds::KERNELS,
            KindArg::Copies => Kinds::COPIES,
            KindArg::Api => Kinds::API,
            KindArg::Queries => Kinds::API | Kinds::API_QUERIES,
            KindArg::Sync => Kinds::SYNCS,
            KindArg::Memory => Kinds::MEMORY,
            KindArg::Nvtx => Kinds::MARKERS,
            KindArg::Modules => Kinds::MODULES,
            KindArg::Streams => Kinds::STREAMS,
            KindArg::Overhead => Kinds::OVERHEAD,
            KindArg::Latency => Kinds::LATENCY,
            KindArg::Graphs if !kinds.contains(&KindArg::Kernels) => Kinds::WHOLE_GRAPHS,
            KindArg::Graphs | KindArg::Counters => Kinds::NONE,
        };
    }
    for stacks in stack_frames(args) {
        wire |= match stacks {
            StackArg::None => Kinds::NONE,
            StackArg::Native => Kinds::STACKS,
            // Python frames need native frames, to find their positions.
            StackArg::Python => Kinds::STACKS | Kinds::PYTHON,
        };
    }
    if args.graphs == GraphsArg::Whole {
        wire |= Kinds::WHOLE_GRAPHS;
    }
    if args.record {
        wire |= Kinds::REPLAY_CAPTURE;
    }
    if args.stub_collectives {
        wire |= Kinds::STUB_COLLECTIVES;
    }
    wire
}

/// The requested frames of stacks, or those of the level.
fn stack_frames(args: &CaptureArgs) -> &[StackArg] {
    match args.level {
        _ if !args.stacks.is_empty() => &args.stacks,
        LevelArg::Standard | LevelArg::Full if args.trace.is_empty() => &[StackArg::Native, StackArg::Python],
        _ => &[],
    }
}

fn stacks_in_words(args: &CaptureArgs) -> String {
    match stack_frames(args) {
        [] => "none".to_owned(),
        frames => names(frames),
    }
}

fn names<T: clap::ValueEnum>(values: &[T]) -> String {
    let names = values.iter().filter_map(|value| value.to_possible_value());
    names
        .map(|value| value.get_name().to_owned())
        .collect::<Vec<_>>()
        .join(",")
}

fn range(args: &CaptureArgs) -> CaptureRange {
    if let Some(pattern) = &args.kernel {
        return CaptureRange::Launch {
            pattern: pattern.clone(),
        };
    }
    args.capture_range
        .as_ref()
        .map_or(CaptureRange::Everything, |range| range.0.clone())
}

fn steps(args: &CaptureArgs) -> Option<Steps> {
    let launch = Steps {
        first: args.nth - 1,
        last: args.nth,
    };
    args.steps
        .map(|steps| steps.0)
        .or_else(|| args.kernel.is_some().then_some(launch))
}

fn range_in_words(args: &CaptureArgs) -> String {
    let range = match range(args) {
        CaptureRange::Everything => "everything".to_owned(),
        CaptureRange::ProfilerApi => "cuda-profiler-api".to_owned(),
        CaptureRange::Marker { name, domain: None } => format!("nvtx:{name}"),
        CaptureRange::Marker {
            name,
            domain: Some(domain),
        } => format!("nvtx:{name}@{domain}"),
        CaptureRange::Launch { pattern } => format!("kernel:{pattern}"),
        CaptureRange::Order => "signal".to_owned(),
    };
    match steps(args) {
        Some(steps) => format!("{range} {}..{}", steps.first, steps.last),
        None => range,
    }
}

/// Environment variables, sorted by name.
fn environment() -> Vec<(String, String)> {
    let mut facts: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let is_kept =
                KEPT.contains(&name.as_str()) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            is_kept.then(|| (format!("env.{name}"), value.to_string_lossy().into_owned()))
        })
        .collect();
    facts.sort();
    facts
}
