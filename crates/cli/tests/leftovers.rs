//! What is left when a command does not come to its end: nothing.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{command, root, run};

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A trace that takes a while to export.
fn write_long_trace(file: &Path) {
    let mut text = String::from("{\"deviceProperties\": [], \"traceEvents\": [\n");
    for number in 0..200_000 {
        let comma = if number == 0 { "" } else { "," };
        writeln!(
            text,
            "{comma}{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k{}\",\"pid\":0,\"tid\":7,\"ts\":{},\"dur\":1,\
             \"args\":{{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":{number}}}}}",
            number % 1000,
            number * 2
        )
        .unwrap();
    }
    text.push_str("]}");
    std::fs::write(file, text).unwrap();
}

#[test]
fn an_interrupted_export_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("long.json");
    write_long_trace(&input);
    for format in ["csv", "sqlite"] {
        let out = TempDir::new().unwrap();
        let mut child = command()
            .args(["export", "-q", "-f", format, "-o", "out"])
            .arg(&input)
            .current_dir(out.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !names(out.path()).iter().any(|name| name.contains(".partial-")) {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{format} does not begin"
            );
            assert!(child.try_wait().unwrap().is_none(), "{format} was too fast");
            sleep(Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(2), "{format}: {ended:?}");
        assert_eq!(names(out.path()), Vec::<String>::new(), "{format}");
    }
}

/// As on a full disk: a file gets no longer than a few hundred bytes, and writing more is an error.
fn with_small_files(folder: &Path, line: &str) -> crate::support::Run {
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {} {line} < /dev/null",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder);
    run(&mut shell)
}

#[test]
fn what_cannot_be_written_is_not_left() {
    let folder = TempDir::new().unwrap();
    let file = root().join("fixtures/replay-h200.sbt");
    let file = file.display();
    for line in [
        format!("replay {file} --dump 0x7fc067e00000 -o out.npy"),
        format!("extract {file} --kernel scale -o scale"),
    ] {
        let failed = with_small_files(folder.path(), &line);
        assert_eq!(failed.code, Some(2), "{failed:?}");
        assert!(failed.stderr.contains("File too large"), "{failed:?}");
        assert_eq!(names(folder.path()), Vec::<String>::new(), "{failed:?}");
    }
}

#[test]
fn a_failed_extract_leaves_no_folder() {
    let folder = TempDir::new().unwrap();
    let failed = run(command()
        .arg("extract")
        .arg(root().join("fixtures/replay-h200.sbt"))
        .args(["--kernel", "total", "-o", "total"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder.path()));
    assert_eq!(failed.code, Some(2), "{failed:?}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_demo_replaces_only_a_trace_of_a_demo() {
    let folder = TempDir::new().unwrap();
    let demo = || run(command().args(["demo", "--recorded"]).current_dir(folder.path()));
    let file = folder.path().join("tracesmith-demo.sbt");
    assert_eq!(demo().code, Some(0));
    assert_eq!(demo().code, Some(0), "its own is replaced");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    let usual = std::fs::metadata(root().join("Cargo.toml"))
        .unwrap()
        .permissions()
        .mode()
        & 0o444;
    assert_eq!(mode & usual, usual, "others can read it");
    let refused = run(command().args(["demo", "-o", "-"]).current_dir(folder.path()));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(!folder.path().join("-").exists());
    std::fs::write(&file, "mine").unwrap();
    let refused = demo();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("exists; replace it with --force"),
        "{refused:?}"
    );
    std::fs::copy(root().join("fixtures/synthetic-v1.sbt"), &file).unwrap();
    assert_eq!(demo().code, Some(2), "a trace, but not of a demo");
}
