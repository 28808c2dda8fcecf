//! Every kind of work that a window can hold is recorded, and comes out the same when it is run again.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod support;

use serde_json::Value;
use support::stage::{Place, run, stage};

const WINDOW: &str = "--record --capture-range cuda-profiler-api";

/// The window of a case of `windows`, recorded in a place; the program said what it says alone.
fn recorded(case: &str) -> Option<Place> {
    let place = Place::new(stage()?);
    let line = format!("windows {case}");
    let (profiled, _) = place.profiled(WINDOW, &line);
    let alone = run(&mut place.target(&line));
    assert_eq!(profiled.stdout, alone.stdout);
    assert!(alone.stdout.starts_with("window "), "{}", alone.stdout);
    Some(place)
}

/// What a replay answers.
fn replayed(place: &Place, options: &str) -> (Option<i32>, Value) {
    let run = run(&mut place.tracesmith(&format!("replay t.sbt --format json {options}")));
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    (run.code, value)
}

/// Run again, with and without streams, a case comes out the same; gives back what was planned.
fn same(case: &str) -> Option<Value> {
    let place = recorded(case)?;
    for options in ["--repeat 3", "--mode serial", "--check determinism"] {
        let (code, answer) = replayed(&place, options);
        assert_eq!(code, Some(0), "{options}: {answer}");
    }
    let (_, plan) = replayed(&place, "--mode dry-run");
    Some(plan)
}

fn kinds(plan: &Value) -> Vec<&str> {
    let commands = plan["commands"].as_array().unwrap().iter();
    commands
        .map(|command| command["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn a_variable_of_device_code_begins_as_it_was() {
    let Some(plan) = same("variables") else { return };
    let buffers = plan["buffers"].as_array().unwrap();
    let variable = buffers.iter().find(|buffer| buffer["variable"] == "counter");
    assert_eq!(variable.unwrap()["bytes"], 4, "{plan}");
}

#[test]
fn a_graph_is_a_graph_again() {
    let Some(plan) = same("graph") else { return };
    let kinds = kinds(&plan);
    let expected = [
        "stream", "graph", "set", "launch", "copy", "launch", "graph", "set", "launch", "copy",
    ];
    assert_eq!(kinds[..expected.len()], expected);
    let commands = plan["commands"].as_array().unwrap();
    // Each node follows the one before it, and belongs to the launch of the graph.
    let number = |at: usize| commands[at]["number"].clone();
    assert_eq!(commands[3]["follows"], Value::from(vec![number(2)]));
    assert_eq!(commands[4]["graph"], number(1));
}

#[test]
fn what_is_changed_in_a_graph_is_seen() {
    same("changed");
}

#[test]
fn what_a_function_of_the_host_writes_is_there() {
    let Some(plan) = same("host") else { return };
    assert!(kinds(&plan).contains(&"host function"), "{plan}");
}

#[test]
fn rows_and_planes_are_copied_and_set() {
    let Some(plan) = same("planes") else { return };
    let kinds = kinds(&plan);
    let planes = kinds.iter().filter(|kind| **kind == "copy of planes").count();
    assert_eq!(planes, 2, "{plan}");
}

#[test]
fn a_kernel_reads_memory_of_the_host_as_it_was_for_each_launch() {
    let Some(plan) = same("pinned") else { return };
    assert_ne!(plan["host_bytes"], 0, "{plan}");
}

#[test]
fn memory_that_lies_in_two_mappings_is_whole() {
    same("mapped");
}

#[test]
fn a_missing_wait_is_named() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // What comes out is chance.
    place.profiled(WINDOW, "windows race");
    let (code, answer) = replayed(&place, "--check determinism");
    assert_eq!(code, Some(1), "{answer}");
    let cause = answer["cause"].as_str().unwrap();
    assert!(cause.contains("does not wait for stream"), "{answer}");
    assert_eq!(answer["name"], "saxpy", "{answer}");
    assert_ne!(answer["difference"]["expected"], answer["difference"]["found"]);
}
