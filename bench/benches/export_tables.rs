//! The figures of exports of tables and stacks: seconds for a million kernels and as many calls, bytes a row, and the memory
//! that it takes beside that of a quarter of the rows.
//!
//! `cargo bench -p tracesmith-bench --features tracesmith-interop/parquet --bench export_tables`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::memory::peak_bytes;
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::{ClockId, Writer, WriterOptions};
use tracesmith_interop::export::{ExportOptions, Out, Way, exporter};
use tracesmith_trace::Trace;

const CLOCK: ClockId = ClockId(1);

fn main() {
    let words: Vec<String> = env::args().collect();
    if let [_, word, format, file] = &words[..]
        && word == "--memory"
    {
        return tell_memory(format, file);
    }
    let rows = if env::args().any(|argument| argument == "--quick") {
        100_000
    } else {
        1_000_000
    };
    let trace = Arc::new(Trace::from_bytes(file_of(rows)).unwrap());
    print_head(&format!(
        "{rows} kernels and {rows} API calls, 200 names, 8 streams"
    ));
    // A build without the feature has the last one only.
    let formats: &[&str] = if can_write(&trace, "parquet") {
        &["parquet", "arrow", "csv"]
    } else {
        &["csv"]
    };
    for format in formats {
        for table in ["kernels", "api_calls"] {
            show(&trace, format, Some(table), rows);
        }
    }
    let streamed = ["jsonl", "folded", "speedscope", "firefox"];
    for format in streamed {
        show(&trace, format, None, rows * 2);
    }
    let folder = tempfile::tempdir().unwrap();
    let files = [(rows / 4, "quarter.sbt"), (rows, "all.sbt")].map(|(rows, name)| {
        let path = folder.path().join(name);
        fs::write(&path, file_of(rows)).unwrap();
        path
    });
    for format in streamed {
        let taken = files.each_ref().map(|file| memory(format, file));
        if let [Some(quarter), Some(whole)] = taken {
            let figure = format!("{} and {} MB", quarter / 1_000_000, whole / 1_000_000);
            print(
                &format!("{format}, a process's memory for a quarter and for all"),
                figure,
                "the same",
            );
        }
    }
}

/// What a process takes that exports a file: this one takes what it has taken before.
fn memory(format: &str, file: &Path) -> Option<u64> {
    let this = env::current_exe().unwrap();
    let child = Command::new(this).arg("--memory").arg(format).arg(file).output();
    let text = String::from_utf8(child.unwrap().stdout).unwrap();
    text.trim().parse().ok()
}

/// The process itself.
#[allow(clippy::print_stdout, reason = "for the process that started it")]
fn tell_memory(format: &str, file: &str) {
    let trace = Arc::new(tracesmith_interop::open(Path::new(file)).unwrap());
    export(&trace, format, None);
    if let Some(bytes) = peak_bytes() {
        println!("{bytes}");
    }
}

fn can_write(trace: &Arc<Trace>, format: &str) -> bool {
    let mut sink = io::sink();
    let mut out = Out::new(&mut sink);
    match exporter(format).unwrap().way {
        Way::Tables(write) => write(trace, &ExportOptions::default(), "devices", &mut out).is_ok(),
        _ => false,
    }
}

/// Times one export, its bytes thrown away.
fn show(trace: &Arc<Trace>, format: &str, table: Option<&str>, rows: usize) {
    let mut bytes = 0;
    let time = median_time(3, || bytes = export(trace, format, table));
    let what = format!("{format} {}", table.unwrap_or("of both"));
    print(
        &format!("{what}, seconds"),
        format!("{:.2}", time.as_secs_f64()),
        "",
    );
    print(
        &format!("{what}, bytes a row"),
        format!("{:.1}", bytes as f64 / rows as f64),
        "",
    );
}

/// Exports, and gives back how many bytes that were.
fn export(trace: &Arc<Trace>, format: &str, table: Option<&str>) -> u64 {
    let options = ExportOptions::default();
    let mut sink = Counted(0);
    let mut out = Out::new(&mut sink);
    match (exporter(format).unwrap().way, table) {
        (Way::Tables(write), Some(table)) => write(trace, &options, table, &mut out).unwrap(),
        (Way::Stream(write), None) => write(trace, &options, &mut out).unwrap(),
        _ => panic!("{format} is written in another way"),
    };
    out.finish().unwrap()
}

/// Counts what it throws away.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn file_of(rows: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let names: Vec<_> = kernel_names()
        .iter()
        .map(|name| writer.string(name).unwrap())
        .collect();
    let mut training = Training::new(42, &names);
    let mut left = rows;
    while left > 0 {
        let batch = left.min(100_000);
        left -= batch;
        for row in training.kernels(batch) {
            writer.push(CLOCK, &row).unwrap();
        }
        for row in training.api_calls(batch) {
            writer.push(CLOCK, &row).unwrap();
        }
    }
    writer.finish().unwrap()
}
