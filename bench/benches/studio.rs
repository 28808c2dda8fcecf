//! The figures of Studio: time and memory until it is ready to draw, processor time for tiles and slices of any part, and
//! the same of the whole server as a page asks it.
//!
//! `cargo bench -p tracesmith-bench --bench studio`. `TRACESMITH_BENCH_KERNELS` sets the number of kernels (10 million; there
//! are twice as many calls). `TRACESMITH_BENCH_FILE` names a file to read instead.
//!
//! Times are those of a clock. Where the machine has other work, the processor time beside them is what counts. Frames are
//! drawn in a browser: `studio_pages.rs` of the cli's tests prints the figures of a flight.

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tracesmith_bench::figure::{print, print_head};
use tracesmith_bench::memory::{peak_bytes, resident_bytes};
use tracesmith_bench::training_trace::write_jobs;
use tracesmith_bench::workload::Random;
use tracesmith_studio::{Options, Server};
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, GridOptions};

/// Names the file in a process that is to make a grid of it: the memory of one that writes a trace says nothing.
const ONCE: &str = "TRACESMITH_BENCH_STUDIO_ONCE";
/// The same in a process that is to serve it.
const SERVED: &str = "TRACESMITH_BENCH_STUDIO_SERVED";
/// The server has forgotten analyses by then that nobody asks about.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(80);
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
    if let Some(path) = env::var_os(SERVED) {
        return serve(Path::new(&path));
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
    let all = [ONCE, SERVED].map(|part| {
        let mut program = Command::new(env::current_exe().unwrap());
        program.env(part, &path).status().unwrap()
    });
    if given.is_none() {
        std::fs::remove_file(&path).unwrap();
    }
    assert!(all.iter().all(|status| status.success()));
}

/// What a page waits for: the layout, the tiles of the whole trace, and then everything that is computed in the background.
fn serve(path: &Path) {
    let begin = Instant::now();
    let server = Server::bind(Options {
        files: vec![path.to_owned()],
        ..Options::default()
    })
    .unwrap();
    let page = Page::of(&server);
    thread::spawn(move || server.run().unwrap());
    let layout = page.layout_when(|layout| layout["state"] == "ready");
    let (ready, work) = (begin.elapsed(), processor_time_of_all());
    print_head("the same through the server");
    print("until the layout is there", seconds(ready), "under 2 s");
    print("  processor time of all threads", seconds(work), "");
    print_peak("peak memory until then", "under 800 MB");
    print_resident("memory then");
    let span = layout["span_ns"].as_u64().unwrap();
    let level = (span / CELLS).max(1).ilog2();
    let tiles = (span >> level) / CELLS + 1;
    let generation = layout["generation"].as_str().unwrap();
    let tracks = layout["tracks"].as_array().unwrap().iter();
    let rows: u32 = tracks.map(|track| track["rows"].as_u64().unwrap() as u32).sum();
    let picture = Instant::now();
    for first in 0..tiles {
        page.ask(&format!(
            "t/0/{generation}/tiles?level={level}&first={first}&count=1&rows=0-{}",
            rows.min(ROWS) - 1
        ));
    }
    print(
        &format!("tiles of the first picture, {} rows", rows.min(ROWS)),
        format!("{:.1} ms", picture.elapsed().as_secs_f64() * 1e3),
        "under 1 s with the page",
    );
    page.layout_when(|layout| layout["idle"] != "pending");
    print(
        "until the rows of idle time are there",
        seconds(begin.elapsed()),
        "",
    );
    print_peak("peak memory until then", "under 800 MB");
    print_resident("memory then");
    for name in ["utilization", "idle", "steps", "findings"] {
        page.ask(&format!("t/0/analysis/{name}"));
    }
    print(
        "until the verdict and the findings are there",
        seconds(begin.elapsed()),
        "",
    );
    print(
        "  processor time of all threads",
        seconds(processor_time_of_all()),
        "",
    );
    print_peak("peak memory until then", "under 800 MB");
    print_resident("memory then");
    thread::sleep(FORGOTTEN_AFTER);
    print_resident("memory when nobody has asked for a while");
}

/// Asks a server as a page does.
struct Page {
    address: SocketAddr,
    key: String,
}

impl Page {
    fn of(server: &Server) -> Self {
        let url = server.url();
        let (_, key) = url.split_once("#key=").unwrap();
        Page {
            address: server.addresses()[0],
            key: key.to_owned(),
        }
    }

    /// The body of a good answer.
    fn ask(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "GET /api/v1/{path} HTTP/1.1\r\nhost: {}\r\nx-tracesmith-key: {}\r\nconnection: close\r\n\r\n",
            self.address, self.key
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    fn layout_when(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let layout: Value = serde_json::from_slice(&self.ask("t/0/layout")).unwrap();
            if is_it(&layout) {
                return layout;
            }
            assert_ne!(layout["state"], "failed", "{layout}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn print_resident(name: &str) {
    if let Some(bytes) = resident_bytes() {
        print(name, megabytes(bytes), "under 800 MB");
    }
}

fn print_peak(name: &str, asked: &str) {
    if let Some(bytes) = peak_bytes() {
        print(name, megabytes(bytes), asked);
    }
}

fn measure(path: &Path) {
    let begin = Instant::now();
    let trace = Arc::new(Trace::open(path).unwrap());
    let grid = Grid::new(&trace, GridOptions::default()).unwrap();
    let (ready, work) = (begin.elapsed(), processor_time_of_all());
    let peak = peak_bytes();
    print_head(&format!(
        "{} kernels, {} calls, {} rows, {} cores",
        trace.kernels.rows(),
        trace.api_calls.rows(),
        grid.rows(),
        thread::available_parallelism().map_or(1, usize::from)
    ));
    print(
        "from the file to ready, the first time",
        seconds(ready),
        "under 2 s",
    );
    print("  processor time of all threads", seconds(work), "");
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

/// Of this process so far.
fn processor_time_of_all() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
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
