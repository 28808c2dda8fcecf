//! Time ranges that are empty or outside the trace: the same errors in all commands.

use serde_json::Value;
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
        let words =
            "the time range starts at 900.00 ms, after the end of the trace: the trace ends at 624.86 ms";
        assert!(run.stderr.contains(words), "{command}: {run:?}");
        assert_eq!(run.stdout, "", "{command}");
    });
}

#[test]
fn an_empty_range_is_an_error_in_the_users_own_times() {
    for (from, to, words) in [
        ("3ms", "1ms", "its start 3.00 ms is not before its end 1.00 ms"),
        ("30%", "30%", "its start 30 % is not before its end 30 %"),
        ("0", "@7", "its start 0 ns is not before its end @7"),
    ] {
        each_command(&["--from", from, "--to", to], |command, run| {
            assert_eq!(run.code, Some(2), "{command}: {run:?}");
            assert!(run.stderr.contains(words), "{command}: {run:?}");
        });
    }
    each_command(&["--to", "@7"], |command, run| {
        assert_eq!(run.code, Some(2), "{command}: {run:?}");
        assert!(
            run.stderr.contains("ends at @7, before the start of the trace"),
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

const TRAINING: &str = "fixtures/train-h200.sbt";

/// A step means the same time range in every command.
#[test]
fn a_step_can_be_selected_everywhere() {
    let json = |args: &[&str]| -> Value {
        let answer = tracesmith(args.iter().copied().chain(["--format", "json"])).ok();
        serde_json::from_str(&answer).unwrap()
    };
    let kernels = json(&["analyze", TRAINING, "--only", "kernels", "--step", "4"]);
    assert_eq!(kernels["count"], 15);
    let by_step = json(&[
        "analyze", TRAINING, "--only", "kernels", "--by", "step", "--step", "4",
    ]);
    assert_eq!(by_step["rows"][0]["name"], "step 4");
    let rows = json(&["view", TRAINING, "--kind", "kernel", "--step", "4"]);
    assert_eq!(rows.as_array().unwrap().len(), 15);
    let dir = TempDir::new().unwrap();
    let part = dir.path().join("part.sbt");
    let part = part.to_str().unwrap();
    let cut = tracesmith(["cut", TRAINING, "--step", "4", "-o", part]);
    assert_eq!(cut.code, Some(0), "{cut:?}");
    let rows = json(&["view", part, "--kind", "kernel"]);
    assert_eq!(rows.as_array().unwrap().len(), 15);
    let folded = dir.path().join("x.folded");
    let folded = folded.to_str().unwrap();
    let flame = tracesmith(["flame", TRAINING, "--step", "4", "--by", "launches", "-o", folded]);
    assert_eq!(flame.code, Some(0), "{flame:?}");
    let launches: u64 = std::fs::read_to_string(folded)
        .unwrap()
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    // Its kernels and memcpys.
    assert_eq!(launches, 18);
    let csv = dir.path().join("kernels.csv");
    let csv = csv.to_str().unwrap();
    tracesmith(["export", TRAINING, "--step", "4", "--table", "kernels", "-o", csv]).ok();
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 1 + 15);
    for command in ["view", "analyze"] {
        let refused = tracesmith([command, TRAINING, "--step", "99"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.contains("10"),
            "the number of steps: {}",
            refused.stderr
        );
    }
}

/// What a finding names can be looked at.
#[test]
fn a_row_that_is_named_can_be_shown() {
    let findings = tracesmith(["analyze", TRAINING, "--only", "findings"]).ok();
    let named = findings.lines().find(|line| line.contains(", row ")).unwrap();
    let (_, named) = named.rsplit_once(", row ").unwrap();
    let (row, table) = named.split_once(" of ").unwrap();
    let shown = tracesmith(["view", TRAINING, "--row", &format!("{table}:{row}"), "--stacks"]).ok();
    assert!(shown.contains("load_batch"), "{findings}{shown}");
    let several = tracesmith(["view", TRAINING, "--row", "kernels:0,copies:1"]).ok();
    assert_eq!(several.lines().count(), 3, "{several}");
    for (wrong, said) in [
        ("kernels:150", "kernels has no row 150: it has 150 rows"),
        ("kernels", "such as kernels:9094"),
        ("strings:1", "tables with rows: kernels, copies"),
    ] {
        let refused = tracesmith(["view", TRAINING, "--row", wrong]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{wrong}: {}", refused.stderr);
    }
}

#[test]
fn what_the_trace_lacks_is_answered_with_what_it_has() {
    for (args, said) in [
        (
            ["--rank", "3"],
            "the trace has no rank 3; it has no rank with a number",
        ),
        (["--device", "7"], "the trace has no GPU 7; it has GPU 0"),
        (["--process", "1"], "the trace has no process 1; it has process"),
    ] {
        let refused = tracesmith(["view", TRAINING].into_iter().chain(args));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
}
