//! The packets of a Perfetto export, as text: a change of what is written shows here.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(unreachable_pub, reason = "nobody uses a test from outside")]

use crate::protobuf_text;

use tracesmith_format::tables::*;
use tracesmith_format::*;
use tracesmith_interop::export::{
    ExportOptions, GpuForm, Out, PacketPacking, PerfettoOptions, Way, exporter,
};

const CLOCK: ClockId = ClockId(1);
const CALLER: Caller = Caller {
    process: ProcessId(1),
    thread: ThreadId(4711),
};

fn packets(gpu_form: GpuForm) -> Vec<String> {
    let trace = tracesmith_interop::open_bytes(small_trace()).unwrap();
    let options = ExportOptions {
        perfetto: PerfettoOptions {
            gpu_form,
            packing: PacketPacking::None,
        },
        ..ExportOptions::default()
    };
    let Way::Stream(write) = exporter("perfetto").unwrap().way else {
        panic!("Perfetto traces are streamed");
    };
    let mut bytes = Vec::new();
    let mut out = Out::new(&mut bytes);
    write(&trace, &options, &mut out).unwrap();
    out.finish().unwrap();
    protobuf_text::packets_of(&bytes)
}

#[test]
fn tracks_of_our_own_are_written_so() {
    let text = packets(GpuForm::Tracks).concat();
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn render_stages_are_written_so() {
    // Everything else is as above, but for the calls: these name the stages that they submitted.
    let packets = packets(GpuForm::RenderStages);
    let of_gpu = |packet: &&String| packet.contains("gpu_") || packet.contains("compute_");
    let stages: String = packets.iter().filter(of_gpu).map(String::as_str).collect();
    insta::assert_snapshot!(stages);
}

/// One of everything that an export holds: a thread that launches, copies, records an event and waits for it, within a
/// range, on a GPU that is read now and then.
fn small_trace() -> Vec<u8> {
    let options = WriterOptions {
        id: *b"a small trace...",
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    define(&mut writer);
    let mut string = |text: &str| writer.string(text).unwrap();
    let (launch, copy, record, wait) = (
        string("cuLaunchKernel"),
        string("cuMemcpyHtoDAsync_v2"),
        string("cuEventRecord"),
        string("cuStreamWaitEvent"),
    );
    let (kernel, demangled) = (string("_Z5saxpyfPf"), string("saxpy(float, float*)"));
    let (step, domain, power, watts) = (string("step"), string("train"), string("power"), string("W"));
    let main = string("main");
    let frames = [main, step].map(|function| {
        let frame = Frame {
            function,
            ..Frame::default()
        };
        writer.frame(frame).unwrap()
    });
    let stack = writer.stack_of(frames.to_vec()).unwrap();
    for (start, correlation, name) in [
        (1_000, 1, launch),
        (1_300, 2, copy),
        (1_500, 3, record),
        (1_600, 4, wait),
    ] {
        let call = ApiCall {
            start: Timestamp(start),
            end: Timestamp(start + 90),
            correlation: CorrelationId(correlation),
            stack: if correlation == 1 { stack } else { StackId::NONE },
            caller: CALLER,
            shape: ApiShape {
                name,
                domain: ApiDomain::CUDA_DRIVER,
                ..ApiShape::default()
            },
        };
        writer.push(CLOCK, &call).unwrap();
    }
    let shape = KernelShape {
        name: kernel,
        demangled,
        grid_x: 4,
        grid_y: 2,
        grid_z: 1,
        block_x: 128,
        block_y: 1,
        block_z: 1,
        registers: 32,
        dynamic_shared: Bytes(1_024),
        ..KernelShape::default()
    };
    writer
        .push(
            CLOCK,
            &Kernel {
                start: Timestamp(2_000),
                end: Timestamp(2_500),
                correlation: CorrelationId(1),
                stack,
                place: place(7),
                shape,
                ..Kernel::default()
            },
        )
        .unwrap();
    writer
        .push(
            CLOCK,
            &MemoryCopy {
                start: Timestamp(2_200),
                end: Timestamp(2_600),
                correlation: CorrelationId(2),
                place: place(13),
                bytes: Bytes(4_096),
                shape: CopyShape {
                    direction: CopyDirection::HOST_TO_DEVICE,
                    source_memory: MemoryKind::PINNED,
                    destination_memory: MemoryKind::DEVICE,
                    ..CopyShape::default()
                },
                ..MemoryCopy::default()
            },
        )
        .unwrap();
    for (time, correlation, stream, kind) in [
        (2_600, 3, 13, SyncKind::EVENT_RECORD),
        (2_610, 4, 7, SyncKind::STREAM_WAIT_EVENT),
    ] {
        let sync = Synchronization {
            start: Timestamp(time),
            end: Timestamp(time),
            correlation: CorrelationId(correlation),
            place: place(stream),
            event: 5,
            event_record: 9,
            shape: SyncShape {
                kind,
                ..SyncShape::default()
            },
            ..Synchronization::default()
        };
        writer.push(CLOCK, &sync).unwrap();
    }
    writer
        .push(
            CLOCK,
            &Marker {
                start: Timestamp(900),
                end: Timestamp(1_800),
                caller: CALLER,
                shape: MarkerShape {
                    name: step,
                    domain,
                    kind: MarkerKind::NESTED_RANGE,
                    ..MarkerShape::default()
                },
                ..Marker::default()
            },
        )
        .unwrap();
    writer
        .push(
            CLOCK,
            &Allocation {
                time: Timestamp(950),
                bytes: Bytes(4_096),
                address: Address(0x7000),
                place: place(0),
                shape: AllocationShape {
                    operation: MemoryOperation::ALLOCATE,
                    memory: MemoryKind::DEVICE,
                    ..AllocationShape::default()
                },
                ..Allocation::default()
            },
        )
        .unwrap();
    writer
        .push(
            CLOCK,
            &Counter {
                time: Timestamp(2_000),
                value: 412.5,
                track: CounterTrack {
                    name: power,
                    unit: watts,
                    device: DeviceId(1),
                    ..CounterTrack::default()
                },
            },
        )
        .unwrap();
    writer.finish().unwrap()
}

/// Who, where and by which clocks.
fn define(writer: &mut Writer<Vec<u8>>) {
    let mut string = |text: &str| writer.string(text).unwrap();
    let command = string("train --fast");
    let (host, linux) = (string("node1"), string("Linux 6.8"));
    let (process, thread, gpu, vendor) = (string("train"), string("main"), string("H200"), string("NVIDIA"));
    writer.metadata("command", "train --fast").unwrap();
    for (id, kind) in [(CLOCK, ClockKind::MONOTONIC), (ClockId(2), ClockKind::REALTIME)] {
        let clock = Clock {
            id,
            kind,
            host: HostId(1),
            ..Clock::default()
        };
        writer.define(&clock).unwrap();
    }
    let pair = ClockPair {
        first: CLOCK,
        second: ClockId(2),
        first_time: Timestamp(1_400),
        second_time: Timestamp(1_700_000_000_000_001_400),
        uncertainty: 20,
    };
    writer.define(&pair).unwrap();
    let host = Host {
        id: HostId(1),
        name: host,
        os: linux,
        cpus: 16,
        ..Host::default()
    };
    writer.define(&host).unwrap();
    let process = Process {
        id: CALLER.process,
        host: HostId(1),
        pid: 4711,
        name: process,
        command,
        ..Process::default()
    };
    writer.define(&process).unwrap();
    let thread = Thread {
        process: CALLER.process,
        thread: CALLER.thread,
        name: thread,
    };
    writer.define(&thread).unwrap();
    let device = Device {
        id: DeviceId(1),
        host: HostId(1),
        name: gpu,
        vendor,
        ..Device::default()
    };
    writer.define(&device).unwrap();
    for (stream, kind) in [(7, StreamKind::LEGACY_DEFAULT), (13, StreamKind::UNKNOWN)] {
        let stream = Stream {
            process: CALLER.process,
            context: ContextId(1),
            stream: StreamId(stream),
            device: DeviceId(1),
            kind,
            ..Stream::default()
        };
        writer.define(&stream).unwrap();
    }
}

fn place(stream: u64) -> Place {
    Place {
        process: CALLER.process,
        device: DeviceId(1),
        context: ContextId(1),
        stream: StreamId(stream),
        ..Place::default()
    }
}
