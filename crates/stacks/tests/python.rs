//! Python frames against what Python says itself, in every interpreter of the machine.
//!
//! Each test runs one case of `tests/python/` in a process of each interpreter: Python code that calls a small library
//! (`examples/probe.rs`) by ctypes, without the global lock and with it, and compares function, file and line of every
//! frame with what `sys._getframe` gives at the same point.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error, and says what it skipped"
)]

#[path = "python/interpreters.rs"]
mod interpreters;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use interpreters::Interpreter;
use tracesmith_stacks::Python;

/// The library that was built along with the test.
fn probe() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let probe = folder.join("examples/libprobe.so");
    assert!(
        probe.exists(),
        "{} is missing: cargo build -p tracesmith-stacks --example probe",
        probe.display()
    );
    probe
}

fn run(interpreter: &Interpreter, cases: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/cases.py");
    Command::new(&interpreter.program)
        .arg("-B")
        .arg(script)
        .arg(probe())
        .args(cases)
        .output()
        .unwrap()
}

/// Runs cases in all interpreters whose frames can be read.
fn in_all(cases: &[&str]) {
    let interpreters = interpreters::find();
    let mut versions = Vec::new();
    for interpreter in interpreters.iter().filter(|interpreter| interpreter.is_known()) {
        let output = run(interpreter, cases);
        let text = String::from_utf8_lossy(&output.stdout);
        let answer = text.lines().last().unwrap_or_default();
        assert!(
            output.status.success() && answer.starts_with("ok "),
            "{cases:?} in {interpreter:?}: {}\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        versions.push(interpreter.version.as_str());
    }
    if versions.is_empty() {
        tracesmith_skip::without("python", format!("{cases:?}: {}", interpreters::KNOWN));
    } else {
        println!("{cases:?}: {}", versions.join(" "));
    }
}

#[test]
fn code_of_every_kind_is_listed_as_python_does() {
    in_all(&["functions", "generators", "coroutines", "callbacks", "imports"]);
}

#[test]
fn names_files_and_lines_of_any_kind_are_read() {
    in_all(&["names"]);
}

#[test]
fn frames_are_right_whenever_the_interpreter_calls_out() {
    in_all(&["traced", "collected"]);
}

#[test]
fn deep_stacks_are_whole_or_cut_and_marked() {
    in_all(&["deep"]);
}

#[test]
fn python_frames_stand_where_the_eval_loop_stands() {
    in_all(&["mixed"]);
}

#[test]
fn threads_have_their_own_frames_while_code_comes_and_goes() {
    in_all(&["threads", "other_threads", "churn", "moved", "copies"]);
}

#[test]
fn code_at_an_address_that_was_used_before_is_another() {
    in_all(&["identity"]);
}

#[test]
fn forks_and_sub_interpreters_have_their_own_frames_or_none() {
    in_all(&["fork", "interpreters"]);
}

#[test]
fn shutting_down_with_threads_left_behind_does_no_harm() {
    in_all(&["exit"]);
    in_all(&["exit"]);
}

#[test]
fn interpreters_that_are_not_known_are_named() {
    let interpreters = interpreters::find();
    let unknown: Vec<_> = interpreters
        .iter()
        .filter(|interpreter| !interpreter.is_known() && interpreter.minor >= 8)
        .collect();
    if unknown.is_empty() {
        tracesmith_skip::without("an unsupported python", "");
    }
    for interpreter in unknown {
        let output = run(interpreter, &["unknown"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let words = format!("cannot read frames of Python 3.{}", interpreter.minor);
        assert!(
            output.status.success() && text.contains(&words),
            "{interpreter:?}: {text}"
        );
    }
}

#[test]
fn a_process_without_python_has_none() {
    assert!(Python::detect().unwrap().is_none());
}
