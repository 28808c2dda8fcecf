//! Replays the corpus of the fuzz target, so that what a fuzzer once found stays
//! found on every machine.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tracesmith_collect::fuzz;

#[test]
fn every_input_of_the_corpus_is_harmless() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/collect_records");
    let inputs: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        eprintln!("{}", input.display());
        fuzz::records(&fs::read(&input).unwrap());
    }
}

proptest! {
    /// Frames of every kind, with whatever behind them.
    #[test]
    fn records_of_any_content_are_harmless(
        frames in prop::collection::vec((1u16..60, prop::collection::vec(any::<u8>(), 0..260)), 0..20)
    ) {
        let mut bytes = Vec::new();
        for (kind, payload) in &frames {
            let header = payload.len() as u64 | u64::from(*kind) << 32;
            bytes.extend_from_slice(&header.to_le_bytes());
            bytes.extend_from_slice(payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        fuzz::records(&bytes);
    }
}
