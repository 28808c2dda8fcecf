//! Arguments of `replay` that name something that the recording does not have, without a GPU.

use std::path::Path;

use tempfile::TempDir;

use crate::support::{Run, command, root, run};

/// Runs a replay of the fixture without any GPU that this machine may have.
fn replay(folder: &Path, options: &str) -> Run {
    let mut command = command();
    command
        .arg("replay")
        .arg(root().join("fixtures/replay-h200.sbt"))
        .args(options.split_whitespace())
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder);
    run(&mut command)
}

#[test]
fn a_dry_run_rejects_what_a_replay_rejects() {
    let folder = TempDir::new().unwrap();
    let plan = r#"{"replace": [{"kernel": "scale", "nth": 2, "file": "new.ptx"}]}"#;
    std::fs::write(folder.path().join("plan.json"), plan).unwrap();
    std::fs::write(folder.path().join("new.ptx"), ".version 7.0").unwrap();
    for (options, words) in [
        ("--kernel flash#3", "no kernel whose name contains \"flash\""),
        ("--kernel sclae", "similar names: scale(float*, int)"),
        (
            "--kernel flash",
            "it launches scale(float*, int), total(float const*, float*, int)",
        ),
        ("--kernel scale(float*,#2", "are launched only once"),
        ("--kernel scale#3", "are launched only once"),
        (
            "--ops 40..60",
            "--ops 40..60 selects no call: the recording has calls 1 to 7",
        ),
        ("--stream 0x77", "no call in stream 0x77; it has calls in 0x0"),
        ("--replace foo=new.ptx", "cannot replace \"foo\""),
        (
            "--replace totl=new.ptx",
            "similar names: total(float const*, float*, int)",
        ),
        ("--replace scale=none.cubin", "none.cubin"),
        ("--plan none.json", "none.json"),
        ("--plan plan.json", "cannot replace launch 2 of \"scale\""),
        ("--tolerance 1e-3", "a tolerance needs a type"),
    ] {
        for mode in ["dry-run", "full"] {
            let run = replay(folder.path(), &format!("--mode {mode} {options}"));
            assert_eq!(run.code, Some(2), "{options}: {run:?}");
            assert!(run.stderr.contains(words), "{options}: {run:?}");
            assert_eq!(run.stdout, "", "{options}");
        }
    }
}

#[test]
fn memory_is_not_written_before_a_call_that_is_not_recorded() {
    let folder = TempDir::new().unwrap();
    for until in [0, 9, 99] {
        let run = replay(
            folder.path(),
            &format!("--until {until} --dump 0x7fc067e00000 -o out.npy"),
        );
        assert_eq!(run.code, Some(2), "{run:?}");
        let words = format!("--until {until}: the recording has calls 1 to 7");
        assert!(run.stderr.contains(&words), "{run:?}");
        assert!(!folder.path().join("out.npy").exists());
    }
}

#[test]
fn a_dump_from_the_middle_of_a_buffer_reports_the_offset() {
    let folder = TempDir::new().unwrap();
    let run = replay(folder.path(), "--dump 0x7fc067e00010 -o out.npy");
    assert_eq!(run.code, Some(0), "{run:?}");
    let words =
        "0x7fc067e00010 is at offset 16 of the buffer at 0x7fc067e00000; the whole buffer was written";
    assert!(run.stderr.contains(words), "{run:?}");
}

#[test]
fn a_dump_does_not_replace_a_file_without_force() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("out.npy");
    std::fs::write(&file, "mine").unwrap();
    let refused = replay(folder.path(), "--dump 0x7fc067e00000 -o out.npy");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("out.npy exists; replace it with --force"),
        "{refused:?}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let forced = replay(folder.path(), "--dump 0x7fc067e00000 -o out.npy --force");
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn without_a_gpu_the_hint_names_what_works() {
    let folder = TempDir::new().unwrap();
    let run = replay(folder.path(), "");
    assert_eq!(run.code, Some(2), "{run:?}");
    let words = "--dump of final memory and of memory that no kernel has changed";
    assert!(run.stderr.contains(words), "{run:?}");
}
