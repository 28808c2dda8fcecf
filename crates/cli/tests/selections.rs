//! Selecting steps, processes, ranks, GPUs and streams: the same in all commands (issue 28).

use serde_json::Value;
use tempfile::TempDir;
use tracesmith_trace::Trace;

use crate::support::{FIXTURE, Run, tracesmith};

fn run(folder: &TempDir, line: &str) -> Run {
    let out = folder.path().join("out");
    let line = line
        .replace("FILE", FIXTURE)
        .replace("OUT", out.to_str().unwrap());
    tracesmith(line.split(' '))
}

fn json(folder: &TempDir, line: &str) -> Value {
    serde_json::from_str(&run(folder, &format!("{line} --format json")).ok()).unwrap()
}

/// Selections of the fixture, which has two ranks with a GPU each, and the kernels that they have.
const SELECTIONS: [(&str, u64); 9] = [
    ("--process 4000", 36),
    ("--process #2", 36),
    ("--rank 1", 36),
    ("--device 0", 36),
    ("--device example:1", 36),
    ("--device 0,1", 72),
    ("--rank 0 --device 1", 0),
    ("--rank 0 --device 0", 36),
    ("--rank 0 --step 1", 12),
];

#[test]
fn all_commands_select_the_same_kernels() {
    let folder = TempDir::new().unwrap();
    for (options, kernels) in SELECTIONS {
        let seen = json(&folder, &format!("view FILE --kind kernel {options}"));
        assert_eq!(seen.as_array().unwrap().len() as u64, kernels, "view {options}");
        // Graphs that were recorded as a whole count as kernels there.
        let graphs = json(&folder, &format!("view FILE --kind graph {options}"));
        let analyzed = json(&folder, &format!("analyze FILE --only kernels {options}"));
        let expected = kernels + graphs.as_array().unwrap().len() as u64;
        assert_eq!(analyzed["count"], expected, "analyze {options}");
        json(&folder, &format!("cut FILE {options} --force -o OUT"));
        let cut = Trace::open(&folder.path().join("out")).unwrap();
        assert_eq!(cut.kernels.rows(), kernels, "cut {options}");
        let exported = run(&folder, &format!("export FILE -f jsonl {options} -o -")).ok();
        let lines = exported
            .lines()
            .filter(|line| line.contains("\"kind\":\"kernel\""));
        assert_eq!(lines.count() as u64, kernels, "export {options}");
        if kernels == 0 {
            let empty = run(
                &folder,
                &format!("flame FILE --by launches --folded {options} -o -"),
            );
            assert!(empty.stderr.contains("no event has such a weight"), "{empty:?}");
            continue;
        }
        let folded = run(
            &folder,
            &format!("flame FILE --by launches --folded {options} -o -"),
        )
        .ok();
        let launches: u64 = folded
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        // Copies and sets are launched as kernels are.
        let work = json(&folder, &format!("view FILE --kind kernel,copy,set {options}"));
        assert_eq!(
            launches,
            work.as_array().unwrap().len() as u64,
            "flame {options}: {folded}"
        );
    }
}

#[test]
fn what_the_trace_does_not_have_is_an_error_that_lists_what_it_has() {
    let folder = TempDir::new().unwrap();
    for command in [
        "view FILE",
        "view FILE --stats",
        "view FILE --timeline",
        "analyze FILE",
        "cut FILE -o OUT",
        "export FILE -f kineto -o OUT",
        "export FILE -f perfetto -o OUT",
        "flame FILE -o OUT",
    ] {
        for (option, words) in [
            ("--stream 99", "the trace has no stream 99; it has stream 7, 13"),
            ("--device 2", "the trace has no GPU 2; it has GPU 0, 1"),
            ("--device #9", "the trace has no GPU #9; it has GPU #1, #2"),
            (
                "--process 5",
                "the trace has no process 5; it has process 4000, 4001",
            ),
            (
                "--process #9",
                "the trace has no process #9; it has process #1, #2",
            ),
            ("--rank 7", "the trace has no rank 7; it has rank 0, 1"),
            ("--step 99", "there is no step 99"),
        ] {
            let run = run(&folder, &format!("{command} {option}"));
            assert_eq!(run.code, Some(2), "{command} {option}: {run:?}");
            assert!(run.stderr.contains(words), "{command} {option}: {run:?}");
            assert!(!folder.path().join("out").exists(), "{command} {option}");
        }
    }
}

/// Without what differs in two files: numbers of rows and IDs, and what is known of the whole file.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_same = |key: &str| {
                let differs = [
                    "device",
                    "process",
                    "row",
                    "rows",
                    "evidence",
                    "span_ns",
                    "offset_ns",
                    "doubts",
                ];
                !differs.contains(&key) && !key.ends_with("_row")
            };
            let members = members.iter().filter(|(key, _)| is_same(key));
            members
                .map(|(key, value)| (key.clone(), comparable(value)))
                .collect()
        }
        Value::Array(list) => list.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_analysis_of_a_selection_is_the_analysis_of_its_cut() {
    let folder = TempDir::new().unwrap();
    for options in ["--rank 1", "--device 0", "--process 4001 --device 1"] {
        let selected = json(&folder, &format!("analyze FILE {options}"));
        json(&folder, &format!("cut FILE {options} --force -o OUT"));
        let cut = json(&folder, "analyze OUT");
        assert!(selected["kernels"]["count"].as_u64().unwrap() > 0, "{options}");
        assert_eq!(comparable(&selected), comparable(&cut), "{options}");
        for only in ["memory", "critical-path", "slack", "host", "streams"] {
            let selected = json(&folder, &format!("analyze FILE --only {only} {options}"));
            let cut = json(&folder, &format!("analyze OUT --only {only}"));
            assert_eq!(comparable(&selected), comparable(&cut), "{only} {options}");
        }
    }
}

#[test]
fn a_cut_has_only_what_its_rows_need_and_good_health() {
    let folder = TempDir::new().unwrap();
    json(&folder, "cut FILE --rank 1 -o OUT");
    let cut = Trace::open(&folder.path().join("out")).unwrap();
    let numbers = |list: Vec<u32>| list;
    assert_eq!(numbers(cut.processes.iter().map(|row| row.pid).collect()), [4001]);
    assert_eq!(numbers(cut.devices.iter().map(|row| row.ordinal).collect()), [1]);
    assert!(cut.streams.iter().all(|row| cut.process(row.process).is_some()));
    assert!(cut.threads.iter().all(|row| cut.process(row.process).is_some()));
    assert_eq!(
        cut.metadata
            .iter()
            .filter(|(key, _)| *key == "cut.processes")
            .count(),
        1
    );
    // The recording lost three calls, and its parts have not lost more.
    let health = |line: &str| json(&folder, line)["health"].clone();
    assert_eq!(health("info OUT --verify"), health("info FILE --verify"));
    json(&folder, "cut fixtures/demo-h200.sbt --stream 14 --force -o OUT");
    assert!(run(&folder, "info OUT --verify").ok().contains("health     good"));
    json(&folder, "cut FILE --rank 1 --force -o OUT");
    // The calls of the kernels are there, and so are the kernels of the calls.
    let joined = json(&folder, "analyze OUT --only launches");
    assert_eq!(
        joined["doubts"],
        json(&folder, "analyze FILE --only launches --rank 1")["doubts"]
    );
}

#[test]
fn what_a_selection_cannot_answer_is_refused() {
    let folder = TempDir::new().unwrap();
    let summary = json(&folder, "analyze FILE --stream 7");
    for left_out in ["idle", "host", "findings"] {
        assert_eq!(summary[left_out], Value::Null, "{left_out}");
    }
    assert!(summary["kernels"]["count"].as_u64().unwrap() > 0);
    let table = run(&folder, "analyze FILE --stream 7");
    assert!(
        table.stderr.contains("has work that is not selected"),
        "{table:?}"
    );
    assert!(!table.stdout.contains("Idle time"), "{table:?}");
    for only in ["idle", "host", "critical-path", "slack", "what-if", "findings"] {
        let run = run(&folder, &format!("analyze FILE --stream 7 --only {only}"));
        assert_eq!(run.code, Some(2), "{only}: {run:?}");
        assert!(run.stderr.contains("needs all work of a GPU"), "{only}: {run:?}");
    }
    let run = run(&folder, "analyze FILE --stream 7 --only memory");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("cannot be restricted to streams"), "{run:?}");
}

#[test]
fn kernels_are_grouped_by_rank() {
    let folder = TempDir::new().unwrap();
    let report = json(&folder, "analyze FILE --only kernels --by rank");
    assert_eq!(report["by"], "rank");
    let rows = report["rows"].as_array().unwrap();
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["rank 0", "rank 1"]);
    let demo = run(&folder, "analyze fixtures/demo-h200.sbt --only kernels --by rank").ok();
    assert!(demo.contains("no rank"), "{demo}");
}

#[test]
fn lean_json_is_one_line_without_long_lists() {
    let folder = TempDir::new().unwrap();
    for (line, entries) in [
        ("analyze FILE --lean", 10),
        ("analyze FILE --only kernels --lean --limit 3", 3),
        ("analyze FILE --only findings --lean", 10),
        ("analyze fixtures/demo-h200.sbt --only slack --lean", 10),
        ("view FILE --lean", 100),
        ("view FILE --lean --limit 5", 5),
        ("view FILE --stats --lean", 100),
        ("view FILE --timeline --lean", 100),
        ("diff FILE fixtures/demo-h200.sbt --lean", 20),
    ] {
        let run = run(&folder, line);
        assert_eq!(run.stdout.lines().count(), 1, "{line}: {}", run.stdout);
        let lean: Value = serde_json::from_str(&run.stdout).unwrap();
        check_lean(&lean, entries, false, line);
        assert!(run.stdout.len() < 40_000, "{line}: {}", run.stdout.len());
    }
    let findings = json(&folder, "analyze FILE --only findings");
    let lean = json(&folder, "analyze FILE --only findings --lean");
    assert!(findings["findings"][0]["evidence"].is_array());
    assert!(lean["findings"][0].get("evidence").is_none());
    assert_eq!(
        findings["findings"][0]["sentence"],
        lean["findings"][0]["sentence"]
    );
    let row = json(&folder, "view FILE --kind kernel --lean --limit 1");
    assert!(row[0]["name"].is_string() && row[0].get("fields").is_none() && row[0].get("bytes").is_none());
    let csv = run(&folder, "view FILE --lean --format csv");
    assert_eq!(csv.code, Some(2), "{csv:?}");
    assert!(csv.stderr.contains("--lean is JSON"), "{csv:?}");
}

fn check_lean(value: &Value, entries: usize, is_entry: bool, line: &str) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let is_list = member.as_array().is_some_and(|list| list.len() > 2);
                assert!(!(is_entry && is_list) || key == "causes", "{line}: {key}");
                check_lean(member, entries, is_entry, line);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            assert!(list.len() <= entries, "{line}: {} entries", list.len());
            list.iter()
                .for_each(|entry| check_lean(entry, entries, true, line));
        }
        _ => {}
    }
}
