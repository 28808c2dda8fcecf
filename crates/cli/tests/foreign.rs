//! Recording with other tools' profilers. Those are not there: scripts of the same names stand for them, note what they
//! are asked, and leave files that were made before.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use support::{Run, command, root, run};
use tempfile::TempDir;
use tracesmith_trace::Trace;

/// Runs the program as nsys does, and "exports" a database from the importer's corpus.
const NSYS: &str = r#"#!/bin/sh
echo "$@" >> "$NSYS_LOG"
case "$1" in
profile)
    shift
    while :; do
        case "$1" in
        --output=*) base="${1#--output=}"; shift ;;
        --*) shift ;;
        *) break ;;
        esac
    done
    [ -n "$NSYS_WRITES_NOTHING" ] || echo report > "$base.nsys-rep"
    "$@"
    ;;
export)
    for argument; do
        case "$argument" in
        --output=*) cp "$NSYS_DATABASE" "${argument#--output=}" ;;
        esac
    done
    echo "this is talk"
    ;;
esac
"#;

/// A folder with the script, to work in.
fn stage() -> TempDir {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("nsys");
    fs::write(&script, NSYS).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn profile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command
        .current_dir(folder)
        .env("PATH", path)
        .env("NSYS_LOG", folder.join("log"))
        .env(
            "NSYS_DATABASE",
            root().join("fuzz/corpus/import_nsys/everything.sqlite"),
        )
        .arg("profile")
        .args(arguments);
    command
}

#[test]
fn what_nsys_recorded_is_imported_and_its_files_go() {
    let folder = stage();
    let arguments = [
        "--nsys",
        "--nsys-args",
        "--trace=cuda '--x=a b'",
        "-o",
        "run.sbt",
        "--",
        "sh",
        "-c",
        "echo out",
    ];
    let Run { code, stdout, stderr } = run(&mut profile(folder.path(), &arguments));
    assert_eq!((code, stdout.as_str()), (Some(0), "out\n"), "{stderr}");
    let trace = Trace::open(&folder.path().join("run.sbt")).unwrap();
    assert_eq!((trace.kernels.rows(), trace.api_calls.rows()), (2, 2));
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["log", "nsys", "run.sbt"]);

    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let (profile, export) = log.trim().split_once('\n').unwrap();
    assert!(
        profile.starts_with("profile --force-overwrite=true --trace=cuda,nvtx,osrt"),
        "{profile}"
    );
    assert!(
        profile.ends_with("/recording --trace=cuda --x=a b sh -c echo out"),
        "{profile}"
    );
    assert!(
        export.starts_with("export --type=sqlite --force-overwrite=true --output="),
        "{export}"
    );
    assert!(export.ends_with("/recording.nsys-rep"), "{export}");
}

#[test]
fn its_files_stay_beside_the_trace_when_asked_for() {
    let folder = stage();
    run(&mut profile(
        folder.path(),
        &["--nsys", "--keep-trace", "-o", "run.sbt", "--", "true"],
    ))
    .ok();
    for name in ["run.sbt", "run.nsys-rep", "run.sqlite"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn the_exit_code_is_the_programs() {
    let folder = stage();
    let failed = run(&mut profile(
        folder.path(),
        &["--nsys", "--", "sh", "-c", "exit 7"],
    ));
    assert_eq!(failed.code, Some(7), "{}", failed.stderr);
    assert!(
        folder.path().join("sh.sbt").exists(),
        "the trace is there all the same"
    );
    let silent = run(profile(folder.path(), &["--nsys", "--", "true"]).env("NSYS_WRITES_NOTHING", "1"));
    assert_eq!(silent.code, Some(2));
    assert!(
        silent.stderr.contains("nsys wrote no report"),
        "{}",
        silent.stderr
    );
}

#[test]
fn without_nsys_a_line_says_so() {
    let folder = TempDir::new().unwrap();
    let missing = run(profile(folder.path(), &["--nsys", "--", "true"]).env("PATH", folder.path()));
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("nsys is not on PATH"),
        "{}",
        missing.stderr
    );
    assert!(
        missing.stderr.contains("hint: install NVIDIA Nsight Systems"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_trace_that_exists_is_refused_before_anything_runs() {
    let folder = stage();
    fs::write(folder.path().join("run.sbt"), "mine").unwrap();
    let refused = run(&mut profile(
        folder.path(),
        &["--nsys", "-o", "run.sbt", "--", "touch", "ran"],
    ));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert!(!folder.path().join("ran").exists());
}
