//! Time ranges that are empty or outside the trace: the same errors in all commands.

use tempfile::TempDir;

use crate::support::{Run, tracesmith};

const DEMO: &str = "fixtures/demo-h200.sbt";

/// Runs every command that takes a range with this one.
fn each_command(range: &[&str], check: impl Fn(&str, Run)) {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    for command in [
        &["view"][..],
        &["view", "--timeline"],
        &["view", "--stats"],
        &["analyze"],
        &["states"],
        &["report", "-o", out],
        &["cut", "-o", out],
        &["export", "-f", "kineto", "-o", out],
    ] {
        let args = command.iter().chain(&[DEMO]).chain(range);
        check(command[0], tracesmith(args.copied()));
        assert!(!folder.path().join("out").exists(), "{command:?}");
    }
}

#[test]
fn a_range_after_the_end_is_an_error_that_names_the_end() {
    each_command(&["--from", "900ms"], |command, run| {
        assert_eq!(run.code, Some(2), "{command}: {run:?}");
        let words = "--from 900.00 ms is after the end of the trace: the trace ends at 624.86 ms";
        assert!(run.stderr.contains(words), "{command}: {run:?}");
        assert_eq!(run.stdout, "", "{command}");
    });
}

#[test]
fn an_empty_range_is_an_error_in_the_users_own_times() {
    for (from, to, words) in [
        ("3ms", "1ms", "--from 3.00 ms is not before --to 1.00 ms"),
        ("30%", "30%", "--from 30 % is not before --to 30 %"),
        ("0", "@7", "--from 0 ns is not before --to @7"),
    ] {
        each_command(&["--from", from, "--to", to], |command, run| {
            assert_eq!(run.code, Some(2), "{command}: {run:?}");
            assert!(run.stderr.contains(words), "{command}: {run:?}");
        });
    }
    each_command(&["--to", "@7"], |command, run| {
        assert_eq!(run.code, Some(2), "{command}: {run:?}");
        assert!(
            run.stderr.contains("--to @7 is before the start of the trace"),
            "{command}: {run:?}"
        );
    });
}

#[test]
fn idle_time_is_not_longer_than_the_range() {
    // The last kernel ends at 548 ms.
    let range = [DEMO, "--from", "600ms"];
    let json = tracesmith(
        ["analyze"]
            .iter()
            .chain(&range)
            .chain(&["--format", "json"])
            .copied(),
    )
    .ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let device = &json["idle"]["devices"][0];
    assert_eq!(device["idle_ns"], device["span_ns"], "{device}");
    let shown = tracesmith(["analyze"].iter().chain(&range).copied());
    assert!(
        shown.stderr.contains("no GPU work in this time range"),
        "{shown:?}"
    );
    assert!(!shown.stdout.contains("Idle time"), "{shown:?}");
}
