//! Every kind of work that a window can hold is recorded, and comes out the same when it is run again.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use serde_json::Value;
use support::replay::{WINDOW, replayed};
use support::stage::{Place, run, stage};

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

#[test]
fn memory_that_host_and_device_share_is_as_each_left_it() {
    same("managed");
}

#[test]
fn memory_that_the_program_registered_is_the_hosts() {
    same("registered");
}

#[test]
fn a_collective_is_refused_or_stands_for_what_it_left() {
    let Some(place) = recorded("collective") else {
        return;
    };
    let (code, plan) = replayed(&place, "--mode dry-run");
    assert_eq!(code, Some(1), "{plan}");
    let obstacle = &plan["obstacles"][0];
    assert_eq!(obstacle["function"], "ncclDevKernel_AllReduce_Sum_f32");
    assert!(
        obstacle["reason"]
            .as_str()
            .unwrap()
            .contains("--stub-collectives"),
        "{plan}"
    );
    place.profiled(&format!("{WINDOW} --stub-collectives"), "windows collective");
    let (code, answer) = replayed(&place, "--repeat 2");
    assert_eq!(code, Some(0), "{answer}");
    let (_, plan) = replayed(&place, "--mode dry-run");
    let launches = kinds(&plan).iter().filter(|kind| **kind == "launch").count();
    assert_eq!(launches, 2, "{plan}");
}

#[test]
fn a_texture_has_its_handle_again() {
    let Some(plan) = same("texture") else { return };
    let kinds = kinds(&plan);
    let textures = kinds.iter().filter(|kind| **kind == "texture").count();
    assert_eq!(textures, 2, "{plan}");
}

#[test]
fn an_array_is_restored_looked_at_painted_and_compared() {
    let Some(plan) = same("array") else { return };
    let buffers = plan["buffers"].as_array().unwrap();
    let arrays: Vec<&Value> = buffers
        .iter()
        .filter(|buffer| buffer["memory"] == "array")
        .collect();
    assert_eq!(arrays.len(), 1, "{plan}");
    assert_eq!(arrays[0]["bytes"], 4000);
    let kinds = kinds(&plan);
    let count = |wanted: &str| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!(
        (count("array"), count("texture"), count("copy of planes")),
        (1, 3, 2)
    );
}

#[test]
fn parts_of_a_window_with_an_array_come_out_the_same() {
    let Some(place) = recorded("array") else { return };
    for options in [
        "--kernel paint#1 --repeat 2",
        "--kernel look_at_array#2 --repeat 2",
        "--kernel look_at_array#2 --mode timing --repeat 3",
        "--snapshot-every 2 --kernel look_at_array#3",
    ] {
        let (code, answer) = replayed(&place, options);
        assert_eq!(code, Some(0), "{options}: {answer}");
    }
    // The array as it was filled, and as it was painted.
    let (_, plan) = replayed(&place, "--mode dry-run");
    let commands = plan["commands"].as_array().unwrap();
    let paint = commands
        .iter()
        .find(|command| command["function"] == "paint")
        .unwrap()["number"]
        .as_u64();
    let mut seen = Vec::new();
    for until in [paint.unwrap(), paint.unwrap() + 1] {
        let line =
            format!("replay t.sbt --until {until} --dump 0x100000000000000 --type f32 -o array.npy --force");
        let dumped = run(&mut place.tracesmith(&line));
        assert_eq!(dumped.code, Some(0), "{}", dumped.stderr);
        let bytes = std::fs::read(place.path("array.npy")).unwrap();
        let numbers = bytes[bytes.len() - 4000..].as_chunks::<4>().0;
        seen.push(
            numbers
                .iter()
                .map(|number| f32::from_le_bytes(*number))
                .collect::<Vec<_>>(),
        );
    }
    let filled: Vec<f32> = (0..1000_u16).map(|index| f32::from(index) * 0.25).collect();
    assert_eq!(seen[0], filled);
    // What was looked at, and twice x.
    let painted: Vec<f32> = filled.iter().map(|number| number * 3.0).collect();
    assert_eq!(seen[1], painted);
    let taken = run(&mut place.tracesmith("extract t.sbt --kernel paint#1 -o taken"));
    assert_eq!(taken.code, Some(2), "{}", taken.stderr);
    assert!(taken.stderr.contains("texture or a surface"), "{}", taken.stderr);
}

/// Issue 26: the recorder did not look at what copies bring.
#[test]
fn memory_that_only_a_copied_table_points_to_is_there_again() {
    let Some(plan) = same("table") else { return };
    let buffers = plan["buffers"].as_array().unwrap().iter();
    let sizes: Vec<u64> = buffers.map(|buffer| buffer["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes.iter().filter(|bytes| **bytes == 4000).count(), 2, "{plan}");
}

/// Issue 26: variables lie where the code is loaded, and addresses of them in memory were not changed.
#[test]
fn an_address_of_a_variable_in_memory_is_that_of_the_variable_again() {
    same("pointed");
}

/// Issue 26: "2 modules have a kernel of that name".
#[test]
fn kernels_of_one_name_in_two_libraries_are_told_apart() {
    same("twins");
}

/// Issue 26: the code that was loaded last ran wherever its handle had stood for other code before.
#[test]
fn handles_that_are_given_out_again_stand_for_the_code_of_their_time() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (profiled, _) = place.profiled(WINDOW, "windows reloaded");
    assert!(profiled.stdout.starts_with("window 14 14"), "{}", profiled.stdout);
    let count = profiled.stderr.split("handles again ").nth(1).unwrap();
    assert!(
        !count.starts_with('0'),
        "no handle came back: {}",
        profiled.stderr
    );
    let (code, answer) = replayed(&place, "--repeat 2");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("same")),
        "{answer}"
    );
}
