//! Recording targets from their start to their end.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::exit,
    reason = "in a test a panic is the report"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::time::{Duration, Instant};

use support::{kernels, markers, noted, only_end, profile_task, rows, target};
use tracesmith_collect::{Capture, End, WindowSchedule};
use tracesmith_format::{
    StringId, Timestamp,
    tables::{ClockKind, HealthCause, MarkerKind, ProcessEnd},
};

#[test]
fn target_process() {
    support::script::run();
}

#[test]
fn everything_that_a_target_says_is_in_the_trace() {
    let outcome = profile_task("whole:5000", Capture::default());
    assert_eq!(outcome.end, End::Exited(3));
    assert!(outcome.report.is_whole(), "{:?}", outcome.report.losses);
    assert_eq!(outcome.report.rows.kernels, 5000);
    assert_eq!(outcome.report.rows.api_calls, 5000);
    assert_eq!(outcome.report.processes, 1);
    let trace = outcome.trace();
    assert!(trace.health().is_good(), "{:?}", trace.health());
    assert_eq!(only_end(&trace), (ProcessEnd::EXITED, 3));

    let kernels = kernels(&trace);
    assert!(kernels.iter().map(|kernel| kernel.correlation.0).eq(0..5000));
    let shape = &kernels[0].shape;
    assert_eq!(trace.string(shape.name), target::MANGLED);
    assert_eq!(trace.string(shape.demangled), target::DEMANGLED);
    let calls = rows(&trace.api_calls);
    assert!(calls.iter().map(|call| call.correlation.0).eq(0..5000));
    assert_eq!(trace.string(calls[0].shape.name), "cuLaunchKernel");

    let process = &trace.processes[0];
    assert_eq!(calls[0].caller.thread.0, u64::from(process.pid));
    assert!(trace.string(process.command).contains("target_process"));
    assert!(process.started < process.ended, "{process:?}");
    let device = trace.device(kernels[0].place.device).unwrap();
    assert_eq!(trace.string(device.name), "NVIDIA H200");
    assert_eq!(trace.string(device.architecture), "Hopper");
    assert_eq!((trace.contexts.len(), trace.contexts[0].device), (1, device.id));
    assert!(trace.threads.iter().any(|thread| thread.name != StringId::NONE));

    // Device times come to the host's line by the pairs that the target gave.
    let aligned = trace
        .clocks
        .iter()
        .find(|clock| clock.kind == ClockKind::ALIGNED)
        .unwrap();
    let first = trace.clock_map.convert(aligned.id, kernels[0].start);
    let distance = first.time.0.abs_diff(kernels[0].start.0 - target::AHEAD);
    assert!(distance < 1000, "{distance}");
    assert_eq!(first.uncertainty, 50);

    let fact = |key: &str| trace.metadata.get(key).map(String::as_str);
    assert!(fact("command").unwrap().contains("target_process"));
    assert_eq!(fact("capture.level"), Some("standard"));
    let key = format!("process.{}.cupti.path", process.pid);
    assert_eq!(fact(&key), Some("/usr/lib/libcupti.so"));
}

#[test]
fn several_processes_land_in_one_trace() {
    let outcome = profile_task("children:4", Capture::default());
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.report.is_whole(), "{:?}", outcome.report.losses);
    let trace = outcome.trace();
    assert_eq!(outcome.report.processes, 4);
    assert_eq!(kernels(&trace).len(), 2000);
    assert_eq!(trace.devices.len(), 1, "one device for all of them");
    let mut ranks: Vec<_> = trace
        .processes
        .iter()
        .map(|process| process.rank.get().unwrap())
        .collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [0, 1, 2, 3]);
    for process in &trace.processes {
        assert_eq!((process.end, process.end_code), (ProcessEnd::EXITED, 3));
        assert_eq!(process.world_size, 4);
        let of_it = kernels(&trace)
            .iter()
            .filter(|kernel| kernel.place.process == process.id)
            .count();
        assert_eq!(of_it, 500);
    }
    assert!(trace.health().unlinked_clocks.is_empty());
}

#[test]
fn garbage_is_counted_and_disturbs_nobody() {
    let outcome = profile_task("garbage", Capture::default());
    assert_eq!(outcome.end, End::Exited(0));
    let trace = outcome.trace();
    let whole: Vec<_> = kernels(&trace)
        .into_iter()
        .filter(|kernel| kernel.grid_id >= 0)
        .collect();
    assert!(whole.iter().map(|kernel| kernel.correlation.0).eq(0..1000));
    assert!(noted(&trace, HealthCause::UNKNOWN_RECORD).unwrap() >= 1000);
    assert!(!outcome.report.is_whole());
}

#[test]
fn a_text_is_known_before_what_refers_to_it() {
    let outcome = profile_task("late-texts", Capture::default());
    let trace = outcome.trace();
    let kernels = kernels(&trace);
    assert_eq!(kernels.len(), 2001);
    for (number, kernel) in kernels.iter().take(2000).enumerate() {
        assert_eq!(trace.string(kernel.shape.name), format!("kernel_{number}"));
    }
    assert_eq!(kernels[2000].shape.name, StringId::NONE);
    assert_eq!(noted(&trace, HealthCause::UNKNOWN_RECORD), Some(1));
}

#[test]
fn markers_become_ranges() {
    let outcome = profile_task("markers", Capture::default());
    let trace = outcome.trace();
    let markers = markers(&trace);
    let find = |name: &str| {
        let found: Vec<_> = markers
            .iter()
            .filter(|marker| trace.string(marker.shape.name) == name)
            .collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].clone()
    };
    let (outer, inner, mark) = (find("outer"), find("inner"), find("now"));
    assert_eq!(outer.shape.kind, MarkerKind::NESTED_RANGE);
    assert_eq!(trace.string(outer.shape.domain), "train");
    assert!(outer.start < inner.start && inner.start < mark.start);
    assert!(mark.end == mark.start && mark.end < inner.end && inner.end < outer.end);
    assert_eq!(find("free").shape.kind, MarkerKind::FREE_RANGE);
    let open = find("never ended");
    assert_eq!(open.shape.kind, MarkerKind::OPEN_FREE_RANGE);
    assert!(open.end > open.start);
    let open = find("never popped");
    assert_eq!(open.shape.kind, MarkerKind::OPEN_NESTED_RANGE);
    assert!(open.end > open.start);
    let loaded = find("loaded");
    assert_eq!(
        (loaded.payload, trace.string(loaded.shape.category_name)),
        (17, "data")
    );
    assert_eq!(markers.len(), 7);
    let thread = trace
        .threads
        .iter()
        .find(|thread| thread.thread == outer.caller.thread)
        .unwrap();
    assert_eq!(trace.string(thread.name), "trainer");
    assert_eq!(
        noted(&trace, HealthCause::OTHER),
        Some(1),
        "the first pop had no push"
    );
    assert!(outcome.report.is_whole(), "which is no loss");
}

#[test]
fn a_window_opens_late_and_closes_early() {
    let window = WindowSchedule {
        delay: Duration::from_millis(300),
        duration: Some(Duration::from_millis(200)),
    };
    let start = Instant::now();
    let outcome = profile_task(
        "windows",
        Capture {
            window,
            ..Capture::default()
        },
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    let trace = outcome.trace();
    let kernels = kernels(&trace);
    assert!(!kernels.is_empty());
    let span = |times: &mut dyn Iterator<Item = Timestamp>| {
        let times: Vec<_> = times.collect();
        times.iter().max().unwrap().0 - times.iter().min().unwrap().0
    };
    let recorded = span(&mut kernels.iter().map(|kernel| kernel.start));
    assert!((50_000_000..400_000_000).contains(&recorded), "{recorded}");
    let process = &trace.processes[0];
    let opened: u64 = trace.metadata[&format!("process.{}.window.opened", process.pid)]
        .parse()
        .unwrap();
    assert!(
        opened - process.started.0 > 150_000_000,
        "the delay counts from the start"
    );
    assert!(
        trace
            .metadata
            .contains_key(&format!("process.{}.window.closed", process.pid))
    );
}

#[test]
fn a_process_that_outlives_the_program_is_told_to_stop() {
    let outcome = profile_task("lingers", Capture::default());
    assert_eq!(outcome.end, End::Exited(0));
    let trace = outcome.trace();
    assert!(!kernels(&trace).is_empty());
    assert_eq!(only_end(&trace), (ProcessEnd::RUNNING, 0));
    assert!(outcome.report.is_whole(), "{:?}", outcome.report.losses);
}

#[test]
fn a_process_that_does_not_answer_is_not_waited_for_long() {
    let start = Instant::now();
    let outcome = profile_task("stubborn", Capture::default());
    assert!(
        start.elapsed() < Duration::from_millis(7500),
        "{:?}",
        start.elapsed()
    );
    let trace = outcome.trace();
    assert_eq!(kernels(&trace).len(), 1);
    assert!(!outcome.report.is_whole());
}

#[test]
fn a_target_that_cannot_record_says_why() {
    let outcome = profile_task("refuses", Capture::default());
    let trace = outcome.trace();
    let health = trace.health();
    let item = health
        .recorded
        .iter()
        .find(|item| item.cause == HealthCause::UNAVAILABLE)
        .unwrap();
    assert_eq!(item.detail, "no CUPTI here");
}

#[test]
fn a_program_that_never_comes_leaves_a_trace_that_says_so() {
    let outcome = profile_task("stays-away", Capture::default());
    assert_eq!((outcome.end, outcome.report.processes), (End::Exited(0), 0));
    let trace = outcome.trace();
    assert!(noted(&trace, HealthCause::UNAVAILABLE).is_some());
}

#[test]
fn a_visitor_that_says_nothing_sensible_disturbs_nobody() {
    let outcome = profile_task("odd-visitor", Capture::default());
    assert_eq!(kernels(&outcome.trace()).len(), 2);
}

/// Issue 26: without these, traces of several hosts could not be put together.
#[test]
fn the_clocks_of_the_host_are_paired_with_the_time_of_day() {
    let outcome = profile_task("whole:100", Capture::default());
    let trace = outcome.trace();
    let clock = |kind| trace.clocks.iter().find(|clock| clock.kind == kind).unwrap();
    for kind in [ClockKind::REALTIME, ClockKind::BOOTTIME] {
        assert_eq!(clock(kind).host, trace.hosts[0].id);
        assert!(trace.clock_map.is_linked(clock(kind).id));
    }
    let utc = clock(ClockKind::UTC);
    assert_eq!(
        utc.host,
        tracesmith_format::HostId::NONE,
        "it is that of all hosts"
    );
    // Now, as the time of day has it, lies a moment after the end of the process.
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let realtime = clock(ClockKind::REALTIME);
    let now = Timestamp(u64::try_from(now.as_nanos()).unwrap());
    let converted = trace.clock_map.convert(realtime.id, now);
    let ended = trace.processes[0].ended.0;
    assert!(
        (ended..ended + 60_000_000_000).contains(&converted.time.0),
        "{converted:?}"
    );
    let of_day = trace.clock_map.convert(utc.id, now);
    assert!(of_day.uncertainty >= converted.uncertainty && of_day.uncertainty > 0);
}
