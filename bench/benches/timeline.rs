//! The figures of timelines: a whole trace drawn, the summary that `top` makes once, and a look at a part of it.
//!
//! `cargo bench -p tracesmith-bench --bench timeline`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::hint::black_box;
use std::path::PathBuf;

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::memory::{forget_peak, peak_bytes};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::{ClockId, StringId, Timestamp, Writer, WriterOptions};
use tracesmith_trace::overview::{Overview, TimeSpan};
use tracesmith_trace::{Query, Trace};

/// Cells of a wide terminal.
const CELLS: usize = 200;
/// Cells of the summary.
const SUMMARY_CELLS: usize = 1 << 16;

fn main() {
    let quick = env::args().any(|argument| argument == "--quick");
    let rows = if quick { 1_000_000 } else { 10_000_000 };
    print_head(&format!(
        "{} million kernels, 200 names, 8 streams",
        rows / 1_000_000
    ));
    // A file to try the command with, too: it is left there when its name is given.
    let kept = env::var_os("TRACESMITH_BENCH_FILE").map(PathBuf::from);
    let path = kept
        .clone()
        .unwrap_or_else(|| env::temp_dir().join(format!("tracesmith-bench-{}.sbt", std::process::id())));
    write(&path, rows);
    let trace = Trace::open(&path).unwrap();
    let query = Query::default();
    let window = TimeSpan::of(&trace, &query).unwrap();

    forget_peak();
    let time = median_time(3, || {
        black_box(Overview::new(&trace, &query, window, CELLS));
    });
    print(
        "a timeline of all of it, 200 cells",
        format!("{:.2} s", time.as_secs_f64()),
        "about a second",
    );
    if let Some(bytes) = peak_bytes() {
        print("memory for it, at most", format!("{} MB", bytes / 1_000_000), "");
    }
    let summary = Overview::new(&trace, &query, window, SUMMARY_CELLS);
    let time = median_time(3, || {
        black_box(Overview::new(&trace, &query, window, SUMMARY_CELLS));
    });
    print(
        "the summary that top makes once",
        format!("{:.2} s", time.as_secs_f64()),
        "",
    );
    let time = median_time(9, || {
        black_box(summary.coarser(window, CELLS));
    });
    print(
        "the whole drawn from the summary",
        format!("{:.1} ms", time.as_secs_f64() * 1e3),
        "a frame, 16 ms",
    );
    let middle = window.from.0 + window.nanos() / 2;
    let part = TimeSpan::new(Timestamp(middle), Timestamp(middle + window.nanos() / 400));
    let time = median_time(9, || {
        black_box(Overview::new(&trace, &query, part, CELLS));
    });
    print(
        "a four-hundredth of it drawn from the file",
        format!("{:.1} ms", time.as_secs_f64() * 1e3),
        "a frame, 16 ms",
    );
    if kept.is_none() {
        std::fs::remove_file(&path).unwrap();
    }
}

fn write(path: &PathBuf, rows: usize) {
    let file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut writer = Writer::new(file, WriterOptions::default()).unwrap();
    let names: Vec<StringId> = kernel_names()
        .iter()
        .map(|name| writer.string(name).unwrap())
        .collect();
    let mut training = Training::new(42, &names);
    let mut left = rows;
    while left > 0 {
        let batch = training.kernels(left.min(100_000));
        left -= batch.len();
        for row in batch {
            writer.push(ClockId(1), &row).unwrap();
        }
    }
    writer.finish().unwrap();
}
