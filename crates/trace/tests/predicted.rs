//! Predicted timelines: where a change moves every op, call and range, against what the report says and what must hold.

use std::sync::Arc;

use proptest::prelude::*;
use tracesmith_format::StackId;
use tracesmith_format::tables::SyncKind;
use tracesmith_trace::analysis::{Analysis, HostWaits, PathPart, Scale, StreamCount, WhatIf, WhatIfReport};
use tracesmith_trace::grid::{Grid, GridOptions, TrackKind};
use tracesmith_trace::reconstruct::{Predicted, Timing, Window};
use tracesmith_trace::{Error, NamePattern, Trace};

use crate::made::{Made, PROCESS, THREAD};

fn analysis(trace: &Arc<Trace>) -> Analysis {
    Analysis::of(trace, Window::default()).unwrap()
}

fn predicted(analysis: &Analysis, what_if: &WhatIf) -> Predicted {
    analysis.predicted(what_if, &|_| Ok(())).unwrap()
}

fn scaled(name: &'static str, factor: f64) -> WhatIf {
    WhatIf {
        scales: vec![Scale {
            name: NamePattern::new(name).unwrap(),
            factor,
        }],
        ..WhatIf::default()
    }
}

/// Start, end and name of every slice of the tracks of a kind, from the first to the last.
fn slices(grid: &Grid, kind: TrackKind) -> Vec<(u64, u64, String)> {
    let mut found = Vec::new();
    for track in grid.tracks().iter().filter(|track| track.kind == kind) {
        for row in track.first_row..track.first_row + track.rows {
            let slices = grid.slices(row, 0, u64::MAX, usize::MAX);
            for at in 0..slices.starts.len() {
                let start = grid.origin() + slices.starts[at];
                let name = grid.shapes()[slices.shapes[at] as usize].name.clone();
                found.push((start, start + slices.durations[at], name));
            }
        }
    }
    found.sort();
    found
}

fn named(slices: &[(u64, u64, String)]) -> Vec<(u64, u64, &str)> {
    slices
        .iter()
        .map(|(start, end, name)| (*start, *end, name.as_str()))
        .collect()
}

/// The CPU launches, waits for that, and launches again; a range is around each half.
fn with_wait() -> Made {
    let mut made = Made::new();
    made.range("first", (50, 1_180));
    made.launched("gemm", 1, (100, 110), (120, 1_120));
    let wait = made.call("cudaStreamSynchronize", (200, 1_130));
    made.sync(SyncKind::STREAM_WAIT, 1, (200, 1_130), wait, (0, 0));
    made.range("second", (1_200, 1_260));
    made.launched("norm", 1, (1_230, 1_240), (1_250, 1_350));
    made
}

#[test]
fn any_number_of_streams_can_be_predicted() {
    let trace = with_wait().finish();
    let total = |streams| {
        let what_if = WhatIf {
            streams: StreamCount::AtMost(streams),
            ..WhatIf::default()
        };
        predicted(&analysis(&trace), &what_if).total()
    };
    assert_eq!(total(usize::MAX), total(8));
}

#[test]
fn ops_calls_and_ranges_move_with_what_they_wait_for() {
    let trace = with_wait().finish();
    let analysis = analysis(&trace);
    let halved = predicted(&analysis, &scaled("gemm", 0.5));
    let ops: Vec<(u64, u64)> = halved.ops().map(|(_, times)| times).collect();
    assert_eq!(ops, [(120, 620), (750, 850)]);
    let measured = Grid::new(&trace, GridOptions::default()).unwrap();
    let grid = measured.predicted(&halved, &|_| Ok(())).unwrap();
    assert_eq!(grid.origin(), measured.origin());
    assert_eq!(
        named(&slices(&grid, TrackKind::Stream)),
        [(120, 620, "gemm"), (750, 850, "norm")]
    );
    assert_eq!(
        named(&slices(&grid, TrackKind::Calls)),
        [
            (100, 110, "cudaLaunchKernel"),
            (200, 630, "cudaStreamSynchronize"),
            (730, 740, "cudaLaunchKernel")
        ],
        "the wait still begins 100 after the launch, and ends 10 after its op"
    );
    assert_eq!(
        named(&slices(&grid, TrackKind::Markers)),
        [(50, 680, "first"), (700, 760, "second")]
    );
    // The rows have the keys of those that they belong to. Waits have no predicted times.
    let keys =
        |grid: &Grid| -> Vec<String> { grid.tracks().iter().map(|track| track.address.clone()).collect() };
    let (all, some) = (keys(&measured), keys(&grid));
    assert!(some.iter().all(|key| all.contains(key)), "{some:?} of {all:?}");
    assert!(grid.tracks().iter().all(|track| track.kind != TrackKind::Waits));
    assert!(grid.tracks().iter().any(|track| track.kind == TrackKind::Device));
    // Shapes keep their numbers.
    assert_eq!(measured.shapes(), grid.shapes());
}

/// A call of the driver within one of the runtime stays within it, whichever of them waits.
#[test]
fn calls_within_a_wait_stay_within_it() {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 1_120));
    let wait = made.call("cudaStreamSynchronize", (200, 1_200));
    made.call("cuStreamSynchronize", (300, 1_100));
    made.sync(SyncKind::STREAM_WAIT, 1, (200, 1_200), wait, (0, 0));
    let trace = made.finish();
    let analysis = analysis(&trace);
    let measured = Grid::new(&trace, GridOptions::default()).unwrap();
    for (factor, outer, inner) in [(0.5, (200, 700), (250, 650)), (2.0, (200, 2_200), (400, 2_000))] {
        let moved = predicted(&analysis, &scaled("gemm", factor));
        let grid = measured.predicted(&moved, &|_| Ok(())).unwrap();
        let calls = slices(&grid, TrackKind::Calls);
        let times: Vec<(u64, u64)> = calls[1..].iter().map(|(start, end, _)| (*start, *end)).collect();
        assert_eq!(times, [outer, inner]);
    }
}

#[test]
fn slower_ops_make_the_timeline_longer() {
    let trace = with_wait().finish();
    let analysis = analysis(&trace);
    let slower = scaled("norm", 10.0);
    let grid = Grid::new(&trace, GridOptions::default()).unwrap();
    let longer = grid
        .predicted(&predicted(&analysis, &slower), &|_| Ok(()))
        .unwrap();
    assert_eq!((grid.span(), longer.span()), (1_300, 2_200));
    assert_eq!(analysis.what_if(&slower).unwrap().changed_ns, 1_250 + 900);
}

#[test]
fn a_thread_without_launches_and_waits_has_no_predicted_times() {
    let mut made = with_wait();
    let other = tracesmith_format::ThreadId(8);
    made.call_of(other, "cudaGetDevice", (2_000, 2_010), StackId::NONE);
    let trace = made.finish();
    let analysis = analysis(&trace);
    let same = predicted(&analysis, &WhatIf::default());
    let threads = same.threads();
    assert!(threads.of_thread(PROCESS, THREAD).is_some());
    assert!(threads.of_thread(PROCESS, other).is_none());
    let grid = Grid::new(&trace, GridOptions::default()).unwrap();
    let same = grid.predicted(&same, &|_| Ok(())).unwrap();
    assert_eq!(slices(&grid, TrackKind::Calls).len(), 4);
    assert_eq!(slices(&same, TrackKind::Calls).len(), 3);
}

#[test]
fn what_limits_the_time_next_is_the_path_with_the_change() {
    let mut made = Made::new();
    // Two streams beside each other, and the CPU waits for both.
    made.launched("long", 1, (100, 110), (120, 1_120));
    made.launched("short", 2, (115, 118), (130, 930));
    let wait = made.call("cudaDeviceSynchronize", (200, 1_130));
    made.sync(SyncKind::CONTEXT_WAIT, 0, (200, 1_130), wait, (0, 0));
    let trace = made.finish();
    let analysis = analysis(&trace);
    let work = |report: &WhatIfReport| -> Vec<(String, u64)> {
        let totals = report
            .path
            .totals
            .iter()
            .filter(|total| total.part == PathPart::Work);
        totals.map(|total| (total.name.clone(), total.total_ns)).collect()
    };
    let same = analysis.what_if(&WhatIf::default()).unwrap();
    assert_eq!(work(&same), [("long".to_owned(), 1_000)]);
    let halved = analysis.what_if(&scaled("long", 0.5)).unwrap();
    assert_eq!(work(&halved), [("short".to_owned(), 800)]);
    assert_eq!(halved.path.path_ns, 940 - 100);
    assert_eq!(halved.changed_ns, 940 - 100);
}

#[test]
fn steps_are_predicted_as_their_own_reports_are() {
    let mut made = Made::new();
    for step in 0..6u64 {
        let at = 10_000 * (step + 1);
        made.range(&format!("step {step}"), (at, at + 9_000));
        made.launched("gemm", 1, (at + 100, at + 110), (at + 120, at + 2_120));
        made.launched("norm", 1, (at + 200, at + 210), (at + 2_130, at + 2_630));
        let wait = made.call("cudaStreamSynchronize", (at + 300, at + 2_640));
        made.sync(SyncKind::STREAM_WAIT, 1, (at + 300, at + 2_640), wait, (0, 0));
    }
    let trace = made.finish();
    let whole = analysis(&trace);
    let halved = scaled("gemm", 0.5);
    let report = whole.what_if(&halved).unwrap();
    assert_eq!(report.steps.len(), 6);
    for step in &report.steps {
        let alone = whole
            .only_step(step.number)
            .unwrap()
            .unwrap()
            .what_if(&halved)
            .unwrap();
        assert_eq!(
            (step.measured_ns, step.changed_ns),
            (alone.measured_ns, alone.changed_ns),
            "{step:?}"
        );
        assert_eq!((step.measured_ns, step.changed_ns), (9_000, 8_000));
        assert_eq!(alone.steps, std::slice::from_ref(step));
    }
    let median = report.step.unwrap();
    // Of a step's 8000 the path is 1000 with gemm and 500 with norm.
    let settled = median.count;
    let of_step = |name: &str| {
        median
            .path
            .iter()
            .find(|total| total.name == name)
            .unwrap()
            .total_ns
    };
    assert_eq!(
        (of_step("gemm"), of_step("norm")),
        (1_000 * settled, 500 * settled)
    );
    let shares: f64 = median.path.iter().map(|total| total.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert_eq!(
        (median.count, median.measured_ns, median.changed_ns),
        (whole.steps.settled().len() as u64, 9_000, 8_000)
    );
}

#[test]
fn an_op_without_a_call_stays_when_streams_are_few() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 101), (110, 210));
    made.kernel("b", 2, 900, 1_000);
    let trace = made.finish();
    let few = WhatIf {
        streams: StreamCount::AtMost(1),
        ..WhatIf::default()
    };
    let ops: Vec<(u64, u64)> = predicted(&analysis(&trace), &few)
        .ops()
        .map(|(_, times)| times)
        .collect();
    assert_eq!(ops, [(110, 210), (900, 1_000)]);
}

#[test]
fn a_simulation_ends_when_its_watch_says_so() {
    let trace = with_wait().finish();
    let analysis = analysis(&trace);
    let ended = analysis.predicted(&WhatIf::default(), &|_| Err(Error::Cancelled));
    assert!(matches!(ended, Err(Error::Cancelled)));
    let same = predicted(&analysis, &WhatIf::default());
    let grid = Grid::new(&trace, GridOptions::default()).unwrap();
    assert!(matches!(
        grid.predicted(&same, &|_| Err(Error::Cancelled)),
        Err(Error::Cancelled)
    ));
}

prop_compose! {
    /// Launches on three streams, waits of the CPU, and waits of a stream for another one.
    fn any_trace()(
        steps in prop::collection::vec((0u64..200, 0u64..50, 0u64..300, 1u64..4, 0u8..7), 1..60)
    ) -> Arc<Trace> {
        let mut made = Made::new();
        let mut host = 1_000u64;
        let mut free = [0u64; 4];
        // An event that was recorded: when its stream is done with what came before, the stream, and the number.
        let mut event: Option<(u64, u64, u64)> = None;
        for (number, (gap, call, length, stream, what)) in (1u64..).zip(steps) {
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
                    let until = free[lane].max(host) + 5;
                    let wait = made.call("cudaStreamSynchronize", (host, until));
                    made.sync(SyncKind::STREAM_WAIT, stream, (host, until), wait, (0, 0));
                    host = until;
                }
                2 => {
                    let record = made.call("cudaEventRecord", (host, host + call));
                    made.sync(SyncKind::EVENT_RECORD, stream, (host, host + call), record, (9, number));
                    event = Some((free[lane], stream, number));
                    host += call;
                }
                3 => if let Some((done, of, number)) = event.filter(|(_, of, _)| *of != stream) {
                    let wait = made.call("cudaStreamWaitEvent", (host, host + call));
                    made.sync(SyncKind::STREAM_WAIT_EVENT, stream, (host, host + call), wait, (9, number));
                    free[lane] = free[lane].max(done);
                    event = Some((done, of, number));
                    host += call;
                },
                _ => {
                    let start = (host + 10).max(free[lane] + 1);
                    made.range("range", (host, host + call));
                    let name = if what == 4 { "gemm" } else { "norm" };
                    made.launched(name, stream, (host, host + call), (start, start + length));
                    free[lane] = start + length;
                    host += call;
                }
            }
        }
        made.finish()
    }
}

prop_compose! {
    fn any_change()(
        factor in prop::sample::select(vec![0.0, 0.3, 0.5, 1.0, 1.7, 4.0]),
        name in prop::sample::select(vec!["gemm", "norm", "*"]),
        streams in prop::sample::select(vec![StreamCount::AsRecorded, StreamCount::Unlimited, StreamCount::AtMost(1), StreamCount::AtMost(2)]),
        waits in prop::sample::select(vec![HostWaits::Kept, HostWaits::Left]),
    ) -> WhatIf {
        WhatIf { streams, host_waits: waits, ..scaled(name, factor) }
    }
}

proptest! {
    /// The total is that of the report, and the report's path is as long as its parts.
    #[test]
    fn the_total_is_what_the_report_says(trace in any_trace(), what_if in any_change()) {
        let analysis = analysis(&trace);
        let report = analysis.what_if(&what_if).unwrap();
        let predicted = predicted(&analysis, &what_if);
        prop_assert_eq!(predicted.total(), report.changed_ns);
        let last = predicted.ops().map(|(_, (_, end))| end).max().unwrap_or(0);
        prop_assert!(last <= predicted.times().iter().copied().max().unwrap_or(0));
        prop_assert_eq!(report.path.totals.iter().map(|total| total.total_ns).sum::<u64>(), report.path.path_ns);
        prop_assert!(report.path.path_ns <= report.changed_ns);
        let host = report.path.totals.iter().filter(|total| total.part == PathPart::Host);
        prop_assert_eq!(host.map(|total| total.total_ns).sum::<u64>(), report.path.host.total_ns);
    }

    /// Without a change all is as it was: times, rows, steps and the path.
    #[test]
    fn nothing_moves_without_a_change(trace in any_trace()) {
        let analysis = analysis(&trace);
        let same = predicted(&analysis, &WhatIf::default());
        let report = analysis.what_if(&WhatIf::default()).unwrap();
        prop_assert_eq!(same.total(), report.unchanged_ns);
        let graph = same.graph();
        for at in 0..graph.len() {
            prop_assert_eq!(same.time(at), graph.measured(at));
        }
        prop_assert_eq!(same.critical(), graph.critical());
        let path = analysis.critical_path();
        prop_assert_eq!(&report.path.totals, &path.totals);
        prop_assert_eq!(&report.path.host, &*analysis.host_on_path().unwrap());
        // A wait without ops waits for nothing.
        prop_assume!(!analysis.activity.ops.is_empty());
        let grid = Grid::new(&trace, GridOptions::default()).unwrap();
        let moved = grid.predicted(&same, &|_| Ok(())).unwrap();
        for kind in [TrackKind::Calls, TrackKind::Markers] {
            prop_assert_eq!(slices(&moved, kind), slices(&grid, kind));
        }
        let ops: Vec<_> = slices(&grid, TrackKind::Stream)
            .into_iter()
            .filter(|(.., name)| ["gemm", "norm"].contains(&name.as_str()))
            .collect();
        prop_assert_eq!(slices(&moved, TrackKind::Stream), ops);
    }

    /// No op starts before what it still depends on ends, and the order in a stream is kept.
    #[test]
    fn nothing_starts_before_what_it_depends_on(trace in any_trace(), what_if in any_change()) {
        let analysis = analysis(&trace);
        let predicted = predicted(&analysis, &what_if);
        let (activity, dependencies) = (&analysis.activity, analysis.dependencies());
        let mut times = vec![(0, 0); activity.ops.len()];
        for (op, found) in predicted.ops() {
            times[op.index()] = found;
        }
        let is_in_order = |before: usize, after: usize| {
            let overlapped = activity.ops.start[after] < activity.ops.end[before];
            overlapped || times[before].1 <= times[after].0
        };
        if what_if.streams != StreamCount::Unlimited {
            for lane in activity.lane_ids() {
                for pair in activity.ops_of(lane).windows(2) {
                    prop_assert!(is_in_order(pair[0].index(), pair[1].index()), "{:?} of {:?}", pair, times);
                }
            }
        }
        if what_if.streams == StreamCount::AtMost(1) {
            let mut all = times.clone();
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{all:?}");
        }
        for edge in &dependencies.edges {
            prop_assert!(is_in_order(edge.from.index(), edge.to.index()), "{edge:?} of {times:?}");
        }
        let threads = predicted.threads();
        let moves = threads.of_thread(PROCESS, THREAD);
        for op in activity.ops.ids() {
            let launch = activity.calls.start[activity.ops.call[op.index()].index()];
            let mut moves = moves.clone().unwrap();
            prop_assert!(moves.moved(launch) <= times[op.index()].0, "{op:?}");
        }
        // A wait that is still there ends after its ops.
        if what_if.host_waits == HostWaits::Kept {
            for wait in &dependencies.host_waits {
                let end = activity.calls.end[wait.call.index()];
                let mut moves = moves.clone().unwrap();
                prop_assert!(moves.moved(end) >= times[wait.op.index()].1, "{wait:?}");
            }
        }
    }

    /// What a thread does stays in order: nothing begins before what came before it.
    #[test]
    fn moments_of_a_thread_keep_their_order(trace in any_trace(), what_if in any_change()) {
        let analysis = analysis(&trace);
        let predicted = predicted(&analysis, &what_if);
        let threads = predicted.threads();
        if let Some(mut moves) = threads.of_thread(PROCESS, THREAD) {
            let moments: Vec<u64> = (900..4_000).step_by(7).collect();
            let moved: Vec<u64> = moments.iter().map(|time| moves.moved(*time)).collect();
            prop_assert!(moved.windows(2).all(|pair| pair[0] <= pair[1]), "{moved:?}");
            // In any order.
            for at in [5, 400, 3, 399, 0, 210] {
                prop_assert_eq!(moves.moved(moments[at]), moved[at]);
            }
        }
    }
}
