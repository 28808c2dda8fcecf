//! Traces that pages of Studio are tested with.

use std::path::Path;

use tracesmith_format::tables::{
    ApiCall, ApiDomain, ApiShape, Caller, Kernel, KernelShape, Marker, MarkerKind, MarkerShape, Place,
    SyncKind, SyncShape, Synchronization,
};
use tracesmith_format::{
    ClockId, ContextId, CorrelationId, DeviceId, ProcessId, StreamId, ThreadId, Timestamp, Writer,
    WriterOptions,
};

/// Six steps of 9 ms, each a range: gemm runs 2 ms, norm 0.5 ms, and the CPU waits for both.
pub fn write_steps(path: &Path) {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let caller = Caller {
        process: ProcessId(1),
        thread: ThreadId(7),
    };
    let place = Place {
        process: ProcessId(1),
        device: DeviceId(1),
        context: ContextId(1),
        stream: StreamId(7),
        ..Place::default()
    };
    let mut correlation = 0;
    for step in 0..6u64 {
        // In microseconds after the start of the trace.
        let at = |micros: u64| Timestamp(1_000_000 + 10_000_000 * step + 1_000 * micros);
        let name = writer.string(&format!("step {step}")).unwrap();
        let range = Marker {
            start: at(0),
            end: at(9_000),
            caller,
            shape: MarkerShape {
                name,
                kind: MarkerKind::NESTED_RANGE,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        writer.push(ClockId(1), &range).unwrap();
        let mut call = |writer: &mut Writer<Vec<u8>>, name: &str, start: Timestamp, end: Timestamp| {
            correlation += 1;
            let name = writer.string(name).unwrap();
            let call = ApiCall {
                start,
                end,
                correlation: CorrelationId(correlation),
                caller,
                shape: ApiShape {
                    name,
                    domain: ApiDomain::CUDA_RUNTIME,
                    ..ApiShape::default()
                },
                ..ApiCall::default()
            };
            writer.push(ClockId(1), &call).unwrap();
            CorrelationId(correlation)
        };
        for (name, launched, start, end) in [("gemm", 100, 120, 2_120), ("norm", 200, 2_130, 2_630)] {
            let correlation = call(&mut writer, "cudaLaunchKernel", at(launched), at(launched + 10));
            let kernel = Kernel {
                start: at(start),
                end: at(end),
                correlation,
                place,
                shape: KernelShape {
                    name: writer.string(name).unwrap(),
                    ..KernelShape::default()
                },
                ..Kernel::default()
            };
            writer.push(ClockId(1), &kernel).unwrap();
        }
        let correlation = call(&mut writer, "cudaStreamSynchronize", at(300), at(2_640));
        let wait = Synchronization {
            start: at(300),
            end: at(2_640),
            correlation,
            place,
            shape: SyncShape {
                kind: SyncKind::STREAM_WAIT,
                result: 0,
            },
            ..Synchronization::default()
        };
        writer.push(ClockId(1), &wait).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Writes kernels as a collector does, until a file is there; with a second stream from when
/// another one is there. Returns how many there are.
pub fn write_until(path: &Path, stop: &Path, begun: &std::sync::mpsc::Sender<()>) -> u64 {
    let file = std::fs::File::create(path).unwrap();
    file.try_lock().unwrap();
    let mut writer = Writer::new(file, WriterOptions::default()).unwrap();
    let name = writer.string("loop").unwrap();
    let mut kernels = 0;
    let mut turn = 0;
    // A test that fails ends it as well.
    while !stop.exists() && turn < 240 {
        let has_second = stop.with_extension("second").exists();
        for _ in 0..200 {
            let start = 1_000_000_000 + kernels * 5_000_000;
            let kernel = Kernel {
                start: Timestamp(start),
                end: Timestamp(start + 3_000_000),
                place: Place {
                    process: ProcessId(1),
                    stream: StreamId(if has_second && kernels % 10 == 0 { 2 } else { 7 }),
                    ..Place::default()
                },
                shape: KernelShape {
                    name,
                    ..KernelShape::default()
                },
                ..Kernel::default()
            };
            writer.push(ClockId(1), &kernel).unwrap();
            kernels += 1;
        }
        writer.flush().unwrap();
        turn += 1;
        // The receiver may have what it waited for.
        let _ = begun.send(());
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    writer.seal().unwrap();
    kernels
}

/// Kernels of four streams, and their calls, in ten seconds.
pub fn write_trace(path: &Path, kernels: u64) {
    let mut writer = Writer::new(std::fs::File::create(path).unwrap(), WriterOptions::default()).unwrap();
    let names: Vec<_> = (0..20)
        .map(|number| writer.string(&format!("kernel_{number}")).unwrap())
        .collect();
    let call = writer.string("cudaLaunchKernel").unwrap();
    let step = 10_000_000_000 / kernels;
    for number in 0..kernels {
        let start = 1_000_000_000 + number * step;
        let caller = Caller {
            process: ProcessId(1),
            thread: ThreadId(1),
        };
        let launch = ApiCall {
            start: Timestamp(start.saturating_sub(step / 3)),
            end: Timestamp(start),
            caller,
            shape: ApiShape {
                name: call,
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(start + step * (1 + number % 3)),
            place: Place {
                process: ProcessId(1),
                stream: StreamId(number % 4),
                ..Place::default()
            },
            shape: KernelShape {
                name: names[number as usize * 7 % 20],
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &launch).unwrap();
        writer.push(ClockId(1), &kernel).unwrap();
    }
    writer.finish().unwrap();
}

/// Names that are markup or very long, two events, and an hour without any.
pub fn write_odd_trace(path: &Path) {
    let mut writer = Writer::new(std::fs::File::create(path).unwrap(), WriterOptions::default()).unwrap();
    let names = [
        "<img src=x onerror=alert(1)>".to_owned(),
        "very_long_".repeat(400),
    ];
    for (number, name) in names.iter().enumerate() {
        let name = writer.string(name).unwrap();
        let start = 1_000 + number as u64 * 3_600_000_000_000;
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(start + 500),
            shape: KernelShape {
                name,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    writer.finish().unwrap();
}
