//! The figures of exports of tables: seconds for a million kernels and as many calls, and bytes a row.
//!
//! `cargo bench -p tracesmith-bench --features tracesmith-trace/parquet --bench export_tables`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::io::{self, Write};

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::{ClockId, Writer, WriterOptions};
use tracesmith_trace::Trace;
use tracesmith_trace::export::{ExportOptions, Out, Way, exporter};

const CLOCK: ClockId = ClockId(1);

fn main() {
    let rows = if env::args().any(|argument| argument == "--quick") {
        100_000
    } else {
        1_000_000
    };
    let trace = Trace::from_bytes(file_of(rows)).unwrap();
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
    for format in ["jsonl", "folded"] {
        show(&trace, format, None, rows * 2);
    }
}

fn can_write(trace: &Trace, format: &str) -> bool {
    let mut sink = io::sink();
    let mut out = Out::new(&mut sink);
    match exporter(format).unwrap().way {
        Way::Tables(write) => write(trace, &ExportOptions::default(), "devices", &mut out).is_ok(),
        _ => false,
    }
}

/// Times one export, its bytes thrown away.
fn show(trace: &Trace, format: &str, table: Option<&str>, rows: usize) {
    let options = ExportOptions::default();
    let mut bytes = 0;
    let time = median_time(3, || {
        let mut sink = Counted(0);
        let mut out = Out::new(&mut sink);
        match (exporter(format).unwrap().way, table) {
            (Way::Tables(write), Some(table)) => write(trace, &options, table, &mut out).unwrap(),
            (Way::Stream(write), None) => write(trace, &options, &mut out).unwrap(),
            _ => panic!("{format} is written in another way"),
        };
        bytes = out.finish().unwrap();
    });
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
