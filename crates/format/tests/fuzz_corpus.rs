//! Replays the corpus of every fuzz target, so that what a fuzzer once found stays found on every machine.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::path::{Path, PathBuf};

use tracesmith_format::fuzz::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

#[test]
fn every_input_of_every_corpus_is_harmless() {
    for target in TARGETS {
        let folder = fuzz().join(format!("corpus/format_{}", target.name));
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut inputs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{} is empty", folder.display());
        for input in inputs {
            eprintln!("{}", input.display());
            (target.run)(&std::fs::read(&input).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_program_and_every_program_a_target() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let mut programs: Vec<_> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"format_")?.strip_suffix('"'))
        .collect();
    let mut targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    programs.sort_unstable();
    targets.sort_unstable();
    assert_eq!(programs, targets);
    for target in targets {
        let program = std::fs::read_to_string(fuzz().join(format!("programs/format_{target}.rs"))).unwrap();
        assert!(program.contains("fuzz_target!"), "{target}");
    }
}
