//! `tracesmith sql`, on fixtures.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use insta::assert_snapshot;
use serde_json::Value;
use support::tracesmith;

const DEMO: &str = "fixtures/demo-h200.sbt";
const SYNTHETIC: &str = "fixtures/synthetic-v1.sbt";
const TRAINING: &str = "fixtures/kineto-training.json";

#[test]
fn a_query_prints_a_table() {
    let query = "select name, count(*) count, sum(dur) total from kernel group by 1 order by 3 desc";
    assert_snapshot!("sql_demo", tracesmith(["sql", DEMO, query]).transcript());
}

#[test]
fn the_other_forms_have_all_rows() {
    let query = "select start, name, duration, stack from kernels order by start";
    let json = tracesmith(["sql", DEMO, query, "--format", "json"]).ok();
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    let csv = tracesmith(["sql", DEMO, query, "--format", "csv"]).ok();
    assert_eq!(csv.lines().count(), rows.len() + 1);
    assert_eq!(csv.lines().next(), Some("start,name,duration,stack"));
    assert!(rows.len() > 100);
    assert!(
        rows.iter()
            .all(|row| row["start"].is_u64() && row["name"].is_string())
    );
    let table = tracesmith(["sql", DEMO, query, "--limit", "3"]);
    assert_eq!(table.stdout.lines().count(), 4);
    let more = format!("{} more rows", rows.len() - 3);
    assert!(table.stderr.contains(&more), "{}", table.stderr);
    let none = tracesmith(["sql", DEMO, "select 1 where false", "--format", "json"]).ok();
    assert_eq!(none, "[]\n");
}

#[test]
fn a_query_comes_from_a_file_or_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("q.sql");
    std::fs::write(&file, "select count(*) n\nfrom kernels").unwrap();
    let file = file.to_str().unwrap();
    let from_file = tracesmith(["sql", DEMO, "-f", file, "--format", "csv"]).ok();
    assert_eq!(from_file, "n\n300\n");
    let from_input = support::tracesmith_with_input(
        ["sql", DEMO, "--format", "csv"],
        b"select count(*) n from kernels",
    );
    assert_eq!(from_input.stdout, from_file);
}

#[test]
fn files_of_other_tools_can_be_queried_together_with_ours() {
    let query = "select trace, count(*) n from gpu_ops group by 1 order by 1";
    let csv = tracesmith(["sql", DEMO, TRAINING, SYNTHETIC, query, "--format", "csv"]).ok();
    let names: Vec<&str> = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(
        names,
        ["demo-h200.sbt", "kineto-training.json", "synthetic-v1.sbt"]
    );
}

/// A query as people write it for `nsys export --type sqlite`.
#[test]
fn queries_for_nsys_run_unchanged() {
    let query = "select s.value as name, count(*) n, sum(k.end - k.start) total \
                 from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName \
                 group by 1 order by 3 desc";
    let nsys = tracesmith(["sql", DEMO, query, "--format", "csv"]).ok();
    let ours =
        "select short_name as name, count(*) n, sum(dur) total from kernels group by 1 order by 3 desc";
    let ours = tracesmith(["sql", DEMO, ours, "--format", "csv"]).ok();
    assert_eq!(nsys, ours);
}

#[test]
fn mistakes_are_explained() {
    for (args, expected) in [
        (
            vec!["sql", DEMO, "select x from kernels"],
            "no such column: x, at line 1, column 8",
        ),
        (
            vec!["sql", DEMO, "select * from kernelz"],
            "no such table: kernelz",
        ),
        (
            vec!["sql", DEMO, "delete from kernels"],
            "table kernels may not be modified",
        ),
        (
            vec!["sql", "missing.sbt", "select 1 + 1"],
            "reading trace missing.sbt",
        ),
        (vec!["sql", DEMO], "the query is empty"),
        (
            vec!["sql", DEMO, "attach 'x.db' as x"],
            "queries only read traces; this statement is not allowed",
        ),
        (vec!["sql", "select 1 + 1"], "no trace file"),
        (
            vec![
                "sql",
                DEMO,
                "--timeout",
                "100ms",
                "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
            ],
            "did not end within 100ms",
        ),
    ] {
        let answer = tracesmith(args.clone());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        assert!(answer.stderr.contains(expected), "{args:?}: {}", answer.stderr);
    }
}

/// A file that pyarrow reads has the same rows as JSON.
#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_rows_of_the_query() {
    let python = std::env::var_os("TRACESMITH_PYTHON").unwrap_or_else(|| "python3".into());
    let has = |package: &str| {
        let mut command = std::process::Command::new(&python);
        let output = command.args(["-c", &format!("import {package}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !has("pyarrow") {
        tracesmith_skip::without("python packages", "pyarrow");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.parquet");
    let out = out.to_str().unwrap();
    let query = "select name, start, stack, duration / 3.0 third, iif(row % 2, row, class) mixed, null as missing \
                 from gpu_ops order by start";
    let note = tracesmith(["sql", DEMO, query, "--format", "parquet", "-o", out]).ok();
    assert!(note.starts_with("wrote "), "{note}");
    let script = "import sys, json, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); \
                  print(json.dumps({'kinds': [str(f.type) for f in t.schema], 'rows': t.to_pylist()}))";
    let read = support::run(std::process::Command::new(&python).args(["-c", script, out])).ok();
    let read: Value = serde_json::from_str(&read).unwrap();
    let json = tracesmith(["sql", DEMO, query, "--format", "json"]).ok();
    let mut rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    // A column with integers and texts becomes one of texts.
    for row in &mut rows {
        if let Some(number) = row["mixed"].as_u64() {
            row["mixed"] = number.to_string().into();
        }
    }
    assert_eq!(
        read["kinds"],
        serde_json::json!(["string", "int64", "int64", "double", "string", "string"])
    );
    assert_eq!(read["rows"], Value::Array(rows));
    let again = tracesmith(["sql", DEMO, query, "--format", "parquet", "-o", out]);
    assert!(
        again.stderr.contains("replace it with --force"),
        "{}",
        again.stderr
    );
}

#[test]
fn parquet_wants_a_file_and_sql() {
    let query = "select 1 as one";
    let nowhere = tracesmith(["sql", DEMO, query, "--format", "parquet"]);
    assert!(nowhere.stderr.contains("name it with -o"), "{}", nowhere.stderr);
    let other = tracesmith(["sql", DEMO, query, "--format", "csv", "-o", "x.csv"]);
    assert!(
        other.stderr.contains("-o is for --format parquet"),
        "{}",
        other.stderr
    );
    let command = tracesmith(["info", DEMO, "--format", "parquet"]);
    assert_eq!(command.code, Some(2));
    assert!(command.stderr.contains("export -f parquet"), "{}", command.stderr);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so_before_the_query_runs() {
    let query = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let refused = tracesmith(["sql", DEMO, query, "--format", "parquet", "-o", "never.parquet"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("--features parquet"),
        "{}",
        refused.stderr
    );
    assert!(!std::path::Path::new("never.parquet").exists());
}

/// Issue 28: a column that the query names is shown even if it has no value.
#[test]
fn columns_without_values_are_shown_if_the_query_names_them() {
    let shown = tracesmith(["sql", TRAINING, "select pid, null as absent, rank from processes"]).ok();
    assert!(shown.starts_with(" pid  absent  rank\n4242"), "{shown}");
    let all = tracesmith(["sql", TRAINING, "select * from processes"]).ok();
    assert!(!all.contains("local_rank"), "{all}");
}
