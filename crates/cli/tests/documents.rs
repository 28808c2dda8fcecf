//! The documents: links lead somewhere, the book has every page, and the reference knows every option.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{root, tracesmith};

/// Characters of a line in a document.
const LONGEST_LINE: usize = 200;

/// Phrases that STYLE.md replaces. Each had to be read twice by newcomers.
const BANNED: [&str; 10] = [
    "asked for by",
    "asked-for",
    "stands against",
    "given back",
    "made ready",
    "whoever",
    "calls that only ask",
    "has two moods",
    "is told of",
    "work of a device",
];

fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    let mut folders = vec![root().join("docs"), root().join("bench/results")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1);
    let targets = parts
        .filter_map(|part| part.split_once(')'))
        .map(|(target, _)| target);
    targets.map(str::to_owned).collect()
}

/// The anchors of a page's headings, as GitHub and mdBook form them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&prose(&text)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let has_anchor = || {
                anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap_or_default()).contains(anchor)
            };
            if !target.exists() || !has_anchor() {
                wrong.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed = links(&summary);
    listed.sort();
    let mut pages: Vec<String> = documents()
        .iter()
        .filter_map(|path| path.strip_prefix(&docs).ok())
        .map(|path: &Path| path.display().to_string())
        .filter(|path| path != "SUMMARY.md")
        .collect();
    pages.sort();
    assert_eq!(listed, pages);
}

#[test]
fn lines_are_short_and_code_has_a_language() {
    let mut wrong = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", document.display(), number + 1);
            if line.chars().count() > LONGEST_LINE {
                wrong.push(format!("{place}: {} characters", line.chars().count()));
            }
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                // Without a language, mdBook takes it for Rust and compiles it.
                if is_code && line.trim() == "```" && document.starts_with(root().join("docs")) {
                    wrong.push(format!("{place}: code without a language"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn phrases_that_newcomers_stumbled_over_do_not_come_back() {
    let mut texts: Vec<(String, String)> = documents()
        .iter()
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .collect();
    for command in commands() {
        let help = tracesmith([command.as_str(), "--help"]).ok();
        texts.push((format!("{command} --help"), help));
    }
    let mut wrong = Vec::new();
    for (place, text) in texts {
        // Lines are wrapped anywhere.
        let words = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase();
        for phrase in BANNED.iter().filter(|phrase| words.contains(**phrase)) {
            wrong.push(format!("{place}: {phrase}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_that_help_names_exist() {
    let mut named = 0;
    for command in commands().iter().map(String::as_str).chain([""]) {
        let words: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let help = tracesmith(words).ok();
        for word in help.split_whitespace().filter(|word| word.starts_with("docs/")) {
            named += 1;
            let page = word.trim_end_matches(['.', ',', ')']);
            assert!(root().join(page).is_file(), "{command} --help: {page}");
        }
    }
    assert!(named >= 9, "{named}");
}

/// The commands that `tracesmith --help` lists.
fn commands() -> Vec<String> {
    let help = tracesmith(["--help"]).ok();
    let list = help.split("Commands:").nth(1).unwrap();
    let list = list.split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn the_reference_has_every_command_and_option() {
    let page = fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    let common: BTreeSet<String> = options(&tracesmith(["--help"]).ok());
    let mut missing = Vec::new();
    for command in &commands {
        let section = section_of(&page, command);
        if section.is_empty() {
            missing.push(command.clone());
        }
        // A section may refer to another one or to a page: "as in [view](#view)".
        let mut known = section.to_owned() + section_of(&page, "All commands");
        for link in links(section) {
            match link.strip_prefix('#') {
                Some(other) => known += section_of(&page, other),
                None => {
                    known +=
                        &fs::read_to_string(root().join("docs/reference").join(&link)).unwrap_or_default()
                }
            }
        }
        for option in options(&tracesmith([command.as_str(), "--help"]).ok()) {
            if !common.contains(&option) && !known.contains(&option) {
                missing.push(format!("{command} {option}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The text below a heading, or nothing.
fn section_of<'p>(page: &'p str, heading: &str) -> &'p str {
    let after = page.split(&format!("\n## {heading}\n")).nth(1);
    after
        .and_then(|text| text.split("\n## ").next())
        .unwrap_or_default()
}

/// The long options that a help text defines.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let words = lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    let names = words.map(|word| {
        let name = word.trim_start_matches('-');
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        format!("--{}", &name[..end.unwrap_or(name.len())])
    });
    names.filter(|name| name != "--").collect()
}

/// Names of all members in a JSON answer, except of those whose members have other names in every trace.
fn members(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                names.insert(name.clone());
                if !["busy_ns_by_kind", "metadata", "metrics"].contains(&name.as_str()) {
                    members(value, names);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| members(value, names)),
        _ => {}
    }
}

/// Every member that a command prints is described in the reference.
#[test]
fn the_reference_describes_every_json_member() {
    let folder = root().join("docs/reference");
    let pages = ["json.md", "metrics.md"].map(|page| fs::read_to_string(folder.join(page)).unwrap());
    // `causes[]`, `begin_bytes`, `--format` and the like.
    let mut described: BTreeSet<String> = pages
        .iter()
        .flat_map(|page| page.split('`').skip(1).step_by(2))
        .flat_map(|code| code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_'))
        .map(str::to_owned)
        .collect();
    // Columns of tables have a page of their own.
    let format = fs::read_to_string(folder.join("format.md")).unwrap();
    described.extend(
        format
            .lines()
            .flat_map(|line| line.split(" | "))
            .map(str::to_owned),
    );
    let mut undescribed = Vec::new();
    for file in [
        "demo-h200.sbt",
        "train-h200.sbt",
        "synthetic-v1.sbt",
        "kineto-training.json",
        "replay-h200.sbt",
    ] {
        let file = root().join("fixtures").join(file);
        let file = file.to_str().unwrap();
        let fixed = root().join("fixtures/train-h200-fixed.sbt");
        let fixed = fixed.to_str().unwrap();
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["analyze", file],
            vec!["info", file],
            vec!["info", file, "--columns"],
            vec!["view", file, "--limit", "50"],
            vec!["view", file, "--stats"],
            vec!["view", file, "--timeline"],
            vec!["states", file],
            vec!["states", file, "--intervals"],
            vec!["states", file, "--at", "50%"],
            vec!["diff", file, fixed],
            vec!["replay", file, "--mode", "dry-run"],
        ];
        for analyzer in tracesmith_trace::analysis::ANALYZERS {
            commands.push(vec!["analyze", file, "--only", analyzer.name]);
        }
        for command in commands {
            let run = tracesmith(command.iter().copied().chain(["--format", "json"]));
            let Ok(answer) = serde_json::from_str(&run.stdout) else {
                continue;
            };
            let mut names = BTreeSet::new();
            members(&answer, &mut names);
            let missing: Vec<_> = names.difference(&described).cloned().collect();
            if !missing.is_empty() {
                undescribed.push(format!(
                    "{} {}: {}",
                    command[0],
                    command[2..].join(" "),
                    missing.join(" ")
                ));
            }
        }
    }
    undescribed.sort();
    undescribed.dedup();
    assert!(
        undescribed.is_empty(),
        "not in docs/reference/json.md:\n{}",
        undescribed.join("\n")
    );
}
