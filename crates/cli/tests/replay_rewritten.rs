//! Replay recordings in files that were made from others: `symbolize`, `merge`, `cut` and `repair`.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;

use serde_json::Value;
use support::Run;
use support::replay::WINDOW;
use support::rows::rows;
use support::stage::{Place, run, stage};
use tracesmith_format::tables::Module;
use tracesmith_format::{BlockKind, Memory, Reader};

const PROGRAM: &str = "launcher window 20000 2";

/// What a command answers that goes well.
fn done(place: &Place, line: &str) -> Run {
    let run = run(&mut place.tracesmith(line));
    assert_eq!(run.code, Some(0), "{line}: {}{}", run.stdout, run.stderr);
    run
}

fn replay(place: &Place, file: &str) -> (Option<i32>, Value, String) {
    let run = run(&mut place.tracesmith(&format!("replay {file} --format json --repeat 2")));
    let answer = serde_json::from_str(&run.stdout).unwrap_or_default();
    (run.code, answer, run.stderr)
}

/// What a replay compares, when its memory comes out the same.
fn compared(place: &Place, file: &str) -> Value {
    let (code, answer, stderr) = replay(place, file);
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("same")),
        "{file}: {answer}{stderr}"
    );
    let run = &answer["runs"][0];
    serde_json::json!([run["buffers"], run["bytes"], run["commands"]])
}

#[test]
fn a_symbolized_recording_replays_as_before() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, PROGRAM);
    let before = compared(&place, "t.sbt");
    done(&place, "symbolize t.sbt -o named.sbt");
    assert_eq!(compared(&place, "named.sbt"), before);
}

#[test]
fn merged_recordings_replay_as_the_first_does() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // Its processes load the same code, and have other memory.
    place.profiled(WINDOW, "launcher window 30000 1");
    fs::rename(place.path("t.sbt"), place.path("other.sbt")).unwrap();
    place.profiled("", PROGRAM);
    fs::rename(place.path("t.sbt"), place.path("plain.sbt")).unwrap();
    place.profiled(WINDOW, PROGRAM);
    let (own, other) = (compared(&place, "t.sbt"), compared(&place, "other.sbt"));
    assert_ne!(own, other);
    for (inputs, wanted) in [
        ("t.sbt plain.sbt", &own),
        ("plain.sbt t.sbt", &own),
        ("t.sbt other.sbt", &own),
        ("other.sbt t.sbt", &other),
    ] {
        let merged = done(&place, &format!("merge {inputs} -o merged.sbt --force"));
        assert!(!merged.stderr.contains("left out"), "{}", merged.stderr);
        assert_eq!(&compared(&place, "merged.sbt"), wanted, "{inputs}");
    }
}

#[test]
fn of_two_recordings_of_one_process_the_first_stays() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, PROGRAM);
    let before = compared(&place, "t.sbt");
    // Another trace of the same process, and not a copy, which is refused.
    done(&place, "cut t.sbt -o part.sbt");
    let merged = done(&place, "merge t.sbt part.sbt -o twice.sbt --format json");
    let said = "was left out: an earlier input holds a recording of the same process";
    assert!(merged.stderr.contains(said), "{}", merged.stderr);
    let answer: Value = serde_json::from_str(&merged.stdout).unwrap();
    assert_eq!(answer["recordings"], 1, "{answer}");
    assert_eq!(
        answer["recordings_left_out"].as_array().unwrap().len(),
        1,
        "{answer}"
    );
    assert_eq!(compared(&place, "twice.sbt"), before);
}

#[test]
fn an_unfinished_recording_does_not_borrow_the_end_of_another() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, PROGRAM);
    fs::rename(place.path("t.sbt"), place.path("other.sbt")).unwrap();
    place.profiled(WINDOW, PROGRAM);
    let bytes = fs::read(place.path("t.sbt")).unwrap();
    // The last block of pieces, with all that comes after it: the facts of the recording's end among them.
    let reader = Reader::open(Memory(bytes.clone())).unwrap();
    let pieces = |block: &&tracesmith_format::Block| block.header.kind == BlockKind::PIECES;
    let end = reader.blocks().iter().rfind(pieces).unwrap().offset;
    fs::write(place.path("cut.sbt"), &bytes[..end as usize]).unwrap();
    let (code, ..) = replay(&place, "cut.sbt");
    assert_ne!(code, Some(0), "it is not whole");
    for line in [
        "merge cut.sbt other.sbt -o out.sbt --force",
        "symbolize cut.sbt -o out.sbt --force",
        "repair cut.sbt -o out.sbt --force",
    ] {
        run(&mut place.tracesmith(line));
        let (code, answer, stderr) = replay(&place, "out.sbt");
        assert_eq!(code, Some(2), "{line}: {answer}{stderr}");
        assert!(stderr.contains("is incomplete"), "{line}: {stderr}");
    }
}

#[test]
fn a_cut_keeps_a_recording_that_it_covers_and_reports_another() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, PROGRAM);
    let before = compared(&place, "t.sbt");
    let whole = done(&place, "cut t.sbt -o whole.sbt");
    assert!(!whole.stderr.contains("left out"), "{}", whole.stderr);
    assert_eq!(compared(&place, "whole.sbt"), before);

    // To the end of its first kernel.
    let trace = place.trace("t.sbt");
    let (begin, _) = trace.span().unwrap();
    let block = trace.kernels.blocks().next().unwrap();
    let first = rows(&trace.kernels)
        .iter()
        .map(|kernel| kernel.end)
        .min()
        .unwrap();
    let first = trace.clock_map.convert(block.header.clock, first).time.0 - begin.0;
    let part = done(&place, &format!("cut t.sbt --to {first}ns -o part.sbt"));
    let said = "was left out: the range does not cover all its calls";
    assert!(part.stderr.contains(said), "{}", part.stderr);
    let (code, _, stderr) = replay(&place, "part.sbt");
    assert_eq!(code, Some(2), "{stderr}");
    let kinds = |name: &str| {
        let bytes = fs::read(place.path(name)).unwrap();
        let reader = Reader::open(Memory(bytes)).unwrap();
        let recorded = [BlockKind::COMMANDS, BlockKind::PIECES, BlockKind::CONTENTS];
        let kinds = reader.blocks().iter().map(|block| block.header.kind);
        kinds.filter(|kind| recorded.contains(kind)).count()
    };
    assert_eq!(kinds("part.sbt"), 0);
    assert!(kinds("whole.sbt") >= 3);
    let info = done(&place, "info part.sbt");
    assert!(info.stdout.contains("left out"), "{}", info.stdout);
}

#[test]
fn a_cut_leaves_out_code_that_no_recorded_call_uses() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let code = |name: &str| {
        let trace = place.trace(name);
        let with_code = |module: &&Module| !module.code.0.is_empty();
        rows(&trace.modules).iter().filter(with_code).count()
    };
    for (case, recorded, kept) in [("unused", 2, 1), ("twins", 2, 2), ("pointed", 1, 1)] {
        place.profiled(WINDOW, &format!("windows {case}"));
        let before = compared(&place, "t.sbt");
        let answer = done(&place, "cut t.sbt -o small.sbt --force --format json").stdout;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(compared(&place, "small.sbt"), before, "{case}");
        assert_eq!((code("t.sbt"), code("small.sbt")), (recorded, kept), "{case}");
        let left_out = answer["unused_code_bytes"].as_u64().unwrap();
        assert_eq!(left_out > 0, kept < recorded, "{case}: {answer}");
    }
}
