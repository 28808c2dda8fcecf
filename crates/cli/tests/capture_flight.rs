//! The flight recorder: the last part of what a program did, written out when someone asks or the program dies.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use support::rows::{health, rows};
use support::stage::{Place, Talk, ended, kill, run, signal, stage, start, until};
use tracesmith_format::tables::{HealthCause, ProcessEnd};
use tracesmith_trace::Trace;

/// Whether a dump is there as a whole.
fn is_written(place: &Place, name: &str) -> bool {
    Trace::open(&place.path(name)).is_ok_and(|trace| trace.health().damage.is_empty())
}

/// Kernels with their names, devices and no gap: definitions are kept however old they are.
fn assert_stands_alone(trace: &Trace) {
    let kernels = rows(&trace.kernels);
    assert!(!kernels.is_empty());
    for kernel in &kernels {
        assert_eq!(trace.string(kernel.shape.name), "noop");
        assert!(
            trace
                .device(kernel.place.device)
                .is_some_and(|device| device.multiprocessors > 0)
        );
    }
}

#[test]
fn a_signal_writes_what_came_since_the_last_one() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let recorder = start(&mut place.profile("--flight-recorder 1M", "launcher forever"));
    thread::sleep(Duration::from_millis(500));
    assert!(!place.path("t.sbt").exists(), "nothing is written unasked");
    let mut last = 0;
    for name in ["t.sbt", "t-2.sbt"] {
        signal(&recorder, Signal::USR2);
        until(|| is_written(&place, name));
        let trace = place.trace(name);
        assert_stands_alone(&trace);
        assert_eq!(trace.processes[0].end, ProcessEnd::RUNNING);
        let correlations: Vec<u64> = rows(&trace.kernels)
            .iter()
            .map(|kernel| kernel.correlation.0)
            .collect();
        let first = *correlations.iter().min().unwrap();
        assert!(first > last, "{name}: {first} was in the dump before");
        last = *correlations.iter().max().unwrap();
        thread::sleep(Duration::from_millis(300));
    }
    signal(&recorder, Signal::TERM);
    assert_eq!(ended(recorder).code, Some(-15));
    let trace = place.trace("t-3.sbt");
    assert_stands_alone(&trace);
    assert_eq!(
        (trace.processes[0].end, trace.processes[0].end_code),
        (ProcessEnd::KILLED, 15)
    );
}

#[test]
fn a_dump_of_a_running_program_is_asked_for_by_its_number() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let pid = armed.id();
    let recorder = place.start_window(&mut place.record(pid, "--flight-recorder 1M"), pid);
    thread::sleep(Duration::from_millis(300));
    let dump = run(&mut place.tracesmith(&format!("record --dump --pid {pid}")));
    assert_eq!(
        (dump.code, dump.stdout.trim()),
        (Some(0), "t.sbt"),
        "{}",
        dump.stderr
    );
    assert_stands_alone(&place.trace("t.sbt"));
    thread::sleep(Duration::from_millis(300));
    assert_eq!(place.close_window(recorder).code, Some(0));
    assert_stands_alone(&place.trace("t-2.sbt"));
    kill(armed);
}

#[test]
fn the_death_of_a_program_writes_its_last_part() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("--flight-recorder 1M", "guest ikkzzzzzzzzzzzzzzz!"));
    assert_eq!(run.code, Some(-9), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_stands_alone(&trace);
    assert_eq!(trace.kernels.rows(), 20);
    assert_eq!(
        (trace.processes[0].end, trace.processes[0].end_code),
        (ProcessEnd::KILLED, 9)
    );
    assert_eq!(health(&trace, HealthCause::PROCESS_DIED).len(), 1);
}

#[test]
fn what_no_longer_fits_is_counted_and_the_last_part_is_there() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, trace) = place.profiled("--flight-recorder 256K -t kernels", "launcher launch 20000");
    assert_stands_alone(&trace);
    let kernels = rows(&trace.kernels);
    assert!(kernels.len() < 20_000, "{}", kernels.len());
    let overwritten = health(&trace, HealthCause::OVERWRITTEN);
    assert!(!overwritten.is_empty(), "{:?}", trace.health());
    let last = kernels.iter().map(|kernel| kernel.correlation.0).max().unwrap();
    assert!(last >= 20_000, "{last}: the last ones are kept");
}

#[test]
fn a_program_that_exits_leaves_its_last_part_too() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let recorder = place.start_window(&mut place.record(pid, "--flight-recorder 1M"), pid);
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    let run = ended(recorder);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(trace.kernels.rows(), 20);
    assert!(health(&trace, HealthCause::PROCESS_DIED).is_empty());
}
