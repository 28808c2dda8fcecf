//! Dependencies, states, critical path and what-if of traces whose answers were worked out by hand.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;

use tracesmith_skip as support;

use crate::made;

use made::{CLOCK, Made, place};
use proptest::prelude::*;
use tracesmith_format::tables::{CopyDirection, CopyShape, MemoryCopy, Place, StreamKind, SyncKind};
use tracesmith_format::{Bytes, ContextId, DeviceId, Timestamp};
use tracesmith_trace::analysis::{
    Analysis, HostWaits, OpSlack, PathPart, Scale, StreamCount, WhatIf, WhatIfReport,
};
use tracesmith_trace::reconstruct::{
    Activity, Dependencies, Edge, EdgeWhy, OpId, State, States, Subject, Window,
};
use tracesmith_trace::{NamePattern, Trace};

fn edges(trace: &Trace) -> Vec<(u32, u32, EdgeWhy)> {
    let dependencies = Dependencies::of(&Activity::of(trace).unwrap());
    dependencies
        .edges
        .iter()
        .map(|edge| (edge.from.0, edge.to.0, edge.why))
        .collect()
}

fn what_if(trace: &Arc<Trace>, what_if: &WhatIf) -> WhatIfReport {
    Analysis::of(trace, Window::default())
        .unwrap()
        .what_if(what_if)
        .unwrap()
}

fn scale(part: &'static str, factor: f64) -> Vec<Scale> {
    vec![Scale {
        name: NamePattern::new(part).unwrap(),
        factor,
    }]
}

/// Stream 1 computes, an event is recorded behind it, stream 2 waits for that and communicates.
fn with_event() -> Made {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 300)); // op 0
    let record = made.call("cudaEventRecord", (115, 118));
    made.sync(SyncKind::EVENT_RECORD, 1, (115, 118), record, (9, 1));
    let wait = made.call("cudaStreamWaitEvent", (120, 125));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (120, 125), wait, (9, 1));
    made.launched("ncclAllReduce", 2, (130, 140), (310, 400)); // op 1
    made
}

#[test]
fn an_event_ties_two_streams() {
    assert_eq!(edges(&with_event().finish()), [(0, 1, EdgeWhy::Event)]);
    // As PyTorch's profiler writes it: no row for the record, whose call is named instead.
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 300));
    let record = made.call("cudaEventRecord", (115, 118));
    let wait = made.call("cudaStreamWaitEvent", (120, 125));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (120, 125), wait, (9, record.0));
    made.launched("ncclAllReduce", 2, (130, 140), (310, 400));
    let trace = made.finish();
    assert_eq!(edges(&trace), [(0, 1, EdgeWhy::Event)]);
    let dependencies = Dependencies::of(&Activity::of(&trace).unwrap());
    assert_eq!(
        (dependencies.assumed_records, dependencies.unknown_records),
        (1, 0)
    );
}

#[test]
fn a_wait_that_is_captured_is_an_edge_of_a_graph_and_no_wait() {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 300));
    made.call("cudaStreamBeginCapture", (112, 114));
    let captured = made.call("cudaStreamWaitEvent", (120, 125));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (120, 125), captured, (9, 77));
    made.call("cudaStreamEndCapture", (126, 128));
    let lost = made.call("cudaStreamWaitEvent", (130, 135));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (130, 135), lost, (9, 78));
    let dependencies = Dependencies::of(&Activity::of(&made.finish()).unwrap());
    assert_eq!(dependencies.unknown_records, 1, "the second");
}

#[test]
fn a_wait_may_name_the_stream_that_its_event_was_recorded_in() {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 300)); // op 0
    made.launched("copy", 3, (111, 113), (150, 200)); // op 1, launched last by the thread
    let record = made.call("cudaEventRecord", (115, 118));
    made.wait_on(2, (120, 125), record, 1);
    made.launched("ncclAllReduce", 2, (130, 140), (310, 400)); // op 2
    let trace = made.finish();
    assert_eq!(edges(&trace), [(0, 2, EdgeWhy::Event)]);
    let dependencies = Dependencies::of(&Activity::of(&trace).unwrap());
    assert_eq!(
        (dependencies.assumed_records, dependencies.unknown_records),
        (0, 0)
    );
}

/// A kernel, a graph as an H200 runs it, launched on stream 1, and a kernel behind it. Node 10 stands before 11, 12 and 13;
/// 13 is a function of the host, which leaves no row, with 14 behind it; 15 waits for 11 and 12, with nodes of the driver
/// between, and runs on the stream of the launch; 14 is still running then.
fn with_graph(edges: &[(u64, u64)]) -> Made {
    let mut made = Made::new();
    made.launched("before", 1, (100, 110), (120, 200)); // op 0
    let launch = made.call("cudaGraphLaunch", (112, 118));
    made.node(10, 1, (201, 300), launch); // op 1
    made.node(11, 1, (301, 400), launch); // op 2
    made.node(12, 17, (302, 420), launch); // op 3
    made.node(14, 18, (350, 700), launch); // op 4
    made.node(15, 1, (421, 500), launch); // op 5
    made.edges(edges);
    made.launched("behind", 1, (120, 125), (701, 800)); // op 6
    made
}

const EDGES: [(u64, u64); 8] = [
    (11, 10),
    (12, 10),
    (13, 10),
    (14, 13),
    (16, 11),
    (17, 12),
    (15, 16),
    (15, 17),
];

#[test]
fn nodes_of_a_graph_wait_for_each_other_and_what_stands_behind_it_for_all() {
    let why = EdgeWhy::Graph;
    let trace = with_graph(&EDGES).finish();
    assert_eq!(
        edges(&trace),
        [(1, 3, why), (1, 4, why), (3, 5, why), (4, 6, why)],
        "those on one stream follow each other anyway"
    );
    let dependencies = Dependencies::of(&Activity::of(&trace).unwrap());
    assert_eq!((dependencies.unordered_graphs, dependencies.contradicted), (0, 0));
    let path = Analysis::of(&trace, Window::default()).unwrap().critical_path();
    let on_path: Vec<&str> = path
        .totals
        .iter()
        .filter(|total| total.part == PathPart::Work)
        .map(|total| total.name.as_str())
        .collect();
    assert_eq!(on_path, ["node 14", "behind", "node 10", "before"]);
    // Without the long node it is the other branch that what stands behind waits for.
    let report = what_if(
        &trace,
        &WhatIf {
            scales: scale("node 14", 0.0),
            ..WhatIf::default()
        },
    );
    assert_eq!(report.measured_ns - report.changed_ns, 700 - 500);
}

#[test]
fn a_graph_whose_order_is_not_known_stands_between_what_is_before_and_behind() {
    let why = EdgeWhy::Graph;
    let trace = with_graph(&[]).finish();
    assert_eq!(
        edges(&trace),
        [(0, 3, why), (0, 4, why), (3, 6, why), (4, 6, why)]
    );
    let dependencies = Dependencies::of(&Activity::of(&trace).unwrap());
    assert_eq!(dependencies.unordered_graphs, 1);
}

#[test]
fn a_graph_does_not_run_beside_itself_and_is_waited_for_as_a_whole() {
    let mut made = with_graph(&EDGES);
    // The same graph on another stream, before the kernel behind the first launch; its host waits for all of it.
    let launch = made.call("cudaGraphLaunch", (130, 135));
    made.node(10, 2, (705, 720), launch); // op 7
    made.node(14, 18, (730, 900), launch); // op 8
    made.node(11, 2, (721, 740), launch); // op 9 by row, 8 by start
    let wait = made.call("cudaStreamSynchronize", (140, 910));
    made.sync(SyncKind::STREAM_WAIT, 2, (140, 910), wait, (0, 0));
    let trace = made.finish();
    let (activity, why) = (Activity::of(&trace).unwrap(), EdgeWhy::Graph);
    let dependencies = Dependencies::of(&activity);
    let to = |op: u32| -> Vec<(u32, EdgeWhy)> {
        let edges = dependencies.edges_to(OpId(op)).iter();
        edges.map(|edge| (edge.from.0, edge.why)).collect()
    };
    assert_eq!(to(7), [(4, why), (5, why)], "both ends of the launch before");
    assert_eq!(to(9), [(7, why)]);
    let waited: Vec<OpId> = dependencies.host_waits.iter().map(|wait| wait.op).collect();
    assert_eq!(waited, [OpId(9)], "which is on a stream of the driver's own");
}

#[test]
fn work_at_the_end_of_all_time_waits_too() {
    let mut made = Made::new();
    let launch = made.call("cudaGraphLaunch", (10, 20));
    made.node(1, 1, (100, 200), launch);
    made.node(2, 17, (u64::MAX - 10, u64::MAX), launch);
    made.edges(&[(2, 1)]);
    assert_eq!(edges(&made.finish()), [(0, 1, EdgeWhy::Graph)]);
}

#[test]
fn a_graph_on_many_streams_is_tied_by_its_last_work() {
    let mut made = Made::new();
    for launch in 0..2u64 {
        let at = launch * 10_000;
        let call = made.call("cudaGraphLaunch", (at + 10, at + 20));
        for node in 0..40 {
            made.node(100 + node, 1 + node, (at + 100 + node, at + 5000 - node), call);
        }
    }
    let trace = made.finish();
    let why = EdgeWhy::Graph;
    // The first node waits for all ends, and the others for the last of these: their number grows with the streams, not
    // with its square. Work in the same stream needs no tie.
    let to_first = (1..40).map(|op| (op, 40, why));
    let from_last = (1..40).map(|op| (0, 40 + op, why));
    let expected: Vec<(u32, u32, EdgeWhy)> = to_first.chain(from_last).collect();
    assert_eq!(edges(&trace), expected);
}

#[test]
fn waits_of_pytorchs_profiler_name_their_streams() {
    for (name, events) in [
        (
            "critical_path_alexnet_benchmark_result_2869224_1695835535_trace",
            6,
        ),
        ("critical_path_cuda_event_sync_multi_stream_event_sync_trace", 1),
    ] {
        let Some(path) = support::data(&format!("kineto/{name}.json.gz")) else {
            continue;
        };
        let trace = tracesmith_interop::open(&path).unwrap();
        let activity = Activity::of(&trace).unwrap();
        let dependencies = Dependencies::of(&activity);
        assert_eq!(dependencies.assumed_records, 0, "{name}");
        let is_event = |edge: &&Edge| edge.why == EdgeWhy::Event;
        assert_eq!(
            dependencies.edges.iter().filter(is_event).count(),
            events,
            "{name}"
        );
    }
}

#[test]
fn a_recording_of_ours_has_its_events_and_waits() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/demo-h200.sbt");
    let trace = tracesmith_interop::open(&path).unwrap();
    let activity = Activity::of(&trace).unwrap();
    let dependencies = Dependencies::of(&activity);
    // Each of its twenty rounds forks to a second stream, joins it, and waits for the first; two waits more come after.
    let is_event = |edge: &&Edge| edge.why == EdgeWhy::Event;
    assert_eq!(dependencies.edges.iter().filter(is_event).count(), 40);
    let name = |call| trace.string(activity.calls.get(call).name);
    let waits = dependencies
        .host_waits
        .iter()
        .filter(|wait| name(wait.call) == "cuStreamSynchronize");
    assert_eq!(waits.count(), 22, "as many as there are calls");
    assert_eq!((dependencies.unknown_records, dependencies.contradicted), (0, 0));
}

/// A copy from device 1 to device 2, and work on both before and after it.
fn with_peer_copy(function: &str) -> Arc<Trace> {
    let on = |device: u32, stream: u64| Place {
        device: DeviceId(device),
        context: ContextId(device),
        ..place(stream)
    };
    let mut made = Made::new();
    let launched = |made: &mut Made, name: &str, place, call, times| {
        let correlation = made.call("cudaLaunchKernel", call);
        made.kernel_row(name, times, correlation, place);
    };
    launched(&mut made, "produce", on(1, 5), (100, 105), (110, 200)); // op 0
    launched(&mut made, "before", on(2, 6), (106, 109), (115, 300)); // op 1
    let correlation = made.call(function, (120, 130));
    let copy = MemoryCopy {
        start: Timestamp(310),
        end: Timestamp(400),
        bytes: Bytes(1 << 20),
        correlation,
        place: on(1, 7),
        shape: CopyShape {
            direction: CopyDirection::PEER,
            source_device: DeviceId(1),
            destination_device: DeviceId(2),
            ..CopyShape::default()
        },
        ..MemoryCopy::default()
    };
    made.writer.push(CLOCK, &copy).unwrap(); // op 2
    launched(&mut made, "consume", on(2, 6), (140, 145), (410, 500)); // op 3
    launched(&mut made, "elsewhere", on(3, 8), (146, 149), (420, 500)); // op 4
    made.finish()
}

#[test]
fn a_copy_between_devices_is_in_order_with_both() {
    let why = EdgeWhy::PeerCopy;
    assert_eq!(
        edges(&with_peer_copy("cudaMemcpyPeer")),
        [(0, 2, why), (1, 2, why), (2, 3, why)]
    );
    assert_eq!(
        edges(&with_peer_copy("cudaMemcpyPeerAsync")),
        [],
        "an asynchronous one is in order with its stream alone"
    );
}

#[test]
fn a_stream_that_waits_for_another_is_idle_because_of_it() {
    use tracesmith_trace::analysis::IdleCause;
    let mut made = Made::new();
    made.launched("embed", 2, (50, 60), (70, 100));
    made.launched("gemm", 1, (100, 110), (120, 300));
    let record = made.call("cudaEventRecord", (115, 118));
    made.sync(SyncKind::EVENT_RECORD, 1, (115, 118), record, (9, 1));
    let wait = made.call("cudaStreamWaitEvent", (120, 125));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (120, 125), wait, (9, 1));
    made.launched("norm", 2, (130, 140), (310, 400));
    let report = Analysis::of(&made.finish(), Window::default()).unwrap().idle();
    let causes = |stream: usize| -> Vec<(IdleCause, u64)> {
        let causes = &report.streams[stream].causes;
        causes.iter().map(|cause| (cause.cause, cause.total_ns)).collect()
    };
    assert_eq!(causes(0), []);
    assert_eq!(
        causes(1),
        [
            (IdleCause::OtherStream, 170),
            (IdleCause::LaunchGap, 10 + 10),
            (IdleCause::HostBusy, 5 + 2 + 5),
            (IdleCause::HostCall, 5 + 3),
        ]
    );
    assert_eq!(report.streams[1].idle_ns, 210);
}

#[test]
fn a_wait_that_the_times_contradict_is_left_out_and_counted() {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 30_000));
    let record = made.call("cudaEventRecord", (115, 118));
    made.sync(SyncKind::EVENT_RECORD, 1, (115, 118), record, (9, 1));
    let wait = made.call("cudaStreamWaitEvent", (120, 125));
    made.sync(SyncKind::STREAM_WAIT_EVENT, 2, (120, 125), wait, (9, 1));
    made.launched("other", 2, (130, 140), (200, 400));
    let dependencies = Dependencies::of(&Activity::of(&made.finish()).unwrap());
    assert_eq!((dependencies.edges.len(), dependencies.contradicted), (0, 1));
}

#[test]
fn the_legacy_default_stream_waits_for_all_and_all_for_it() {
    let mut made = Made::new();
    for (stream, kind) in [
        (0, StreamKind::LEGACY_DEFAULT),
        (1, StreamKind::BLOCKING),
        (2, StreamKind::BLOCKING),
        (3, StreamKind::NON_BLOCKING),
    ] {
        made.stream(stream, kind);
    }
    made.launched("a", 1, (10, 11), (20, 50)); // op 0
    made.launched("b", 2, (12, 13), (21, 60)); // op 1
    made.launched("free", 3, (14, 15), (22, 500)); // op 2
    made.launched("default", 0, (16, 17), (70, 80)); // op 3
    made.launched("c", 1, (18, 19), (90, 95)); // op 4
    made.launched("d", 1, (20, 21), (96, 97)); // op 5: follows c
    let trace = made.finish();
    let why = EdgeWhy::DefaultStream;
    assert_eq!(edges(&trace), [(0, 3, why), (1, 3, why), (3, 4, why)]);
    // A per-thread default stream is a blocking one; of unknown kinds nothing is assumed.
    let mut made = Made::new();
    made.launched("a", 1, (10, 11), (20, 50));
    made.launched("default", 0, (16, 17), (70, 80));
    assert_eq!(edges(&made.finish()), []);
}

fn dot(trace: &Trace) -> String {
    use tracesmith_interop::export::{ExportOptions, Out, Way, exporter};
    let Way::Stream(write) = exporter("dot").unwrap().way else {
        panic!("dot is streamed");
    };
    let mut bytes = Vec::new();
    let mut out = Out::new(&mut bytes);
    write(trace, &ExportOptions::default(), &mut out).unwrap();
    out.finish().unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_drawn_graph_has_default_streams_waits_and_calls_that_waited() {
    let mut made = Made::new();
    made.stream(0, StreamKind::LEGACY_DEFAULT);
    made.stream(1, StreamKind::BLOCKING);
    made.launched("a", 1, (10, 11), (20, 50));
    made.launched("default", 0, (16, 17), (70, 80));
    let wait = made.call("cudaStreamSynchronize", (60, 90));
    made.sync(SyncKind::STREAM_WAIT, 0, (60, 90), wait, (0, 0));
    let text = dot(&made.finish());
    assert_eq!(text.matches("color=blue").count(), 1, "{text}");
    assert_eq!(text.matches("color=darkgreen").count(), 1, "{text}");
    let recorded = dot(&with_event().finish());
    assert_eq!(recorded.matches("color=red").count(), 1, "{recorded}");
}

#[test]
fn states_follow_each_other_without_a_hole() {
    let trace = with_event().finish();
    let activity = Activity::of(&trace).unwrap();
    let dependencies = Dependencies::of(&activity);
    let (activity, dependencies) = (Arc::new(activity), Arc::new(dependencies));
    let states = States::of(&activity, &dependencies);
    let line = |subject| states.lines.iter().find(|line| line.subject == subject).unwrap();
    let lanes: Vec<_> = activity.lane_ids().collect();
    let shown = |subject| -> Vec<(u64, u64, State)> {
        line(subject)
            .intervals()
            .map(|interval| (interval.from, interval.to, interval.state))
            .collect()
    };
    assert_eq!(
        shown(Subject::Stream(lanes[0])),
        [
            (100, 120, State::Pending),
            (120, 300, State::Running),
            (300, 400, State::Finished)
        ]
    );
    assert_eq!(
        shown(Subject::Stream(lanes[1])),
        [
            (100, 130, State::Idle),
            (130, 300, State::Waiting),
            (300, 310, State::Pending),
            (310, 400, State::Running),
        ]
    );
    let waiting = line(Subject::Stream(lanes[1])).at(200).unwrap();
    assert_eq!((waiting.op, waiting.waits_for), (OpId(1), OpId(0)));
    assert_eq!(
        line(Subject::Stream(lanes[1])).totals().nanos,
        [30, 10, 170, 90, 0]
    );
    assert_eq!(
        shown(Subject::Device(made::DEVICE)),
        [
            (100, 120, State::Pending),
            (120, 300, State::Running),
            (300, 310, State::Pending),
            (310, 400, State::Running),
        ]
    );
    assert_eq!(States::queued(&activity, lanes[1], 200), 1);
    assert_eq!(States::queued(&activity, lanes[1], 120), 0);
    assert!(
        line(Subject::Stream(lanes[0])).at(99).is_none() && line(Subject::Stream(lanes[0])).at(401).is_none()
    );
    assert_eq!(
        line(Subject::Stream(lanes[0])).at(400).unwrap().state,
        State::Finished
    );
}

#[test]
fn an_empty_trace_has_no_states() {
    let activity = Arc::new(Activity::of(&Made::new().finish()).unwrap());
    assert!(
        States::of(&activity, &Arc::new(Dependencies::of(&activity)))
            .lines
            .is_empty()
    );
}

/// The host launches, waits, works for a while, and launches again.
fn with_wait() -> Made {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 1_120));
    made.call("cudaDeviceSynchronize", (200, 1_130));
    made.launched("norm", 1, (1_230, 1_240), (1_250, 1_350));
    made
}

#[test]
fn the_critical_path_goes_through_host_and_device() {
    let trace = with_wait().finish();
    let report = Analysis::of(&trace, Window::default()).unwrap().critical_path();
    let segments: Vec<(PathPart, u64, u64)> = report
        .segments
        .iter()
        .map(|segment| (segment.part, segment.from_ns, segment.to_ns))
        .collect();
    assert_eq!(
        segments,
        [
            (PathPart::Launch, 100, 120),
            (PathPart::Work, 120, 1_120),
            (PathPart::HostWait, 1_120, 1_130),
            (PathPart::Host, 1_130, 1_230),
            (PathPart::Launch, 1_230, 1_250),
            (PathPart::Work, 1_250, 1_350),
        ]
    );
    assert_eq!((report.path_ns, report.span_ns), (1_250, 1_250));
    assert_eq!(
        (report.totals[0].name.as_str(), report.totals[0].total_ns),
        ("gemm", 1_000)
    );
    let total: u64 = report.totals.iter().map(|total| total.total_ns).sum();
    assert_eq!(total, report.path_ns);
}

#[test]
fn the_critical_path_ends_with_work_when_clocks_disagree() {
    let mut made = Made::new();
    made.launched("first", 1, (90, 95), (100, 107));
    made.launched("last", 1, (600, 605), (500, 510)); // before its call
    let report = Analysis::of(&made.finish(), Window::default())
        .unwrap()
        .critical_path();
    let segments: Vec<(PathPart, u64, u64)> = report
        .segments
        .iter()
        .map(|segment| (segment.part, segment.from_ns, segment.to_ns))
        .collect();
    assert_eq!(
        segments,
        [
            (PathPart::Launch, 90, 100),
            (PathPart::Work, 100, 107),
            (PathPart::Dispatch, 107, 500),
            (PathPart::Work, 500, 510),
        ]
    );
    assert!(report.slack.iter().all(|row| row.min_slack_ns == 0));
}

#[test]
fn what_is_off_the_path_has_slack() {
    let mut made = Made::new();
    made.launched("long", 1, (100, 110), (120, 1_120));
    made.launched("short", 2, (115, 118), (130, 230));
    let trace = made.finish();
    let report = Analysis::of(&trace, Window::default()).unwrap().critical_path();
    let slack: Vec<(&str, u64, u64)> = report
        .slack
        .iter()
        .map(|row| (row.name.as_str(), row.on_path, row.min_slack_ns))
        .collect();
    assert_eq!(slack, [("long", 1, 0), ("short", 0, 890)]);
}

#[test]
fn half_the_time_of_a_kernel_is_saved_where_it_is_waited_for() {
    let trace = with_wait().finish();
    let same = what_if(&trace, &WhatIf::default());
    assert_eq!(
        (same.measured_ns, same.unchanged_ns, same.changed_ns),
        (1_250, 1_250, 1_250)
    );
    let halved = WhatIf {
        scales: scale("gemm", 0.5),
        ..WhatIf::default()
    };
    let report = what_if(&trace, &halved);
    assert_eq!((report.changed_ns, report.scaled_ops), (750, 1));
    // Without the wait its launch comes at 300, and it starts 20 after its stream is free at 1120.
    let without = WhatIf {
        host_waits: HostWaits::Left,
        ..WhatIf::default()
    };
    assert_eq!(what_if(&trace, &without).changed_ns, 1_140);
    // A wait does not get longer than what it waits for.
    let instant = WhatIf {
        scales: scale("gemm", 0.0),
        ..WhatIf::default()
    };
    assert_eq!(what_if(&trace, &instant).changed_ns, 100 + 100 + 20 + 100);
}

#[test]
fn one_wait_can_be_left_out_by_its_line_or_function() {
    let mut made = Made::new();
    let stack = made.stack("/home/me/train.py", 88, "log_loss");
    made.launched("gemm", 1, (100, 110), (120, 1_120));
    made.call_of(made::THREAD, "cudaDeviceSynchronize", (200, 1_130), stack);
    made.launched("norm", 1, (1_230, 1_240), (1_250, 1_350));
    made.call("cudaStreamSynchronize", (1_245, 1_360));
    let trace = made.finish();
    let without = |part: &'static str| {
        let report = what_if(
            &trace,
            &WhatIf {
                host_waits: HostWaits::LeftIn(NamePattern::new(part).unwrap()),
                ..WhatIf::default()
            },
        );
        (report.left_waits, report.changed_ns)
    };
    // As with all waits left out, less the last one: its return is 10 behind the end of its work.
    assert_eq!(without("train.py:88"), (1, 1_150));
    assert_eq!(without("cudaDevice"), (1, 1_150));
    assert_eq!(
        without("cudaStream"),
        (1, 1_250),
        "the end of the work is the end then"
    );
    assert_eq!(without("model.py"), (0, 1_260));
}

/// The path of a time range is a part of the whole one: the time before its first launch is on it, too.
#[test]
fn a_time_range_has_its_part_of_the_path_and_of_the_gain() {
    let mut made = Made::new();
    for step in 0..4u64 {
        let at = 10_000 * (step + 1);
        made.launched("gemm", 1, (at, at + 10), (at + 50, at + 2_050));
        made.call("cudaDeviceSynchronize", (at + 20, at + 2_060));
        made.launched("norm", 1, (at + 2_100, at + 2_110), (at + 2_150, at + 3_150));
        made.call("cudaDeviceSynchronize", (at + 2_120, at + 3_160));
    }
    let trace = made.finish();
    let window = Window {
        from: Some(20_000),
        to: Some(30_000),
    };
    let analysis = Analysis::of(&trace, window).unwrap();
    let path = analysis.critical_path();
    assert_eq!((path.path_ns, path.span_ns), (10_000, 10_000));
    let of_part = |part: PathPart| -> u64 {
        let totals = path.totals.iter().filter(|total| total.part == part);
        totals.map(|total| total.total_ns).sum()
    };
    assert_eq!((of_part(PathPart::Work), of_part(PathPart::Host)), (3_000, 6_880));
    assert_eq!(analysis.slack().iter().len(), 2, "the ops of the range");
    let same = analysis.what_if(&WhatIf::default()).unwrap();
    assert_eq!(
        (same.measured_ns, same.unchanged_ns, same.changed_ns),
        (10_000, 10_000, 10_000)
    );
    let halved = analysis
        .what_if(&WhatIf {
            scales: scale("gemm", 0.5),
            ..WhatIf::default()
        })
        .unwrap();
    assert_eq!((halved.changed_ns, halved.scaled_ops), (9_000, 1));
    // A range that begins before the first call: the CPU works until then.
    let window = Window {
        from: Some(4_000),
        to: Some(20_000),
    };
    let analysis = Analysis::of(&trace, window).unwrap();
    let path = analysis.critical_path();
    assert_eq!((path.path_ns, path.span_ns), (16_000, 16_000));
    let halved = analysis
        .what_if(&WhatIf {
            scales: scale("gemm", 0.5),
            ..WhatIf::default()
        })
        .unwrap();
    assert_eq!((halved.measured_ns, halved.changed_ns), (16_000, 15_000));
}

#[test]
fn every_piece_of_work_has_its_room() {
    let mut made = Made::new();
    made.launched("long", 1, (100, 110), (120, 1_120));
    made.launched("short", 2, (115, 118), (130, 230));
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let slack = analysis.slack();
    let rows: Vec<OpSlack> = slack.iter().collect();
    let found: Vec<(&str, u64, u32)> = rows.iter().map(|op| (&*op.name, op.slack_ns, op.row)).collect();
    assert_eq!(found, [("long", 0, 0), ("short", 890, 1)]);
}

#[test]
fn streams_can_be_more_or_fewer() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 101), (110, 210));
    made.launched("b", 2, (102, 103), (112, 212));
    made.launched("c", 1, (104, 105), (210, 310));
    let trace = made.finish();
    let with = |streams| {
        what_if(
            &trace,
            &WhatIf {
                streams,
                ..WhatIf::default()
            },
        )
        .changed_ns
    };
    assert_eq!(with(StreamCount::AsRecorded), 210);
    assert_eq!(
        with(StreamCount::Unlimited),
        112,
        "c waits for its launch alone, then b is the last"
    );
    assert_eq!(
        with(StreamCount::AtMost(1)),
        310,
        "b and c wait for the one before"
    );
    assert_eq!(with(StreamCount::AtMost(2)), 210);
}

#[test]
fn threads_that_hand_over_are_followed() {
    use tracesmith_format::{StackId, ThreadId};
    let mut made = Made::new();
    made.launched("forward", 1, (1_000, 1_010), (1_020, 500_000));
    made.call("cudaStreamSynchronize", (1_100, 500_010));
    let backward = made.call_of(ThreadId(8), "cudaLaunchKernel", (600_000, 600_010), StackId::NONE);
    made.kernel_row("backward", (600_020, 700_000), backward, made::place(1));
    let trace = made.finish();
    let halved = WhatIf {
        scales: scale("forward", 0.5),
        ..WhatIf::default()
    };
    let report = what_if(&trace, &halved);
    assert_eq!(report.measured_ns - report.changed_ns, (500_000 - 1_020) / 2);
}

proptest! {
    /// Replayed with nothing changed, any trace takes the time that was measured; states cover every moment; the critical
    /// path never exceeds the trace and its parts add up.
    #[test]
    fn nothing_changed_is_what_was_measured(
        steps in prop::collection::vec((0u64..200, 0u64..50, 0u64..300, 1u64..4, 0u8..4), 1..40)
    ) {
        let mut made = Made::new();
        let mut host = 1_000u64;
        let mut free = [0u64; 4];
        for (gap, call, length, stream, what) in steps {
            host += gap + 1;
            match what {
                0 => {
                    let until = free.iter().copied().max().unwrap().max(host) + 5;
                    made.call("cudaDeviceSynchronize", (host, until));
                    host = until;
                }
                _ => {
                    let start = (host + 10).max(free[stream as usize] + 1);
                    made.launched("k", stream, (host, host + call), (start, start + length));
                    free[stream as usize] = start + length;
                    host += call;
                }
            }
        }
        let trace = made.finish();
        let analysis = Analysis::of(&trace, Window::default()).unwrap();
        let report = analysis.what_if(&WhatIf::default()).unwrap();
        prop_assert_eq!(report.unchanged_ns, report.measured_ns);
        prop_assert_eq!(report.changed_ns, report.measured_ns);
        let path = analysis.critical_path();
        prop_assert!(path.path_ns <= path.span_ns);
        prop_assert_eq!(path.totals.iter().map(|total| total.total_ns).sum::<u64>(), path.path_ns);
        let activity = &analysis.activity;
        let states = analysis.states();
        let (first, last) = activity.span.unwrap();
        for line in &states.lines {
            prop_assert_eq!(line.totals().nanos.iter().sum::<u64>(), last - first);
            let intervals: Vec<_> = line.intervals().collect();
            prop_assert!(intervals.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
        let slower = WhatIf { scales: scale("k", 2.0), ..WhatIf::default() };
        prop_assert!(analysis.what_if(&slower).unwrap().changed_ns >= report.measured_ns);
    }
}
