//! Exports of tables and stacks, read by the programs that they are made for.
//!
//! Python packages are looked for in the interpreter that `TRACESMITH_PYTHON` names, else in `python3`; what is missing
//! is named as skipped. The importer of speedscope runs in a browser (`readers_speedscope.rs`): here its documented format
//! is checked, every number and index of it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::Command;

use serde_json::Value;
use support::{FIXTURE, run, tracesmith};
use tempfile::TempDir;

const RECORDED: &str = "fixtures/demo-h200.sbt";
const FIXTURES: [&str; 2] = [FIXTURE, RECORDED];

/// A Python that has these packages.
fn python(packages: &[&str]) -> Option<OsString> {
    let python = std::env::var_os("TRACESMITH_PYTHON").unwrap_or_else(|| "python3".into());
    for package in packages {
        let has_it = Command::new(&python)
            .args(["-c", &format!("import {package}")])
            .output()
            .is_ok_and(|output| output.status.success());
        if !has_it {
            tracesmith_skip::without("python packages", package);
            return None;
        }
    }
    Some(python)
}

/// What a script prints, given these arguments.
fn answer(python: &OsString, script: &str, args: &[&str]) -> Value {
    let output = run(Command::new(python).args(["-c", script]).args(args)).ok();
    serde_json::from_str(&output).unwrap()
}

/// An export into a temporary folder, and where it is.
fn export(fixture: &str, format: &str, more: &[&str]) -> (TempDir, String) {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out").to_str().unwrap().to_owned();
    let args = [&["export", fixture, "-f", format, "-o", &out], more].concat();
    tracesmith(args).ok();
    (dir, out)
}

/// What the command itself says of each name: how often, and for how long.
fn totals(fixture: &str, kind: &str) -> BTreeMap<String, (u64, u64)> {
    let stats = tracesmith([
        "view", fixture, "--stats", "-t", kind, "--limit", "0", "--format", "json",
    ])
    .ok();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let total = |row: &Value| {
        (
            row["name"].as_str().unwrap().to_owned(),
            (
                row["totals"]["count"].as_u64().unwrap(),
                row["totals"]["total_ns"].as_u64().unwrap(),
            ),
        )
    };
    stats["by_name"].as_array().unwrap().iter().map(total).collect()
}

/// The same, of a list of name, count and sum.
fn totals_of(rows: &Value) -> BTreeMap<String, (u64, u64)> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |at: usize| row[at].as_u64().unwrap();
            (row[0].as_str().unwrap().to_owned(), (number(1), number(2)))
        })
        .collect()
}

/// Rows of each table, as the trace's own index says.
fn row_counts(fixture: &str) -> BTreeMap<String, u64> {
    let info: Value = serde_json::from_str(&tracesmith(["info", fixture, "--format", "json"]).ok()).unwrap();
    let tables = info["tables"].as_array().unwrap().iter();
    tables
        .map(|table| {
            (
                table["name"].as_str().unwrap().to_owned(),
                table["rows"].as_u64().unwrap(),
            )
        })
        .collect()
}

/// Tables whose rows may be replaced by later ones: an export holds the last of each.
const DEFINITIONS: [&str; 8] = [
    "metadata",
    "hosts",
    "processes",
    "threads",
    "devices",
    "contexts",
    "streams",
    "clocks",
];

fn assert_row_counts(fixture: &str, found: &Value) {
    let expected = row_counts(fixture);
    let found = found.as_object().unwrap();
    assert!(found.len() >= 27, "a file for every table");
    for (table, rows) in found {
        let rows = rows.as_u64().unwrap();
        let expected = expected.get(table).copied().unwrap_or(0);
        if DEFINITIONS.contains(&table.as_str()) {
            assert!(
                rows <= expected && (rows > 0) == (expected > 0),
                "{fixture} {table}"
            );
        } else {
            assert_eq!(rows, expected, "{fixture} {table}");
        }
    }
}

#[cfg(feature = "parquet")]
mod with_arrow {
    use super::*;

    const READ_PARQUET: &str = r#"
import json, os, sys
import pyarrow.parquet as parquet, pyarrow.compute as compute
folder = sys.argv[1]
tables = {name.split(".")[0]: parquet.read_table(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}
kernels = tables["kernels"].to_pylist()
totals = {}
for row in kernels:
    total = totals.setdefault(row["demangled"] or row["name"], [0, 0])
    total[0] += 1
    total[1] += row["end"] - row["start"]
schema = tables["kernels"].schema
print(json.dumps({
    "rows": {name: table.num_rows for name, table in tables.items()},
    "kernels": [[name, *total] for name, total in totals.items()],
    "first": min(row["start"] for row in kernels),
    "types": {field.name: str(field.type) for field in schema},
    "clock": schema.metadata[b"tracesmith.clock"].decode(),
}))
"#;

    const QUERY_PARQUET: &str = r#"
import json, sys, duckdb
rows = duckdb.sql(f"""select coalesce(demangled, name) as kernel, count(*), sum("end" - start)
from '{sys.argv[1]}/kernels.parquet' group by kernel""").fetchall()
joined = duckdb.sql(f"""select count(*) from '{sys.argv[1]}/kernels.parquet' k
join '{sys.argv[1]}/devices.parquet' d on k.device = d.id
join '{sys.argv[1]}/processes.parquet' p on k.process = p.id""").fetchall()[0]
print(json.dumps({"kernels": [[name, count, int(total)] for name, count, total in rows], "joined": joined[0]}))
"#;

    #[test]
    fn pyarrow_reads_the_parquet_files() {
        let Some(python) = python(&["pyarrow"]) else {
            return;
        };
        for fixture in FIXTURES {
            let (_dir, out) = export(fixture, "parquet", &[]);
            let read = answer(&python, READ_PARQUET, &[&out]);
            assert_row_counts(fixture, &read["rows"]);
            assert_eq!(totals_of(&read["kernels"]), totals(fixture, "kernel"));
            assert_eq!(read["clock"], "monotonic");
            let first = tracesmith([
                "view", fixture, "-t", "kernel", "--limit", "1", "--format", "json",
            ])
            .ok();
            let first: Value = serde_json::from_str(&first).unwrap();
            assert_eq!(
                read["first"], first[0]["start_ns"],
                "times are on the trace's timeline"
            );
            for (column, data_type) in [
                ("start", "uint64"),
                ("name", "dictionary<values=string, indices=int32, ordered=0>"),
                ("launch", "dictionary<values=string, indices=int32, ordered=0>"),
                ("grid_x", "uint32"),
                ("grid_id", "int64"),
                ("device_launched", "bool"),
            ] {
                assert_eq!(read["types"][column], data_type, "{column}");
            }
        }
    }

    #[test]
    fn duckdb_queries_the_parquet_files() {
        let Some(python) = python(&["duckdb"]) else { return };
        for fixture in FIXTURES {
            let (_dir, out) = export(fixture, "parquet", &[]);
            let read = answer(&python, QUERY_PARQUET, &[&out]);
            assert_eq!(totals_of(&read["kernels"]), totals(fixture, "kernel"));
            assert_eq!(
                read["joined"].as_u64(),
                Some(row_counts(fixture)["kernels"]),
                "ids join the tables that they name"
            );
        }
    }

    const COMPARE: &str = r#"
import csv, json, os, sys
import pyarrow as arrow, pyarrow.parquet as parquet
folders = sys.argv[1:]
def text(value):
    if value is None: return ""
    if isinstance(value, bool): return "true" if value else "false"
    if isinstance(value, float): return value
    return str(value)
rows = {}
for name in sorted(os.listdir(folders[0])):
    table = name.split(".")[0]
    of_parquet = parquet.read_table(os.path.join(folders[0], name)).to_pylist()
    of_file = arrow.ipc.open_file(os.path.join(folders[1], table + ".arrow")).read_all().to_pylist()
    of_stream = arrow.ipc.open_stream(os.path.join(folders[2], table + ".arrows")).read_all().to_pylist()
    with open(os.path.join(folders[3], table + ".csv"), newline="") as file:
        of_csv = list(csv.DictReader(file))
    assert of_parquet == of_file == of_stream, table
    assert len(of_parquet) == len(of_csv), table
    for known, row in zip(of_parquet, of_csv):
        assert list(known) == list(row), table
        for column, value in known.items():
            expected, found = text(value), row[column]
            assert expected == (float(found) if isinstance(expected, float) else found), (table, column, expected, found)
    rows[table] = len(of_csv)
print(json.dumps(rows))
"#;

    #[test]
    fn parquet_arrow_and_csv_hold_the_same() {
        let Some(python) = python(&["pyarrow"]) else {
            return;
        };
        for fixture in FIXTURES {
            let exports =
                ["parquet", "arrow", "arrow-stream", "csv"].map(|format| export(fixture, format, &[]));
            let folders: Vec<&str> = exports.iter().map(|(_, out)| out.as_str()).collect();
            assert_row_counts(fixture, &answer(&python, COMPARE, &folders));
        }
    }

    #[test]
    fn the_same_trace_gives_the_same_bytes() {
        for format in ["parquet", "arrow", "arrow-stream"] {
            let (_one, first) = export(RECORDED, format, &["--table", "kernels"]);
            let (_two, second) = export(RECORDED, format, &["--table", "kernels"]);
            assert!(fs::read(first).unwrap() == fs::read(second).unwrap(), "{format}");
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    for format in ["parquet", "arrow"] {
        let dir = TempDir::new().unwrap();
        let out = dir.path().join("out");
        let refused = tracesmith(["export", FIXTURE, "-f", format, "-o", out.to_str().unwrap()]);
        assert_eq!(refused.code, Some(2));
        assert!(
            refused.stderr.contains("this build cannot write"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("cargo install"), "{}", refused.stderr);
        assert!(!out.exists(), "nothing is left behind");
    }
}

const READ_CSV: &str = r#"
import csv, json, os, sys
rows = {}
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), newline="") as file:
        rows[name.split(".")[0]] = list(csv.DictReader(file))
totals = {}
for row in rows["kernels"]:
    total = totals.setdefault(row["demangled"] or row["name"], [0, 0])
    total[0] += 1
    total[1] += int(row["end"]) - int(row["start"])
print(json.dumps({
    "rows": {name: len(table) for name, table in rows.items()},
    "kernels": [[name, *total] for name, total in totals.items()],
}))
"#;

#[test]
fn python_reads_the_csv_files() {
    let Some(python) = python(&["csv"]) else { return };
    for fixture in FIXTURES {
        let (_dir, out) = export(fixture, "csv", &[]);
        let read = answer(&python, READ_CSV, &[&out]);
        assert_row_counts(fixture, &read["rows"]);
        assert_eq!(totals_of(&read["kernels"]), totals(fixture, "kernel"));
    }
}

#[test]
fn one_table_goes_through_a_pipe_and_others_are_refused() {
    let args = ["export", FIXTURE, "-f", "csv", "--table", "devices", "-o", "-"];
    let devices = tracesmith(args).ok();
    assert_eq!(devices.lines().count(), 3);
    assert!(devices.starts_with("id,host,ordinal,uuid,name,"), "{devices}");
    let refused = tracesmith(["export", FIXTURE, "-f", "csv", "-o", "-"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("choose a table with --table"),
        "{}",
        refused.stderr
    );
    let refused = tracesmith(["export", FIXTURE, "-f", "folded", "--table", "kernels", "-o", "-"]);
    assert!(
        refused.stderr.contains("--table does not apply"),
        "{}",
        refused.stderr
    );
    let refused = tracesmith(["export", FIXTURE, "-f", "csv", "--table", "kernel", "-o", "-"]);
    assert!(refused.stderr.contains("possible values"), "{}", refused.stderr);
}

#[test]
fn a_stretch_of_time_holds_what_a_view_of_it_shows() {
    let range = ["--from", "2.5ms", "--to", "4ms"];
    let view = [&["view", FIXTURE, "-t", "kernel", "--format", "json"], &range[..]].concat();
    let rows: Vec<Value> = serde_json::from_str(&tracesmith(view).ok()).unwrap();
    let table = [
        &["export", FIXTURE, "-f", "csv", "--table", "kernels", "-o", "-"],
        &range[..],
    ]
    .concat();
    assert_eq!(tracesmith(table).ok().lines().count(), rows.len() + 1);
    let lines = [&["export", FIXTURE, "-f", "jsonl", "-o", "-"], &range[..]].concat();
    let lines = tracesmith(lines).ok();
    let kernels: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|row: &Value| row["kind"] == "kernel")
        .collect();
    assert_eq!(kernels, rows, "each line is what view shows");
}

#[test]
fn inferno_draws_the_folded_stacks() {
    let inferno = "inferno-flamegraph";
    if Command::new(inferno).arg("--version").output().is_err() {
        return tracesmith_skip::without(inferno, "");
    }
    for fixture in FIXTURES {
        let (_dir, out) = export(fixture, "folded", &[]);
        let drawn = run(Command::new(inferno).arg(&out));
        assert_eq!(drawn.stderr, "");
        let svg = drawn.ok();
        let total: u64 = ["kernel", "copy", "set"]
            .iter()
            .flat_map(|kind| totals(fixture, kind).into_values())
            .map(|(_, nanos)| nanos)
            .sum();
        assert!(
            svg.contains(&format!("total_samples=\"{total}\"")),
            "all GPU time is drawn"
        );
    }
}

#[test]
fn graphviz_lays_the_dependencies_out() {
    let (_dir, out) = export(FIXTURE, "dot", &["--from", "2.5ms", "--to", "3ms"]);
    let text = fs::read_to_string(&out).unwrap();
    if Command::new("dot").arg("-V").output().is_err() {
        return tracesmith_skip::without("dot", "");
    }
    let svg = run(Command::new("dot").args(["-Tsvg", &out]));
    assert_eq!(svg.stderr, "");
    let nodes = text.lines().filter(|line| line.contains("[label=")).count();
    assert_eq!(svg.ok().matches("class=\"node\"").count(), nodes);
}

#[test]
fn a_graph_of_nothing_is_refused() {
    let refused = tracesmith(["export", FIXTURE, "-f", "dot", "--to", "10ns", "-o", "-"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no device work"), "{}", refused.stderr);
}

#[test]
fn speedscope_gets_what_its_format_promises() {
    for fixture in FIXTURES {
        for weight in ["gpu-time", "launches"] {
            let (_dir, out) = export(fixture, "speedscope", &["--weight", weight]);
            let file: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
            check_speedscope(&file);
            let sampled = file["profiles"].as_array().unwrap().iter();
            let total: u64 = sampled
                .filter(|profile| profile["type"] == "sampled")
                .map(|profile| profile["endValue"].as_u64().unwrap())
                .sum();
            let expected: u64 = ["kernel", "copy", "set"]
                .iter()
                .flat_map(|kind| totals(fixture, kind).into_values())
                .map(|(count, nanos)| if weight == "launches" { count } else { nanos })
                .sum();
            assert_eq!(total, expected, "{fixture} {weight}");
        }
    }
}

/// The rules of speedscope's file-format-schema.json, and those that it states in words: values do not go back, and what
/// opens closes in the reverse order.
fn check_speedscope(file: &Value) {
    assert_eq!(
        file["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    for profile in file["profiles"].as_array().unwrap() {
        let number = |name: &str| profile[name].as_u64().unwrap();
        assert!(profile["name"].is_string());
        assert!(["none", "nanoseconds", "bytes"].contains(&profile["unit"].as_str().unwrap()));
        assert!(number("endValue") >= number("startValue"));
        let index = |value: &Value| {
            let index = value.as_u64().unwrap() as usize;
            assert!(index < frames.len());
            index
        };
        if profile["type"] == "sampled" {
            let samples = profile["samples"].as_array().unwrap();
            let weights = profile["weights"].as_array().unwrap();
            assert_eq!(samples.len(), weights.len());
            for sample in samples {
                assert!(!sample.as_array().unwrap().is_empty());
                sample.as_array().unwrap().iter().for_each(|frame| {
                    index(frame);
                });
            }
            let total: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
            assert_eq!(total, number("endValue"));
            continue;
        }
        assert_eq!(profile["type"], "evented");
        let (mut open, mut last) = (Vec::new(), 0);
        for event in profile["events"].as_array().unwrap() {
            let at = event["at"].as_u64().unwrap();
            assert!(at >= last && at <= number("endValue"));
            last = at;
            match event["type"].as_str().unwrap() {
                "O" => open.push(index(&event["frame"])),
                "C" => assert_eq!(open.pop(), Some(index(&event["frame"]))),
                other => panic!("{other}"),
            }
        }
        assert!(open.is_empty());
    }
}

#[test]
fn the_firefox_profiler_gets_what_its_format_promises() {
    for fixture in FIXTURES {
        let (_dir, out) = export(fixture, "firefox", &[]);
        let profile: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        check_firefox(&profile);
        let mut nanos = 0;
        for weight in profile["threads"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|thread| thread["samples"]["weight"].as_array().unwrap())
        {
            nanos += (weight.as_f64().unwrap() * 1e6).round() as u64;
        }
        let expected: u64 = ["kernel", "copy", "set"]
            .iter()
            .flat_map(|kind| totals(fixture, kind).into_values())
            .map(|(_, nanos)| nanos)
            .sum();
        assert_eq!(nanos, expected, "{fixture}: all GPU time is in the samples");
    }
}

/// Its loader for terminals keeps a profile open in a process of its own, which may take a while to start.
#[test]
fn the_firefox_profilers_own_loader_opens_the_profile() {
    let loader =
        |home: &TempDir, args: &[&str]| run(Command::new("profiler-cli").args(args).env("HOME", home.path()));
    if Command::new("profiler-cli").arg("--version").output().is_err() {
        return tracesmith_skip::without("npm packages", "profiler-cli");
    }
    for fixture in FIXTURES {
        let (home, out) = export(fixture, "firefox", &[]);
        let profile: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        let loaded = loader(&home, &["load", &out]);
        let mut info = loader(&home, &["profile", "info"]);
        for _ in 0..60 {
            if info.code == Some(0) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(500));
            info = loader(&home, &["profile", "info"]);
        }
        loader(&home, &["stop", "--all"]);
        let threads = profile["threads"].as_array().unwrap().len();
        let found = format!("This profile contains {threads} threads across ");
        assert!(info.stdout.contains(&found), "{fixture}: {loaded:?} {info:?}");
    }
}

/// Every column as long as its table says, every index within the table it points into, times that do not go back.
fn check_firefox(profile: &Value) {
    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 70);
    let categories = meta["categories"].as_array().unwrap();
    assert_eq!(categories[0]["color"], "grey");
    let schema = meta["markerSchema"].as_array().unwrap();
    let kinds: Vec<&str> = schema.iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    let shared = &profile["shared"];
    let rows = |table: &Value| table["length"].as_u64().unwrap() as usize;
    for (name, table) in shared.as_object().unwrap() {
        if name != "stringArray" {
            check_columns(table);
        }
    }
    let strings = shared["stringArray"].as_array().unwrap().len();
    let within = |table: &Value, column: &str, limit: usize| {
        for value in table[column]
            .as_array()
            .unwrap()
            .iter()
            .filter(|value| !value.is_null())
        {
            assert!(
                (value.as_u64().unwrap() as usize) < limit,
                "{column}: {value} of {limit}"
            );
        }
    };
    let (stacks, frames) = (&shared["stackTable"], &shared["frameTable"]);
    within(stacks, "frame", rows(frames));
    within(frames, "func", rows(&shared["funcTable"]));
    within(frames, "category", categories.len());
    within(&shared["funcTable"], "name", strings);
    within(&shared["funcTable"], "source", rows(&shared["sources"]));
    within(&shared["sources"], "filename", strings);
    for (at, offset) in stacks["prefixOffset"].as_array().unwrap().iter().enumerate() {
        assert!(
            offset.as_u64().unwrap() as usize <= at,
            "a caller stands before those it calls"
        );
    }
    let mut first = f64::INFINITY;
    for thread in profile["threads"].as_array().unwrap() {
        let (samples, markers) = (&thread["samples"], &thread["markers"]);
        for time in [&samples["time"], &markers["startTime"]] {
            let times = time.as_array().unwrap().iter().filter_map(Value::as_f64);
            first = times.fold(first, f64::min);
        }
        check_columns(samples);
        check_columns(markers);
        within(samples, "stack", rows(stacks));
        within(markers, "name", strings);
        within(markers, "category", categories.len());
        let times: Vec<f64> = samples["time"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_f64().unwrap())
            .collect();
        assert!(times.is_sorted() && times.iter().all(|time| *time >= 0.0));
        for (at, data) in markers["data"].as_array().unwrap().iter().enumerate() {
            assert!(kinds.contains(&data["type"].as_str().unwrap()));
            assert!((data["detail"].as_u64().unwrap() as usize) < strings);
            let is_interval = markers["phase"][at] == 1;
            assert_eq!(markers["endTime"][at].is_number(), is_interval);
        }
        assert!(thread["pid"].is_string());
    }
    assert_eq!(first, 0.0, "times count from the first that is shown");
}

fn check_columns(table: &Value) {
    let length = table["length"].as_u64().unwrap() as usize;
    for (name, column) in table.as_object().unwrap() {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), length, "{name}");
        }
    }
}
