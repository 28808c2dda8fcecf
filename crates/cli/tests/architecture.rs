//! The shape of the project, held against the tree: who may depend on whom, and the lints that every crate takes.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// For each crate: the crates of ours that it may use, and what it must never pull in, not even through others.
/// ARCHITECTURE.md shows the same table for people.
const RULES: &[(&str, &[&str], &[&str])] = &[
    (
        "format",
        &[],
        &[
            "tokio",
            "async-std",
            "clap",
            "serde_json",
            "libloading",
            "cudarc",
            "nvml-wrapper",
        ],
    ),
    (
        "wire",
        &[],
        &["tracesmith-format", "tokio", "clap", "serde_json", "zstd"],
    ),
    ("cuda", &[], &["tracesmith-format", "tracesmith-wire", "clap"]),
    (
        "stacks",
        &[],
        &[
            "tracesmith-format",
            "tracesmith-wire",
            "tracesmith-trace",
            "tokio",
            "clap",
        ],
    ),
    (
        "inject",
        &["wire", "cuda", "stacks"],
        &["tracesmith-format", "tracesmith-trace", "tokio", "clap"],
    ),
    (
        "symbols",
        &[],
        &["tracesmith-format", "tracesmith-wire", "tokio", "clap"],
    ),
    ("collect", &["wire", "format", "symbols"], &["tracesmith-cuda"]),
    (
        "trace",
        &["format"],
        &[
            "tracesmith-cuda",
            "tracesmith-wire",
            "tracesmith-interop",
            "clap",
            "hyper",
            "reqwest",
            "ureq",
            "axum",
        ],
    ),
    (
        "interop",
        &["format", "trace", "symbols"],
        &[
            "tracesmith-cuda",
            "tracesmith-wire",
            "clap",
            "hyper",
            "reqwest",
            "ureq",
            "axum",
        ],
    ),
    (
        "sql",
        &["format", "trace"],
        &["tracesmith-cuda", "tracesmith-wire", "tracesmith-interop", "clap"],
    ),
    (
        "studio",
        &["format", "trace", "interop", "sql"],
        &["tracesmith-cuda", "tracesmith-wire", "tracesmith", "clap"],
    ),
    (
        "replay",
        &["format", "cuda"],
        &["tracesmith", "tracesmith-trace", "clap"],
    ),
    (
        "machine",
        &["cuda", "wire"],
        &["tracesmith-format", "tracesmith-trace", "clap", "tokio"],
    ),
    (
        "cli",
        &[
            "format", "wire", "collect", "trace", "interop", "sql", "replay", "machine", "studio", "symbols",
        ],
        &["tracesmith-inject", "tracesmith-fake-cuda"],
    ),
    (
        "python",
        &["format", "trace", "interop", "sql"],
        &["tracesmith-cuda", "tracesmith-wire", "tracesmith", "clap"],
    ),
    ("fake-cuda", &[], &[]),
    ("skip", &[], &[]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_toml(path: &Path) -> Table {
    fs::read_to_string(path)
        .unwrap()
        .parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The manifests of all crates, by folder name.
fn manifests() -> BTreeMap<String, Table> {
    fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                read_toml(&path.join("Cargo.toml")),
            )
        })
        .collect()
}

fn package_name(folder: &str) -> String {
    if folder == "cli" {
        "tracesmith".to_owned()
    } else {
        format!("tracesmith-{folder}")
    }
}

/// What a crate is built with; what only its tests use does not count.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let mut tables = vec![manifest.get("dependencies"), manifest.get("build-dependencies")];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.values().map(|target| target.get("dependencies")));
    }
    tables
        .into_iter()
        .flatten()
        .filter_map(Value::as_table)
        .flat_map(|table| table.keys().cloned())
        .collect()
}

#[test]
fn crates_use_only_what_the_table_allows() {
    for (folder, manifest) in manifests() {
        let (_, allowed, _) = RULES
            .iter()
            .find(|(name, ..)| *name == folder)
            .unwrap_or_else(|| panic!("{folder} has no rule"));
        let allowed: BTreeSet<String> = allowed.iter().map(|name| package_name(name)).collect();
        let ours: BTreeSet<String> = dependencies(&manifest)
            .into_iter()
            .filter(|name| name.starts_with("tracesmith"))
            .collect();
        let forbidden: Vec<_> = ours.difference(&allowed).collect();
        assert!(forbidden.is_empty(), "{folder} may not use {forbidden:?}");
    }
}

#[test]
fn crates_never_pull_in_what_the_table_forbids() {
    let lock = read_toml(&root().join("Cargo.lock"));
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let uses = package
            .get("dependencies")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let uses = uses.map(|used| used.as_str().unwrap().split(' ').next().unwrap().to_owned());
        graph
            .entry(package["name"].as_str().unwrap().to_owned())
            .or_default()
            .extend(uses);
    }
    // The lock file lists what tests use, too: for crates of ours, what they are built with counts.
    for (folder, manifest) in manifests() {
        graph.insert(package_name(&folder), dependencies(&manifest));
    }
    for folder in manifests().into_keys() {
        let (.., never) = RULES.iter().find(|(name, ..)| *name == folder).unwrap();
        let mut reached = BTreeSet::new();
        let mut next: Vec<String> = graph[&package_name(&folder)].iter().cloned().collect();
        while let Some(package) = next.pop() {
            if reached.insert(package.clone()) {
                next.extend(graph.get(&package).into_iter().flatten().cloned());
            }
        }
        for package in *never {
            assert!(!reached.contains(*package), "{folder} pulls in {package}");
        }
    }
}

#[test]
fn the_library_in_other_peoples_processes_carries_no_nvml() {
    let manifests = manifests();
    let features = manifests["cuda"].get("features").and_then(Value::as_table);
    assert!(
        features.is_some_and(|features| features.contains_key("nvml") && !features.contains_key("default"))
    );
    let used = manifests
        .get("inject")
        .and_then(|manifest| manifest["dependencies"].get("tracesmith-cuda"));
    let asked = used
        .and_then(|used| used.get("features"))
        .and_then(Value::as_array);
    assert!(asked.is_none_or(|features| features.iter().all(|feature| feature.as_str() != Some("nvml"))));
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    let mut all = manifests();
    all.insert("bench".to_owned(), read_toml(&root().join("bench/Cargo.toml")));
    for (folder, manifest) in all {
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{folder}");
    }
    let lints = &read_toml(&root().join("Cargo.toml"))["workspace"]["lints"];
    for lint in ["unsafe_code", "missing_docs"] {
        assert_eq!(lints["rust"][lint].as_str(), Some("deny"), "{lint}");
    }
    for lint in [
        "undocumented_unsafe_blocks",
        "unwrap_used",
        "print_stdout",
        "print_stderr",
    ] {
        assert_eq!(lints["clippy"][lint].as_str(), Some("deny"), "{lint}");
    }
}

#[test]
fn unsafe_code_stays_in_the_rooms_for_it() {
    let may_be_unsafe = |path: &str| {
        [
            "crates/wire/",
            "crates/cuda/",
            "crates/inject/",
            "crates/stacks/",
            "crates/fake-cuda/",
            "crates/replay/src/cuda.rs",
            "crates/sql/src/table.rs",
            "crates/python/src/arm.rs",
            "crates/python/src/nvtx.rs",
            "bench/",
        ]
        .iter()
        .any(|room| path.starts_with(room))
    };
    // Put together so that this file does not find itself.
    let opened = ["allow(unsafe", "_code"].concat();
    for path in source_files() {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        assert!(
            may_be_unsafe(&path) || !text.contains(&opened),
            "{path} opens the door to unsafe code"
        );
    }
}

#[test]
fn only_the_output_module_prints() {
    let opened = ["clippy::print", "_std"].concat();
    for path in source_files()
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.contains("/src/"))
    {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        assert!(
            path == "crates/cli/src/output.rs" || !text.contains(&opened),
            "{path} prints"
        );
    }
}

/// A file of tests that nobody names is not compiled, and its tests pass.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let mut joined = 0;
    for (folder, manifest) in manifests() {
        if manifest["package"].get("autotests").and_then(Value::as_bool) != Some(false) {
            continue;
        }
        let tests = root().join("crates").join(&folder).join("tests");
        let program = fs::read_to_string(tests.join("it.rs")).unwrap();
        for entry in fs::read_dir(&tests).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|extension| extension == "rs") && name != "it" {
                let line = format!("\nmod {name};\n");
                assert!(
                    program.contains(&line),
                    "crates/{folder}/tests/it.rs leaves out {name}"
                );
                joined += 1;
            }
        }
    }
    assert!(joined > 40, "{joined}");
}

/// The same of tests that are a folder.
#[test]
fn every_file_of_a_folder_of_tests_is_part_of_its_program() {
    let main = root().join("crates/replay/tests/it/main.rs");
    let program = fs::read_to_string(&main).unwrap();
    let mut files = 0;
    for entry in fs::read_dir(main.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name != "main" {
            assert!(program.contains(&format!("mod {name};\n")), "{name} is left out");
            files += 1;
        }
    }
    assert!(files > 8, "{files}");
}

/// A test that only prints that it was skipped has passed, as far as `ci/test` can see.
#[test]
fn tests_record_skips_in_one_place() {
    for path in source_files()
        .into_iter()
        .filter(|path| path.starts_with("crates/"))
    {
        let text = fs::read_to_string(root().join(&path)).unwrap().to_lowercase();
        // Put together so that this file does not find itself.
        let prints = [["(\"skip", "ped:"].concat(), ["(\"skip", "ping"].concat()];
        assert!(
            path == "crates/skip/src/lib.rs" || !prints.iter().any(|print| text.contains(print)),
            "{path} prints that a test is skipped; call tracesmith_skip::without"
        );
    }
}

#[test]
fn no_source_file_outgrows_its_subject() {
    for path in source_files() {
        let lines = fs::read_to_string(root().join(&path)).unwrap().lines().count();
        assert!(
            lines <= 800,
            "{path} has {lines} lines: is there a second subject inside?"
        );
    }
}

/// Licences that an Apache-2.0 project can be built with. `deny.toml` holds the same list for cargo-deny.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether one of the ways to read a licence expression is allowed.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    expression.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|licence| LICENCES.contains(&licence.trim()))
    })
}

#[test]
fn every_dependency_has_a_licence_that_fits() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 30);
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_allowed(licence), "{} is under {licence}", package["name"]);
    }
    let deny = read_toml(&root().join("deny.toml"));
    let listed: Vec<&str> = deny["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l.as_str().unwrap())
        .collect();
    assert_eq!(listed, LICENCES);
}

/// All Rust files of the project, relative to its root.
fn source_files() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("bench"), root().join("fuzz")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    assert!(files.len() > 40);
    files.sort();
    files
}

/// `cargo run -- demo` is the first command of the README: a second program would make it a question which one.
#[test]
fn the_workspace_has_one_program() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let programs: Vec<&str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap())
        .filter(|target| target["kind"][0] == "bin")
        .map(|target| target["name"].as_str().unwrap())
        .collect();
    assert_eq!(programs, ["tracesmith"]);
}
