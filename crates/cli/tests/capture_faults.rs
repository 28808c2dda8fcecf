//! What fails around a program does not reach it: it runs to its end, and the trace and the last lines say what was wrong.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use support::Run;
use support::rows::{assert_whole, health, joined_kernels, rows};
use support::stage::{Place, ended, run, stage, start, type_in, until};
use tracesmith_fake_cuda::{Options, library};
use tracesmith_format::tables::HealthCause;

#[test]
fn records_that_cupti_dropped_are_counted() {
    let Some(stage) = stage() else { return };
    let options = Options {
        drop_every: 10,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (run, trace) = place.profiled("-t kernels", "launcher launch 1000");
    assert_eq!(run.stdout, "launched 1000\n");
    let dropped: u64 = health(&trace, HealthCause::VENDOR_DROPPED)
        .iter()
        .map(|item| item.count)
        .sum();
    assert!(dropped >= 90, "{:?}", trace.health());
    // Devices, contexts and streams are records too.
    let kernels = trace.kernels.rows();
    assert!(
        (890..1000).contains(&kernels) && kernels + dropped >= 1000,
        "{kernels} and {dropped}"
    );
    assert!(run.stderr.contains("warning: incomplete: "), "{}", run.stderr);
    let strict = support::stage::run(&mut place.profile("--strict -t kernels", "launcher launch 1000"));
    assert_eq!(strict.code, Some(1), "{}", strict.stderr);
}

#[test]
fn records_without_times_are_kept_and_counted() {
    let Some(stage) = stage() else { return };
    let options = Options {
        zero_every: 4,
        ..Options::default()
    };
    let (_, trace) = Place::with(stage, options).profiled("", "launcher launch 100");
    let zero = health(&trace, HealthCause::ZERO_TIME);
    assert_eq!(zero.iter().map(|item| item.count).sum::<u64>(), 25, "{zero:?}");
    let kernels = rows(&trace.kernels);
    assert_eq!(kernels.len(), 100);
    assert_eq!(kernels.iter().filter(|kernel| !kernel.end.is_some()).count(), 25);
}

#[test]
fn records_in_any_order_are_all_there() {
    let Some(stage) = stage() else { return };
    let options = Options {
        shuffle: true,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    for target in ["launcher launch 500", "launcher copies 20", "launcher graph 5 10"] {
        let (_, trace) = place.profiled("", target);
        assert_whole(&trace);
        assert_eq!(trace.devices.len(), 1);
        for kernel in joined_kernels(&trace) {
            assert!(kernel.place.device.is_some(), "{kernel:?}");
        }
        for copy in rows(&trace.copies) {
            assert!(copy.place.device.is_some(), "{copy:?}");
        }
    }
}

#[test]
fn slow_hand_overs_lose_nothing_and_stop_nobody() {
    let Some(stage) = stage() else { return };
    let options = Options {
        slow_flush_millis: 300,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let begun = Instant::now();
    let (_, trace) = place.profiled("", "guest ikzkzkzkzkzkzk");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 70);
}

#[test]
fn another_profiler_that_was_first_keeps_its_place() {
    let Some(stage) = stage() else { return };
    let options = Options {
        other_subscriber: true,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (run, trace) = place.profiled("", "launcher nvtx");
    assert!(
        run.stdout.starts_with("nvtx ranges 4 marks 2 kernels 9 "),
        "{}",
        run.stdout
    );
    let conflict = health(&trace, HealthCause::CONFLICT);
    assert_eq!(conflict.len(), 1, "{:?}", trace.health());
    assert!(conflict[0].detail.contains("another profiler"), "{conflict:?}");
    assert_eq!(trace.kernels.rows(), 0);
    assert_eq!(
        trace.markers.rows(),
        6,
        "what needs no CUPTI is recorded all the same"
    );
    let told = run.stderr.matches("another profiler").count();
    assert_eq!(told, 1, "once: {}", run.stderr);
}

#[test]
fn a_cupti_that_takes_no_buffers_has_no_subscriber_left_issue_26() {
    let Some(stage) = stage() else { return };
    let options = Options {
        register_error: 15,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (run, trace) = place.profiled("--no-preload", "guest ivk");
    assert!(run.stdout.starts_with("subscribed 0\n"), "{}", run.stdout);
    assert_eq!(trace.kernels.rows(), 0);
    let recorded = trace.health().recorded;
    let told = recorded
        .iter()
        .filter(|item| item.detail.contains("CUPTI cannot be used"));
    assert_eq!(told.count(), 1, "{recorded:?}");
}

/// Our library makes threads while it starts, and what the program does then may ask it for something.
#[test]
fn a_program_that_marks_the_threads_of_others_is_not_stopped_by_it() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let expected = run(&mut place.target("named_threads"));
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    let threads = |run: &Run| {
        run.stdout
            .trim()
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    let (profiled, trace) = place.profiled("", "named_threads");
    assert_eq!(joined_kernels(&trace).len(), 3);
    assert!(
        threads(&profiled) > threads(&expected),
        "ours are among them: {} {}",
        profiled.stdout,
        expected.stdout
    );
    for options in ["", "--ready"] {
        let armed = run(&mut place.armed(options, "named_threads"));
        assert_eq!(armed.code, Some(0), "{options}: {}", armed.stderr);
        assert!(
            threads(&armed) > threads(&expected),
            "{options}: {}",
            armed.stdout
        );
    }
}

#[test]
fn a_driver_that_does_not_start_is_the_programs_own_trouble() {
    let Some(stage) = stage() else { return };
    let options = Options {
        init_error: 100,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let alone = run(&mut place.target("launcher launch 1"));
    let recorded = run(&mut place.profile("", "launcher launch 1"));
    assert_eq!(
        (alone.code, recorded.code),
        (Some(2), Some(2)),
        "{}",
        recorded.stderr
    );
    assert!(recorded.stderr.starts_with(&alone.stderr), "{}", recorded.stderr);
    assert!(!place.trace("t.sbt").health().is_good());
}

/// A place whose machine has a driver and nothing else.
fn without_cupti(place: &Place) -> std::path::PathBuf {
    let folder = place.folder().join("driver");
    fs::create_dir(&folder).unwrap();
    symlink(library().unwrap(), folder.join("libcuda.so.1")).unwrap();
    folder
}

#[test]
fn a_machine_without_cupti_is_told_and_the_program_runs() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let folder = without_cupti(&place);
    let run = run(place
        .profile("", "launcher launch 10")
        .env("LD_LIBRARY_PATH", folder));
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "launched 10\n"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    let reasons = health(&trace, HealthCause::UNAVAILABLE);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].detail.contains("libcupti"), "{reasons:?}");
    assert_eq!((trace.kernels.rows(), trace.processes.len()), (0, 1));
    assert_eq!(
        run.stderr.matches("CUPTI cannot be used").count(),
        1,
        "once: {}",
        run.stderr
    );
}

#[test]
fn a_library_that_is_none_stops_nobody() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    fs::write(place.path("library.so"), "not a library").unwrap();
    for options in ["--no-preload", ""] {
        let mut command = place.profile(options, "launcher launch 10");
        let run = run(command.env("TRACESMITH_INJECT_LIBRARY", place.path("library.so")));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "launched 10\n"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("started no process"), "{}", run.stderr);
    }
}

#[test]
fn a_full_disk_is_told_once_and_the_program_runs() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for (code, target) in [(2, "launcher launch 2000"), (7, "launcher exit 7")] {
        let mut command = place.tracesmith("profile --force -o /dev/full --");
        let mut words = target.split_whitespace();
        command.arg(stage.path(words.next().unwrap())).args(words);
        let run = run(&mut command);
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        assert!(run.stdout.starts_with("launched "), "{}", run.stdout);
        assert_eq!(
            run.stderr.matches("No space left").count(),
            1,
            "once: {}",
            run.stderr
        );
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk_and_no_signal() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut child = start(place.profile("", "guest ikgk").stdin(Stdio::piped()));
    // Once it runs: the rings are files too, for the system.
    until(|| fs::metadata(place.path("t.sbt")).is_ok_and(|metadata| metadata.len() > 0));
    thread::sleep(Duration::from_millis(200));
    let limit = Rlimit {
        current: Some(4096),
        maximum: Some(4096),
    };
    prlimit(Some(Pid::from_child(&child)), Resource::Fsize, limit).unwrap();
    type_in(&mut child, b"go\n");
    let run = ended(child);
    assert!(run.stdout.contains("launched 20 "), "{}", run.stderr);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert_eq!(
        run.stderr.matches("File too large").count(),
        1,
        "once: {}",
        run.stderr
    );
}

#[test]
fn a_small_bound_on_memory_drops_records_and_not_the_program() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("--buffer-size 4M", "launcher threads 4 2000");
    assert_eq!(run.stdout, "launched 8000 threads 4\n");
    let lost: u64 = trace.health().recorded.iter().map(|item| item.count).sum();
    assert!(
        trace.kernels.rows() + lost >= 8000,
        "{} {:?}",
        trace.kernels.rows(),
        trace.health()
    );
}
