//! Python frames stand where the interpreter's own were. Interpreters, binary and library are real; the driver is the fake
//! one.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeMap;

use support::Run;
use support::python::{Interpreter, KNOWN, find, script};
use support::rows::{assert_whole, joined_kernels, rows};
use support::stacks::{Function, end, functions};
use support::stage::{Place, run, stage};
use tracesmith_format::StackId;
use tracesmith_format::tables::{FrameKind, StackEnd};
use tracesmith_trace::Trace;

fn profiled(place: &Place, interpreter: &Interpreter, script_name: &str) -> (Run, Trace) {
    let mut profile = place.tracesmith("profile -o t.sbt --force --stacks native,python --");
    let run = run(profile
        .arg(&interpreter.program)
        .arg("-B")
        .arg(script(script_name)));
    assert_eq!(run.code, Some(0), "{}: {}", interpreter.version, run.stderr);
    (run, place.trace("t.sbt"))
}

/// The interpreters whose frames are read; says so when there is none.
fn known() -> Vec<Interpreter> {
    let known: Vec<_> = find().into_iter().filter(Interpreter::is_known).collect();
    if known.is_empty() {
        tracesmith_skip::without("python", KNOWN);
    }
    known
}

#[test]
fn fifty_paths_of_python_are_those_that_python_saw() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for interpreter in known() {
        let (run, trace) = profiled(&place, &interpreter, "paths.py");
        assert_whole(&trace);
        let expected: BTreeMap<String, Vec<(String, String, u32)>> =
            serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(expected.len(), 50);
        let stacks: BTreeMap<String, StackId> = joined_kernels(&trace)
            .iter()
            .map(|kernel| (kernel.shape.grid_x.to_string(), kernel.stack))
            .collect();
        for (path, frames) in &expected {
            let stack = functions(&trace, stacks[path]);
            let python = stack.iter().filter(|function| function.kind == FrameKind::PYTHON);
            let found: Vec<_> = python
                .map(|function| (function.name.clone(), function.file.clone(), function.line))
                .collect();
            let what = format!("CPython {}, path {path}", interpreter.version);
            assert_eq!(&found, frames, "{what}");
            assert_mixed(&stack, &what);
            assert_eq!(end(&trace, stacks[path]), StackEnd::ROOT, "{what}");
        }
    }
}

/// Native frames stand on both sides of Python's, and none of the interpreter's own between them.
fn assert_mixed(stack: &[Function], what: &str) {
    let is_python = |function: &Function| function.kind == FrameKind::PYTHON;
    let first = stack.iter().position(is_python).unwrap();
    let last = stack.iter().rposition(is_python).unwrap();
    let innermost = &stack[..first];
    let names: Vec<&str> = innermost.iter().map(|function| function.name.as_str()).collect();
    assert!(names.contains(&"cuLaunchKernel"), "{what}: {names:?}");
    assert!(
        last + 1 < stack.len(),
        "{what}: the interpreter's start, or the thread's, is missing"
    );
    for function in &stack[first..last] {
        let is_interpreter = function.image.starts_with("libpython") || function.image.starts_with("python");
        assert!(is_python(function) || !is_interpreter, "{what}: {function:?}");
    }
}

#[test]
fn a_thread_that_never_ran_python_is_native() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for interpreter in known() {
        let (_, trace) = profiled(&place, &interpreter, "paths.py");
        let calls = rows(&trace.api_calls);
        let waits: Vec<_> = calls
            .iter()
            .filter(|call| trace.string(call.shape.name) == "cuStreamSynchronize")
            .collect();
        assert_eq!(waits.len(), 1);
        let stack = functions(&trace, waits[0].stack);
        assert!(
            !stack.is_empty() && stack.iter().all(|function| function.kind == FrameKind::NATIVE),
            "{stack:?}"
        );
    }
}

#[test]
fn an_interpreter_that_is_not_known_is_said_once() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let unknown = find().into_iter().find(|interpreter| interpreter.minor < 9);
    let Some(interpreter) = unknown else {
        return tracesmith_skip::without("an unsupported python", "before 3.9");
    };
    let (_, trace) = profiled(&place, &interpreter, "one.py");
    let recorded = trace.health().recorded;
    let words: Vec<_> = recorded
        .iter()
        .filter(|item| item.detail.contains("cannot read frames of Python"))
        .collect();
    assert_eq!(words.len(), 1, "{recorded:?}");
    let stack = functions(&trace, joined_kernels(&trace)[0].stack);
    assert!(stack.iter().all(|function| function.kind == FrameKind::NATIVE));
    assert!(stack.len() > 5, "{stack:?}");
}
