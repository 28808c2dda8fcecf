//! Every command on the fixture, as a user sees it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use insta::assert_snapshot;
use serde_json::Value;
use support::{FIXTURE, command, root, run, tracesmith, tracesmith_with_input};

#[test]
fn help_says_what_can_be_asked() {
    for words in [
        "",
        "profile",
        "record",
        "env",
        "info",
        "view",
        "top",
        "analyze",
        "sql",
        "states",
        "studio",
        "report",
        "diff",
        "replay",
        "extract",
        "repair",
        "merge",
        "cut",
        "benchmark",
        "demo",
        "devices",
        "doctor",
        "completions",
        "version",
    ] {
        let args = words.split_whitespace().chain(["--help"]);
        let name = if words.is_empty() {
            "help".to_owned()
        } else {
            format!("help_{words}")
        };
        let help = tracesmith(args).ok();
        assert!(help.contains("Example"), "{words} shows no example");
        assert_snapshot!(name, help);
    }
}

#[test]
fn no_arguments_show_help_and_fail() {
    let none = tracesmith::<&str>([]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("Usage: tracesmith"));
}

#[test]
fn info_shows_what_a_trace_is() {
    assert_snapshot!("info", tracesmith(["info", FIXTURE]).transcript());
    assert_snapshot!(
        "info_json",
        tracesmith(["info", FIXTURE, "--format", "json"]).transcript()
    );
    assert_snapshot!(
        "info_csv",
        tracesmith(["info", FIXTURE, "--format", "csv"]).transcript()
    );
}

#[test]
fn info_says_what_each_column_takes() {
    let text = tracesmith(["info", FIXTURE, "--columns", "--format", "json"]).ok();
    let info: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tables = info["tables"].as_array().unwrap();
    let kernels = tables.iter().find(|table| table["name"] == "kernels").unwrap();
    let columns = kernels["columns"].as_object().unwrap();
    let sum: u64 = columns.values().map(|bytes| bytes.as_u64().unwrap()).sum();
    let whole = kernels["bytes"].as_u64().unwrap();
    assert!(columns["start"].as_u64().unwrap() > 0);
    assert!(
        sum < whole && sum > whole / 4,
        "{sum} of {whole}: the rest is headers"
    );
    let shown = tracesmith(["info", FIXTURE, "--columns"]).ok();
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("kernels ") && line.contains(" start ")),
        "{shown}"
    );
}

#[test]
fn view_shows_rows() {
    assert_snapshot!(
        "view",
        tracesmith(["view", FIXTURE, "--limit", "12"]).transcript()
    );
    let one_of_each = ["view", FIXTURE, "--from", "399us", "--to", "520us"];
    assert_snapshot!("view_range", tracesmith(one_of_each).transcript());
    let kernels = ["view", FIXTURE, "--kind", "kernel", "--limit", "2"];
    assert_snapshot!(
        "view_json",
        tracesmith(kernels.iter().chain(&["--format", "json"])).transcript()
    );
    assert_snapshot!(
        "view_csv",
        tracesmith(kernels.iter().chain(&["--format", "csv"])).transcript()
    );
    assert_snapshot!(
        "view_csv_mixed",
        tracesmith(["view", FIXTURE, "-n", "9", "--format", "csv"]).transcript()
    );
}

#[test]
fn view_shows_totals() {
    assert_snapshot!(
        "view_stats",
        tracesmith(["view", FIXTURE, "--stats"]).transcript()
    );
    let stats = ["view", FIXTURE, "--stats", "--kind", "copy,set", "--format"];
    assert_snapshot!(
        "view_stats_json",
        tracesmith(stats.iter().chain(&["json"])).transcript()
    );
    assert_snapshot!(
        "view_stats_csv",
        tracesmith(stats.iter().chain(&["csv"])).transcript()
    );
}

fn rows(args: &[&str]) -> Vec<Value> {
    let all_args = [&["view", FIXTURE, "--format", "json"], args].concat();
    serde_json::from_str(&tracesmith(all_args).ok()).unwrap()
}

#[test]
fn filters_take_what_they_say() {
    let all = rows(&[]);
    assert_eq!(all.len(), 355);
    let is = |key: &str, value: &Value| all.iter().filter(|row| row[key] == *value).count();
    assert_eq!(
        rows(&["--kind", "kernel,copy"]).len(),
        is("kind", &"kernel".into()) + is("kind", &"copy".into())
    );
    assert_eq!(rows(&["--stream", "13"]).len(), is("stream", &13.into()));
    assert_eq!(rows(&["--device", "1"]).len(), is("device", &1.into()));
    assert_eq!(rows(&["--device", "example:1"]).len(), is("device", &1.into()));
    assert_eq!(rows(&["--device", "#2"]).len(), is("device", &1.into()));
    assert_eq!(rows(&["--process", "4001"]).len(), is("process", &2.into()));
    for (pattern, count) in [
        ("flash", 18),
        ("flash*", 18),
        ("*gemm*", 18),
        ("/^(flash|sm90)_/", 36),
        ("cudaLaunchKernel", 72),
        ("nothing", 0),
        (
            "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, false, true>",
            18,
        ),
    ] {
        assert_eq!(rows(&["--name", pattern]).len(), count, "{pattern}");
    }
    let starts = |rows: &[Value]| {
        rows.iter()
            .map(|row| row["start_ns"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(starts(&all).is_sorted());
    let (from, to) = (starts(&all)[0] + 1_000_000, starts(&all)[0] + 2_000_000);
    let expected = all
        .iter()
        .filter(|row| row["start_ns"].as_u64().unwrap() < to && row["end_ns"].as_u64().unwrap() >= from)
        .count();
    assert_eq!(rows(&["--from", "1ms", "--to", "2ms"]).len(), expected);
    assert_eq!(
        rows(&["--from", &format!("@{from}"), "--to", &format!("@{to}")]).len(),
        expected
    );
}

#[test]
fn orders_are_what_they_say() {
    let durations = |args: &[&str]| -> Vec<u64> {
        rows(args)
            .iter()
            .map(|row| row["duration_ns"].as_u64().unwrap())
            .collect()
    };
    let by_duration = durations(&["--sort", "duration"]);
    assert!(by_duration.is_sorted_by(|a, b| a >= b));
    assert_eq!(by_duration.len(), 355);
    assert_eq!(
        durations(&["--sort", "duration", "--limit", "7"]),
        by_duration[..7]
    );
    let bytes: Vec<_> = rows(&["--sort", "bytes"])
        .iter()
        .map(|row| row["bytes"].as_u64().unwrap_or(0))
        .collect();
    assert!(bytes.is_sorted_by(|a, b| a >= b));
    let names: Vec<_> = rows(&["--sort", "name"])
        .iter()
        .map(|row| row["name"].to_string())
        .collect();
    assert!(names.is_sorted());
}

#[test]
fn device_times_come_to_the_hosts_timeline() {
    // The fixture's device clock is 1000 s ahead and drifts; its kernels must lie inside their steps all the same.
    let steps = rows(&["--kind", "marker"]);
    for kernel in rows(&["--kind", "kernel"]) {
        let start = kernel["start_ns"].as_u64().unwrap();
        assert!(
            steps.iter().any(|step| step["process"] == kernel["process"]
                && (step["start_ns"].as_u64().unwrap()..step["end_ns"].as_u64().unwrap()).contains(&start)),
            "{kernel}"
        );
    }
}

#[test]
fn a_trace_can_come_from_standard_input() {
    let bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    let from_file = tracesmith(["view", FIXTURE, "--format", "csv"]).ok();
    assert_eq!(
        tracesmith_with_input(["view", "-", "--format", "csv"], &bytes).ok(),
        from_file
    );
}

#[test]
fn the_answer_follows_the_terminal() {
    let forced = run(command().args(["info", FIXTURE]).env("CLICOLOR_FORCE", "1")).ok();
    assert!(forced.contains("\u{1b}["));
    let refused = run(command()
        .args(["--no-color", "info", FIXTURE])
        .env("CLICOLOR_FORCE", "1"))
    .ok();
    assert!(!refused.contains('\u{1b}'));
    let plain = run(command().args(["info", FIXTURE]).env("NO_COLOR", "1")).ok();
    assert!(!plain.contains('\u{1b}'));
    assert!(
        !tracesmith(["info", FIXTURE]).ok().contains('\u{1b}'),
        "a pipe gets no colours"
    );

    let narrow = run(command()
        .args(["view", FIXTURE, "--kind", "kernel"])
        .env("COLUMNS", "90"))
    .ok();
    assert!(narrow.lines().all(|line| line.chars().count() <= 90), "{narrow}");
    assert_snapshot!(
        "view_narrow",
        narrow.lines().take(6).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script = format!(
        "'{}' view {FIXTURE} --limit 0 --format json | head -n 2",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    let mut shell = std::process::Command::new("bash");
    let piped = run(shell.args(["-o", "pipefail", "-c", &script]).current_dir(root()));
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
    assert_eq!(piped.stdout.lines().count(), 2);
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = tracesmith(["completions", shell]).ok();
        assert!(
            script.contains("tracesmith") && script.contains("merge"),
            "{shell}"
        );
    }
}

#[test]
fn version_names_program_and_format() {
    let version = tracesmith(["version", "--format", "json"]).ok();
    let version: Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["tracesmith"], env!("CARGO_PKG_VERSION"));
    assert_eq!(version["format"], "SBT 1.0");
}
