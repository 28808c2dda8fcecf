//! What `ci/test` promises: every skipped test is recorded and judged, and every flaky pass is counted.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::process::Command;

use support::stage::stage;
use support::{Run, root, run};
use tempfile::TempDir;

/// The skips of a run, as `ci/skips` judges them.
fn judged(skips: &str, variables: &[(&str, &str)]) -> Run {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("skips");
    fs::write(&file, skips).unwrap();
    let mut command = Command::new(root().join("ci/skips"));
    run(command.arg(file).envs(variables.iter().copied()))
}

#[test]
fn a_test_on_the_stage() {
    let _ = stage();
}

/// The test above on a machine without a C compiler: it passes, and is recorded.
#[test]
fn a_test_without_a_compiler_is_recorded_as_skipped() {
    let folder = TempDir::new().unwrap();
    let skips = folder.path().join("skips");
    // The name of this module in the test program, without the program's own name.
    let module = module_path!()
        .split_once("::")
        .map(|(_, module)| format!("{module}::"));
    let test = format!("{}a_test_on_the_stage", module.unwrap_or_default());
    let run = run(Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test])
        .env("PATH", "/nowhere")
        .env(tracesmith_skip::FILE, &skips)
        .env_remove("NEXTEST_TEST_NAME"));
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert_eq!(run.stderr, format!("{}: cc: {test}: \n", "SKIPPED"));
    assert_eq!(fs::read_to_string(&skips).unwrap(), format!("cc\t{test}\t\n"));
}

#[test]
fn a_skip_that_is_not_listed_fails_the_run() {
    let run = judged("cc\ta_test\t\n", &[]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(
        run.stdout,
        "SKIPPED a_test: needs cc\n  NOT ALLOWED: ci/may-skip has no line for it that holds on this machine\n\
         1 skipped, 1 of them not allowed\n"
    );
}

#[test]
fn only_a_machine_without_the_data_may_skip_it() {
    // Tried again, a test skips again.
    let skips = "data\ta_test\tkineto/a.json\ndata\tanother\tkineto/a.json\ndata\ta_test\tkineto/a.json\n";
    let without = judged(skips, &[("TRACESMITH_DATA", "/nowhere")]);
    assert_eq!(without.code, Some(0), "{}", without.stdout);
    assert!(
        without
            .stdout
            .starts_with("SKIPPED a_test: needs data: kineto/a.json\n  allowed: "),
        "{}",
        without.stdout
    );
    assert!(
        without.stdout.ends_with("\n2 skipped, 0 of them not allowed\n"),
        "{}",
        without.stdout
    );
    let with = judged(skips, &[("TRACESMITH_DATA", "/tmp")]);
    assert_eq!(with.code, Some(1), "{}", with.stdout);
    assert!(
        with.stdout.ends_with("\n2 skipped, 2 of them not allowed\n"),
        "{}",
        with.stdout
    );
}

#[test]
fn a_run_without_skips_passes() {
    let run = judged("", &[]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "0 skipped, 0 of them not allowed\n")
    );
}

#[test]
fn flaky_passes_are_named_and_counted() {
    let folder = TempDir::new().unwrap();
    let report = folder.path().join("junit.xml");
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1">
    <testsuite name="tracesmith::it" tests="3">
        <testcase name="top::it_draws" classname="tracesmith::it" time="0.5">
        </testcase>
        <testcase name="profile::a_key_ends_it" classname="tracesmith::it" time="0.5">
            <flakyFailure timestamp="2026-01-01T00:00:00Z" time="1.0" message="too late" type="test failure with exit code 101"/>
            <flakyFailure timestamp="2026-01-01T00:00:00Z" time="1.0" message="too late" type="test failure with exit code 101"/>
        </testcase>
        <testcase name="report::it_fails" classname="tracesmith::it" time="0.5">
            <failure type="test failure with exit code 101"/>
            <rerunFailure type="test failure with exit code 101"/>
        </testcase>
    </testsuite>
</testsuites>
"#;
    fs::write(&report, text).unwrap();
    let run = run(Command::new(root().join("ci/flaky")).arg(report));
    assert_eq!(
        run.ok(),
        "FLAKY tracesmith::it: profile::a_key_ends_it\n1 flaky\n"
    );
}

/// Retries hide faults: only tests that are named get them, and each of these is a test.
#[test]
fn only_named_tests_are_tried_again() {
    let text = fs::read_to_string(root().join(".config/nextest.toml")).unwrap();
    let config: toml::Table = text.parse().unwrap();
    let profile = &config["profile"]["default"];
    assert_eq!(profile.get("retries"), None);
    for exception in profile["overrides"].as_array().unwrap() {
        let filter = exception["filter"].as_str().unwrap();
        for test in filter.split('|').map(str::trim) {
            let name = test
                .strip_prefix("test(=")
                .and_then(|rest| rest.strip_suffix(')'));
            let name = name.unwrap_or_else(|| panic!("{test} is not the name of one test"));
            let (file, function) = name.split_once("::").unwrap();
            let found = ["cli", "collect", "fake-cuda"].iter().any(|folder| {
                let path = root().join(format!("crates/{folder}/tests/{file}.rs"));
                fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("fn {function}() {{")))
            });
            assert!(found, "there is no test {name}");
        }
    }
}
