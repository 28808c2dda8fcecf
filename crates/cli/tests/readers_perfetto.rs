//! What Perfetto's own trace processor sees in our exports.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod support;

use std::fs;

use serde_json::json;
use support::perfetto;
use tempfile::TempDir;

#[test]
fn the_trace_processor_answers() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("tiny.json");
    fs::write(
        &trace,
        r#"[{"ph":"X","name":"outer","ts":1,"dur":5,"pid":1,"tid":2}]"#,
    )
    .unwrap();
    let Some(answers) = perfetto::query(
        &trace,
        &[
            "select name, dur from slice",
            "select count(*) as flows from flow",
        ],
    ) else {
        return;
    };
    assert_eq!(answers, [vec![json!(["outer", 5000])], vec![json!([0])]]);
}
