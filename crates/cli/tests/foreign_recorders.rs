//! Recording with other vendors' tools, which are shell scripts here.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use support::{Run, command, run};
use tempfile::TempDir;
use tracesmith_trace::Trace;

fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `tracesmith profile` with the scripts of a folder in PATH, in that folder.
fn profile(folder: &TempDir, args: &[&str]) -> Run {
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    run(command()
        .current_dir(folder.path())
        .env("PATH", path)
        .arg("profile")
        .args(args))
}

const XCRUN: &str = r#"
echo "$@" >> calls
case "$1 $2" in
'--find xctrace') exit 0;;
'xctrace record')
  while [ "$1" != -- ]; do [ "$1" = --output ] && out=$2; shift; done
  shift; mkdir "$out"; "$@"; exit $?;;
'xctrace export')
  while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done
  cat > "$out" <<XML
<?xml version="1.0"?>
<trace-query-result><node><schema name="metal-gpu-intervals">
<col><mnemonic>start</mnemonic></col><col><mnemonic>duration</mnemonic></col><col><mnemonic>event-label</mnemonic></col></schema>
<row><start-time>10</start-time><duration>5</duration><formatted-label fmt="saxpy"/></row></node></trace-query-result>
XML
  exit 0;;
esac
exit 9
"#;

#[test]
fn xctrace_records_exports_and_is_imported() {
    let folder = TempDir::new().unwrap();
    script(folder.path(), "xcrun", XCRUN);
    script(folder.path(), "app", "echo it runs with $1; exit 3");
    let ran = profile(
        &folder,
        &[
            "--xctrace",
            "--xctrace-template",
            "Mine",
            "-o",
            "t.sbt",
            "--",
            "./app",
            "-x",
        ],
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert_eq!(ran.stdout, "it runs with -x\n");
    let trace = Trace::open(&folder.path().join("t.sbt")).unwrap();
    assert_eq!(trace.kernels.rows(), 1);
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(calls.contains("record --template Mine --output "), "{calls}");
    assert!(calls.contains(" --launch -- ./app -x"), "{calls}");
    assert!(!calls.contains("--time-limit"), "{calls}");
    assert!(
        calls.contains("table[@schema=\"metal-gpu-intervals\" or "),
        "{calls}"
    );
    // A trace that is there already is not written over, and the program is not run for nothing.
    let again = profile(&folder, &["--xctrace", "-o", "t.sbt", "--", "./app"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(2), ""));
}

/// The script exits as xctrace does when the limit has ended the program.
#[test]
fn a_duration_is_a_limit_of_xctrace() {
    let folder = TempDir::new().unwrap();
    script(folder.path(), "xcrun", XCRUN);
    script(folder.path(), "app", "exit 54");
    let ran = profile(
        &folder,
        &["--xctrace", "-d", "1.5s", "-o", "t.sbt", "--", "./app"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(
        calls.contains(" --time-limit 1500ms --launch -- ./app"),
        "{calls}"
    );
    assert!(Trace::open(&folder.path().join("t.sbt")).is_ok());
    // Without a limit it is the program's own code.
    let ran = profile(&folder, &["--xctrace", "-o", "u.sbt", "--", "./app"]);
    assert_eq!(ran.code, Some(54), "{}", ran.stderr);
}

#[test]
fn mctracer_records_and_is_imported() {
    let folder = TempDir::new().unwrap();
    let tracer = r#"
[ "$1 $2 $4 $5" = "--mctx --odname --name trace" ] || exit 9
dir=$3; shift 5; "$@"; code=$?
echo '{"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}}]}' > "$dir/tracer_out-7.json"
exit $code
"#;
    script(folder.path(), "mcTracer", tracer);
    script(folder.path(), "app", "echo it runs; exit 4");
    let ran = profile(&folder, &["--mctracer", "-o", "t.sbt", "--", "./app"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(4), "it runs\n"),
        "{}",
        ran.stderr
    );
    assert!(Trace::open(&folder.path().join("t.sbt")).is_ok());
    assert!(!folder.path().join("t.mctracer").exists());

    let kept = profile(
        &folder,
        &[
            "--mctracer",
            "--keep-trace",
            "--perfetto",
            "-o",
            "u.sbt",
            "--",
            "./app",
        ],
    );
    assert_eq!(kept.code, Some(4), "{}", kept.stderr);
    assert!(folder.path().join("u.mctracer/tracer_out-7.json").exists());
    assert!(folder.path().join("u.pftrace").exists());
    let alone = profile(&folder, &["--keep-trace", "--", "./app"]);
    assert_eq!(
        (alone.code, alone.stdout.as_str()),
        (Some(2), ""),
        "there is nothing to keep"
    );
}

/// Ctrl-C goes to all programs of the terminal: the recorder completes its file, and we import it.
#[test]
fn keys_end_the_recording_and_not_the_import() {
    let folder = TempDir::new().unwrap();
    let tracer = r#"
dir=$3; shift 5
trap 'echo "{\"rocprofiler-sdk-tool\": []}" > "$dir/tracer_out-7.json"; exit 0' INT
touch ready
while :; do sleep 0.05; done
"#;
    script(folder.path(), "mcTracer", tracer);
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let child = command()
        .current_dir(folder.path())
        .env("PATH", path)
        .args(["profile", "--mctracer", "-o", "t.sbt", "--", "./app"])
        .process_group(0)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !folder.path().join("ready").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the recorder does not start"
        );
        thread::sleep(Duration::from_millis(5));
    }
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{words}");
    assert!(words.contains("wrote t.sbt"), "{words}");
    assert!(Trace::open(&folder.path().join("t.sbt")).is_ok());
}

#[test]
fn a_recorder_that_leaves_nothing_is_told() {
    let folder = TempDir::new().unwrap();
    script(folder.path(), "mcTracer", "exit 5");
    let ran = profile(&folder, &["--mctracer", "-o", "t.sbt", "--", "./app"]);
    assert_eq!(ran.code, Some(5), "what failed first: {}", ran.stderr);
    assert!(ran.stderr.contains("mcTracer wrote no trace"), "{}", ran.stderr);
    script(
        folder.path(),
        "xcrun",
        "[ \"$1\" = --find ] || { echo no >&2; exit 5; }",
    );
    let ran = profile(&folder, &["--xctrace", "-o", "t.sbt", "--", "./app"]);
    assert!(
        ran.stderr.contains("xctrace wrote no recording"),
        "{}",
        ran.stderr
    );
    assert!(!folder.path().join("t.sbt").exists());
}

#[test]
fn without_the_recorder_the_program_is_not_started() {
    let folder = TempDir::new().unwrap();
    script(folder.path(), "app", "echo it runs");
    for (flag, word) in [
        ("--xctrace", "xcrun is not on PATH"),
        ("--mctracer", "mcTracer is not on PATH"),
    ] {
        let ran = profile(&folder, &[flag, "-o", "t.sbt", "--", "./app"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(
            ran.stderr.contains(word) && ran.stderr.contains("hint: "),
            "{}",
            ran.stderr
        );
    }
    script(folder.path(), "xcrun", "exit 72");
    let ran = profile(&folder, &["--xctrace", "-o", "t.sbt", "--", "./app"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("xcrun cannot find xctrace"), "{}", ran.stderr);
}
