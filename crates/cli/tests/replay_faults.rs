//! Kernels that fault or do not end, and addresses that are not to be had.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod support;

use support::Run;
use support::replay::{WINDOW, planned, replayed};
use support::stage::{Place, run, stage};
use tracesmith_fake_cuda::variable;

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
        parameters[1].contains(", at 0 of the 20000 bytes at 0x"),
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
    assert_eq!(answer["error"], "does not end within 1 s");
    assert_eq!(answer["parameters"].as_array().unwrap().len(), 3, "{answer}");
}
