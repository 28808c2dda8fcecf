//! Replay recordings that are damaged or truncated, without a GPU.

use std::path::Path;

use tempfile::TempDir;
use tracesmith_format::{Memory, Reader};

use crate::support::{Run, command, root, run};

const FIXTURE: &str = "fixtures/replay-h200.sbt";

/// Tables whose damage makes a replay impossible.
const NEEDED: [&str; 12] = [
    "strings",
    "metadata",
    "hosts",
    "processes",
    "modules",
    "commands",
    "buffers",
    "pieces",
    "contents",
    "kernels",
    "copies",
    "sets",
];

/// Runs a command without any GPU that this machine may have.
fn tracesmith(folder: &Path, line: &str) -> Run {
    let mut command = command();
    command
        .args(line.split_whitespace())
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder);
    run(&mut command)
}

/// The tables of the fixture, with the offset of the last byte of each block.
fn blocks() -> Vec<(String, usize)> {
    let bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    let reader = Reader::open(Memory(bytes)).unwrap();
    let blocks = reader.blocks().iter();
    blocks
        .map(|block| {
            let end = block.offset + block.header.total_length();
            (block.header.kind.to_string(), end as usize - 1)
        })
        .collect()
}

/// The fixture with one byte changed.
fn write_damaged(folder: &Path, offset: usize) {
    let mut bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    bytes[offset] ^= 0x5a;
    std::fs::write(folder.join("t.sbt"), bytes).unwrap();
}

#[test]
fn a_damaged_block_is_an_error_or_a_warning_that_names_it() {
    let folder = TempDir::new().unwrap();
    for (table, offset) in blocks() {
        write_damaged(folder.path(), offset);
        let plan = tracesmith(folder.path(), "replay t.sbt --mode dry-run");
        assert!(plan.stderr.contains(&format!("({table})")), "{table}: {plan:?}");
        if NEEDED.contains(&table.as_str()) {
            assert_eq!(plan.code, Some(2), "{table}: {plan:?}");
            assert!(!plan.stdout.contains("replayable"), "{table}: {plan:?}");
        } else {
            assert_eq!(plan.code, Some(0), "{table}: {plan:?}");
            assert!(plan.stderr.contains("warning: block"), "{table}: {plan:?}");
        }
    }
}

#[test]
fn dump_and_extract_name_a_damaged_block_too() {
    let folder = TempDir::new().unwrap();
    let (_, offset) = blocks().into_iter().find(|(table, _)| table == "images").unwrap();
    write_damaged(folder.path(), offset);
    for line in [
        "replay t.sbt --dump 0x7fc067e00000 -o out.npy",
        "extract t.sbt --kernel scale -o scale",
    ] {
        let run = tracesmith(folder.path(), line);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("(images)"), "{run:?}");
        assert!(run.stderr.contains("tracesmith repair t.sbt"), "{run:?}");
    }
}

#[test]
fn a_truncated_recording_is_reported_as_truncated() {
    let folder = TempDir::new().unwrap();
    let bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    for length in [bytes.len() / 2, bytes.len() * 3 / 4, bytes.len() - 10] {
        std::fs::write(folder.path().join("t.sbt"), &bytes[..length]).unwrap();
        for line in [
            "replay t.sbt --mode dry-run",
            "replay t.sbt",
            "extract t.sbt --kernel scale -o scale",
        ] {
            let run = tracesmith(folder.path(), line);
            assert_ne!(run.code, Some(0), "{length} {run:?}");
            let words = format!("{}{}", run.stdout, run.stderr);
            assert!(words.contains("the file is truncated"), "{length} {run:?}");
        }
    }
}
