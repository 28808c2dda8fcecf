//! What commands report of damaged and truncated traces.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{root, tracesmith};

/// The demo's trace with one byte in its middle changed.
fn damaged(folder: &TempDir) -> PathBuf {
    let mut bytes = std::fs::read(root().join("fixtures/demo-h200.sbt")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x5a;
    let file = folder.path().join("t.sbt");
    std::fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn info_does_not_call_a_damaged_file_good() {
    let folder = TempDir::new().unwrap();
    let file = damaged(&folder);
    let shown = tracesmith(["info".as_ref(), file.as_os_str()]);
    assert!(shown.stdout.contains("incomplete"), "{shown:?}");
    assert!(shown.stdout.contains("does not match its checksum"), "{shown:?}");
    assert!(shown.stderr.contains("tracesmith repair"), "{shown:?}");
    let json = tracesmith([
        "info".as_ref(),
        file.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ])
    .ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["health"]["good"], false, "{json}");
    assert_eq!(json["health"]["verified"], true, "{json}");
}

#[test]
fn warnings_of_damage_name_the_remedy() {
    let folder = TempDir::new().unwrap();
    let bytes = std::fs::read(root().join("fixtures/demo-h200.sbt")).unwrap();
    let file = folder.path().join("t.sbt");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let out = folder.path().join("t.json");
    for command in [
        vec!["view"],
        vec!["analyze"],
        vec!["export", "-f", "kineto", "-o", out.to_str().unwrap()],
    ] {
        let run = tracesmith(command.iter().copied().chain([file.to_str().unwrap()]));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("tracesmith repair"), "{run:?}");
    }
}
