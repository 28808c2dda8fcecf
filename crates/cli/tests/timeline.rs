//! `view --timeline` as a user sees it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;
use support::{FIXTURE, command, root, run};
use tracesmith_format::tables::{Kernel, Place};
use tracesmith_format::{ClockId, DeviceId, StreamId, Timestamp, Writer, WriterOptions};

const RECORDED: &str = "fixtures/demo-h200.sbt";

/// The command in a terminal that shows all characters.
fn timeline(file: &str) -> Command {
    let mut command = command();
    for variable in ["LC_ALL", "LC_CTYPE"] {
        command.env_remove(variable);
    }
    command.env("LANG", "C.UTF-8").args(["view", file, "--timeline"]);
    command
}

/// A trace of kernels: start, end and stream of each.
fn trace_of(name: &str, rows: impl IntoIterator<Item = (u64, u64, u64)>) -> PathBuf {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for (start, end, stream) in rows {
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(end),
            place: Place {
                device: DeviceId(1),
                stream: StreamId(stream),
                ..Place::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

#[test]
fn streams_are_rows_and_time_is_cells() {
    assert_snapshot!(
        "recorded",
        run(timeline(RECORDED).args(["--width", "110"])).transcript()
    );
    let narrow = run(timeline(RECORDED)
        .env("COLUMNS", "70")
        .args(["--from", "540ms", "--to", "552ms"]));
    assert_snapshot!("range", narrow.transcript());
    let host = ["--kind", "kernel,api,marker,host", "--width", "100"];
    assert_snapshot!("host", run(timeline(FIXTURE).args(host)).transcript());
}

#[test]
fn colours_are_kinds_where_there_are_colours() {
    let shown = run(timeline(FIXTURE)
        .args(["--width", "80"])
        .env("CLICOLOR_FORCE", "1"))
    .ok();
    assert_snapshot!("colours", shown.replace('\u{1b}', "ESC"));
    for plain in [
        run(timeline(FIXTURE).env("CLICOLOR_FORCE", "1").arg("--no-color")).ok(),
        run(timeline(FIXTURE).env("NO_COLOR", "1")).ok(),
    ] {
        assert!(!plain.contains('\u{1b}'));
        assert!(
            plain.contains("\n    communication "),
            "kinds have rows of their own: {plain}"
        );
    }
}

#[test]
fn plain_characters_are_asked_for_or_those_of_the_locale() {
    let asked = run(timeline(FIXTURE).args(["--ascii", "--width", "80"])).ok();
    assert!(asked.is_ascii(), "{asked}");
    assert_snapshot!("ascii", asked);
    for (variable, value) in [("LANG", "C"), ("LC_ALL", "de_DE.ISO-8859-1"), ("LANG", "")] {
        let by_locale = run(timeline(FIXTURE).args(["--width", "80"]).env(variable, value)).ok();
        assert_eq!(by_locale, asked, "{variable}={value}");
    }
}

#[test]
fn lines_are_as_wide_as_asked() {
    for width in [24, 25, 60, 133] {
        let shown = run(timeline(FIXTURE).args(["--width", &width.to_string()])).ok();
        let rows = shown.lines().filter(|line| line.ends_with(" %"));
        assert!(rows.count() > 5);
        for line in shown.lines().filter(|line| line.ends_with(" %")) {
            assert_eq!(line.chars().count(), width, "{line}");
        }
    }
    let least = run(timeline(FIXTURE).args(["--width", "1"])).ok();
    assert!(least.contains("  all streams ▅   56.8 %\n"), "{least}");
}

#[test]
fn programs_get_the_numbers() {
    let json = run(timeline(FIXTURE).args(["--format", "json", "--width", "20"])).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cells"], 20);
    let rows = json["rows"].as_array().unwrap();
    let length = json["to_ns"].as_u64().unwrap() - json["from_ns"].as_u64().unwrap();
    for row in rows {
        let cells = row["busy_ns_by_cell"].as_array().unwrap();
        assert_eq!(cells.len(), 20);
        let sum: u64 = cells.iter().map(|cell| cell.as_u64().unwrap()).sum();
        assert_eq!(sum, row["busy_ns"].as_u64().unwrap());
        assert!(
            cells
                .iter()
                .all(|cell| cell.as_u64().unwrap() <= length.div_ceil(20))
        );
    }
    let csv = run(timeline(FIXTURE).args(["--format", "csv", "--width", "4", "--stream", "13"])).ok();
    assert_snapshot!("csv", csv);
}

#[test]
fn a_streams_busy_time_is_that_of_its_rows() {
    let rows = run(command().args(["view", RECORDED, "--format", "json", "--stream", "14"])).ok();
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let mut spans: Vec<(u64, u64)> = rows
        .iter()
        .filter(|row| ["kernel", "copy", "set"].contains(&row["kind"].as_str().unwrap()))
        .map(|row| (row["start_ns"].as_u64().unwrap(), row["end_ns"].as_u64().unwrap()))
        .collect();
    spans.sort_unstable();
    let (mut busy, mut until) = (0, 0);
    for (start, end) in spans {
        busy += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    let json = run(timeline(RECORDED).args(["--format", "json", "--stream", "14"])).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let stream = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["row"] == "stream");
    assert_eq!(stream.unwrap()["busy_ns"], busy);
}

#[test]
fn rows_that_are_not_shown_are_counted() {
    let path = trace_of(
        "many-streams.sbt",
        (0..10_000).map(|at| (1_000 + at, 1_100 + 2 * at, at)),
    );
    let shown = run(timeline(path.to_str().unwrap()).args(["--width", "80"]));
    assert_eq!(shown.code, Some(0));
    assert_eq!(
        shown.stdout.lines().filter(|line| line.ends_with(" %")).count(),
        100
    );
    assert!(shown.stdout.contains("  stream 9999 "), "the busiest are shown");
    assert_eq!(
        shown.stderr,
        "9,901 less busy rows are hidden; --limit 0 shows all\n"
    );
    let all = run(timeline(path.to_str().unwrap()).args(["--width", "80", "-n", "0"])).ok();
    assert_eq!(all.lines().filter(|line| line.ends_with(" %")).count(), 10_001);
}

#[test]
fn odd_traces_are_told_of() {
    let empty = trace_of("no-kernels.sbt", []);
    let shown = run(&mut timeline(empty.to_str().unwrap()));
    assert_eq!(
        (shown.code, shown.stdout.as_str(), shown.stderr.as_str()),
        (Some(0), "", "no events\n")
    );
    let json = run(timeline(empty.to_str().unwrap()).args(["--format", "json"])).ok();
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["rows"],
        Value::Array(Vec::new())
    );

    let moments = trace_of(
        "moments.sbt",
        [(100, 100, 1), (0, 0, 1), (150, 90, 1), (120, 0, 1), (110, 200, 1)],
    );
    let shown = run(timeline(moments.to_str().unwrap()).args(["--width", "60"]));
    assert_snapshot!("moments", shown.transcript());

    let bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    let cut = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cut-timeline.sbt");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let shown = run(timeline(cut.to_str().unwrap()).args(["--width", "80"]));
    assert_eq!(shown.code, Some(0));
    assert!(shown.stderr.contains("warning: "), "{}", shown.stderr);
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    for (args, why) in [
        (
            &["--kind", "counter"][..],
            "a timeline cannot show the kind counter",
        ),
        (
            &["--from", "2ms", "--to", "1ms"],
            "its start 2.00 ms is not before its end 1.00 ms",
        ),
        (&["--width", "0"], "0 is not in 1..=65535"),
        (&["--stats"], "cannot be used with"),
    ] {
        let refused = run(timeline(FIXTURE).args(args));
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    let alone = run(command().args(["view", FIXTURE, "--ascii"]));
    assert_eq!(alone.code, Some(2));
}
