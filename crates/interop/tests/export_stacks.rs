//! Weighed stacks and graphs of traces that are made up here: what must hold whatever the trace.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use proptest::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, CorrelationId, ProcessId, StackId, StreamId, ThreadId, Timestamp, Writer, WriterOptions,
};
use tracesmith_interop::Error;
use tracesmith_interop::export::{ExportOptions, ExportReport, Out, Way, Weight, exporter};
use tracesmith_trace::{EventKind, Query, Trace};

const CLOCK: ClockId = ClockId(1);

/// What an export writes.
fn export(trace: &Trace, format: &str, options: &ExportOptions) -> Result<(String, ExportReport), Error> {
    let Way::Stream(write) = exporter(format).unwrap().way else {
        panic!("{format} is no stream");
    };
    let mut sink = Vec::new();
    let mut out = Out::new(&mut sink);
    let report = write(trace, options, &mut out)?;
    out.finish()?;
    Ok((String::from_utf8(sink).unwrap(), report))
}

/// A kernel from a call at `launch`, on its own correlation.
#[derive(Clone, Debug)]
struct Work {
    start: u64,
    duration: i64,
    name: usize,
    has_stack: bool,
    launch: Option<u64>,
}

const NAMES: [&str; 4] = ["gemm", "void f<int; char>(a\nb)", "", "softmax"];

fn trace_of(works: &[Work], ranges: &[(u64, u64, &str)]) -> Trace {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let function = writer.string("main").unwrap();
    let frame = writer
        .frame(Frame {
            function,
            ..Frame::default()
        })
        .unwrap();
    let stack = writer
        .stack(Stack {
            frame,
            ..Stack::default()
        })
        .unwrap();
    let caller = Caller {
        process: ProcessId(1),
        thread: ThreadId(7),
    };
    for (start, end, name) in ranges {
        let shape = MarkerShape {
            name: writer.string(name).unwrap(),
            kind: MarkerKind::NESTED_RANGE,
            ..MarkerShape::default()
        };
        let marker = Marker {
            start: Timestamp(*start),
            end: Timestamp(*end),
            caller,
            shape,
            ..Marker::default()
        };
        writer.push(CLOCK, &marker).unwrap();
    }
    for (work, number) in works.iter().zip(1..) {
        let correlation = CorrelationId(number);
        if let Some(launch) = work.launch {
            let call = ApiCall {
                start: Timestamp(launch),
                end: Timestamp(launch + 5),
                correlation,
                caller,
                ..ApiCall::default()
            };
            writer.push(CLOCK, &call).unwrap();
        }
        let kernel = Kernel {
            start: Timestamp(work.start),
            end: Timestamp(work.start.saturating_add_signed(work.duration)),
            correlation,
            stack: if work.has_stack { stack } else { StackId::NONE },
            place: Place {
                process: ProcessId(1),
                stream: StreamId(work.start % 3),
                ..Place::default()
            },
            shape: KernelShape {
                name: writer.string(NAMES[work.name]).unwrap(),
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(CLOCK, &kernel).unwrap();
    }
    tracesmith_interop::open_bytes(writer.finish().unwrap()).unwrap()
}

fn sum_of_lines(folded: &str) -> u64 {
    let weight = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    folded.lines().map(weight).sum()
}

proptest! {
    #[test]
    fn weights_add_up_to_the_time_of_all_events(
        works in prop::collection::vec(
            (0..1_000u64, -5..500i64, 0..4usize, any::<bool>(), prop::option::of(1..1_000u64)),
            1..60,
        ),
        streams in prop::option::of(prop::collection::vec(0..3u64, 1..3)),
    ) {
        let works: Vec<Work> = works
            .into_iter()
            .map(|(start, duration, name, has_stack, launch)| Work { start, duration, name, has_stack, launch })
            .collect();
        let trace = trace_of(&works, &[(1, 600, "step"), (50, 300, "forward")]);
        let streams: Option<Vec<StreamId>> = streams.map(|ids| ids.into_iter().map(StreamId).collect());
        let query = Query {
            kinds: Some(vec![EventKind::Kernel]),
            streams: streams.clone(),
            ..Query::default()
        };
        let (count, time) = trace
            .events(&query)
            .fold((0, 0), |(count, time), event| (count + 1, time + event.duration()));
        for (weight, expected) in [(Weight::GpuTime, time), (Weight::Launches, count)] {
            let options = ExportOptions { weight, streams: streams.clone(), ..ExportOptions::default() };
            match export(&trace, "folded", &options) {
                Ok((folded, report)) => {
                    prop_assert_eq!(sum_of_lines(&folded), expected);
                    prop_assert_eq!((report.events, report.left_out), (count, 0));
                }
                Err(_) => prop_assert_eq!(count, 0),
            }
        }
    }
}

#[test]
fn without_a_stack_the_open_ranges_stand_in() {
    let work = |start, launch| Work {
        start,
        duration: 10,
        name: 0,
        has_stack: false,
        launch,
    };
    let with_stack = Work {
        has_stack: true,
        ..work(500, Some(120))
    };
    let works = [
        work(100, Some(60)),
        work(200, Some(350)),
        work(300, None),
        with_stack,
        work(400, Some(620)),
    ];
    let trace = trace_of(&works, &[(1, 600, "step"), (50, 300, "forward")]);
    let (folded, _) = export(&trace, "folded", &ExportOptions::default()).unwrap();
    assert_eq!(
        folded, "gemm 20\nmain;gemm 10\nstep;forward;gemm 10\nstep;gemm 10\n",
        "what was launched outside all ranges, or by an unknown call, has its name alone"
    );
}

#[test]
fn a_large_graph_is_refused_with_its_size() {
    let work = |start| Work {
        start,
        duration: 1,
        name: 0,
        has_stack: false,
        launch: None,
    };
    let works: Vec<Work> = (1..=2_001).map(work).collect();
    let error = export(&trace_of(&works, &[]), "dot", &ExportOptions::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("2,001 boxes and 2,000 is the most"), "{text}");
    let (graph, report) = export(&trace_of(&works[1..], &[]), "dot", &ExportOptions::default()).unwrap();
    assert_eq!(report.events, 2_000);
    assert_eq!(
        graph.matches(" -> ").count(),
        1_997,
        "three streams, each in order"
    );
}

#[test]
fn a_wait_follows_the_record_that_it_waits_for() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let mut sync = |time: u64, kind: SyncKind, stream: u64, record: u64| {
        let row = Synchronization {
            start: Timestamp(time),
            end: Timestamp(time + 1),
            event: 9,
            event_record: record,
            place: Place {
                process: ProcessId(1),
                stream: StreamId(stream),
                ..Place::default()
            },
            shape: SyncShape {
                kind,
                ..SyncShape::default()
            },
            ..Synchronization::default()
        };
        writer.push(CLOCK, &row).unwrap();
    };
    sync(10, SyncKind::EVENT_RECORD, 1, 5);
    sync(20, SyncKind::EVENT_RECORD, 1, 6);
    sync(30, SyncKind::STREAM_WAIT_EVENT, 2, 5);
    sync(40, SyncKind::STREAM_WAIT_EVENT, 3, 0);
    let trace = tracesmith_interop::open_bytes(writer.finish().unwrap()).unwrap();
    let (graph, _) = export(&trace, "dot", &ExportOptions::default()).unwrap();
    let edges: Vec<&str> = graph
        .lines()
        .filter(|line| line.contains(" -> "))
        .map(str::trim)
        .collect();
    assert_eq!(
        edges,
        ["n0 -> n1;", "n0 -> n2 [color=red];", "n1 -> n3 [color=red];"]
    );
}
