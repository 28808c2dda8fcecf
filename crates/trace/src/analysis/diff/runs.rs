//! What differs between two runs before any time is compared: machine, versions, command, ranks and steps.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::analysis::summary::Analysis;
use crate::model::trace::Trace;

/// One thing that two runs do not have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunDiff {
    /// What it is, such as `driver`.
    pub what: String,
    /// In the first; empty when it is not known there.
    pub a: String,
    /// In the second.
    pub b: String,
}

/// What differs, in a fixed order.
pub(super) fn differences(a: &Analysis, b: &Analysis) -> Vec<RunDiff> {
    let (first, second) = (facts(a), facts(b));
    let mut names: Vec<&String> = first.iter().map(|(name, _)| name).collect();
    names.extend(second.iter().map(|(name, _)| name));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.as_str()));
    let value = |facts: &[(String, String)], name: &str| {
        let fact = facts.iter().find(|(of, _)| of == name);
        fact.map_or(String::new(), |(_, value)| value.clone())
    };
    names
        .into_iter()
        .map(|name| RunDiff {
            what: name.clone(),
            a: value(&first, name),
            b: value(&second, name),
        })
        .filter(|diff| diff.a != diff.b)
        .collect()
}

fn facts(analysis: &Analysis) -> Vec<(String, String)> {
    let trace = &*analysis.trace;
    let text = |id| trace.string(id).to_owned();
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    let used = analysis.activity.devices();
    let devices = || trace.devices.iter().filter(|device| used.contains(&device.id));
    add("GPU", counted(devices().map(|device| text(device.name))));
    add("driver", distinct(devices().map(|device| text(device.driver))));
    add("host", distinct(trace.hosts.iter().map(|host| text(host.name))));
    add("OS", distinct(trace.hosts.iter().map(|host| text(host.os))));
    add("CPU", distinct(trace.hosts.iter().map(|host| text(host.cpu))));
    add("command", command(trace));
    let ranks = trace
        .processes
        .iter()
        .filter(|process| process.rank.get().is_some())
        .count();
    let worlds = trace
        .processes
        .iter()
        .map(|process| process.world_size)
        .filter(|size| *size > 0);
    add("ranks", number(ranks));
    add("ranks in the job", distinct(worlds.map(|size| size.to_string())));
    let lanes: BTreeSet<_> = analysis.activity.lanes.iter().map(|lane| lane.process).collect();
    add("processes with GPU work", number(lanes.len()));
    add("steps", number(analysis.steps.steps.len()));
    add(
        "steps found",
        match analysis.steps.steps.is_empty() {
            true => String::new(),
            false => analysis.steps.source.words(),
        },
    );
    for (name, value) in versions(trace) {
        add(&name, value);
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn number(count: usize) -> String {
    match count {
        0 => String::new(),
        count => count.to_string(),
    }
}

/// The command of the recording, or of the processes when it was not recorded by a command.
fn command(trace: &Trace) -> String {
    match trace.metadata.get("command") {
        Some(command) => command.clone(),
        None => distinct(
            trace
                .processes
                .iter()
                .map(|process| trace.string(process.command).to_owned()),
        ),
    }
}

/// Versions, environment and options of the recording: metadata that two runs of the same thing share.
fn versions(trace: &Trace) -> BTreeMap<String, String> {
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &trace.metadata {
        let name = match key.as_str() {
            "recorder" | "capture.level" | "capture.kinds" | "capture.stacks" | "capture.range" => {
                key.clone()
            }
            "import.format" => "format".to_owned(),
            "import.distributed" => {
                let json: Value = serde_json::from_str(value).unwrap_or_default();
                let nccl = json["nccl_version"].as_str();
                versions.extend(nccl.map(|version| ("nccl_version".to_owned(), version.to_owned())));
                continue;
            }
            _ if key.starts_with("env.") => key.clone(),
            _ if key.ends_with("cupti.version") => "cupti_version".to_owned(),
            _ => match key.strip_prefix("import.json.") {
                Some(name) if name.ends_with("version") => name.to_owned(),
                _ => continue,
            },
        };
        versions.insert(name, value.trim_matches('"').to_owned());
    }
    versions
}

/// Values with how often each occurs, such as `8 × NVIDIA H200`.
fn counted(values: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values.filter(|value| !value.is_empty()) {
        *counts.entry(value).or_default() += 1;
    }
    let texts = counts.into_iter().map(|(value, count)| match count {
        1 => value,
        count => format!("{count} × {value}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn distinct(values: impl Iterator<Item = String>) -> String {
    let values: BTreeSet<String> = values.filter(|value| !value.is_empty()).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}
