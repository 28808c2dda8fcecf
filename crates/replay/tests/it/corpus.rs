//! Replays the corpus of the fuzz target, so that what a fuzzer once found stays found on every machine; and recordings
//! that are cut and spoilt.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tracesmith_replay::{Plan, Recording, fuzz};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/replay_recording")
}

/// A window that fake-cuda ran.
fn window() -> Vec<u8> {
    fs::read(folder().join("window")).unwrap()
}

#[test]
fn every_input_of_the_corpus_is_harmless() {
    let entries = fs::read_dir(folder()).unwrap();
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for input in inputs {
        eprintln!("{}", input.display());
        fuzz::recording(&fs::read(&input).unwrap());
    }
}

#[test]
fn the_window_is_a_recording_that_can_be_replayed() {
    let mut recording = Recording::from_bytes(window()).unwrap();
    let plan = Plan::of(&mut recording).unwrap();
    assert!(plan.obstacles.is_empty(), "{:?}", plan.obstacles);
    assert!(recording.commands.len() > 5 && recording.begin.len() > 3);
}

proptest! {
    /// A few bytes of a recording are others; checksums are set right, so that it is read on.
    #[test]
    fn spoilt_recordings_are_harmless(
        spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)
    ) {
        let mut bytes = window();
        for (place, byte) in &spots {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        fuzz::recording(&bytes);
    }

    /// The file ends somewhere.
    #[test]
    fn cut_recordings_are_harmless(length in any::<prop::sample::Index>()) {
        let bytes = window();
        fuzz::recording(&bytes[..length.index(bytes.len())]);
    }
}
