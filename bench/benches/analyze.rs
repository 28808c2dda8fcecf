//! The figures of analysis: time and memory for ten million kernels with twenty million calls, how time grows, and the
//! same by HolisticTraceAnalysis.
//!
//! Every run is a process of its own, as with the command: a process that has done it before has its memory at hand, which
//! a small trace gains more by than a large one.
//!
//! `cargo bench -p tracesmith-bench --bench analyze`. `TRACESMITH_BENCH_KERNELS` sets the number of kernels (10 million),
//! `TRACESMITH_BENCH_MB` the size of the Kineto file (100), `TRACESMITH_PYTHON` the interpreter that is compared with.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench may stop on any error, and prints"
)]

use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracesmith_bench::figure::{print, print_head};
use tracesmith_bench::kineto::write_kineto;
use tracesmith_bench::memory::peak_bytes;
use tracesmith_bench::training_trace::write_trace;
use tracesmith_trace::Trace;
use tracesmith_trace::analysis::{Analysis, FindingsReport, SummaryReport};
use tracesmith_trace::reconstruct::Window;

/// Names the file in a process that is to analyse it once.
const ONCE: &str = "TRACESMITH_BENCH_ANALYZE_ONCE";
/// Runs of which the one in the middle counts.
const RUNS: usize = 5;

fn main() {
    if let Some(path) = env::var_os(ONCE) {
        return analyze_once(Path::new(&path));
    }
    let kernels: usize =
        env::var("TRACESMITH_BENCH_KERNELS").map_or(10_000_000, |text| text.parse().unwrap());
    let folder = Folder::new();
    let small = measured(&folder, kernels / 10);
    let large = measured(&folder, kernels);
    print(
        "ten times the kernels",
        format!("{:.1} x", large.as_secs_f64() / small.as_secs_f64()),
        "at most 11 x",
    );
    compared(&folder);
}

/// A folder that goes with the bench.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("tracesmith-bench-analyze-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// What `tracesmith analyze` does: opens, rebuilds, answers, finds.
fn analyze(path: &Path) -> (SummaryReport, FindingsReport) {
    let trace = Arc::new(Trace::open(path).unwrap());
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let summary = analysis.summary().unwrap();
    let findings = analysis.findings(&summary).unwrap();
    (summary, findings)
}

fn measured(folder: &Folder, kernels: usize) -> Duration {
    let path = folder.0.join("bench.sbt");
    write_trace(&path, kernels).unwrap();
    print_head(&format!(
        "{kernels} kernels, {} calls, {} cores",
        2 * kernels,
        cores()
    ));
    let mut runs: Vec<Run> = (0..RUNS).map(|_| run(&path)).collect();
    runs.sort_unstable_by_key(|run| run.time);
    assert!(runs.iter().all(|run| run.kernels == kernels as u64));
    let is_whole = kernels >= 10_000_000;
    let [fastest, middle, slowest] = [0, RUNS / 2, RUNS - 1].map(|at| runs[at].time);
    print(
        "analyze, median of five",
        format!("{:.2} s", middle.as_secs_f64()),
        if is_whole { "under 6 s" } else { "" },
    );
    print(
        "slowest and fastest",
        format!("{:.2}, {:.2} s", slowest.as_secs_f64(), fastest.as_secs_f64()),
        "",
    );
    if let Some(peak) = runs.iter().filter_map(|run| run.peak).max() {
        let asked = if is_whole { "under 2500 MB" } else { "" };
        print("peak memory", format!("{} MB", peak / 1_000_000), asked);
    }
    middle
}

/// What one process tells.
struct Run {
    time: Duration,
    kernels: u64,
    peak: Option<u64>,
}

/// Analyses a file in a new process.
fn run(path: &Path) -> Run {
    let output = Command::new(env::current_exe().unwrap())
        .env(ONCE, path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text
        .split_whitespace()
        .map(|number| number.parse::<u64>().unwrap());
    let (nanos, kernels) = (numbers.next().unwrap(), numbers.next().unwrap());
    Run {
        time: Duration::from_nanos(nanos),
        kernels,
        peak: numbers.next(),
    }
}

fn analyze_once(path: &Path) {
    let start = Instant::now();
    let (summary, _) = analyze(path);
    let nanos = start.elapsed().as_nanos();
    assert_eq!(summary.doubts.without_call, 0);
    let peak = peak_bytes().map_or(String::new(), |bytes| bytes.to_string());
    println!("{nanos} {} {peak}", summary.utilization.devices[0].ops);
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The same Kineto file, import included, by us and by HolisticTraceAnalysis.
fn compared(folder: &Folder) {
    const SCRIPT: &str = r"
import sys, time, warnings, logging
warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
start = time.time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_queue_length_summary()
analysis.get_cuda_kernel_launch_stats(visualize=False)
print(time.time() - start)
";
    let megabytes: u64 = env::var("TRACESMITH_BENCH_MB").map_or(100, |text| text.parse().unwrap());
    let path = folder.0.join("bench.json");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let (kernels, _) = write_kineto(&mut out, megabytes * 1_000_000, 7).unwrap();
    out.flush().unwrap();
    print_head(&format!(
        "a Kineto file of {megabytes} MB, {kernels} kernels, import included"
    ));
    let start = Instant::now();
    analyze(&path);
    let ours = start.elapsed().as_secs_f64();
    print("tracesmith", format!("{ours:.2} s"), "");
    let interpreter = env::var_os("TRACESMITH_PYTHON").unwrap_or("python3".into());
    let output = Command::new(&interpreter)
        .args(["-c", SCRIPT])
        .arg(&path)
        .output();
    let seconds: Option<f64> = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .and_then(|text| text.lines().last()?.trim().parse().ok());
    match seconds {
        Some(seconds) => print(
            "HolisticTraceAnalysis, six of its analyses",
            format!("{seconds:.1} s, {:.1} x", seconds / ours),
            "at least 20 times as long",
        ),
        None => println!(
            "no comparison: {} has no hta, or it fails on this file",
            Path::new(&interpreter).display()
        ),
    }
}
