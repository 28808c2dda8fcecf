//! The protocol of `replay --step --format json`: positions, memory, differences, other kernels, and bad requests.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use tracesmith_fake_cuda::{Options, variable};

use crate::support::replay::WINDOW;
use crate::support::session::Session;
use crate::support::stage::{Place, ended, run, stage, start, type_in, until};
use crate::support::{command, root};

const STEP: &str = "replay t.sbt --step --format json";

/// A recording of a copy, kernels and other calls, and a session with it.
fn session(place: &Place, options: &str) -> Session {
    Session::start(&mut place.tracesmith(&format!("{STEP} {options}")))
}

fn recorded(numbers: u32, sums: u32) -> Option<Place> {
    let place = Place::new(stage()?);
    place.profiled(WINDOW, &format!("launcher window {numbers} {sums}"));
    Some(place)
}

/// The call with this kernel.
fn launch(session: &mut Session, name: &str) -> Value {
    let calls = session.ask(json!({ "do": "calls" }));
    let mut calls = calls["calls"].as_array().unwrap().iter();
    calls.find(|call| call["function"] == name).unwrap().clone()
}

/// What `--dump` writes before a call.
fn dumped(place: &Place, until: &Value, address: &Value) -> Vec<f32> {
    let address = address.as_str().unwrap();
    let line = format!("replay t.sbt --until {until} --dump {address} --type f32 -o d.npy --force");
    let dump = run(&mut place.tracesmith(&line));
    assert_eq!(dump.code, Some(0), "{}", dump.stderr);
    let file = fs::read(place.path("d.npy")).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let words = file[header..].as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

#[test]
fn memory_at_each_position_is_what_a_dump_writes() {
    let Some(place) = recorded(1000, 1) else { return };
    let mut session = session(&place, "");
    assert_eq!(session.ready["offline"], Value::Null);
    assert_eq!(session.ready["protocol"], 1);
    let saxpy = launch(&mut session, "saxpy");
    let buffers = session.ask(json!({ "do": "buffers", "call": saxpy["number"] }));
    let buffers = buffers["buffers"].as_array().unwrap().clone();
    assert_eq!(
        (&buffers[0]["role"], &buffers[0]["argument"]),
        (&json!("parameter"), &json!(0))
    );
    assert_eq!(
        (&buffers[1]["argument"], &buffers[1]["offset"]),
        (&json!(1), &json!(8))
    );
    let y = buffers[0]["address"].clone();
    let next = saxpy["number"].as_u64().unwrap() + 1;
    // Forth, back, and forth again.
    for (request, number) in [
        (
            json!({ "do": "go", "before": saxpy["number"] }),
            saxpy["number"].clone(),
        ),
        (json!({ "do": "next" }), next.into()),
        (json!({ "do": "back", "count": 1 }), saxpy["number"].clone()),
        (json!({ "do": "go", "after": saxpy["number"] }), next.into()),
    ] {
        let position = session.ask(request)["position"].clone();
        assert_eq!(position["next"], number, "{position}");
        assert_eq!(session.floats(&y, 1000), dumped(&place, &number, &y));
    }
    // A request can go to its position first.
    let read = session
        .ask(json!({ "do": "stats", "address": y, "type": "f32", "place": saxpy["place"], "bins": 4 }));
    assert_eq!(read["position"]["next"], saxpy["number"]);
    let before = dumped(&place, &saxpy["number"], &y);
    let most = f64::from(before.iter().copied().reduce(f32::max).unwrap());
    assert_eq!(
        (read["elements"].as_u64(), read["max"].as_f64()),
        (Some(1000), Some(most))
    );
    let counted: u64 = read["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 1000);
    assert_eq!(read["nan"], 0);
    let grid = json!({
        "do": "grid", "address": y, "type": "f32", "rows": 10, "columns": 100, "most_rows": 1, "most_columns": 1,
    });
    let grid = session.ask(grid);
    let mean = before.iter().copied().map(f64::from).sum::<f64>() / 1000.0;
    assert!((grid["means"][0].as_f64().unwrap() - mean).abs() < 1e-9, "{grid}");
    // Part of each row of a matrix.
    let rows = session.ask(json!({ "do": "read", "address": y, "bytes": 4, "rows": 3, "pitch": 400 }));
    let expected: String = [0, 100, 200]
        .map(|at: usize| {
            before[at]
                .to_le_bytes()
                .map(|byte| format!("{byte:02x}"))
                .concat()
        })
        .concat();
    assert_eq!(rows["hex"], expected);
    assert_eq!(session.end().code, Some(0));
}

#[test]
fn what_a_call_changes_is_what_dumps_differ_in() {
    let Some(place) = recorded(1000, 0) else { return };
    let mut session = session(&place, "--snapshot-every 2");
    let saxpy = launch(&mut session, "saxpy");
    let number = saxpy["number"].as_u64().unwrap();
    let changes = session.ask(json!({ "do": "changes", "call": number, "type": "f32", "elements": 3 }));
    let buffers = changes["buffers"].as_array().unwrap();
    assert_eq!(buffers.len(), 1, "{changes}");
    let (y, found) = (buffers[0]["address"].clone(), &buffers[0]);
    let (before, after) = (
        dumped(&place, &number.into(), &y),
        dumped(&place, &(number + 1).into(), &y),
    );
    let different: Vec<usize> = (0..1000)
        .filter(|at| before[*at].to_bits() != after[*at].to_bits())
        .collect();
    assert!(different.len() > 900);
    assert_eq!(found["different_elements"], different.len());
    assert_eq!(found["first"].as_array().unwrap().len(), 3);
    for (listed, at) in found["first"].as_array().unwrap().iter().zip(&different) {
        let expected = json!({
            "offset": 4 * at, "index": at, "old": before[*at].to_string(), "new": after[*at].to_string(),
        });
        assert_eq!(listed, &expected);
    }
    assert_eq!(
        (&changes["position"]["previous"], &changes["position"]["before"]),
        (&json!(number), &json!(number))
    );
    // The memory before the call is kept.
    let diff = json!({ "do": "diff", "address": y, "from": "before", "to": "now", "type": "f32" });
    assert_eq!(session.ask(diff)["different_elements"], different.len());
    // The same again, as another type and without running the call.
    let again = session.ask(json!({ "do": "changes", "type": "u8" }));
    assert_eq!(again["buffers"][0]["different_bytes"], found["different_bytes"]);
    // A call that only waits changes nothing.
    let calls = session.ask(json!({ "do": "calls" }));
    let mut calls = calls["calls"].as_array().unwrap().iter();
    let waits = calls.find(|call| call["kind"] == "synchronize").unwrap();
    let nothing = session.ask(json!({ "do": "changes", "call": waits["number"] }));
    assert_eq!(nothing["buffers"], json!([]));
    // Without a call before the position, there is nothing to look at.
    session.ask(json!({ "do": "go", "to": "begin" }));
    assert!(
        session
            .error(json!({ "do": "changes" }))
            .contains("no call comes before the start")
    );
}

#[test]
fn the_end_is_compared_with_the_recording_and_runs_with_each_other() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 100000 1");
    let mut steady = session(&place, "");
    let same = steady.ask(json!({ "do": "compare" }));
    assert_eq!(
        (&same["same"], &same["buffers"]),
        (&json!(true), &json!([])),
        "{same}"
    );
    assert_eq!(same["buffer_count"], 7);
    assert_eq!(same["position"]["next"], Value::Null);
    let place_before = steady.ask(json!({ "do": "go", "to": "begin" }))["position"]["place"].clone();
    let check = steady.ask(json!({ "do": "check", "runs": 2 }));
    assert_eq!(
        (&check["verdict"], &check["position"]["place"]),
        (&json!("repeats"), &place_before),
        "{check}"
    );
    drop(steady);
    // A sum in another order each time.
    let options = Options {
        racy_of: 1,
        ..Options::default()
    };
    let racy = Place::with(stage, options);
    racy.profiled(WINDOW, "launcher window 100000 1");
    let mut session = session(&racy, "");
    let accumulate = launch(&mut session, "accumulate");
    let check = session.ask(json!({ "do": "check", "runs": 8 }));
    assert_eq!(
        (&check["verdict"], &check["command"]),
        (&json!("does not repeat"), &accumulate["number"]),
        "{check}"
    );
    assert!(check["buffer"].as_str().unwrap().starts_with("0x"), "{check}");
    assert_eq!(check["difference"]["address"], check["buffer"]);
    // By chance, one run can be as the recorded one.
    let differs = (0..8).map(|_| {
        session.ask(json!({ "do": "go", "to": "begin" }));
        session.ask(json!({ "do": "compare", "type": "f32" }))
    });
    let found = differs.into_iter().find(|found| found["same"] == false).unwrap();
    assert!(found["buffers"][0]["last_call"].as_u64().is_some(), "{found}");
    assert_eq!(
        (
            &found["buffers"][0]["elements"],
            &found["buffers"][0]["different_elements"]
        ),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_kernel_is_replaced_timed_and_restored() {
    let Some(place) = recorded(1000, 0) else { return };
    let ptx = ".version 7.0\n.target sm_52\n.address_size 64\n\
        .visible .entry saxpy_near(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) { exit; }\n";
    fs::write(place.path("near.ptx"), ptx).unwrap();
    let mut session = session(&place, "");
    let saxpy = launch(&mut session, "saxpy");
    let wrong = session.error(json!({ "do": "replace", "call": saxpy["number"], "file": "absent.ptx" }));
    assert!(wrong.contains("reading absent.ptx"), "{wrong}");
    let wrong = json!({ "do": "replace", "call": saxpy["number"], "file": "near.ptx", "symbol": "other" });
    assert!(session.error(wrong).contains("it has saxpy_near"));
    let request = json!({ "do": "replace", "call": saxpy["number"], "file": "near.ptx", "repeat": 3 });
    let exact = session.ask(request.clone());
    let launch = &exact["launches"][0];
    assert_eq!(
        (&launch["command"], &launch["outcome"]["verdict"]),
        (&saxpy["number"], &json!("differs")),
        "{exact}"
    );
    assert!(launch["old_ns"].is_u64() && launch["new_ns"].is_u64());
    assert_eq!(exact["position"]["replaced"]["calls"], json!([saxpy["number"]]));
    let mut close = request;
    close["tolerance"] = json!(["f32=1e-3"]);
    let close = session.ask(close);
    assert_eq!(
        close["launches"][0]["outcome"]["verdict"], "within tolerance",
        "{close}"
    );
    // All views show the new kernel, also at the end.
    assert_eq!(session.ask(json!({ "do": "compare" }))["same"], false);
    assert!(
        session
            .error(json!({ "do": "check" }))
            .contains("restore them first")
    );
    assert_eq!(
        session.ask(json!({ "do": "restore" }))["position"]["replaced"],
        Value::Null
    );
    assert_eq!(session.ask(json!({ "do": "compare" }))["same"], true);
}

/// The memory before a call is that of the kernels that are launched now, and of the position of the request: clients
/// that share a session do not know what the others have requested.
#[test]
fn memory_before_a_call_is_of_the_position() {
    let Some(place) = recorded(1000, 0) else { return };
    let ptx = ".version 7.0\n.target sm_52\n.address_size 64\n\
        .visible .entry saxpy_near(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) { exit; }\n";
    fs::write(place.path("near.ptx"), ptx).unwrap();
    let mut session = session(&place, "");
    let saxpy = launch(&mut session, "saxpy");
    let (number, at) = (
        saxpy["number"].as_u64().unwrap(),
        saxpy["place"].as_u64().unwrap(),
    );
    let buffers = session.ask(json!({ "do": "buffers", "call": number }));
    let y = buffers["buffers"][0]["address"].clone();
    let before = |session: &mut Session, place: u64| {
        let read = json!({ "do": "read", "address": y, "bytes": 4000, "at": "before", "place": place });
        session.ask(read)["hex"].clone()
    };
    let first = before(&mut session, at + 1);
    let recorded = session.ask(json!({ "do": "changes", "call": number + 1 }));
    let second = before(&mut session, at + 2);
    assert_ne!(first, second);
    // Another client has looked at another call.
    assert_eq!(before(&mut session, at + 1), first);
    // Nothing of the other kernel is left when the recorded one is launched again.
    session.ask(json!({ "do": "replace", "call": number, "file": "near.ptx", "repeat": 1 }));
    session.ask(json!({ "do": "changes", "call": number + 1 }));
    assert_ne!(before(&mut session, at + 2), second);
    session.ask(json!({ "do": "restore" }));
    let again = session.ask(json!({ "do": "changes", "call": number + 1 }));
    assert_eq!(again["buffers"], recorded["buffers"]);
    assert_eq!(before(&mut session, at + 2), second);
}

#[test]
fn bad_requests_are_answered_and_the_session_goes_on() {
    let Some(place) = recorded(1000, 0) else { return };
    let mut session = session(&place, "");
    for (line, words) in [
        ("nonsense", "not a JSON object"),
        ("{\"do\":\"fly\"}", "unknown variant `fly`"),
        ("{\"do\":\"go\"}", "go needs one of `before`, `after` and `to`"),
        ("{\"do\":\"go\",\"before\":999999}", "there is no call #999999"),
        (
            "{\"do\":\"read\",\"address\":16,\"bytes\":4}",
            "no recorded buffer contains 0x10",
        ),
    ] {
        session.write(line);
        let answer = session.line();
        assert!(answer["error"].as_str().unwrap().contains(words), "{answer}");
        assert_eq!(answer["id"], Value::Null);
    }
    session.write(&"x".repeat(3 << 20));
    assert!(
        session.line()["error"]
            .as_str()
            .unwrap()
            .contains("longer than 1048576 bytes")
    );
    let buffers = session.ask(json!({ "do": "buffers" }));
    let y = buffers["buffers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|buffer| buffer["bytes"] == 4000)
        .unwrap()["address"]
        .clone();
    for (request, words) in [
        (
            json!({ "do": "read", "address": y, "bytes": 4001 }),
            "ends after it",
        ),
        (
            json!({ "do": "read", "address": y, "bytes": 0 }),
            "`bytes` must be at least 1",
        ),
        (
            json!({ "do": "read", "address": y, "bytes": 4, "rows": u64::MAX, "pitch": 4 }),
            "`rows` from 1 to",
        ),
        (
            json!({ "do": "read", "address": y, "bytes": 4, "rows": 2, "pitch": u64::MAX }),
            "`pitch` is too large",
        ),
        (
            json!({ "do": "read", "address": y, "bytes": 4, "at": "before" }),
            "no call comes before the start",
        ),
        (
            json!({ "do": "grid", "address": y, "type": "f32", "rows": u64::MAX, "columns": 2 }),
            "do not fit",
        ),
        (
            json!({ "do": "grid", "address": y, "type": "f32", "rows": 0, "columns": 2 }),
            "do not fit",
        ),
        (
            json!({ "do": "stats", "address": u64::MAX, "type": "f32" }),
            "no recorded buffer",
        ),
        (json!({ "do": "buffers", "call": 0 }), "there is no call #0"),
    ] {
        let error = session.error(request.clone());
        assert!(error.contains(words), "{request}: {error}");
    }
    assert_eq!(
        session.ask(json!({ "do": "next", "count": u32::MAX }))["position"]["next"],
        Value::Null
    );
    assert_eq!(
        session.ask(json!({ "do": "back", "count": u32::MAX }))["position"]["place"],
        0
    );
    session.ask(json!({ "do": "quit" }));
    assert_eq!(session.end().code, Some(0));
}

/// A kernel that fails ends the session, and the last lines name it.
#[test]
fn a_fault_is_an_answer_and_then_the_end() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let mut command = place.tracesmith(STEP);
    command.env(variable::FAULTING_KERNEL, "vector_add");
    let mut child = start(command.stdin(Stdio::piped()));
    type_in(
        &mut child,
        b"{\"id\":1,\"do\":\"go\",\"to\":\"end\"}\n{\"id\":2,\"do\":\"position\"}\n",
    );
    let run = ended(child);
    assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answer = lines
        .iter()
        .find(|line| line["id"] == 1 && line.get("progress").is_none())
        .unwrap();
    assert_eq!(answer["fatal"], true, "{answer}");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["event"], &last["name"]),
        (&json!("failed"), &json!("vector_add")),
        "{last}"
    );
    assert!(run.stderr.contains("vector_add"), "{}", run.stderr);
}

/// Nothing goes on when the process is killed.
#[test]
fn a_killed_session_leaves_no_process() {
    let Some(place) = recorded(1000, 0) else { return };
    let session = session(&place, "");
    let children = format!("/proc/{0}/task/{0}/children", session.pid());
    let child: u32 = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    drop(session);
    // One that nobody has waited for yet is a zombie.
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    until(is_gone);
}

#[test]
fn without_a_gpu_recorded_contents_can_be_read() {
    const VALUES: &str = "0x7fc067e00000";
    let fixture = root().join("fixtures/replay-h200.sbt");
    for options in [&["--mode", "dry-run"][..], &[]] {
        let mut command = command();
        command
            .args(["replay", fixture.to_str().unwrap(), "--step", "--format", "json"])
            .args(options)
            .env("CUDA_VISIBLE_DEVICES", "");
        let mut session = Session::start(&mut command);
        let why = session.ready["offline"].as_str().unwrap().to_owned();
        assert!(why.contains("dry-run") || why.contains("no GPU"), "{why}");
        let stats = |at: &str| json!({ "do": "stats", "address": VALUES, "type": "f32", "at": at });
        let sum = |stats: &Value| (stats["mean"].as_f64().unwrap() * 1024.0).round();
        let end = session.ask(stats("end"));
        assert_eq!(sum(&end), 5875.0, "as the program printed");
        // Before call 4, the copied numbers; after call 5, the end; after call 4, nobody knows.
        session.ask(json!({ "do": "go", "before": 4 }));
        assert_eq!(session.ask(stats("now"))["max"], 9.0);
        session.ask(json!({ "do": "go", "after": 5 }));
        assert_eq!(session.ask(stats("now")), {
            let mut same = end.clone();
            same["at"] = "now".into();
            same["position"] = session.ask(json!({ "do": "position" }))["position"].clone();
            same
        });
        session.ask(json!({ "do": "go", "after": 4 }));
        let unknown = session.answer(stats("now"));
        assert!(
            unknown["error"]
                .as_str()
                .unwrap()
                .contains("#4 _Z5scalePfi may have written it"),
            "{unknown}"
        );
        assert_eq!(unknown["readable"], json!([[0, 3], [5, 7]]));
        for request in ["changes", "compare", "check", "restore"] {
            let error = session.error(json!({ "do": request }));
            assert!(error.contains("needs a replay on a GPU"), "{error}");
        }
        let buffers = session.ask(json!({ "do": "buffers", "call": 4 }));
        assert_eq!(buffers["buffers"][0]["address"], VALUES);
        assert_eq!(session.end().code, Some(0));
    }
}

#[test]
fn a_file_without_a_recording_is_an_error() {
    let demo = root().join("fixtures/demo-h200.sbt");
    let mut command = command();
    command.args(["replay", demo.to_str().unwrap(), "--step", "--format", "json"]);
    let run = ended(start(
        command.env("CUDA_VISIBLE_DEVICES", "").stdin(Stdio::null()),
    ));
    assert_eq!(run.code, Some(2));
    assert!(
        run.stdout.is_empty() && run.stderr.contains("contains no replay recording"),
        "{}",
        run.stderr
    );
}
