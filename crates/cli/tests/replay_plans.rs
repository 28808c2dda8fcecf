//! Replays that another tool has planned, and what is told beside the verdict.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use serde_json::{Value, json};
use support::replay::{WINDOW, planned, replayed};
use support::stage::{Place, run, stage};
use support::terminal::Terminal;
use tracesmith_fake_cuda::Options;

fn number(call: &Value) -> u64 {
    call["number"].as_u64().unwrap()
}

fn write_plan(place: &Place, plan: &Value) {
    std::fs::write(place.path("plan.json"), plan.to_string()).unwrap();
}

#[test]
fn a_plan_says_which_calls_are_made_and_in_which_order() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 2");
    let calls = planned(&place);
    let copy = calls.iter().find(|call| call["kind"] == "copy").unwrap();
    let saxpy = calls.iter().find(|call| call["function"] == "saxpy").unwrap();
    let (copied, added) = (number(copy), number(saxpy));
    let y = copy["destination"].as_u64().unwrap();
    write_plan(
        &place,
        &json!({
            "calls": [copied, added], "repeat": 2,
            "dump": [{ "before": added, "address": y + 8, "type": "f32", "file": "y.npy" }],
        }),
    );
    let (code, answer) = replayed(&place, "--plan plan.json");
    assert_eq!((code, &answer["verdict"]), (Some(0), &"same".into()), "{answer}");
    let runs = answer["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["commands"]), (2, &2.into()), "{answer}");
    // All of the buffer, as the copy left it.
    let array = std::fs::read(place.path("y.npy")).unwrap();
    assert!(array.starts_with(b"\x93NUMPY"));
    assert_eq!(array[array.len() - 3996..][..4], 0.1_f32.to_le_bytes());
    // The other way round the sum is lost.
    write_plan(&place, &json!({ "calls": [added, copied] }));
    let (code, answer) = replayed(&place, "--plan plan.json");
    assert_eq!(
        (code, &answer["against"]),
        (Some(1), &"replay".into()),
        "{answer}"
    );
    // Nothing said is all calls.
    write_plan(&place, &json!({}));
    let (code, answer) = replayed(&place, "--plan plan.json");
    assert_eq!(
        (code, &answer["against"]),
        (Some(0), &"recorded".into()),
        "{answer}"
    );
}

#[test]
fn a_plan_that_is_not_understood_is_refused() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    for (plan, words) in [
        (json!({ "call": [1] }), "unknown field `call`"),
        (json!({ "calls": [999_999] }), "the recording has no call #999999"),
        (
            json!({ "replace": [{ "kernel": "saxpy", "file": "none.ptx" }] }),
            "reading none.ptx",
        ),
        (
            json!({ "tolerance": [{ "type": "u8" }] }),
            "\"u8\" is not one of f16, bf16, f32, f64",
        ),
        (
            json!({ "dump": [{ "address": 16, "file": "x" }] }),
            "no recorded buffer contains 0x10",
        ),
    ] {
        write_plan(&place, &plan);
        let refused = run(&mut place.tracesmith("replay t.sbt --plan plan.json"));
        assert_eq!(refused.code, Some(2), "{plan}: {}", refused.stdout);
        assert!(refused.stderr.contains(words), "{plan}: {}", refused.stderr);
    }
    let missing = run(&mut place.tracesmith("replay t.sbt --plan none.json"));
    assert!(missing.stderr.contains("reading none.json"), "{}", missing.stderr);
}

#[test]
fn each_call_is_timed_for_those_who_want_to_know() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 300_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 1000 1");
    let (_, answer) = replayed(&place, "");
    let calls = answer["calls"].as_array().unwrap();
    let saxpy = calls.iter().find(|call| call["name"] == "saxpy").unwrap();
    for key in ["recorded_ns", "median_ns"] {
        assert!(saxpy[key].as_u64().unwrap() >= 300_000, "{saxpy}");
    }
    let plain = run(&mut place.tracesmith("replay t.sbt"));
    assert_eq!(plain.stdout.lines().count(), 1, "{}", plain.stdout);
    let verbose = run(&mut place.tracesmith("replay t.sbt -v"));
    assert!(
        verbose.stdout.contains("recorded") && verbose.stdout.contains("saxpy"),
        "{}",
        verbose.stdout
    );
    // Timing proper tells the clocks too.
    let (_, answer) = replayed(&place, "--mode timing --kernel saxpy");
    for when in [0, 1] {
        assert!(answer["clocks"][when]["sm_mhz"].as_u64().unwrap() > 0, "{answer}");
    }
    let text = run(&mut place.tracesmith("replay t.sbt --mode timing --kernel saxpy"));
    assert!(text.stdout.contains("clocks after: SMs "), "{}", text.stdout);
}

#[test]
fn who_waits_at_a_terminal_sees_how_far_it_has_come() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 250_000_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled(WINDOW, "launcher window 1000 2");
    let mut command = place.tracesmith("replay t.sbt --repeat 3");
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(command, 100, 20);
    terminal.wait_for("bar", |screen| screen.text().contains("replaying"));
    terminal.wait_for("verdict", |screen| screen.text().contains("run 3: same"));
}
