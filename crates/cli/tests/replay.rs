//! A recorded window really runs again, in another process, and its memory comes out the same.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod support;

use serde_json::Value;
use support::rows::assert_whole;
use support::stage::{Place, run, stage};
use tracesmith_fake_cuda::Options;

const WINDOW: &str = "--record --capture-range cuda-profiler-api";

/// What a replay of t.sbt answers.
fn replayed(place: &Place, options: &str) -> (Option<i32>, Value) {
    let run = run(&mut place.tracesmith(&format!("replay t.sbt --format json {options}")));
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    (run.code, value)
}

#[test]
fn a_window_comes_out_the_same_as_often_as_one_likes() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (profiled, trace) = place.profiled(WINDOW, "launcher window 100000 3");
    let alone = run(&mut place.target("launcher window 100000 3"));
    assert_eq!(profiled.stdout, alone.stdout);
    assert_whole(&trace);
    // Kernels of the window, and none of the recorder's own copies.
    assert_eq!(trace.kernels.rows(), 6);
    assert_eq!(trace.copies.rows(), 3);
    let (code, answer) = replayed(&place, "--repeat 3");
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(answer["verdict"], "same");
    let runs = answer["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    // x, y, total, table, what that points to, and the page-locked memory; not what nobody reached.
    assert_eq!(runs[0]["buffers"], 6, "{answer}");
    assert_eq!(runs[0]["bytes"], 4 * 400_000 + 4 + 64);
}

#[test]
fn a_sum_in_another_order_is_named() {
    let Some(stage) = stage() else { return };
    let options = Options {
        racy: true,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 100000 1");
    let (code, answer) = replayed(&place, "");
    assert_eq!(code, Some(1), "{answer}");
    let differences = answer["runs"][0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{answer}");
    assert_eq!(differences[0]["bytes"], 4);
    assert_ne!(differences[0]["expected"], differences[0]["found"]);
}

#[test]
fn a_plan_needs_no_driver() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let mut command = place.tracesmith("replay t.sbt --mode dry-run");
    command.env_remove("LD_LIBRARY_PATH");
    let plan = run(&mut command);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert!(plan.stdout.ends_with("replayable\n"), "{}", plan.stdout);
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled("--record", "launcher graph 3 2");
    let plan = run(&mut place.tracesmith("replay t.sbt --mode dry-run"));
    assert_eq!(plan.code, Some(1), "{}", plan.stderr);
    assert!(
        plan.stdout.contains("cuGraphLaunch: a launch of a graph"),
        "{}",
        plan.stdout
    );
    let replay = run(&mut place.tracesmith("replay t.sbt"));
    assert_eq!(replay.code, Some(2));
    assert!(replay.stderr.contains("not replayable: #"), "{}", replay.stderr);
}

#[test]
fn a_trace_without_a_recording_says_so() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled("", "launcher launch 10");
    let replay = run(&mut place.tracesmith("replay t.sbt"));
    assert_eq!(replay.code, Some(2));
    assert!(
        replay.stderr.contains("it holds no recording"),
        "{}",
        replay.stderr
    );
}
