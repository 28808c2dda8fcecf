//! Some of the calls of a recording: alone, step by step, and at the pace of the program.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Stdio;

use serde_json::Value;
use support::replay::{WINDOW, planned, replayed};
use support::stage::{Place, ended, run, stage, start, type_in};
use tracesmith_fake_cuda::Options;

fn number(command: &Value) -> u64 {
    command["number"].as_u64().unwrap()
}

#[test]
fn a_part_is_held_against_a_run_of_all_before_its_end() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let (code, answer) = replayed(&place, "--kernel saxpy --repeat 2");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("same")),
        "{answer}"
    );
    assert_eq!(answer["against"], "replay");
    assert_eq!(answer["runs"][1]["commands"], 1);
    // What reaches to the end is held against what was recorded there.
    let calls = planned(&place);
    let last = number(calls.last().unwrap());
    let middle = number(&calls[calls.len() / 2]);
    let (code, answer) = replayed(&place, &format!("--ops {middle}..{}", last + 1));
    assert_eq!(
        (code, &answer["against"]),
        (Some(0), &Value::from("recorded")),
        "{answer}"
    );
    let (_, answer) = replayed(&place, &format!("--ops {middle}..{last} --snapshot-every 2"));
    assert_eq!(
        (&answer["against"], &answer["verdict"]),
        (&Value::from("replay"), &Value::from("same"))
    );
}

#[test]
fn a_part_that_does_not_repeat_itself_differs() {
    let Some(stage) = stage() else { return };
    let options = Options {
        racy_of: 1,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 100000 1");
    // Another order may give the same sum by chance, but not each time.
    let (code, answer) = replayed(&place, "--kernel accumulate --repeat 8");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(1), &Value::from("differs")),
        "{answer}"
    );
    let mut runs = answer["runs"].as_array().unwrap().iter();
    let other = runs.find(|run| run["verdict"] == "differs").unwrap();
    assert_eq!(other["differences"][0]["bytes"], 4);
}

#[test]
fn a_stream_alone_lacks_what_others_give_it() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 1");
    let calls = planned(&place);
    let stream_of = |name: &str| {
        let call = calls.iter().find(|call| call["function"] == name).unwrap();
        call["stream"].as_u64().unwrap()
    };
    // How it was made, a copy, a kernel and an event.
    let (_, first) = replayed(&place, &format!("--stream {}", stream_of("saxpy")));
    assert_eq!(
        (&first["against"], &first["runs"][0]["commands"]),
        (&Value::from("replay"), &Value::from(4))
    );
    let (code, second) = replayed(&place, &format!("--stream {:#x}", stream_of("vector_add")));
    assert_eq!(
        (code, &second["verdict"]),
        (Some(1), &Value::from("differs")),
        "{second}"
    );
    let nobody = run(&mut place.tracesmith("replay t.sbt --stream 0x77"));
    assert_eq!(nobody.code, Some(2));
    assert!(
        nobody.stderr.contains("the recording has no call in stream 0x77"),
        "{}",
        nobody.stderr
    );
}

/// What stepping answers to some commands.
fn stepped(place: &Place, options: &str, commands: &str) -> String {
    let mut command = place.tracesmith(&format!("replay t.sbt --step {options}"));
    let mut child = start(command.stdin(Stdio::piped()));
    type_in(&mut child, commands.as_bytes());
    let run = ended(child);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    run.stdout
}

#[test]
fn one_can_step_forth_and_back() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let calls = planned(&place);
    let copy = calls.iter().find(|call| call["kind"] == "copy").unwrap();
    let (copy, y) = (number(copy), copy["destination"].as_u64().unwrap());
    for options in ["", "--snapshot-every 1"] {
        let script = format!(
            "goto {copy}\nshow {y:#x} i32\nnext\nshow {:#x} f32\nback\nshow {y:#x} i32\nbuffers\nnonsense\ndump {y:#x} y.npy f32\nquit\n",
            y + 8
        );
        let said = stepped(&place, options, &script);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[1].starts_with(&format!("next: #{copy} copy")), "{said}");
        // It was filled with sevens before the window; then comes the copy, and goes again.
        assert!(lines[2].ends_with("): 7 7 7 7 7 7 7 7"), "{said}");
        assert!(lines[3].contains("saxpy"), "{said}");
        assert!(lines[4].contains("): 0.2 0.3"), "{said}");
        assert_eq!(lines[5], lines[1], "{said}");
        assert_eq!(lines[6], lines[2], "{said}");
        assert!(
            said.contains("unknown command \"nonsense\"; help lists the commands"),
            "{said}"
        );
        assert!(said.contains("wrote y.npy"), "{said}");
    }
    // The end of the input is the end, and so is the end of the calls.
    let said = stepped(&place, "", "next 10000\n\n");
    assert!(said.ends_with("at the end\nat the end\n"), "{said}");
}

#[test]
fn pauses_are_kept_when_asked_for() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 20_000_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    // The program waits for its kernels within the window.
    place.profiled(WINDOW, "launcher window 1000 2");
    let mut command = place.tracesmith("replay t.sbt --format json --mode as-recorded");
    let run = run(command.env("FAKE_CUDA_KERNEL_NANOS", "0"));
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &answer["verdict"]),
        (Some(0), &Value::from("same")),
        "{answer}"
    );
    let recorded = answer["recorded_host_ns"].as_u64().unwrap();
    assert!(recorded >= 20_000_000, "{answer}");
    let host = answer["runs"][0]["host_ns"].as_u64().unwrap();
    assert!(host >= recorded, "{answer}");
}
