//! The figures of the grid that Studio draws from: time and memory until it is ready, and processor time for tiles and
//! slices of any part of it.
//!
//! `cargo bench -p tracesmith-bench --bench studio`. `TRACESMITH_BENCH_KERNELS` sets the number of kernels (10 million; there
//! are twice as many calls). `TRACESMITH_BENCH_FILE` names a file to read instead.

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tracesmith_bench::figure::{print, print_head};
use tracesmith_bench::memory::peak_bytes;
use tracesmith_bench::training_trace::write_jobs;
use tracesmith_bench::workload::Random;
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, GridOptions};

/// Names the file in a process that is to make a grid of it: the memory of one that writes a trace says nothing.
const ONCE: &str = "TRACESMITH_BENCH_STUDIO_ONCE";
/// Processes with a GPU each: eight streams and two threads. These are 40 rows, and one for each GPU.
const JOBS: u32 = 4;
/// Rows on a screen.
const ROWS: u32 = 40;
const CELLS: u64 = 1_024;
const WINDOWS: usize = 1_000;
/// The shortest window, in nanoseconds.
const SHORTEST: f64 = 20_000.0;
/// Slices of a row that are sent at once.
const MOST_SLICES: usize = 4_000;
const RUNS: usize = 5;

fn main() {
    if let Some(path) = env::var_os(ONCE) {
        return measure(Path::new(&path));
    }
    let kernels: usize =
        env::var("TRACESMITH_BENCH_KERNELS").map_or(10_000_000, |text| text.parse().unwrap());
    let given = env::var_os("TRACESMITH_BENCH_FILE").map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| {
        let name = format!("tracesmith-bench-studio-{}.sbt", std::process::id());
        env::temp_dir().join(name)
    });
    if given.is_none() {
        write_jobs(&path, kernels, JOBS).unwrap();
    }
    let status = Command::new(env::current_exe().unwrap())
        .env(ONCE, &path)
        .status()
        .unwrap();
    if given.is_none() {
        std::fs::remove_file(&path).unwrap();
    }
    assert!(status.success());
}

fn measure(path: &Path) {
    let begin = Instant::now();
    let trace = Arc::new(Trace::open(path).unwrap());
    let grid = Grid::new(&trace, GridOptions::default()).unwrap();
    let ready = begin.elapsed();
    let peak = peak_bytes();
    print_head(&format!(
        "{} kernels, {} calls, {} rows, {} cores",
        trace.kernels.rows(),
        trace.api_calls.rows(),
        grid.rows(),
        std::thread::available_parallelism().map_or(1, usize::from)
    ));
    print(
        "from the file to ready, the first time",
        seconds(ready),
        "under 2 s",
    );
    print(
        "memory of the grid",
        megabytes(grid.memory_bytes() as u64),
        "under 650 MB",
    );
    if let Some(bytes) = peak {
        print(
            "peak memory of the process until then",
            megabytes(bytes),
            "under 800 MB",
        );
    }

    let rows: Vec<u32> = (0..grid.rows().min(ROWS)).collect();
    let windows = windows(grid.span());
    let times = windows.iter().map(|(from, nanos)| {
        // One or two cells for each of a thousand pixels.
        let level = (nanos / CELLS).max(1).ilog2() as u8;
        let tile = (from >> level) / CELLS;
        processor_time(|| {
            for row in &rows {
                black_box(grid.cells(*row, level, tile * CELLS, CELLS as usize));
            }
        })
    });
    print_times(
        "tile of 1,024 cells x 40 rows",
        times.collect(),
        ["under 3 ms", "under 10 ms", ""],
    );
    let times = windows.iter().map(|(from, nanos)| {
        processor_time(|| {
            for row in &rows {
                black_box(grid.slices(*row, *from, from + nanos, MOST_SLICES));
            }
        })
    });
    print_times("4,000 slices at most x 40 rows", times.collect(), ["", "", ""]);
    let all: Vec<u32> = (0..grid.rows()).collect();
    let begin = Instant::now();
    black_box(grid.totals(&all, 0, u64::MAX));
    print("totals of everything", seconds(begin.elapsed()), "");
    drop(grid);

    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            let trace = Arc::new(Trace::open(path).unwrap());
            black_box(Grid::new(&trace, GridOptions::default()).unwrap());
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    print(
        "ready again, median of five",
        seconds(times[RUNS / 2]),
        "under 2 s",
    );
    print("fastest of them", seconds(times[0]), "");
}

/// Windows of a trace: their begins, and their lengths, of which each order of magnitude has as many.
fn windows(span: u64) -> Vec<(u64, u64)> {
    let mut random = Random::new(42);
    let mut share = || random.below(1 << 30) as f64 / (1_u64 << 30) as f64;
    (0..WINDOWS)
        .map(|_| {
            let nanos = SHORTEST * (span as f64 / SHORTEST).max(1.0).powf(share());
            let nanos = (nanos as u64).clamp(1, span);
            ((share() * (span - nanos) as f64) as u64, nanos)
        })
        .collect()
}

fn processor_time(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let begin = now();
    work();
    now() - begin
}

fn print_times(name: &str, mut times: Vec<Duration>, asked: [&str; 3]) {
    times.sort_unstable();
    let of = [("median", 50), ("99 %", 99), ("most", 100)];
    for ((word, percent), asked) in of.into_iter().zip(asked) {
        let time = times[((times.len() - 1) * percent) / 100];
        print(
            &format!("{name}: {word}"),
            format!("{:.2} ms", time.as_secs_f64() * 1e3),
            asked,
        );
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
