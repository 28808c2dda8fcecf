//! A launch taken out of a recording runs without us, and says the same.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Command;

use support::Run;
use support::replay::WINDOW;
use support::stage::{Place, run, stage};

/// The two programs, as far as this machine can run them.
fn programs(place: &Place, folder: &str) -> Vec<(&'static str, Command)> {
    let mut programs = Vec::new();
    if Command::new("g++").arg("--version").output().is_ok() {
        let built = place.path("reproduce");
        let mut compiler = place.command("g++");
        compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler
            .arg(&built)
            .arg(format!("{folder}/reproduce.cpp"))
            .arg("-ldl");
        let compiled = run(&mut compiler);
        assert_eq!(compiled.code, Some(0), "{}", compiled.stderr);
        programs.push(("C++", place.command(built)));
    } else {
        tracesmith_skip::without("cc", "g++");
    }
    if Command::new("python3").arg("--version").output().is_ok() {
        let mut python = place.command("python3");
        python.arg(format!("{folder}/reproduce.py"));
        programs.push(("Python", python));
    } else {
        tracesmith_skip::without("python", "");
    }
    for (_, program) in &mut programs {
        program.arg(folder);
    }
    programs
}

fn extracted(place: &Place, options: &str) -> Run {
    run(&mut place.tracesmith(&format!("extract t.sbt {options}")))
}

#[test]
fn a_launch_runs_without_us() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 5000 2");
    // The second sum begins with what the first one left.
    let extract = extracted(&place, "--kernel accumulate#2 -o out");
    assert_eq!(extract.code, Some(0), "{}", extract.stderr);
    assert!(
        extract.stdout.contains("accumulate: 3 buffers")
            && extract.stdout.contains("1 changed by the kernel"),
        "{}",
        extract.stdout
    );
    for (name, mut program) in programs(&place, "out") {
        let reproduced = run(&mut program);
        assert_eq!(
            (reproduced.code, reproduced.stdout.as_str()),
            (Some(0), "same (3 buffers, 20008 bytes)\n"),
            "{name}: {}",
            reproduced.stderr
        );
    }
    // One byte that is expected otherwise.
    let changed = (0..3).map(|index| place.path(&format!("out/buffers/{index}.after")));
    let changed = changed.into_iter().find(|path| path.exists()).unwrap();
    let mut bytes = std::fs::read(&changed).unwrap();
    bytes[1] ^= 1;
    std::fs::write(&changed, bytes).unwrap();
    for (name, mut program) in programs(&place, "out") {
        let reproduced = run(&mut program);
        assert_eq!(reproduced.code, Some(1), "{name}: {}", reproduced.stderr);
        assert!(
            reproduced
                .stdout
                .contains("1 of 4 bytes differ, first at offset 1")
                && reproduced.stdout.ends_with("differs in 1 of 3 buffers\n"),
            "{name}: {}",
            reproduced.stdout
        );
    }
    // Without a driver they fail and say so.
    for (name, mut program) in programs(&place, "out") {
        let reproduced = run(program.env_remove("LD_LIBRARY_PATH"));
        assert_eq!(reproduced.code, Some(2), "{name}: {}", reproduced.stdout);
        assert!(
            reproduced.stderr.contains("failed: libcuda.so.1"),
            "{name}: {}",
            reproduced.stderr
        );
    }
}

#[test]
fn what_memory_points_to_is_taken_along() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    // It fills the table, which holds the address of another buffer; a variable of its code comes along.
    let extract = extracted(&place, "--kernel fill -o out --format json");
    let answer: serde_json::Value = serde_json::from_str(&extract.stdout).unwrap();
    assert_eq!(
        (&answer["buffers"], &answer["bytes"]),
        (&3.into(), &4068.into()),
        "{answer}"
    );
}

#[test]
fn a_folder_that_is_not_empty_is_left_alone() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 0");
    std::fs::create_dir(place.path("out")).unwrap();
    std::fs::write(place.path("out/mine"), "").unwrap();
    let refused = extracted(&place, "--kernel saxpy -o out");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("out is not empty"), "{}", refused.stderr);
    let forced = extracted(&place, "--kernel saxpy -o out --force");
    assert_eq!(forced.code, Some(0), "{}", forced.stderr);
    let missing = extracted(&place, "--kernel saxpy#7 -o other");
    assert_eq!(missing.code, Some(2));
    assert!(
        missing
            .stderr
            .contains("kernels whose name contains \"saxpy\" are launched only"),
        "{}",
        missing.stderr
    );
}
