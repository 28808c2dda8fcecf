//! Windows that are recorded to be run again, however they are chosen.

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
use serde_json::Value;
use support::replay::WINDOW;
use support::rows::rows;
use support::stage::{Place, Talk, ended, run, signal, stage, start};
use tracesmith_fake_cuda::variable;

/// What a replay answers that comes out the same.
fn same(place: &Place, options: &str) -> Value {
    let run = run(&mut place.tracesmith(&format!("replay t.sbt --format json {options}")));
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn buffers(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["buffers"].as_array().unwrap().iter()
}

/// The kernels of a recording, in order.
fn launches(place: &Place) -> Vec<String> {
    let plan = same(place, "--mode dry-run");
    let commands = plan["commands"].as_array().unwrap().iter();
    commands
        .filter(|command| command["kind"] == "launch")
        .map(|command| command["function"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn one_launch_of_one_kernel() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // The second that fits: `fill` comes before the window of the program, and in it.
    let (_, trace) = place.profiled("--record --kernel fi* --nth 3", "launcher window 1000 0");
    assert_eq!(launches(&place), ["fill"]);
    assert_eq!(trace.kernels.rows(), 1);
    same(&place, "--repeat 2");
    let (_, trace) = place.profiled("--kernel accumulate", "launcher window 1000 3");
    assert_eq!(trace.kernels.rows(), 1, "also without a recording");
    let (_, trace) = place.profiled("--kernel accumulate --nth 9", "launcher window 1000 3");
    assert_eq!(trace.kernels.rows(), 0);
    let wrong = run(&mut place.tracesmith("profile --nth 2 -- true"));
    assert_eq!(wrong.code, Some(2));
}

/// To read memory, the recording makes copies within the program's copy calls. They have the same correlation as the
/// program's copies, which must be in the trace all the same.
#[test]
fn copies_of_the_program_are_in_a_recording() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled(WINDOW, "launcher runtime_copies");
    assert!(run.stdout.contains("copied 3 result 0 value 5"), "{}", run.stdout);
    let bytes: Vec<_> = rows(&trace.copies).iter().map(|copy| copy.bytes.0).collect();
    assert_eq!(bytes, [4096, 4096, 64]);
    assert_eq!(trace.syncs.rows(), 1);
    same(&place, "--repeat 2");
}

#[test]
fn from_one_signal_to_the_next() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let recorder = start(&mut place.profile("--record --capture-range signal", "windows forever"));
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(500));
        signal(&recorder, Signal::USR2);
    }
    thread::sleep(Duration::from_millis(300));
    signal(&recorder, Signal::TERM);
    ended(recorder);
    let launches = launches(&place);
    assert!(launches.len() > 1, "{launches:?}");
    assert!(launches.iter().all(|name| name == "saxpy"));
    same(&place, "");
}

/// A launch takes so long to begin its kernel that the window ends in the middle of one.
#[test]
fn a_window_that_ends_in_a_launch_has_its_result() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut command = place.profile("--record --capture-range signal", "windows forever");
    let recorder = start(command.env(variable::SLOW_LAUNCH_MILLIS, "100"));
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(650));
        signal(&recorder, Signal::USR2);
    }
    thread::sleep(Duration::from_millis(500));
    signal(&recorder, Signal::TERM);
    ended(recorder);
    let launches = launches(&place);
    assert!(launches.len() > 1, "{launches:?}");
    same(&place, "");
}

#[test]
fn a_while_of_a_program_that_runs_already() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "windows forever"));
    armed.hear("round");
    let recorded = run(&mut place.record(armed.child().id(), "-d 0.3 --record"));
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    signal(armed.child(), Signal::KILL);
    armed.end();
    let launches = launches(&place);
    assert!(launches.len() > 1, "{launches:?}");
    same(&place, "");
    // Memory that only other memory tells of, and that was taken long before: three times as much as x and y.
    let plan = same(&place, "--mode dry-run");
    let mut sizes: Vec<u64> = buffers(&plan)
        .map(|buffer| buffer["bytes"].as_u64().unwrap())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 4000, 4000, 12000], "with the variable of the code");
}

#[test]
fn a_variable_of_code_that_was_loaded_before() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "windows counting"));
    armed.hear("round");
    let recorded = run(&mut place.record(armed.child().id(), "-d 0.3 --record"));
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    signal(armed.child(), Signal::KILL);
    armed.end();
    // The very first kernel of the window changes it.
    assert!(launches(&place).iter().all(|name| name == "bump"));
    same(&place, "");
}

/// Issue 26: both modules were loaded before anyone watched.
#[test]
fn kernels_of_one_name_in_modules_that_were_loaded_before_are_told_apart() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "windows both"));
    armed.hear("round");
    let recorded = run(&mut place.record(armed.child().id(), "-d 0.3 --record"));
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    signal(armed.child(), Signal::KILL);
    armed.end();
    same(&place, "");
}

#[test]
fn a_texture_that_was_made_before_is_refused() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "windows looking"));
    armed.hear("round");
    let recorded = run(&mut place.record(armed.child().id(), "-d 0.2 --record"));
    signal(armed.child(), Signal::KILL);
    armed.end();
    assert!(
        recorded.stderr.contains("made before the recording"),
        "{}",
        recorded.stderr
    );
    let plan = run(&mut place.tracesmith("replay t.sbt --mode dry-run"));
    assert_eq!(plan.code, Some(1), "{}", plan.stdout);
}

#[test]
fn a_range_that_the_program_marks() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled("--record --capture-range nvtx:outer", "launcher nvtx");
    let launches = launches(&place);
    assert_eq!(launches, ["noop"; 5]);
    same(&place, "");
}
