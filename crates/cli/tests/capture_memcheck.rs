//! Programs under Valgrind are recorded, and Memcheck finds no error of ours in them.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Command;

use support::Run;
use support::rows::{assert_whole, rows};
use support::stage::{Place, Stage, Talk, run, stage};

/// An error is a line in its output and the program's exit code.
const MEMCHECK: &str = "valgrind -q --error-exitcode=99";

/// What Memcheck says of a program. It does not know every system call, and says so of those that newer systems have.
fn complaints(program: &Run) -> Vec<&str> {
    let lines = program.stderr.lines();
    lines.filter(|line| line.starts_with("==")).collect()
}

/// The stage, where there is a Valgrind.
fn checked_stage() -> Option<&'static Stage> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        tracesmith_skip::without("valgrind", "");
        return None;
    }
    stage()
}

#[test]
fn windows_under_memcheck_make_no_error() {
    let Some(stage) = checked_stage() else { return };
    let place = Place::newest(stage);
    let mut command = place.command("sh");
    let script = format!(
        "eval \"$('{}' env)\"; exec {MEMCHECK} {} ikgkgkgkgkgkgkg",
        env!("CARGO_BIN_EXE_tracesmith"),
        stage.path("guest").display(),
    );
    let mut armed = Talk::start(command.args(["-c", &script]));
    armed.hear("at 10");
    let pid = armed.child().id();
    for (number, level) in (1..).zip(["light", "standard", "full"]) {
        let window = place.start_window(&mut place.record(pid, &format!("--force --level {level}")), pid);
        armed.say();
        armed.hear(&format!("at {}", number * 20));
        let recorder = place.close_window(window);
        assert_eq!(recorder.code, Some(0), "{}", recorder.stderr);
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        assert_eq!(rows(&trace.kernels).len(), 10, "{level}");
        armed.say();
        armed.hear(&format!("at {}", number * 20 + 10));
    }
    let program = armed.answer_all();
    assert_eq!(program.code, Some(0), "{}", program.stderr);
    assert_eq!(complaints(&program), [""; 0]);
}

/// From its start to its end, with threads that launch at once.
#[test]
fn a_program_under_memcheck_is_recorded_without_an_error() {
    let Some(stage) = checked_stage() else { return };
    let place = Place::newest(stage);
    let mut command = place.tracesmith("profile -q -o t.sbt --level full --");
    command
        .args(MEMCHECK.split_whitespace())
        .arg(stage.path("launcher"))
        .args(["threads", "4", "100"]);
    let program = run(&mut command);
    assert_eq!(program.code, Some(0), "{}{}", program.stdout, program.stderr);
    assert_eq!(complaints(&program), [""; 0]);
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(rows(&trace.kernels).len(), 400);
}
