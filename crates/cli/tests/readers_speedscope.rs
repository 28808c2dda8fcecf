//! What speedscope itself loads and shows of our profiles: its web page, in a browser.
//!
//! Its export button gives the profiles back as it holds them in memory, so that they can be compared with what we wrote.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error, and says what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::reader::{Browser, answer, node_package};
use support::{FIXTURE, root, tracesmith};
use tempfile::TempDir;

const RECORDED: &str = "fixtures/demo-h200.sbt";

#[test]
fn speedscope_loads_and_shows_what_was_written() {
    for (fixture, weight) in [(RECORDED, "gpu-time"), (FIXTURE, "launches")] {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("out.speedscope.json");
        let path = out.to_str().unwrap();
        tracesmith([
            "export",
            fixture,
            "-f",
            "speedscope",
            "--weight",
            weight,
            "-o",
            path,
        ])
        .ok();
        let Some(seen) = show(&out) else {
            return;
        };
        assert_eq!(seen["troubles"], Value::Array(Vec::new()), "{fixture}");
        let written: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        let plain = plain_names(&written);
        let expected = profiles(&written, &plain);
        assert!(expected.iter().all(|profile| profile.total > 0), "{fixture}");
        assert_eq!(profiles(&seen["loaded"], &plain), expected, "{fixture}");
        // The page opens with the first profile, and lists its functions.
        let first = &expected[0];
        assert_eq!(
            seen["title"].as_str().unwrap(),
            format!("{} - speedscope", first.name)
        );
        let rows = list(&seen["rows"]).iter();
        let shown: BTreeSet<&str> = rows.map(|row| key_of(row[2].as_str().unwrap(), &plain)).collect();
        for function in first.functions.keys() {
            assert!(shown.contains(function.as_str()), "{fixture}: {function}");
        }
    }
}

/// What speedscope makes of a file; see `ci/readers/speedscope.js`. `None` when something that it needs is not at hand.
fn show(profile: &Path) -> Option<Value> {
    let (Some(speedscope), Some(browser)) = (node_package("speedscope"), Browser::find()) else {
        tracesmith_skip::without("browser", "no speedscope, playwright-core or Chromium");
        return None;
    };
    let mut command = Command::new("node");
    command
        .arg(root().join("ci/readers/speedscope.js"))
        .args([&browser.playwright, &browser.chromium, &speedscope])
        .arg(profile);
    answer("browser", &mut command, &[])
}

/// A profile, in what both forms of it have in common.
#[derive(Debug, PartialEq, Eq)]
struct Profile {
    name: String,
    unit: String,
    total: u64,
    /// What each function has in all, what it calls not included.
    functions: BTreeMap<String, u64>,
}

/// The names of a file's functions.
fn names(file: &Value) -> Vec<&str> {
    let frames = list(&file["shared"]["frames"]).iter();
    frames.map(|frame| frame["name"].as_str().unwrap()).collect()
}

/// The names that are shown as they are written; speedscope makes names of C++ of all others.
fn plain_names(file: &Value) -> BTreeSet<&str> {
    let names = names(file).into_iter();
    names.filter(|name| !name.starts_with("_Z")).collect()
}

/// What a function is counted as: its name, unless speedscope has changed that.
fn key_of<'n>(name: &'n str, plain: &BTreeSet<&str>) -> &'n str {
    if plain.contains(name) { name } else { "mangled" }
}

/// The profiles of a file. Speedscope writes all of them as events, we write some as samples.
fn profiles(file: &Value, plain: &BTreeSet<&str>) -> Vec<Profile> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names = names(file);
    let name_of = |frame: &Value| key_of(names[frame.as_u64().unwrap() as usize], plain).to_owned();
    list(&file["profiles"])
        .iter()
        .map(|profile| {
            let mut functions = BTreeMap::new();
            if profile["type"] == "sampled" {
                for (sample, weight) in list(&profile["samples"]).iter().zip(list(&profile["weights"])) {
                    let innermost = list(sample).last().unwrap();
                    *functions.entry(name_of(innermost)).or_default() += weight.as_u64().unwrap();
                }
            } else {
                let (mut open, mut last) = (Vec::new(), 0);
                for event in list(&profile["events"]) {
                    let at = event["at"].as_u64().unwrap();
                    if let Some(innermost) = open.last() {
                        *functions.entry(name_of(innermost)).or_default() += at - last;
                    }
                    last = at;
                    if event["type"] == "O" {
                        open.push(event["frame"].clone());
                    } else {
                        assert_eq!(open.pop(), Some(event["frame"].clone()));
                    }
                }
                assert_eq!(open, Vec::<Value>::new());
            }
            // Whether a function that has no time of its own is listed depends on the form.
            functions.retain(|_, weight| *weight > 0);
            Profile {
                name: text(&profile["name"]),
                unit: text(&profile["unit"]),
                total: profile["endValue"].as_u64().unwrap() - profile["startValue"].as_u64().unwrap(),
                functions,
            }
        })
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}
