//! Replays the corpus of every fuzz target, so that what a fuzzer once found
//! stays found on every machine.
#![cfg(all(not(loom), not(miri)))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use tracesmith_wire::fuzz::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

#[test]
fn every_input_of_every_corpus_is_harmless() {
    for target in TARGETS {
        let folder = fuzz().join(format!("corpus/wire_{}", target.name));
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{} is empty", folder.display());
        for input in inputs {
            eprintln!("{}", input.display());
            (target.run)(&fs::read(&input).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_program() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let name = format!("wire_{}", target.name);
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let program = fs::read_to_string(fuzz().join(format!("programs/{name}.rs"))).unwrap();
        assert!(program.contains("fuzz_target!"), "{name}");
    }
}
