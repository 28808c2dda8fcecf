//! The figures of the Perfetto exporter: seconds and bytes for a million launches with their flows.
//!
//! `cargo bench -p tracesmith-bench --bench export_perfetto`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::fs::File;
use std::path::Path;

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::tables::{Clock, ClockKind, Device, Process};
use tracesmith_format::{ClockId, DeviceId, ProcessId, StringId, Writer, WriterOptions};
use tracesmith_interop::export::{
    ExportOptions, GpuForm, Out, PacketPacking, PerfettoOptions, Way, exporter,
};

const CLOCK: ClockId = ClockId(1);
const LAUNCHES: usize = 1_000_000;

fn main() {
    let folder = env::temp_dir();
    let input = folder.join(format!("tracesmith-bench-{}.sbt", std::process::id()));
    std::fs::write(&input, trace_of(LAUNCHES)).unwrap();
    let output = input.with_extension("pftrace");
    print_head("1 million kernels, 1 million API calls and the flows between them, all cores");
    let default = PerfettoOptions::default();
    let plain = PerfettoOptions {
        packing: PacketPacking::None,
        ..default
    };
    let stages = PerfettoOptions {
        gpu_form: GpuForm::RenderStages,
        ..default
    };
    figures("", default, &input, &output, ("under 0.5 s", "under 60"));
    figures(", not compressed", plain, &input, &output, ("", ""));
    figures(", as render stages", stages, &input, &output, ("", ""));
    std::fs::remove_file(&input).unwrap();
    std::fs::remove_file(&output).unwrap();
}

/// A trace file with so many launches: the calls, and the kernels that they launched.
fn trace_of(launches: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let names: Vec<StringId> = kernel_names()
        .iter()
        .map(|name| writer.string(name).unwrap())
        .collect();
    writer
        .define(&Clock {
            id: CLOCK,
            kind: ClockKind::MONOTONIC,
            ..Clock::default()
        })
        .unwrap();
    writer
        .define(&Process {
            id: ProcessId(1),
            pid: 4711,
            ..Process::default()
        })
        .unwrap();
    writer
        .define(&Device {
            id: DeviceId(1),
            ..Device::default()
        })
        .unwrap();
    // The same seed gives the same launches: first as calls, then as kernels.
    let (mut calls, mut kernels) = (Training::new(7, &names), Training::new(7, &names));
    for _ in 0..launches / 10_000 {
        for call in calls.api_calls(10_000) {
            writer.push(CLOCK, &call).unwrap();
        }
        for kernel in kernels.kernels(10_000) {
            writer.push(CLOCK, &kernel).unwrap();
        }
    }
    writer.finish().unwrap()
}

/// From opening the trace to the last byte of the export.
fn figures(what: &str, perfetto: PerfettoOptions, input: &Path, output: &Path, asked: (&str, &str)) {
    let Way::Stream(write) = exporter("perfetto").unwrap().way else {
        return;
    };
    let options = ExportOptions {
        perfetto,
        ..ExportOptions::default()
    };
    let time = median_time(5, || {
        let trace = tracesmith_interop::open(input).unwrap();
        let mut file = File::create(output).unwrap();
        let mut out = Out::new(&mut file);
        write(&trace, &options, &mut out).unwrap();
        out.finish().unwrap();
    });
    let bytes = std::fs::metadata(output).unwrap().len();
    print(
        &format!("export to Perfetto{what}"),
        format!("{:.2} s", time.as_secs_f64()),
        asked.0,
    );
    print(
        &format!("bytes a kernel with its call and flow{what}"),
        format!("{:.1}", bytes as f64 / LAUNCHES as f64),
        asked.1,
    );
}
