//! The figures of importing: megabytes of JSON a second, memory, and the same by Python.
//!
//! `cargo bench -p tracesmith-bench --bench import`. `TRACESMITH_BENCH_MB` sets the size of the file (500), `TRACESMITH_PYTHON`
//! the interpreter that is compared with.

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
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tracesmith_bench::figure::{print, print_head};
use tracesmith_bench::kineto::write_kineto;
use tracesmith_bench::memory::{forget_peak, peak_bytes};
use tracesmith_format::{Columns, Writer, WriterOptions};
use tracesmith_interop::import::{ImportOptions, Input, Sink, import};
use tracesmith_trace::Trace;

fn main() {
    let megabytes: u64 = env::var("TRACESMITH_BENCH_MB").map_or(500, |text| text.parse().unwrap());
    let folder = Folder::new();
    let path = folder.0.join("bench.json");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let (kernels, kernel_time) = write_kineto(&mut out, megabytes * 1_000_000, 7).unwrap();
    out.flush().unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    print_head(&format!(
        "a Kineto file of {} MB, {kernels} kernels, one core",
        bytes / 1_000_000
    ));
    let time = import_file(&folder, &path, bytes);
    check(&folder, kernels, kernel_time);
    python(&path, time);
}

/// A folder that goes with the bench.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("tracesmith-bench-import-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn trace(&self) -> PathBuf {
        self.0.join("bench.sbt")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Three imports; the median of their time on a core is what counts. The first one finds the file in the cache, too: it was just written.
fn import_file(folder: &Folder, path: &Path, bytes: u64) -> Duration {
    forget_peak();
    let before = peak_bytes();
    let mut times: Vec<Duration> = (0..3)
        .map(|_| {
            let start = time_on_core();
            let sink: Box<dyn Sink> = Box::new(File::create(folder.trace()).unwrap());
            let mut writer = Writer::new(sink, WriterOptions::default()).unwrap();
            let input = Input::open(path).unwrap();
            import(vec![input], &ImportOptions::default(), &mut writer).unwrap();
            writer.seal().unwrap();
            time_on_core() - start
        })
        .collect();
    times.sort_unstable();
    let written = fs::metadata(folder.trace()).unwrap().len();
    let speed = bytes as f64 / 1e6 / times[1].as_secs_f64();
    print("import", format!("{speed:.0} MB/s"), "at least 250 MB/s");
    print(
        "slowest and fastest of three",
        format!("{:.2}, {:.2} s", times[2].as_secs_f64(), times[0].as_secs_f64()),
        "",
    );
    if let (Some(before), Some(peak)) = (before, peak_bytes()) {
        print("peak memory", format!("{} MB", peak / 1_000_000), "under 1000 MB");
        print(
            "of it before the import",
            format!("{} MB", before / 1_000_000),
            "",
        );
    }
    print(
        "size of the trace, of the file's",
        format!("{:.1} %", 100.0 * written as f64 / bytes as f64),
        "",
    );
    times[1]
}

/// What was imported is what was written.
fn check(folder: &Folder, kernels: u64, kernel_time: u64) {
    let trace = Trace::open(&folder.trace()).unwrap();
    assert_eq!(trace.kernels.rows(), kernels);
    let sum: u64 = trace
        .kernels
        .columns()
        .flat_map(|(_, columns)| (0..columns.len()).map(|row| columns.end[row].0 - columns.start[row].0))
        .sum();
    assert_eq!(sum, kernel_time);
}

/// The same by Python: its reader of JSON, and what HolisticTraceAnalysis makes of it.
fn python(path: &Path, ours: Duration) {
    const SCRIPT: &str = r"
import json, sys, time
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
start = time.process_time()
with open(sys.argv[1]) as file:
    json.load(file)
read = time.process_time()
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
parsed = time.process_time()
print(read - start, parsed - read)
";
    let interpreter = env::var_os("TRACESMITH_PYTHON").unwrap_or("python3".into());
    let output = Command::new(&interpreter).args(["-c", SCRIPT]).arg(path).output();
    let text = match output {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => {
            println!(
                "no comparison: {} cannot import hta",
                Path::new(&interpreter).display()
            );
            return;
        }
    };
    let last = text.lines().last().unwrap_or_default();
    let seconds: Vec<f64> = last.split(' ').map(|text| text.parse().unwrap()).collect();
    for (what, seconds, asked) in [
        ("Python's json.load", seconds[0], ""),
        (
            "HolisticTraceAnalysis, parse_trace_dataframe",
            seconds[1],
            "at least 20 times as long",
        ),
    ] {
        let ratio = seconds / ours.as_secs_f64();
        print(what, format!("{seconds:.1} s, {ratio:.1} x"), asked);
    }
}

/// Time that this thread had a core: what others take of a busy machine does not count.
fn time_on_core() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let read = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = read.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}
