//! The figures of the JSON exports: seconds, bytes a second and bytes a kernel.
//!
//! `cargo bench -p tracesmith-bench --bench export_json`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::io;
use std::time::Duration;

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::{ClockId, StringId, Writer, WriterOptions};
use tracesmith_interop::export::{ExportOptions, Out, Way, exporter};
use tracesmith_trace::Trace;

const CLOCK: ClockId = ClockId(1);
const KERNELS: usize = 1_000_000;

fn main() {
    let trace = Trace::from_bytes(file()).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    print_head(&format!(
        "export of {} million kernels with as many API calls and an arrow for each, {cores} cores, into nowhere",
        KERNELS / 1_000_000
    ));
    for name in ["json", "kineto"] {
        let Way::Stream(export) = exporter(name).unwrap().way else {
            unreachable!("JSON is a stream");
        };
        let mut bytes = 0;
        let time: Duration = median_time(3, || {
            let mut sink = io::sink();
            let mut out = Out::new(&mut sink);
            let report = export(&trace, &ExportOptions::default(), &mut out).unwrap();
            assert_eq!(report.events, 2 * KERNELS as u64);
            bytes = out.finish().unwrap();
        });
        let seconds = time.as_secs_f64();
        print(
            &format!("{name}, whole export"),
            format!("{seconds:.2} s"),
            "under 1 s",
        );
        print(
            &format!("{name}, text"),
            format!("{:.0} MB/s", bytes as f64 / seconds / 1e6),
            "",
        );
        print(
            &format!("{name}, bytes a kernel, its call and arrow included"),
            format!("{:.0}", bytes as f64 / KERNELS as f64),
            "",
        );
    }
}

/// Calls and kernels of the same seed, so that they belong together.
fn file() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let mut names: Vec<StringId> = kernel_names()
        .iter()
        .map(|name| writer.string(name).unwrap())
        .collect();
    let mut kernels = Training::new(42, &names);
    // Calls are named by the first names: most are launches.
    for (at, name) in ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaEventRecord"]
        .iter()
        .enumerate()
    {
        names[at] = writer.string(name).unwrap();
    }
    let mut calls = Training::new(42, &names);
    for _ in 0..KERNELS / 100_000 {
        for row in calls.api_calls(100_000) {
            writer.push(CLOCK, &row).unwrap();
        }
        for row in kernels.kernels(100_000) {
            writer.push(CLOCK, &row).unwrap();
        }
    }
    writer.finish().unwrap()
}
