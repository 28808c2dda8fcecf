//! A recorded window really runs again, in another process, and its memory comes out the same.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::replay::{WINDOW, replayed};
use support::rows::assert_whole;
use support::stage::{Place, run, stage};
use tracesmith_fake_cuda::Options;

/// The first planned call that has such a value.
fn planned(place: &Place, key: &str, value: &str) -> Value {
    let (_, plan) = replayed(place, "--mode dry-run");
    let commands = plan["commands"].as_array().unwrap();
    let found = commands.iter().find(|command| command[key] == value);
    found
        .unwrap_or_else(|| panic!("no call with {key} {value}"))
        .clone()
}

#[test]
fn a_window_comes_out_the_same_as_often_as_one_likes() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (profiled, trace) = place.profiled(WINDOW, "launcher window 100000 3");
    assert!(
        profiled
            .stderr
            .contains("recording a window for replay: it can reach "),
        "{}",
        profiled.stderr
    );
    let said = "recorded for replay: 19 calls, 3.1 MiB of memory (the program was stopped for";
    assert!(profiled.stderr.contains(said), "{}", profiled.stderr);
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
    // x, y, total, table, what that points to, the page-locked memory and the module's variable; not what nobody
    // reached.
    assert_eq!(runs[0]["buffers"], 7, "{answer}");
    assert_eq!(runs[0]["bytes"], 4 * 400_000 + 4 + 64 + 4);
}

#[test]
fn a_sum_in_another_order_is_named() {
    let Some(stage) = stage() else { return };
    let options = Options {
        racy_of: 1,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 100000 1");
    // Another order may give the same sum by chance, but not each time.
    let (code, answer) = replayed(&place, "--repeat 8");
    assert_eq!(code, Some(1), "{answer}");
    let mut runs = answer["runs"].as_array().unwrap().iter();
    let other = runs.find(|run| run["verdict"] == "differs").unwrap();
    let differences = other["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{answer}");
    assert_eq!(differences[0]["bytes"], 4);
    assert_ne!(differences[0]["expected"], differences[0]["found"]);
}

#[test]
fn a_recording_that_repeats_itself_is_told_from_one_that_does_not() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let (code, answer) = replayed(&place, "--check determinism --repeat 3");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("repeats")),
        "{answer}"
    );
    // Each launch, copy and set, memory that is freed, and the end.
    assert_eq!(
        (&answer["runs"], &answer["calls"]),
        (&Value::from(3), &Value::from(10))
    );
}

#[test]
fn the_first_call_that_does_not_repeat_is_named() {
    let Some(stage) = stage() else { return };
    let options = Options {
        racy_of: 1,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 100000 3");
    let (code, answer) = replayed(&place, "--check determinism");
    assert_eq!(code, Some(1), "{answer}");
    assert_eq!(answer["name"], "accumulate");
    assert!(answer["cause"].as_str().unwrap().contains("atomic"), "{answer}");
    let difference = &answer["difference"];
    assert_eq!(
        (&difference["bytes"], &difference["address"]),
        (&Value::from(4), &answer["buffer"])
    );
    assert_ne!(difference["expected"], difference["found"]);
    let text = run(&mut place.tracesmith("replay t.sbt --check determinism"));
    // Which of the three sums differs first is chance.
    let is_named = text.stdout.starts_with("nondeterministic: #")
        && text.stdout.contains(" accumulate gives different results in 0x");
    assert!(is_named, "{}", text.stdout);
}

/// Runs often agree by chance, and differ by chance from one in which something else was changed.
#[test]
fn what_differs_by_chance_is_put_down_to_nothing_else() {
    let Some(stage) = stage() else { return };
    let options = Options {
        racy_of: 3,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 100000 1");
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..20 {
        let (_, answer) = replayed(&place, "--check determinism --repeat 2");
        let cause = answer["cause"].as_str().unwrap_or("repeats");
        *causes.entry(cause.to_owned()).or_default() += 1;
    }
    assert!(causes.keys().any(|cause| cause.contains("atomic")), "{causes:?}");
    let is_right = |cause: &String| cause == "repeats" || cause.contains("atomic");
    assert!(causes.keys().all(is_right), "{causes:?}");
}

#[test]
fn memory_that_nobody_wrote_is_seen_where_it_is_read() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 0 1");
    let (code, answer) = replayed(&place, "--check determinism");
    assert_eq!(code, Some(1), "{answer}");
    assert_eq!(answer["cause"], "it reads memory that nobody wrote");
    // The kernel that reads it, also though it writes to memory that the window allocates.
    assert_eq!(answer["name"], "saxpy");
}

#[test]
fn one_call_after_another_gives_the_same() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let (code, answer) = replayed(&place, "--mode serial");
    assert_eq!((code, &answer["verdict"]), (Some(0), &Value::from("same")));
}

#[test]
fn calls_are_timed_each_with_the_memory_that_it_had() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 200_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 5000 1");
    let (code, answer) = replayed(&place, "--mode timing --repeat 5");
    assert_eq!(code, Some(0), "{answer}");
    let calls = answer["calls"].as_array().unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
    let expected = [
        "copy",
        "saxpy",
        "set",
        "vector_add",
        "copy",
        "fill",
        "accumulate",
        "copy",
    ];
    assert_eq!(names, expected);
    for call in calls {
        assert_eq!(call["runs"], 5);
        let [least, median, most] = ["min_ns", "median_ns", "max_ns"].map(|key| call[key].as_u64().unwrap());
        assert!(least <= median && median <= most, "{call}");
    }
    assert_eq!(answer["by_events"], false, "{answer}");
    let recorded = calls[1]["recorded_ns"].as_u64().unwrap();
    let median = calls[1]["median_ns"].as_u64().unwrap();
    assert!(recorded >= 200_000 && median >= 200_000, "{answer}");
    // One launch alone, and some calls by their numbers.
    let (_, answer) = replayed(&place, "--mode timing --kernel saxpy --repeat 2");
    assert_eq!(answer["calls"].as_array().unwrap().len(), 1, "{answer}");
    let first = planned(&place, "kind", "copy")["number"].as_u64().unwrap();
    let (_, answer) = replayed(&place, &format!("--mode timing --ops {first}..{}", first + 2));
    assert_eq!(answer["calls"].as_array().unwrap().len(), 2, "{answer}");
    let missing = run(&mut place.tracesmith("replay t.sbt --mode timing --kernel saxpy#2"));
    assert_eq!(missing.code, Some(2));
    assert!(
        missing
            .stderr
            .contains("kernels whose name contains \"saxpy\" are launched only once"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_buffer_is_written_as_it_is_before_a_call() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let first = planned(&place, "kind", "copy");
    let (number, address) = (
        first["number"].as_u64().unwrap(),
        first["destination"].as_u64().unwrap(),
    );
    let written = |until: u64| {
        let line = format!("replay t.sbt --until {until} --dump {address:#x} --type f32 -o y.npy --force");
        let dump = run(&mut place.tracesmith(&line));
        assert_eq!(dump.code, Some(0), "{}", dump.stderr);
        let file = std::fs::read(place.path("y.npy")).unwrap();
        let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let values = file[header..].as_chunks::<4>().0.iter();
        values
            .map(|value| f32::from_le_bytes(*value))
            .collect::<Vec<f32>>()
    };
    let host: Vec<f32> = (0..1000).map(|number| (number % 977) as f32 * 0.1).collect();
    // Before the copy it holds what was filled in before the window, then the copy, then the kernel's sum.
    assert!(written(number).iter().all(|value| value.to_bits() == 7));
    assert_eq!(written(number + 1), host);
    let sums: Vec<f32> = host.iter().map(|value| 0.5_f32.mul_add(*value, *value)).collect();
    assert_eq!(written(number + 2), sums);
    let nowhere = run(&mut place.tracesmith("replay t.sbt --dump 0x10 -o y.npy"));
    assert_eq!(nowhere.code, Some(2));
    assert!(
        nowhere.stderr.contains("no recorded buffer contains 0x10"),
        "{}",
        nowhere.stderr
    );
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
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (profiled, _) = place.profiled("--record", "launcher peer");
    let said = "not replayable: cuMemcpyPeerAsync: a copy to another device";
    assert_eq!(profiled.stderr.matches(said).count(), 1, "{}", profiled.stderr);
    let plan = run(&mut place.tracesmith("replay t.sbt --mode dry-run"));
    assert_eq!(plan.code, Some(1), "{}", plan.stderr);
    assert!(
        plan.stdout
            .contains("cuMemcpyPeerAsync: a copy to another device"),
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
        replay.stderr.contains("contains no replay recording"),
        "{}",
        replay.stderr
    );
}

#[test]
fn a_program_that_is_killed_in_its_window_leaves_no_recording() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let killed = run(&mut place.profile("--record", "launcher segv"));
    assert_eq!(killed.code, Some(-11), "{}", killed.stderr);
    let plan = run(&mut place.tracesmith("replay t.sbt --mode dry-run"));
    assert_eq!(plan.code, Some(1), "{}", plan.stdout);
    assert!(
        plan.stdout.contains("it ends before its window was closed"),
        "{}",
        plan.stdout
    );
    let replay = run(&mut place.tracesmith("replay t.sbt"));
    assert_eq!(replay.code, Some(2), "{}", replay.stdout);
}

/// One that leaves by `_exit` hands over first, and its recording is whole.
#[test]
fn a_program_that_leaves_its_window_by_exit_leaves_a_whole_recording() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let left = run(&mut place.profile("--record", "launcher exit_early"));
    assert_eq!(left.code, Some(3), "{}", left.stderr);
    let (_, plan) = replayed(&place, "--mode dry-run");
    assert_eq!(plan["commands"].as_array().unwrap().len(), 100, "{plan}");
    assert_eq!(plan["obstacles"].as_array().unwrap().len(), 0, "{plan}");
}

/// A disk of 128 MiB, in a namespace of its own where that is allowed.
#[test]
fn a_disk_that_is_too_small_is_said_and_the_trace_is_whole() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mount = "mount -t tmpfs -o size=128m tmpfs small";
    let line = format!("mkdir -p small && {mount} && exec \"$0\" \"$@\"");
    let mut isolated = std::process::Command::new("unshare");
    isolated.args(["-rm", "sh", "-c", &line]);
    let mut trial = std::process::Command::new("unshare");
    trial
        .current_dir(place.path("."))
        .args(["-rm", "sh", "-c", &line, "true"]);
    if !trial.status().is_ok_and(|status| status.success()) {
        return tracesmith_skip::without("namespaces", "");
    }
    let profile = place.profile(
        "--record --capture-range cuda-profiler-api",
        "launcher window 20000000 0",
    );
    isolated.arg(profile.get_program());
    for argument in profile.get_args() {
        let argument = argument.to_string_lossy();
        isolated.arg(if argument == "t.sbt" {
            "small/t.sbt"
        } else {
            &argument
        });
    }
    for (name, value) in profile.get_envs() {
        if let Some(value) = value {
            isolated.env(name, value);
        }
    }
    isolated.current_dir(place.path("."));
    let recorded = run(&mut isolated);
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    let said = "the replay recording is incomplete: not enough disk space for the memory of the window";
    assert!(recorded.stderr.contains(said), "{}", recorded.stderr);
    assert!(!recorded.stderr.contains("cut off"), "{}", recorded.stderr);
}
