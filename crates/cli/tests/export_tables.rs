//! What the exports of tables and stacks look like, over the project's own traces.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;

use insta::assert_snapshot;
use support::{FIXTURE, tracesmith};
use tempfile::TempDir;

const RECORDED: &str = "fixtures/demo-h200.sbt";

fn exported(fixture: &str, format: &str, more: &[&str]) -> String {
    tracesmith([&["export", fixture, "-f", format, "-o", "-"], more].concat()).ok()
}

/// The head of every table and its first rows; all of them would be long.
#[test]
fn tables_as_csv() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("tables");
    tracesmith(["export", FIXTURE, "-f", "csv", "-o", out.to_str().unwrap()]).ok();
    let mut files: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut all = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        all += &format!(
            "{}: {} lines\n",
            file.file_name().unwrap().to_str().unwrap(),
            text.lines().count()
        );
        for line in text.lines().take(3) {
            all += &format!("  {line}\n");
        }
    }
    assert_snapshot!("tables_csv", all);
}

#[test]
fn json_lines() {
    let lines = exported(RECORDED, "jsonl", &[]);
    let first: Vec<&str> = lines.lines().take(5).collect();
    assert_snapshot!(
        "jsonl",
        format!("{} lines\n{}", lines.lines().count(), first.join("\n"))
    );
}

#[test]
fn folded_stacks() {
    for (weight, name) in [("gpu-time", "folded"), ("allocated-bytes", "folded_allocated")] {
        assert_snapshot!(name, exported(FIXTURE, "folded", &["--weight", weight]));
    }
    assert_snapshot!(
        "folded_recorded",
        exported(RECORDED, "folded", &["--weight", "launches"])
    );
}

#[test]
fn speedscope() {
    assert_snapshot!("speedscope", exported(FIXTURE, "speedscope", &[]));
    assert_snapshot!(
        "speedscope_timeline",
        exported(
            RECORDED,
            "speedscope",
            &["--from", "542.37ms", "--to", "542.45ms"]
        )
    );
}

#[test]
fn firefox_profiler() {
    assert_snapshot!("firefox", exported(FIXTURE, "firefox", &["--to", "1ms"]));
}

#[test]
fn dependencies_as_a_graph() {
    assert_snapshot!(
        "dot",
        exported(FIXTURE, "dot", &["--from", "2.5ms", "--to", "3ms"])
    );
}
