//! Waits of streams for each other that no row states, and paths that lack waits of the CPU.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;

use tracesmith_format::tables::SyncKind;
use tracesmith_trace::analysis::{Analysis, IdleCause, PathPart, Scale, WhatIf, WhatIfReport};
use tracesmith_trace::reconstruct::{Activity, Dependencies, EdgeWhy, Window};
use tracesmith_trace::{NamePattern, Trace};

use crate::made::Made;

/// Whether the trace has calls that make streams wait.
#[derive(Clone, Copy, PartialEq)]
enum WaitCalls {
    Recorded,
    Elsewhere,
    None,
}

/// Two steps: stream 1 computes, stream 2 communicates for 1 ms, and stream 1 goes on 3 µs later. No row states the
/// waits.
fn exposed(wait_calls: WaitCalls) -> Made {
    let mut made = Made::new();
    for step in 0..2 {
        let begin = 1_300_000 * step;
        let at = |times: (u64, u64)| (begin + times.0, begin + times.1);
        made.launched("backward", 1, at((1_000, 5_000)), at((8_000, 60_000)));
        if wait_calls == WaitCalls::Recorded {
            made.call("cudaStreamWaitEvent", at((6_000, 7_000)));
        }
        made.launched("ncclAllReduce", 2, at((8_000, 12_000)), at((63_000, 1_063_000)));
        if wait_calls == WaitCalls::Recorded {
            made.call("cudaStreamWaitEvent", at((13_000, 14_000)));
        }
        made.launched("optimizer", 1, at((15_000, 19_000)), at((1_066_000, 1_096_000)));
        made.call("cudaDeviceSynchronize", at((20_000, 1_100_000)));
        if wait_calls == WaitCalls::Elsewhere {
            made.call("cudaStreamWaitEvent", at((1_110_000, 1_111_000)));
        }
    }
    made
}

fn assumed(trace: &Trace) -> Vec<(u32, u32)> {
    let dependencies = Dependencies::of(&Activity::of(trace).unwrap());
    let edges = dependencies.edges.iter();
    let assumed: Vec<(u32, u32)> = edges
        .filter(|edge| edge.why == EdgeWhy::Assumed)
        .map(|edge| (edge.from.0, edge.to.0))
        .collect();
    assert_eq!(dependencies.assumed_edges, assumed.len() as u64);
    assumed
}

fn scaled(trace: &Arc<Trace>, name: &'static str, factor: f64) -> WhatIfReport {
    let what_if = WhatIf {
        scales: vec![Scale {
            name: NamePattern::new(name).unwrap(),
            factor,
        }],
        ..WhatIf::default()
    };
    Analysis::of(trace, Window::default())
        .unwrap()
        .what_if(&what_if)
        .unwrap()
}

#[test]
fn a_stream_that_goes_on_when_communication_ends_has_waited_for_it() {
    for wait_calls in [WaitCalls::Recorded, WaitCalls::None] {
        let trace = exposed(wait_calls).finish();
        // Communication waits for the backward pass, and the optimizer for communication.
        assert_eq!(assumed(&trace), [(0, 1), (1, 2), (3, 4), (4, 5)]);
        let analysis = Analysis::of(&trace, Window::default()).unwrap();
        let path = analysis.critical_path();
        let time = |name: &str| -> u64 {
            let of_name = path.totals.iter().filter(|total| total.name == name);
            of_name.map(|total| total.total_ns).sum()
        };
        assert_eq!(time("ncclAllReduce"), 2_000_000);
        let queued = path.totals.iter().find(|total| total.part == PathPart::Dispatch);
        assert!(queued.is_none(), "{queued:?}");
        assert_eq!(path.assumed_edges, 4);
        let report = scaled(&trace, "nccl*", 0.1);
        assert_eq!((report.scaled_ops, report.scaled_on_path), (2, 2));
        assert_eq!(report.unchanged_ns, report.measured_ns);
        assert_eq!(report.measured_ns - report.changed_ns, 1_800_000);
        assert_eq!((report.explanation, report.assumed_edges), (None, 4));
    }
}

#[test]
fn idle_time_of_the_waiting_stream_is_communication() {
    let trace = exposed(WaitCalls::Recorded).finish();
    let idle = Analysis::of(&trace, Window::default()).unwrap().idle();
    let causes = &idle
        .streams
        .iter()
        .find(|stream| stream.stream == 1)
        .unwrap()
        .causes;
    let communication = causes
        .iter()
        .find(|total| total.cause == IdleCause::Communication);
    assert!(communication.unwrap().total_ns > 1_900_000, "{causes:?}");
}

#[test]
fn a_wait_is_not_assumed_where_waits_are_known() {
    // The trace has rows of waits: there are no others.
    let mut made = exposed(WaitCalls::Recorded);
    let wait = made.call("cudaStreamWaitEvent", (2_700_000, 2_701_000));
    made.sync(
        SyncKind::STREAM_WAIT_EVENT,
        2,
        (2_700_000, 2_701_000),
        wait,
        (9, 1),
    );
    assert_eq!(assumed(&made.finish()), []);
    // It has calls of waits, and none between the launches.
    let elsewhere = assumed(&exposed(WaitCalls::Elsewhere).finish());
    assert!(
        !elsewhere.contains(&(1, 2)) && !elsewhere.contains(&(4, 5)),
        "{elsewhere:?}"
    );
}

#[test]
fn a_wait_is_not_assumed_beside_a_stream_on_which_work_ends_all_the_time() {
    let mut made = Made::new();
    for at in 0..100 {
        let start = 10_000 * at;
        made.launched("short", 2, (start, start + 1_000), (start + 2_000, start + 9_000));
    }
    made.launched("first", 1, (100, 200), (1_500, 3_000));
    made.launched("late", 1, (300, 400), (502_000, 503_000));
    assert_eq!(assumed(&made.finish()), []);
}

#[test]
fn a_path_of_cpu_code_is_doubtful_while_launched_work_waits_on_the_gpu() {
    // The CPU launches each 1 ms. The GPU is behind by 50 ms all the time, for no recorded reason.
    let behind = |nanos: u64| {
        let mut made = Made::new();
        for at in 0..100 {
            let call = 1_000_000 * at;
            let start = call + 10_000 + nanos;
            made.launched("gemm", 1, (call, call + 5_000), (start, start + 100_000));
        }
        // The last one starts at once: the path ends with its launch.
        made.launched("last", 2, (170_000_000, 170_005_000), (170_010_000, 170_020_000));
        made.finish()
    };
    let path = |trace: &Arc<Trace>| Analysis::of(trace, Window::default()).unwrap().critical_path();
    let (late, prompt) = (behind(70_000_000), behind(0));
    assert!(
        path(&late).cpu_ahead_ns > 150_000_000,
        "{}",
        path(&late).cpu_ahead_ns
    );
    assert_eq!(path(&prompt).cpu_ahead_ns, 0);
    let report = scaled(&late, "gemm", 0.1);
    assert_eq!(report.cpu_ahead_ns, path(&late).cpu_ahead_ns);
    let explanation = report.explanation.unwrap();
    assert!(
        explanation.ends_with("by the recorded calls, the CPU determines the time"),
        "{explanation}"
    );
    let explanation = scaled(&prompt, "gemm", 0.1).explanation.unwrap();
    assert!(
        explanation.ends_with("the GPU waits for the CPU"),
        "{explanation}"
    );
}

/// The critical path had 0 % communication, although the GPU waits for it 93 % of the time.
#[test]
fn all_reduces_of_pytorch_are_on_the_critical_path() {
    let Some(path) = tracesmith_skip::data("nccl-h200/ddp/rank0.json.gz") else {
        return;
    };
    let trace = Arc::new(tracesmith_interop::open(&path).unwrap());
    let report = scaled(&trace, "nccl*", 0.1);
    assert_eq!(report.scaled_ops, 24);
    let gain = 1.0 - report.changed_ns as f64 / report.unchanged_ns as f64;
    assert!((0.7..0.9).contains(&gain), "{gain}");
    // 24 waits for an all-reduce, and some of an all-reduce for the backward pass.
    assert!(
        (24..48).contains(&report.assumed_edges),
        "{}",
        report.assumed_edges
    );
}

/// The path was CPU code, and the what-if promised nothing, while the queue was not empty 73 % of the time.
#[test]
fn a_path_without_the_waits_of_the_cpu_is_doubtful() {
    let name = "kineto/timeline_analysis_sampled_rank-0.json.gz";
    let Some(path) = tracesmith_skip::data(name) else {
        return;
    };
    let trace = Arc::new(tracesmith_interop::open(&path).unwrap());
    let report = scaled(&trace, "nccl*", 0.1);
    assert!(report.cpu_ahead_ns > 600_000_000, "{}", report.cpu_ahead_ns);
}
