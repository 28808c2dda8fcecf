//! Work that the device is still at when records are handed over: it is waited for, within bounds.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::Run;
use support::rows::{assert_whole, calls, health, joined_kernels, rows};
use support::stage::{Place, Stage, Talk, kill, run, stage};
use tracesmith_fake_cuda::{Options, variable};
use tracesmith_format::tables::HealthCause;
use tracesmith_trace::Trace;

/// Where a kernel takes so many milliseconds.
fn slow(stage: &'static Stage, millis: u64) -> Place {
    let options = Options {
        kernel_nanos: millis * 1_000_000,
        ..Options::default()
    };
    Place::with(stage, options)
}

#[test]
fn a_window_that_closes_while_a_kernel_runs_has_its_end() {
    let Some(stage) = stage() else { return };
    for options in ["--level light", "", "-t kernels,api,sync,queries"] {
        let place = slow(stage, 200);
        let mut armed = Talk::start(&mut place.armed("", "guest igagw"));
        armed.hear("at 0");
        let pid = armed.child().id();
        let window = place.start_window(&mut place.record(pid, options), pid);
        armed.say();
        armed.hear("at 1");
        let run = place.close_window(window);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        armed.say();
        assert_eq!(armed.end().code, Some(0));
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        let kernels = rows(&trace.kernels);
        assert_eq!(kernels.len(), 1, "{options}");
        let took = kernels[0].end.0 - kernels[0].start.0;
        assert!(took >= 200_000_000, "{options}: {took}");
    }
}

/// It is counted and said that a kernel has no times, the window closes in time, and the next one is whole.
#[test]
fn a_window_does_not_wait_for_ever_for_a_kernel() {
    let Some(stage) = stage() else { return };
    let place = slow(stage, 1500);
    let mut armed = Talk::start(&mut place.armed("", "guest igagawg"));
    armed.hear("at 0");
    let pid = armed.child().id();
    let mut first = place.tracesmith(&format!("record --pid {pid} -o first.sbt"));
    let window = place.start_window(&mut first, pid);
    armed.say();
    armed.hear("at 1");
    let closing = Instant::now();
    let run = place.close_window(window);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        closing.elapsed() < Duration::from_millis(1400),
        "{:?}",
        closing.elapsed()
    );
    let first = place.trace("first.sbt");
    let zero: u64 = health(&first, HealthCause::ZERO_TIME)
        .iter()
        .map(|item| item.count)
        .sum();
    assert_eq!((first.kernels.rows(), zero), (1, 1), "{:?}", first.health());
    let window = place.start_window(&mut place.record(pid, ""), pid);
    armed.say();
    armed.hear("at 2");
    let run = place.close_window(window);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    let second = place.trace("t.sbt");
    assert_whole(&second);
    let kernels = joined_kernels(&second);
    assert_eq!(kernels.len(), 1);
    assert_ne!(kernels[0].correlation, rows(&first.kernels)[0].correlation);
}

/// A program that leaves with work under way, and profilers of its own that come, flush and go: a while is waited for it.
#[test]
fn work_under_way_keeps_its_end_whoever_hands_over() {
    let Some(stage) = stage() else { return };
    let place = slow(stage, 40);
    for plan in ["ia", "iaow", "ioacw", "ioafw", "ipaqw"] {
        let (_, trace) = place.profiled("", &format!("guest {plan}"));
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 1, "{plan}");
    }
    let range = "--capture-range cuda-profiler-api";
    let (_, trace) = place.profiled(range, "guest ipaqw");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 1, "{range}");
}

/// A buffer comes back when all that is in it has ended. The device is told of in the first.
#[test]
fn kernels_beside_one_that_does_not_end_have_their_device() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut command = place.profile("", "launcher beside 12000");
    let run = run(command.env(variable::HANGING_KERNEL, "fill"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    let kernels = rows(&trace.kernels);
    assert!(kernels.len() > 4000, "{}", kernels.len());
    let device = kernels[0].place.device;
    assert_ne!(device.0, 0);
    assert!(kernels.iter().all(|kernel| kernel.place.device == device));
    let undefined = health(&trace, HealthCause::UNKNOWN_RECORD);
    assert!(undefined.is_empty(), "{undefined:?}");
}

/// Records twelve windows of 50 ms in an armed program that runs on, and returns those that lost nothing.
///
/// The program launches as fast as it can on all cores, so the collector may get no core until a ring is full. That window
/// says so in its health and proves nothing here; most windows must be whole.
fn short_windows(place: &Place, target: &str) -> Vec<Trace> {
    const WINDOWS: usize = 12;
    let mut armed = place.armed("", target);
    let armed = armed.stdout(Stdio::null()).spawn().unwrap();
    place.wait_until_armed(&armed);
    let windows: Vec<(String, Run)> = (0..WINDOWS)
        .map(|number| {
            let name = format!("{number}.sbt");
            let line = format!("record --pid {} -d 0.05 -o {name}", armed.id());
            (name, run(&mut place.tracesmith(&line)))
        })
        .collect();
    kill(armed);
    let open = |(name, window): (String, Run)| {
        assert_eq!(window.code, Some(0), "{}", window.stderr);
        place.trace(&name)
    };
    let (full, whole): (Vec<Trace>, Vec<Trace>) =
        (windows.into_iter().map(open)).partition(|trace| !health(trace, HealthCause::RING_FULL).is_empty());
    assert!(
        full.len() * 2 < WINDOWS,
        "{target}: {} windows lost records",
        full.len()
    );
    whole.iter().for_each(assert_whole);
    whole
}

/// Where the end of a launch is not told, CUPTI takes its thread to be in it for ever.
#[test]
fn graphs_of_later_windows_have_calls_of_their_own() {
    const NODES: usize = 300;
    let Some(stage) = stage() else { return };
    let mut seen = 0;
    for trace in short_windows(&Place::new(stage), &format!("launcher runtime_graphs {NODES}")) {
        let mut launches: BTreeMap<u64, usize> = BTreeMap::new();
        for kernel in rows(&trace.kernels) {
            *launches.entry(kernel.correlation.0).or_default() += 1;
        }
        // The first and the last one may have run in the window in part.
        let most = launches.values().max().copied().unwrap_or(0);
        assert!(most <= NODES, "{launches:?}");
        seen += launches.len();
    }
    assert!(seen > 0, "there were launches to look at");
}

/// Calls are recorded before what they ask for and no longer than that. One call of each thread may be under way when a
/// window opens.
#[test]
fn kernels_of_a_window_have_their_calls() {
    let Some(stage) = stage() else { return };
    let crowd = Options {
        kernel_nanos: 3_000,
        ..Options::default()
    };
    for (options, target, threads) in [
        (Options::default(), "launcher forever", 1),
        (crowd, "launcher crowd 6", 6),
    ] {
        let mut seen = 0;
        for trace in short_windows(&Place::with(stage, options), target) {
            let calls = calls(&trace);
            let kernels = rows(&trace.kernels);
            let alone: BTreeSet<u64> = kernels
                .iter()
                .filter(|kernel| !calls.contains_key(&(kernel.place.process, kernel.correlation.0)))
                .map(|kernel| kernel.correlation.0)
                .collect();
            assert!(
                alone.len() <= threads,
                "{target}, of {}: {} without",
                kernels.len(),
                alone.len()
            );
            seen += kernels.len();
        }
        assert!(seen > 0, "{target}: there were kernels to look at");
    }
}
