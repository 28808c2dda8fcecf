//! No share over 100 %: every share and every percentage that `analyze` prints, of all fixtures and of files of other tools.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{command, root};

/// Analyses whose JSON has shares. `None` is the summary.
const ANALYSES: [Option<&str>; 5] = [
    None,
    Some("idle"),
    Some("memory"),
    Some("critical-path"),
    Some("what-if"),
];

fn analyze(file: &Path, only: Option<&str>, is_json: bool) -> Option<String> {
    let mut command = command();
    command.arg("analyze").arg(file);
    if let Some(only) = only {
        command.args(["--only", only]);
    }
    if is_json {
        command.args(["--format", "json"]);
    }
    let output = command.output().unwrap();
    // Some files are of programs without a GPU, or of a kind that has no analysis.
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

/// Whether a field is a share of a whole, from 0 to 1.
fn is_share(name: &str) -> bool {
    name == "share"
        || name.ends_with("_share")
        || ["utilization", "communication_overlap", "fragmentation"].contains(&name)
}

/// Checks all shares below a value, and counts them.
fn check(value: &Value, place: &str) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| {
                let place = format!("{place}.{name}");
                if let (true, Some(share)) = (is_share(name), field.as_f64()) {
                    assert!((0.0..=1.0).contains(&share), "{place} is {share}");
                    return 1;
                }
                check(field, &place)
            })
            .sum(),
        Value::Array(values) => values.iter().map(|value| check(value, place)).sum(),
        _ => 0,
    }
}

/// Percentages in a text, without changes (`+5 %`) and spreads (`± 5 %`), which may be more than all.
fn percentages(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    numbers
        .filter_map(|pair| {
            let at = (pair[0].as_ptr() as usize) - (text.as_ptr() as usize);
            let is_spread = text[..at].trim_end().ends_with('±');
            let number = pair[0].trim_start_matches('(');
            (!is_spread && !number.starts_with(['+', '-'])).then(|| number.parse().ok())?
        })
        .collect()
}

fn check_file(file: &Path) -> usize {
    let mut checked = 0;
    for only in ANALYSES {
        let place = format!("{} {}", file.display(), only.unwrap_or("summary"));
        if let Some(json) = analyze(file, only, true) {
            checked += check(&serde_json::from_str(&json).unwrap(), &place);
        }
        if let Some(text) = analyze(file, only, false) {
            for percentage in percentages(&text) {
                assert!((0.0..=100.0).contains(&percentage), "{place}: {percentage} %");
            }
        }
    }
    checked
}

fn files_of(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            endings
                .iter()
                .any(|ending| path.to_string_lossy().ends_with(ending))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn no_share_of_a_fixture_is_over_100_percent() {
    let files = files_of(&root().join("fixtures"), &[".sbt", "kineto-training.json"]);
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert!(check_file(&file) > 5, "{} has few shares", file.display());
    }
}

#[test]
fn no_share_of_a_foreign_file_is_over_100_percent() {
    let folders = ["kineto", "nsys", "rocprof"];
    let folders: Vec<PathBuf> = folders.into_iter().filter_map(tracesmith_skip::data).collect();
    let files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files_of(folder, &[".json", ".json.gz", ".sqlite"]))
        .collect();
    let checked: usize = files.iter().map(|file| check_file(file)).sum();
    assert!(files.is_empty() || checked > 500, "{checked} shares");
}

#[test]
fn percentages_are_found_in_text() {
    let text = "a 12.5 % (98 %) of +3 % ± 200.0 % 100 %";
    assert_eq!(percentages(text), [12.5, 98.0, 100.0]);
}
