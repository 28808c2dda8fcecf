//! Levels and `-t` choose what is recorded; every version of CUPTI gives the same; NVTX, clocks and counters come along.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeSet;

use support::rows::{assert_whole, call_counts, calls, health, joined_kernels, rows};
use support::stage::{Place, stage};
use tracesmith_fake_cuda::{CuptiVersion, Options};
use tracesmith_format::CorrelationId;
use tracesmith_format::tables::{ClockKind, HealthCause, HostCallKind, Marker, MarkerKind, PayloadKind};
use tracesmith_trace::Trace;

/// Rows by table: kernels, copies and sets, calls, waits, allocations, markers, modules, overhead, counters.
fn has_rows(trace: &Trace) -> [bool; 9] {
    [
        trace.kernels.rows(),
        trace.copies.rows() + trace.sets.rows(),
        trace.api_calls.rows(),
        trace.syncs.rows(),
        trace.allocations.rows(),
        trace.markers.rows(),
        trace.modules.rows(),
        trace.host_calls.rows(),
        trace.counters.rows(),
    ]
    .map(|rows| rows > 0)
}

#[test]
fn levels_record_more_and_more() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, light) = place.profiled("--level light", "launcher copies 5");
    assert_eq!(
        has_rows(&light),
        [false, true, false, false, false, false, false, false, true]
    );
    let (_, standard) = place.profiled("", "launcher copies 5");
    let queries = ["cuCtxSetCurrent", "cuDeviceGet", "cuDeviceGetCount"];
    let counts = call_counts(&standard);
    assert!(counts.contains_key("cuMemAlloc"), "{counts:?}");
    assert!(
        queries.iter().all(|query| !counts.contains_key(query)),
        "{counts:?}"
    );
    assert!(standard.allocations.rows() > 0 && standard.modules.rows() > 0);
    let (_, full) = Place::newest(stage).profiled("--level full", "launcher peer");
    let counts = call_counts(&full);
    assert!(
        queries.iter().any(|query| counts.contains_key(query)),
        "{counts:?}"
    );
    for (trace, level) in [(light, "light"), (standard, "standard"), (full, "full")] {
        assert_whole(&trace);
        assert_eq!(trace.metadata["capture.level"], level);
    }
}

#[test]
fn launches_are_queued_and_submitted_where_that_is_asked_for() {
    let Some(stage) = stage() else { return };
    let place = Place::newest(stage);
    for options in ["--level full", "-t kernels,api,latency"] {
        let (_, trace) = place.profiled(options, "launcher launch 20");
        assert_whole(&trace);
        let kernels = joined_kernels(&trace);
        assert_eq!(kernels.len(), 20, "{options}");
        for kernel in kernels {
            assert!(kernel.queued.is_some(), "{options}: {kernel:?}");
            assert!(
                kernel.queued <= kernel.submitted && kernel.submitted <= kernel.start,
                "{kernel:?}"
            );
        }
    }
    let (_, trace) = place.profiled("", "launcher launch 20");
    assert!(rows(&trace.kernels).iter().all(|kernel| !kernel.queued.is_some()));
}

/// Before 13.4 Update 1 CUPTI stops programs for good where it is asked for that: it is not asked, and the trace says so.
#[test]
fn launches_are_not_known_to_be_queued_where_asking_stops_the_program() {
    let Some(stage) = stage() else { return };
    for cupti_version in [CuptiVersion::V12_4, CuptiVersion::V12_9, CuptiVersion::V13_0] {
        let options = Options {
            cupti_version,
            ..Options::default()
        };
        let place = Place::with(stage, options);
        for options in ["--level full", "-t kernels,api,latency"] {
            let (_, trace) = place.profiled(options, "launcher launch 20");
            let kernels = joined_kernels(&trace);
            assert_eq!(kernels.len(), 20, "{cupti_version:?} {options}");
            assert!(
                kernels.iter().all(|kernel| !kernel.queued.is_some()),
                "{kernels:?}"
            );
            let reasons = health(&trace, HealthCause::UNAVAILABLE);
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            let words = "queued and submitted is not recorded";
            assert!(reasons[0].detail.contains(words), "{reasons:?}");
        }
    }
}

#[test]
fn kinds_are_chosen_one_by_one() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let [none, all] = [[false; 9], [true; 9]];
    let only = |at: usize| {
        let mut expected = none;
        expected[at] = true;
        expected
    };
    for (kind, target, expected) in [
        ("kernels", "launcher nvtx", only(0)),
        ("copies", "launcher copies 2", only(1)),
        ("api", "launcher copies 2", only(2)),
        ("sync", "launcher events", only(3)),
        ("memory", "launcher memory", only(4)),
        ("nvtx", "launcher nvtx", only(5)),
        ("modules", "launcher modules", only(6)),
        ("overhead", "launcher launch 10", only(7)),
        ("counters", "launcher launch 10", only(8)),
        ("streams", "launcher streams 2 2", none),
    ] {
        let (_, trace) = place.profiled(&format!("-t {kind}"), target);
        assert_whole(&trace);
        assert_eq!(has_rows(&trace), expected, "{kind}");
        assert_eq!(trace.metadata["capture.kinds"], kind);
        assert_eq!(trace.devices.len(), 1, "{kind}: devices are always there");
    }
    let everything = "-t kernels,copies,api,sync,memory,nvtx,modules,overhead,counters,streams";
    let (_, trace) = place.profiled(everything, "guest in");
    assert_eq!(has_rows(&trace)[0], all[0]);
}

/// What must not depend on the version: everything but times, channels and numbers that CUPTI gives out.
fn essence(trace: &Trace) -> Vec<String> {
    let name = |id| trace.string(id).to_owned();
    let calls = calls(trace);
    // The version decides from which call on they are counted.
    let asked_by = |process, correlation: CorrelationId| {
        let call = calls.get(&(process, correlation.0));
        call.map_or("nobody", |call| trace.string(call.shape.name))
    };
    let mut lines: Vec<String> = Vec::new();
    for kernel in rows(&trace.kernels) {
        let shape = &kernel.shape;
        lines.push(format!(
            "kernel {} {} {} {} {:?} {:?}",
            name(shape.name),
            shape.grid_x,
            shape.block_x,
            shape.graph.is_some(),
            kernel.place.device,
            asked_by(kernel.place.process, kernel.correlation)
        ));
    }
    for copy in rows(&trace.copies) {
        let shape = &copy.shape;
        lines.push(format!(
            "copy {:?} {:?} {:?} {:?} {:?}",
            shape.direction,
            shape.source_memory,
            shape.destination_memory,
            copy.bytes,
            asked_by(copy.place.process, copy.correlation)
        ));
    }
    for set in rows(&trace.sets) {
        let asker = asked_by(set.place.process, set.correlation);
        lines.push(format!("set {:?} {} {asker}", set.bytes, set.value));
    }
    for call in rows(&trace.api_calls) {
        let shape = &call.shape;
        lines.push(format!("call {} {}", name(shape.name), shape.result));
    }
    for sync in rows(&trace.syncs) {
        let asker = asked_by(sync.place.process, sync.correlation);
        lines.push(format!("sync {:?} {asker}", sync.shape.kind));
    }
    for row in rows(&trace.allocations) {
        let shape = &row.shape;
        lines.push(format!(
            "allocation {:?} {:?} {} {:?}",
            shape.operation, shape.memory, shape.asynchronous, row.bytes
        ));
    }
    for stream in &trace.streams {
        lines.push(format!("stream {:?} {}", stream.kind, stream.priority));
    }
    lines.sort_unstable();
    lines
}

#[test]
fn all_versions_of_cupti_give_the_same_rows() {
    let Some(stage) = stage() else { return };
    for target in [
        "compute 64",
        "copies 3",
        "memory",
        "events",
        "graph 3 2",
        "streams 2 3",
    ] {
        let mut expected = None;
        for cupti_version in CuptiVersion::ALL {
            let options = Options {
                cupti_version,
                ..Options::default()
            };
            let (_, trace) = Place::with(stage, options).profiled("", &format!("launcher {target}"));
            assert_whole(&trace);
            let found = essence(&trace);
            let expected: &Vec<String> = expected.get_or_insert_with(|| found.clone());
            let missing = expected.iter().filter(|line| !found.contains(line)).count();
            assert_eq!(
                missing, 0,
                "{target} with {cupti_version:?}:\n{expected:#?}\n{found:#?}"
            );
            assert_eq!(found.len(), expected.len(), "{target} with {cupti_version:?}");
        }
    }
}

/// The marker of a name.
fn marker<'m>(trace: &Trace, markers: &'m [Marker], name: &str) -> &'m Marker {
    let mut found = markers
        .iter()
        .filter(|marker| trace.string(marker.shape.name) == name);
    found.next().unwrap_or_else(|| panic!("no marker {name}"))
}

#[test]
fn marks_and_ranges_come_with_all_that_was_said() {
    let Some(stage) = stage() else { return };
    let (run, trace) = Place::new(stage).profiled("", "launcher nvtx");
    assert_eq!(run.stdout, "nvtx ranges 4 marks 2 kernels 9 levels 0 1 0\n");
    assert_whole(&trace);
    let markers = rows(&trace.markers);
    assert_eq!(markers.len(), 6, "{markers:?}");
    let find = |name: &str| marker(&trace, &markers, name);
    let mark = find("a mark");
    assert_eq!((mark.shape.kind, mark.start), (MarkerKind::INSTANT, mark.end));
    let started = find("a started range");
    assert_eq!(started.shape.kind, MarkerKind::FREE_RANGE);
    let (outer, inner) = (find("outer"), find("pushed with attributes"));
    assert_eq!(outer.shape.kind, MarkerKind::NESTED_RANGE);
    assert!(
        started.start <= outer.start && outer.start <= inner.start,
        "they nest"
    );
    assert!(inner.end <= outer.end && outer.end <= started.end, "they nest");
    let said = |marker: &Marker| {
        let shape = &marker.shape;
        let category = trace.string(shape.category_name).to_owned();
        (
            shape.category,
            category,
            shape.color,
            shape.payload_kind,
            marker.payload,
        )
    };
    let seventh = (7, "seventh".to_owned(), 0xFF76_B900, PayloadKind::U64, 42);
    assert_eq!(said(inner), seventh);
    assert_eq!(trace.string(inner.shape.domain), "");
    let of_domain: Vec<&Marker> = markers
        .iter()
        .filter(|marker| trace.string(marker.shape.domain) == "launcher")
        .collect();
    assert_eq!(of_domain.len(), 2, "a range and a mark");
    for marker in of_domain {
        assert_eq!(trace.string(marker.shape.name), "a registered name");
        assert_eq!(trace.string(marker.shape.category_name), "seventh of launcher");
        assert_eq!(marker.payload, 42);
    }
    let threads: BTreeSet<&str> = trace
        .threads
        .iter()
        .map(|thread| trace.string(thread.name))
        .collect();
    assert!(threads.contains("main thread"), "{threads:?}");
    // On one line: the kernels of the inner range lie after its beginning.
    let first = joined_kernels(&trace)[0].start;
    let (_, last) = trace.span().unwrap();
    assert!(first.is_some() && last.is_some());
}

#[test]
fn markers_of_a_program_that_never_touches_cuda_are_recorded() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("", "guest mrm");
    assert!(run.stdout.starts_with("launched 0 "), "{}", run.stdout);
    assert!(trace.health().damage.is_empty());
    let markers = rows(&trace.markers);
    let names: Vec<&str> = markers
        .iter()
        .map(|marker| trace.string(marker.shape.name))
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(
        marker(&trace, &markers, "empty").shape.kind,
        MarkerKind::NESTED_RANGE
    );
    assert_eq!(trace.processes.len(), 1);
}

#[test]
fn clocks_are_compared_and_say_how_well() {
    let Some(stage) = stage() else { return };
    // Counters are sampled from before the program starts.
    let (_, trace) = Place::new(stage).profiled("-t kernels,api", "launcher launch 10");
    let aligned = trace.clocks.iter().find(|clock| clock.kind == ClockKind::ALIGNED);
    let aligned = aligned.expect("the device's clock");
    assert!(trace.clock_map.is_linked(aligned.id));
    // Kernels and the process that launched them are on one line.
    let process = &trace.processes[0];
    let (first, last) = trace.span().unwrap();
    assert!(
        process.started <= first && last <= process.ended,
        "{process:?} {first:?} {last:?}"
    );
    let kernel = &rows(&trace.kernels)[0];
    let time = trace.clock_map.convert(aligned.id, kernel.start);
    assert!(time.uncertainty > 0 && time.uncertainty < 1_000_000, "{time:?}");
}

#[test]
fn the_profilers_own_work_is_told() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher launch 100");
    let calls = rows(&trace.host_calls);
    let overhead: Vec<_> = calls
        .iter()
        .filter(|call| call.shape.kind == HostCallKind::OVERHEAD)
        .collect();
    assert!(!overhead.is_empty());
    assert!(
        overhead
            .iter()
            .all(|call| call.start <= call.end && call.shape.name.is_some())
    );
}

#[test]
fn counters_of_every_device_are_sampled() {
    let Some(stage) = stage() else { return };
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (_, trace) = place.profiled("--counter-period 20ms", "guest ikzzzzz");
    let counters = rows(&trace.counters);
    let names: BTreeSet<&str> = counters.iter().map(|row| trace.string(row.track.name)).collect();
    assert!(names.len() >= 6, "{names:?}");
    let devices: BTreeSet<_> = counters.iter().map(|row| row.track.device).collect();
    assert_eq!(devices.len(), 2);
    let times: BTreeSet<u64> = counters.iter().map(|row| row.time.0).collect();
    assert!(times.len() >= 4, "{times:?}");
}
