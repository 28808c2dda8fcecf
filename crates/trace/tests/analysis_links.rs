//! Links between calls, waits and ops (issue 26, item 21).

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;

use crate::made;

use made::{CLOCK, Made, PROCESS, THREAD, place};
use proptest::prelude::*;
use tracesmith_format::tables::{ApiCall, ApiShape, Caller, Place, SyncKind};
use tracesmith_format::{ContextId, CorrelationId, DeviceId, StackId, ThreadId, Timestamp};
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::analysis::{Analysis, HostWaits, Scale, WhatIf};
use tracesmith_trace::overview::Surroundings;
use tracesmith_trace::reconstruct::{
    Activity, CallId, Change, Dependencies, ExecutionGraph, Link, LinkKind, Node, OpId, Simulated, Window,
};
use tracesmith_trace::{EventKind, NamePattern, Query, Trace};

fn on(device: u32, stream: u64) -> Place {
    Place {
        device: DeviceId(device),
        context: ContextId(device),
        ..place(stream)
    }
}

fn launched(made: &mut Made, name: &str, place: Place, call: (u64, u64), times: (u64, u64)) {
    let correlation = made.call("cudaLaunchKernel", call);
    made.kernel_row(name, times, correlation, place);
}

/// The ops that the host waited for, by name.
fn waited_for(trace: &Trace) -> Vec<String> {
    let activity = Activity::of(trace).unwrap();
    let waits = Dependencies::of(&activity).host_waits;
    waits
        .iter()
        .map(|wait| activity.name(trace, wait.op).to_owned())
        .collect()
}

/// Two GPUs in one process. The wait is for the first; the op of the second ends later, within the wait.
fn two_gpus() -> Made {
    let mut made = Made::new();
    launched(&mut made, "other gpu", on(2, 6), (100, 105), (110, 480));
    launched(&mut made, "mine", on(1, 5), (106, 109), (115, 450));
    made
}

#[test]
fn a_wait_for_a_context_or_device_is_linked_to_that_one_alone() {
    for kind in [SyncKind::CONTEXT_WAIT, SyncKind::DEVICE_WAIT] {
        let mut made = two_gpus();
        let wait = made.call("cudaDeviceSynchronize", (120, 500));
        made.sync(kind, 0, (120, 500), wait, (0, 0));
        assert_eq!(waited_for(&made.finish()), ["mine"], "{kind:?}");
    }
}

#[test]
fn a_wait_without_a_row_is_for_the_device_that_its_thread_launched_on() {
    let mut made = two_gpus();
    made.call("cudaDeviceSynchronize", (120, 500));
    assert_eq!(waited_for(&made.finish()), ["mine"]);

    let mut made = two_gpus();
    made.call_of(ThreadId(8), "cudaDeviceSynchronize", (120, 500), StackId::NONE);
    let trace = made.finish();
    assert_eq!(waited_for(&trace), [""; 0], "the thread launched nothing");
    let dependencies = Dependencies::of(&Activity::of(&trace).unwrap());
    assert_eq!(dependencies.unknown_waits, 1);
}

#[test]
fn the_critical_path_does_not_cross_to_a_gpu_that_nobody_waits_for() {
    let mut made = two_gpus();
    let wait = made.call("cudaDeviceSynchronize", (120, 500));
    made.sync(SyncKind::CONTEXT_WAIT, 0, (120, 500), wait, (0, 0));
    launched(&mut made, "next", on(1, 5), (510, 515), (520, 900));
    let trace = made.finish();
    let path = Analysis::of(&trace, Window::default()).unwrap().critical_path();
    let names: Vec<&str> = path.segments.names().collect();
    assert!(
        names.contains(&"mine") && !names.contains(&"other gpu"),
        "{names:?}"
    );
}

#[test]
fn a_wait_for_a_context_waits_for_all_of_its_streams() {
    let mut made = Made::new();
    made.launched("long", 1, (100, 105), (110, 1_000));
    made.launched("short", 2, (106, 109), (120, 220));
    let wait = made.call("cudaDeviceSynchronize", (130, 1_010));
    made.sync(SyncKind::CONTEXT_WAIT, 0, (130, 1_010), wait, (0, 0));
    made.launched("next", 1, (1_020, 1_025), (1_030, 1_130));
    // A second wait has only `next` to wait for: the others were waited for.
    let wait = made.call("cudaDeviceSynchronize", (1_040, 1_140));
    made.sync(SyncKind::CONTEXT_WAIT, 0, (1_040, 1_140), wait, (0, 0));
    let trace = made.finish();
    assert_eq!(waited_for(&trace), ["short", "long", "next"]);
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let slower = WhatIf {
        scales: vec![Scale {
            name: NamePattern::exact("short"),
            factor: 20.0,
        }],
        ..WhatIf::default()
    };
    // It takes 2,000 instead of 100 and is over 1,120 later than `long`, which the wait ended with before.
    assert_eq!(analysis.what_if(&slower).unwrap().changed_ns, 1_140 - 100 + 1_120);
    let without = WhatIf {
        host_waits: HostWaits::Left,
        ..WhatIf::default()
    };
    assert_eq!(
        analysis.what_if(&without).unwrap().left_waits,
        2,
        "each counts once"
    );
}

#[test]
fn a_copying_call_with_several_ops_returns_after_the_last() {
    let mut made = Made::new();
    let call = made.call("cudaMemcpy", (100, 500));
    made.kernel_row("first", (110, 200), call, place(1));
    made.kernel_row("last", (150, 480), call, place(2));
    made.kernel_row("short", (160, 170), call, place(3));
    let trace = made.finish();
    let activity = Activity::of(&trace).unwrap();
    let dependencies = Dependencies::of(&activity);
    let last = dependencies.waits_of(CallId(0)).last().unwrap().op;
    assert_eq!(activity.name(&trace, last), "last");
}

/// A runtime call and the driver call within it, with one correlation, as they are stored: as they returned, each in a
/// block of its own.
fn nested_calls(kernel: (u64, u64)) -> Arc<Trace> {
    let options = WriterOptions {
        rows_per_block: 1,
        ..WriterOptions::default()
    };
    let mut made = Made::with(Writer::new(Vec::new(), options).unwrap());
    for (name, times) in [("cuLaunchKernel", (52, 58)), ("cudaLaunchKernel", (50, 60))] {
        let call = ApiCall {
            start: Timestamp(times.0),
            end: Timestamp(times.1),
            correlation: CorrelationId(7),
            caller: Caller {
                process: PROCESS,
                thread: THREAD,
            },
            shape: ApiShape {
                name: made.writer.string(name).unwrap(),
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        made.writer.push(CLOCK, &call).unwrap();
    }
    made.kernel_row("k", kernel, CorrelationId(7), place(3));
    made.finish()
}

#[test]
fn analysis_and_display_name_the_same_call_of_an_op() {
    // The nearest block holds the outer call, or both are as near.
    for kernel in [(80, 90), (55, 90)] {
        let trace = nested_calls(kernel);
        let activity = Activity::of(&trace).unwrap();
        let by_analysis = trace.string(activity.calls.get(activity.ops.call[0]).name);
        let kernels = Query {
            kinds: Some(vec![EventKind::Kernel]),
            ..Query::default()
        };
        let kernel = trace.events(&kernels).next().unwrap();
        let call = Surroundings::of(&trace, &kernel).call.unwrap();
        assert_eq!(
            (by_analysis, trace.event_name(&call)),
            ("cudaLaunchKernel", "cudaLaunchKernel"),
            "{kernel:?}"
        );
    }
}

/// Issue 26: between two launches of a graph on many streams there were as many edges as pairs of streams.
#[test]
fn edges_between_launches_grow_with_their_streams_and_not_with_pairs() {
    // 16 have 256 pairs.
    for streams in [5, 16, 40] {
        let mut made = Made::new();
        for (number, at) in [(0, 1_000), (1, 5_000)] {
            let launch = made.call("cudaGraphLaunch", (100 + 50 * number, 110 + 50 * number));
            for stream in 0..streams {
                let start = at + stream;
                made.node(10 + stream, 1 + stream, (start, start + 500 + stream % 7), launch);
            }
        }
        let activity = Activity::of(&made.finish()).unwrap();
        let dependencies = Dependencies::of(&activity);
        // Each first op of the second launch waits, and one of them for every stream of the first. Those on one stream follow
        // each other anyway.
        assert_eq!(dependencies.edges.len() as u64, 2 * streams - 3);
        let second = streams as u32..2 * streams as u32;
        let last = (0..streams as u32)
            .max_by_key(|op| activity.ops.end[*op as usize])
            .unwrap();
        for op in second {
            let waits = dependencies.edges_to(OpId(op));
            let is_same_stream = activity.ops.lane[op as usize] == activity.ops.lane[last as usize];
            assert!(
                is_same_stream || waits.iter().any(|edge| edge.from.0 == last),
                "{op}"
            );
        }
    }
}

/// Scales every op, and leaves out streams or waits.
struct Changed {
    factor: f64,
    without: Option<LinkKind>,
    durations: Vec<u64>,
}

impl Change for Changed {
    fn duration(&mut self, _: &Activity, op: OpId, measured: u64) -> u64 {
        // Every third op keeps its time, so that what overlapped shifts.
        let factor = if op.0.is_multiple_of(3) { 1.0 } else { self.factor };
        let duration = (measured as f64 * factor) as u64;
        self.durations[op.index()] = duration;
        duration
    }

    fn keeps(&mut self, _: &Activity, _: Node, link: &Link) -> bool {
        Some(link.kind) != self.without
    }

    fn lane_free(&mut self, _: &Activity, _: OpId) -> Option<(u64, u32)> {
        None
    }

    fn done(&mut self, _: &Activity, _: OpId, _: u64, _: u32) {}
}

proptest! {
    /// No change lets an op start before its launch. Where it was measured before its launch, since clocks disagree, the
    /// distance does not grow.
    #[test]
    fn no_op_starts_before_its_launch(
        steps in prop::collection::vec((0u64..200, 0u64..50, 1u64..300, 1u64..4, 0u8..6, 0u64..400), 1..40),
        factor in 0.0f64..3.0,
        without in prop::sample::select(vec![None, Some(LinkKind::Stream), Some(LinkKind::HostWaited)]),
    ) {
        let mut made = Made::new();
        let mut host = 1_000u64;
        let mut free = [0u64; 4];
        for (gap, call, length, stream, what, overlap) in steps {
            host += gap + 1;
            let lane = stream as usize;
            match what {
                0 => {
                    let until = free.iter().copied().max().unwrap().max(host) + 5;
                    let wait = made.call("cudaDeviceSynchronize", (host, until));
                    made.sync(SyncKind::CONTEXT_WAIT, 0, (host, until), wait, (0, 0));
                    host = until;
                }
                1 => {
                    // Clocks disagree.
                    let start = host.saturating_sub(overlap / 8).max(free[lane] + 1);
                    made.launched("early", stream, (host, host + call), (start, start + length));
                    free[lane] = free[lane].max(start + length);
                    host += call;
                }
                _ => {
                    // The op before it on its stream may still run.
                    let start = (host + 10).max((free[lane] + 1).saturating_sub(overlap));
                    made.launched("k", stream, (host, host + call), (start, start + length));
                    free[lane] = free[lane].max(start + length);
                    host += call;
                }
            }
        }
        let trace = made.finish();
        let activity = Activity::of(&trace).unwrap();
        let dependencies = Dependencies::of(&activity);
        let activity = Arc::new(activity);
        let plan = ExecutionGraph::of(&activity, &dependencies);
        let mut changed = Changed { factor, without, durations: vec![0; activity.ops.len()] };
        let simulated = Simulated::of(&plan, &mut changed, &|_| Ok(())).unwrap();
        let times = simulated.times();
        let mut launch_at = vec![None; activity.calls.len()];
        for (at, moment) in plan.nodes.iter().enumerate() {
            if let Node::Launch(call) = moment {
                launch_at[call.index()] = Some(times[at]);
            }
        }
        for (at, moment) in plan.nodes.iter().enumerate() {
            let Node::Op(op) = moment else { continue };
            let call = activity.ops.call[op.index()];
            let launch = launch_at[call.index()].unwrap();
            let early = activity.calls.start[call.index()].saturating_sub(activity.ops.start[op.index()]);
            let begin = times[at] - changed.durations[op.index()];
            prop_assert!(begin + early >= launch, "{op:?} starts at {begin}, launched at {launch}, early by {early}");
        }
        let mut same = Changed { factor: 1.0, without: None, durations: vec![0; activity.ops.len()] };
        let simulated = Simulated::of(&plan, &mut same, &|_| Ok(())).unwrap();
        for (at, time) in simulated.times().iter().enumerate() {
            prop_assert_eq!(*time, plan.measured(at));
        }
        let path = Analysis::of(&trace, Window::default()).unwrap().critical_path();
        prop_assert!(path.path_ns <= path.span_ns);
        prop_assert_eq!(path.totals.iter().map(|total| total.total_ns).sum::<u64>(), path.path_ns);
    }
}
