//! Perfetto traces, there and back: what is written and read again is what it was.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use proptest::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::*;
use tracesmith_interop::export::{
    ExportOptions, ExportReport, GpuForm, Out, PacketPacking, PerfettoOptions, Way, exporter, write_split,
};
use tracesmith_interop::import::{Input, importer_of};
use tracesmith_trace::{EventKind, Query, TimeRange, Trace};

fn fixture(name: &str) -> Trace {
    tracesmith_interop::open(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures")
            .join(name),
    )
    .unwrap()
}

fn export_with(trace: &Trace, options: &ExportOptions) -> (Vec<u8>, ExportReport) {
    let Way::Stream(write) = exporter("perfetto").unwrap().way else {
        panic!("Perfetto traces are streamed");
    };
    let mut bytes = Vec::new();
    let mut out = Out::new(&mut bytes);
    let report = write(trace, options, &mut out).unwrap();
    out.finish().unwrap();
    (bytes, report)
}

fn options(gpu_form: GpuForm, packing: PacketPacking) -> ExportOptions {
    ExportOptions {
        perfetto: PerfettoOptions { gpu_form, packing },
        ..ExportOptions::default()
    }
}

fn export(trace: &Trace) -> Vec<u8> {
    export_with(trace, &ExportOptions::default()).0
}

/// What is worth keeping of an event, in words.
fn events(trace: &Trace, kinds: &[EventKind]) -> Vec<String> {
    let query = Query {
        kinds: Some(kinds.to_vec()),
        ..Query::default()
    };
    let mut events = Vec::new();
    trace.for_each_event(&query, |found| {
        let event = &found.event;
        let pid = trace.process(event.process).map_or(0, |process| process.pid);
        let device = trace.device(event.device).map(|device| device.ordinal);
        let mut text = format!(
            "{:?} {} {} {:?} pid {pid} thread {} correlation {} bytes {}",
            event.kind,
            event.start.0,
            event.end.0,
            trace.event_name(event),
            event.thread.0,
            event.correlation.0,
            event.bytes.0,
        );
        if !matches!(event.kind, EventKind::Allocation | EventKind::Sync) {
            text += &format!(" gpu {device:?} stream {:?}", event.stream);
        }
        text += &format!(" {}", found.columns.detail(found.row, &trace.strings));
        events.push(text);
        ControlFlow::Continue(())
    });
    events.sort();
    events
}

const KEPT: &[EventKind] = &[
    EventKind::Kernel,
    EventKind::Copy,
    EventKind::Set,
    EventKind::ApiCall,
    EventKind::Allocation,
    EventKind::Counter,
    EventKind::Marker,
    EventKind::HostCall,
    EventKind::GraphLaunch,
    EventKind::Collective,
];

#[test]
fn the_fixtures_come_back_as_they_were() {
    for name in ["demo-h200.sbt", "synthetic-v1.sbt"] {
        let trace = fixture(name);
        let again = tracesmith_interop::open_bytes(export(&trace)).unwrap();
        assert!(again.health().damage.is_empty());
        for kind in KEPT {
            assert_eq!(events(&trace, &[*kind]), events(&again, &[*kind]), "{name}");
        }
        // Recorded events have a time of the device only, which is where they stand.
        assert_eq!(trace.syncs.rows(), again.syncs.rows(), "{name}");
        assert_eq!(again.metadata.get("command"), trace.metadata.get("command"));
    }
}

#[test]
fn stacks_come_back_in_both_forms() {
    let trace = fixture("synthetic-v1.sbt");
    let stacks = |trace: &Trace| {
        let mut names = Vec::new();
        for (_, rows) in trace.kernels.columns() {
            for stack in &rows.stack {
                let name = |frame: &tracesmith_trace::FrameView| {
                    let function = frame
                        .symbol
                        .as_ref()
                        .map_or(frame.frame.function, |symbol| symbol.function);
                    trace.string(function).to_owned()
                };
                names.push(trace.stack(*stack).frames.iter().map(name).collect::<Vec<_>>());
            }
        }
        names.sort();
        names
    };
    let expected = stacks(&trace);
    assert!(expected.iter().any(|stack| stack.len() > 2));
    for form in [GpuForm::Tracks, GpuForm::Both] {
        let bytes = export_with(&trace, &options(form, PacketPacking::Deflate)).0;
        let again = tracesmith_interop::open_bytes(bytes).unwrap();
        let mut found = stacks(&again);
        // Written both ways, kernels are there twice, and render stages have no stack.
        found.retain(|stack| !stack.is_empty());
        assert_eq!(found, expected, "{form:?}");
    }
}

#[test]
fn render_stages_come_back_as_kernels_of_their_streams() {
    let trace = fixture("demo-h200.sbt");
    let bytes = export_with(&trace, &options(GpuForm::RenderStages, PacketPacking::None)).0;
    let again = tracesmith_interop::open_bytes(bytes).unwrap();
    let work = |trace: &Trace| {
        let mut rows = Vec::new();
        for (block, kernels) in trace.kernels.columns() {
            for row in 0..kernels.len() {
                let time = |time| trace.clock_map.convert(block.header.clock, time).time.0;
                let shape = kernels.shape.get(row);
                rows.push((
                    time(kernels.start[row]),
                    time(kernels.end[row]),
                    trace.string(shape.name).to_owned(),
                    kernels.place.get(row).stream.0,
                    kernels.correlation[row].0,
                    (shape.grid_x, shape.block_x, shape.registers),
                ));
            }
        }
        rows.sort();
        rows
    };
    assert_eq!(work(&trace), work(&again));
    assert_eq!((again.copies.rows(), again.sets.rows()), (44, 40));
}

#[test]
fn the_same_trace_gives_the_same_bytes_and_packing_changes_nothing_else() {
    let trace = fixture("demo-h200.sbt");
    let packed = export(&trace);
    assert_eq!(packed, export(&trace));
    let plain = export_with(&trace, &options(GpuForm::Tracks, PacketPacking::None)).0;
    assert!(packed.len() < plain.len() / 2);
    let read = |bytes| events(&tracesmith_interop::open_bytes(bytes).unwrap(), EventKind::ALL);
    assert_eq!(read(packed), read(plain));
}

#[test]
fn a_stretch_and_a_stream_can_be_chosen() {
    let trace = fixture("demo-h200.sbt");
    let (first, last) = trace.span().unwrap();
    let half = Timestamp((first.0 + last.0) / 2);
    let part = ExportOptions {
        range: TimeRange {
            from: Some(half),
            to: None,
        },
        streams: Some(vec![StreamId(14)]),
        ..ExportOptions::default()
    };
    let (bytes, report) = export_with(&trace, &part);
    let again = tracesmith_interop::open_bytes(bytes).unwrap();
    assert!(report.events > 0);
    let mut streams = std::collections::BTreeSet::new();
    for (_, rows) in again.kernels.columns() {
        streams.extend(rows.place.values.iter().map(|place| place.stream.0));
    }
    assert!(streams.iter().all(|stream| *stream == 14), "{streams:?}");
    assert!(again.span().unwrap().1 >= half);
}

/// Files in memory that outlive their writers.
#[derive(Clone, Default)]
struct Files(Rc<RefCell<BTreeMap<usize, Vec<u8>>>>);

struct OneFile(Files, usize);

impl Write for OneFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .0
            .borrow_mut()
            .entry(self.1)
            .or_default()
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn split(trace: &Trace, limit: u64) -> Vec<Vec<u8>> {
    let files = Files::default();
    let mut open =
        |number| -> std::io::Result<Box<dyn Write>> { Ok(Box::new(OneFile(files.clone(), number))) };
    let (_, sizes) = write_split(trace, &ExportOptions::default(), limit, &mut open).unwrap();
    let files: Vec<Vec<u8>> = files.0.take().into_values().collect();
    assert_eq!(
        sizes,
        files.iter().map(|file| file.len() as u64).collect::<Vec<_>>()
    );
    files
}

#[test]
fn the_files_of_a_split_trace_hold_it_all_one_after_the_other() {
    let trace = fixture("demo-h200.sbt");
    let files = split(&trace, 8_000);
    assert!(files.len() > 2, "{}", files.len());
    let mut all = Vec::new();
    let mut latest = 0;
    for file in &files {
        let part = tracesmith_interop::open_bytes(file.clone()).unwrap();
        let (first, _) = part.span().unwrap();
        assert!(first.0 >= latest, "files follow each other");
        for event in part.events(&Query::default()) {
            latest = latest.max(event.start.0);
        }
        all.extend(events(&part, KEPT));
    }
    all.sort();
    assert_eq!(all, events(&trace, KEPT));
    assert_eq!(split(&trace, 1 << 30), [export(&trace)]);
}

/// A trace of kernels of one stream and nested ranges of one thread, in any order.
fn made(kernels: &[(u64, u64)], ranges: &[(u64, u64)], rows_per_block: u32) -> Trace {
    let options = WriterOptions {
        rows_per_block,
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    let clock = ClockId(1);
    let names = ["gemm", "", "odd \"name\"\n\0 with ü", "x < y"].map(|name| writer.string(name).unwrap());
    writer
        .define(&Clock {
            id: clock,
            kind: ClockKind::MONOTONIC,
            ..Clock::default()
        })
        .unwrap();
    writer
        .define(&Process {
            id: ProcessId(1),
            pid: 77,
            ..Process::default()
        })
        .unwrap();
    for (at, (start, end)) in kernels.iter().enumerate() {
        let kernel = Kernel {
            start: Timestamp(*start),
            end: Timestamp(*end),
            correlation: CorrelationId(at as u64 + 1),
            place: Place {
                process: ProcessId(1),
                context: ContextId(1),
                stream: StreamId(7),
                ..Place::default()
            },
            shape: KernelShape {
                name: names[at % names.len()],
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(clock, &kernel).unwrap();
    }
    for (at, (start, end)) in ranges.iter().enumerate() {
        let marker = Marker {
            start: Timestamp(*start),
            end: Timestamp(*end),
            caller: Caller {
                process: ProcessId(1),
                thread: ThreadId(78),
            },
            shape: MarkerShape {
                name: names[at % names.len()],
                kind: MarkerKind::NESTED_RANGE,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        writer.push(clock, &marker).unwrap();
    }
    tracesmith_interop::open_bytes(writer.finish().unwrap()).unwrap()
}

fn spans(trace: &Trace) -> Vec<(EventKind, u64, u64, String)> {
    let mut spans = Vec::new();
    for event in trace.events(&Query::default()) {
        let name = trace.event_name(&event).to_owned();
        spans.push((event.kind, event.start.0, event.end.0, name));
    }
    spans.sort();
    spans
}

fn intervals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let interval = (1_000..1_060u64, prop_oneof![4 => 0..40u64, 1 => Just(0)])
        .prop_map(|(start, length)| (start, start + length));
    prop::collection::vec(interval, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_overlaps_comes_back_with_its_times(kernels in intervals(), ranges in intervals(), block in 1..9u32) {
        let trace = made(&kernels, &ranges, block);
        let (bytes, report) = export_with(&trace, &ExportOptions::default());
        prop_assert_eq!(report.events, (kernels.len() + ranges.len()) as u64);
        let again = tracesmith_interop::open_bytes(bytes).unwrap();
        prop_assert_eq!(spans(&trace), spans(&again));
    }

    #[test]
    fn damage_is_never_worse_than_a_shorter_trace(flips in prop::collection::vec((0..4_000usize, any::<u8>()), 1..6), cut in 0..4_000usize) {
        let trace = made(&[(10, 20), (15, 30), (40, 50)], &[(5, 60), (10, 20)], 100);
        let plain = export_with(&trace, &options(GpuForm::Both, PacketPacking::None)).0;
        let mut bytes = plain[..plain.len().min(cut)].to_vec();
        for (at, byte) in flips {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        tracesmith_interop::fuzz::import_any("perfetto", &bytes);
    }
}

#[test]
fn a_trace_cut_anywhere_gives_what_is_left() {
    let trace = fixture("synthetic-v1.sbt");
    for packing in [PacketPacking::None, PacketPacking::Deflate] {
        let bytes = export_with(&trace, &options(GpuForm::Tracks, packing)).0;
        for length in (0..bytes.len()).step_by(97) {
            tracesmith_interop::fuzz::import_any("perfetto", &bytes[..length]);
        }
        let input = Input::from_bytes("cut", bytes[..bytes.len() / 2].to_vec()).unwrap();
        assert_eq!(
            importer_of(&input).map(|importer| importer.name),
            Some("perfetto")
        );
    }
}

#[test]
fn events_without_a_time_are_counted_and_without_an_end_are_kept() {
    let trace = made(&[(0, 0), (10, 0), (u64::MAX - 5, u64::MAX), (30, 20)], &[], 100);
    let (bytes, report) = export_with(&trace, &ExportOptions::default());
    assert_eq!((report.events, report.without_time), (2, 2));
    let again = tracesmith_interop::open_bytes(bytes).unwrap();
    let ends: Vec<(u64, u64)> = again
        .events(&Query::default())
        .map(|event| (event.start.0, event.end.0))
        .collect();
    assert_eq!(ends, [(10, 0), (30, 0)]);
}
