//! What goes wrong on purpose.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]

use crate::stage;

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use stage::{finished, number_after, records, stage};
use tracesmith_fake_cuda::Options;

const KERNELS: &[(&str, &str)] = &[("SPY_KINDS", "10")];

#[test]
fn dropped_records_are_counted() {
    let Some(stage) = stage() else { return };
    let options = Options {
        drop_every: 10,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 100", &options, KERNELS);
    assert_eq!(records(&lines, 10).len(), 90);
    assert!(lines.contains(&"dropped 10".to_owned()));
}

#[test]
fn times_can_be_zero() {
    let Some(stage) = stage() else { return };
    let options = Options {
        zero_every: 4,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 100", &options, KERNELS);
    let zero = records(&lines, 10)
        .iter()
        .filter(|line| number_after(line, "end") == 0)
        .count();
    assert_eq!(zero, 25);
}

#[test]
fn records_can_come_out_of_order() {
    let Some(stage) = stage() else { return };
    let options = Options {
        shuffle: true,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 10", &options, &[("SPY_KINDS", "10,4")]);
    let kernels = records(&lines, 10);
    let starts: Vec<u64> = kernels.iter().map(|line| number_after(line, "start")).collect();
    assert_eq!(starts.len(), 10);
    assert!(!starts.is_sorted());
}

#[test]
fn another_subscriber_keeps_us_out() {
    let Some(stage) = stage() else { return };
    let options = Options {
        other_subscriber: true,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 1", &options, &[("SPY_CALLBACKS", "1:*")]);
    assert_eq!(lines, ["version 130001", "subscribe 39", "end"]);
}

#[test]
fn the_driver_can_refuse_to_start() {
    let Some(stage) = stage() else { return };
    let options = Options {
        init_error: 100,
        ..Options::default()
    };
    let output = finished(&mut stage.command("launcher launch 1", &options));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "failed cuInit(0) 100 CUDA_ERROR_NO_DEVICE\n"
    );
}

#[test]
fn launches_can_fail() {
    let Some(stage) = stage() else { return };
    let options = Options {
        launch_failure_every: 3,
        ..Options::default()
    };
    let output = finished(&mut stage.command("launcher launch 10", &options));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("701 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        "{errors}"
    );
}

#[test]
fn deliveries_can_be_slow() {
    let Some(stage) = stage() else { return };
    let options = Options {
        slow_flush_millis: 300,
        ..Options::default()
    };
    let start = Instant::now();
    stage.spy("launcher launch 1", &options, KERNELS);
    assert!(start.elapsed().as_millis() >= 300);
}

#[test]
fn kernels_can_take_their_time() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 2_000_000,
        ..Options::default()
    };
    let lines = stage.spy("launcher launch 3", &options, KERNELS);
    for line in records(&lines, 10) {
        assert!(number_after(line, "end") - number_after(line, "start") >= 2_000_000);
    }
}

#[test]
fn a_forced_flush_shows_work_that_is_not_done() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 300_000_000,
        ..Options::default()
    };
    // This program ends while its kernels run: the spy's flush at exit takes records without times.
    let lines = stage.spy("launcher unfinished", &options, KERNELS);
    let ends: Vec<u64> = records(&lines, 10)
        .iter()
        .map(|line| number_after(line, "end"))
        .collect();
    assert_eq!(ends.len(), 3);
    assert_eq!(ends[2], 0);
}

#[test]
fn a_flush_in_a_forked_child_never_returns() {
    let Some(stage) = stage() else { return };
    let mut command = stage.command("launcher fork", &Options::default());
    command.env("CUDA_INJECTION64_PATH", stage.path("spy.so")).envs([
        ("SPY_KINDS", "10"),
        ("SPY_FLUSH_CHILD", "1"),
        ("SPY_OUT", "/dev/null"),
    ]);
    // A group of its own, so that the hanging child of the child can be ended, too.
    command
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let is_running = child.try_wait().unwrap().is_none();
    let group = i32::try_from(child.id()).unwrap();
    // SAFETY: the group holds the two processes that this test started.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    child.wait().unwrap();
    assert!(is_running);
}
