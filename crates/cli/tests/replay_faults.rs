//! Kernels that fault or do not end, and addresses that are not to be had.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use support::Run;
use support::replay::{WINDOW, planned, replayed};
use support::stage::{Place, run, stage};
use tracesmith_fake_cuda::{Options, variable};

/// A replay under a driver that behaves in another way than when the window was recorded.
fn replayed_with(place: &Place, options: &str, variable: &str, value: &str) -> Run {
    let mut command = place.tracesmith(&format!("replay t.sbt {options}"));
    run(command.env(variable, value))
}

fn number_of(place: &Place, function: &str) -> u64 {
    let calls = planned(place);
    let call = calls.iter().find(|call| call["function"] == function).unwrap();
    call["number"].as_u64().unwrap()
}

#[test]
fn a_kernel_that_faults_is_named_with_its_parameters() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let failed = replayed_with(&place, "", variable::FAULTING_KERNEL, "vector_add");
    assert_eq!(
        (failed.code, failed.stdout.as_str()),
        (Some(2), ""),
        "{}",
        failed.stderr
    );
    let beginning = format!(
        "error: #{} vector_add (20, 1, 1) × (256, 1, 1) fails: ",
        number_of(&place, "vector_add")
    );
    assert!(failed.stderr.starts_with(&beginning), "{}", failed.stderr);
    assert!(
        failed
            .stderr
            .contains("700 (CUDA_ERROR_ILLEGAL_ADDRESS): an illegal memory access was encountered"),
        "{}",
        failed.stderr
    );
    let parameters: Vec<&str> = failed
        .stderr
        .lines()
        .filter(|line| line.contains("parameters + "))
        .collect();
    assert_eq!(parameters.len(), 4, "{}", failed.stderr);
    assert!(
        parameters[1].contains(", offset 0 in the 20000 bytes at 0x"),
        "{}",
        parameters[1]
    );
    assert!(
        parameters[3].ends_with("parameters + 0x18: 0x00001388"),
        "{}",
        parameters[3]
    );
    // The recording is as it was, and so is the machine.
    assert_eq!(replayed(&place, "").0, Some(0));
}

#[test]
fn a_kernel_that_does_not_end_is_named() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let failed = replayed_with(
        &place,
        "--timeout 1 --format json",
        variable::HANGING_KERNEL,
        "accumulate",
    );
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    let answer: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(
        (&answer["verdict"], &answer["command"]),
        (&"failed".into(), &number_of(&place, "accumulate").into()),
        "{answer}"
    );
    assert_eq!(answer["error"], "does not finish within 1 s");
    assert_eq!(answer["parameters"].as_array().unwrap().len(), 3, "{answer}");
}

#[test]
fn memory_that_cannot_be_had_where_it_was_is_taken_elsewhere_when_asked_for() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    let failed = replayed_with(&place, "", variable::ELSEWHERE, "1");
    assert_eq!(failed.code, Some(2), "{}", failed.stdout);
    assert!(
        failed
            .stderr
            .contains("allocating memory at the recorded addresses: the addresses from 0x20000000000 on"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.contains("hint: --relocate"), "{}", failed.stderr);
    // The table holds an address of another buffer: it is changed when it is restored, and back when it is compared.
    let moved = replayed_with(&place, "--relocate", variable::ELSEWHERE, "1");
    assert_eq!(moved.code, Some(0), "{}{}", moved.stdout, moved.stderr);
    assert!(
        moved.stdout.starts_with("run 1: same") && moved.stdout.contains("relocated: "),
        "{}",
        moved.stdout
    );
    // Nothing moves that need not.
    let (code, answer) = replayed(&place, "--relocate");
    assert_eq!((code, &answer["relocated"]), (Some(0), &0.into()), "{answer}");
}

#[test]
fn code_for_another_kind_of_device_is_refused_at_once() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let failed = replayed_with(&place, "", variable::CAPABILITY, "80");
    assert_eq!(failed.code, Some(2), "{}", failed.stdout);
    assert!(
        failed
            .stderr
            .contains("was compiled for compute capability 9.0, but TraceSmith Fake GPU has 8.0"),
        "{}",
        failed.stderr
    );
    assert_eq!(
        replayed_with(&place, "", variable::CAPABILITY, "92").code,
        Some(0)
    );
}

#[test]
fn info_says_what_can_be_run_again() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    let text = run(&mut place.tracesmith("info t.sbt"));
    assert!(
        text.stdout.contains("recording  ") && text.stdout.contains("           replayable\n"),
        "{}",
        text.stdout
    );
    let json = run(&mut place.tracesmith("info t.sbt --format json"));
    let answer: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let recording = &answer["recording"];
    assert_eq!(recording["replayable"], true, "{recording}");
    assert_eq!(
        recording["calls"].as_u64().unwrap() as usize,
        planned(&place).len()
    );
    assert!(
        recording["begin_bytes"].as_u64().unwrap() >= 12_000,
        "{recording}"
    );
    assert!(recording["code_bytes"].as_u64().unwrap() > 0, "{recording}");
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    place.profiled("--record", "launcher peer");
    let text = run(&mut place.tracesmith("info t.sbt"));
    assert!(text.stdout.contains("not replayable: #"), "{}", text.stdout);
}

#[test]
fn what_is_left_of_a_file_is_looked_at_and_never_run() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 1");
    let whole = std::fs::read(place.path("t.sbt")).unwrap();
    let verdict = run(&mut place.tracesmith("replay t.sbt")).stdout;
    let (verdict, _) = verdict.split_once(';').unwrap();
    let mut spoilt = whole.clone();
    spoilt
        .iter_mut()
        .skip(200)
        .step_by(61)
        .for_each(|byte| *byte ^= 0x55);
    let mut files: Vec<Vec<u8>> = (1..8)
        .map(|eighths| whole[..whole.len() * eighths / 8].to_vec())
        .collect();
    files.push(spoilt);
    for (index, bytes) in files.iter().enumerate() {
        std::fs::write(place.path("left.sbt"), bytes).unwrap();
        for line in ["info left.sbt", "replay left.sbt --mode dry-run"] {
            // There is no driver: what would run something fails in other words.
            let looked = run(place.tracesmith(line).env_remove("LD_LIBRARY_PATH"));
            let is_answer = matches!(looked.code, Some(0..=2)) && !looked.stderr.contains("libcuda");
            assert!(is_answer, "{index} {line}: {:?} {}", looked.code, looked.stderr);
        }
        // A replay of it refuses, or has all that the whole one has.
        let ended = run(&mut place.tracesmith("replay left.sbt"));
        let is_whole = ended.code == Some(0) && ended.stdout.starts_with(verdict);
        assert!(
            is_whole || ended.code == Some(2),
            "{index}: {}{}",
            ended.stdout,
            ended.stderr
        );
        assert!(!ended.stderr.contains("panicked"), "{index}: {}", ended.stderr);
    }
}
