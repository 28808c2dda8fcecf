//! `tracesmith studio`: the real program, asked through its port.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::studio::{start, studio};
use crate::support::{command, root, tracesmith};

const TRAIN: &str = "fixtures/train-h200.sbt";
const FIXED: &str = "fixtures/train-h200-fixed.sbt";
const DEMO: &str = "fixtures/demo-h200.sbt";

#[test]
fn analyses_are_what_the_command_prints() {
    let studio = studio(&[TRAIN, "--no-browser"]);
    let layout = studio.ready();
    let origin: u64 = layout["origin_ns"].as_str().unwrap().parse().unwrap();
    let info: Value = serde_json::from_str(&tracesmith(["info", TRAIN, "--format", "json"]).ok()).unwrap();
    let command = |args: &[&str]| -> Value {
        let args = ["analyze", TRAIN, "--format", "json"].iter().chain(args);
        serde_json::from_str(&tracesmith(args).ok()).unwrap()
    };
    let names = [
        "utilization",
        "streams",
        "idle",
        "host",
        "steps",
        "kernels",
        "copies",
        "launches",
        "memory",
        "critical-path",
        "slack",
        "what-if",
        "findings",
    ];
    for name in names {
        assert_eq!(
            studio.json(&format!("t/0/analysis/{name}")),
            command(&["--only", name]),
            "{name}"
        );
    }
    assert_eq!(studio.json("t/0/analysis/summary"), command(&[]));
    // Times of the page count from the origin, those of the command from the start of the trace.
    let first = info["span_ns"][0].as_u64().unwrap_or(origin);
    let (from, to) = (20_000_000_u64, 40_000_000_u64);
    let offset = |time: u64| format!("{}ns", time + origin - first);
    let range = ["--from".to_owned(), offset(from), "--to".to_owned(), offset(to)];
    let range: Vec<&str> = range.iter().map(String::as_str).collect();
    for name in ["idle", "kernels", "launches", "findings"] {
        let answer = studio.json(&format!("t/0/analysis/{name}?from={from}&to={to}"));
        assert_eq!(
            answer,
            command(&[&["--only", name], &range[..]].concat()),
            "{name}"
        );
    }
    let pairs: [(&str, &[&str]); 5] = [
        (
            "kernels?by=short&limit=3",
            &["--only", "kernels", "--by", "short", "--limit", "3"],
        ),
        (
            "kernels?by=line&limit=0",
            &["--only", "kernels", "--by", "line", "--limit", "0"],
        ),
        ("kernels?step=1", &["--only", "kernels", "--step", "1"]),
        (
            "utilization?device=0",
            &["--only", "utilization", "--device", "0"],
        ),
        (
            "what-if?what_if=%7B%22scales%22%3A%5B%7B%22name%22%3A%22*gemm*%22%2C%22factor%22%3A0.5%7D%5D%2C%22host_waits%22%3A%22left%22%7D",
            &["--only", "what-if", "--scale", "*gemm*=0.5", "--without-sync"],
        ),
    ];
    for (path, args) in pairs {
        assert_eq!(
            studio.json(&format!("t/0/analysis/{path}")),
            command(args),
            "{path}"
        );
    }
    for (path, status) in [
        ("absent", 404),
        ("kernels?by=absent", 400),
        ("kernels?step=999", 404),
        ("kernels?device=9", 400),
        ("kernels?from=5&to=5", 400),
        ("what-if?what_if=x", 400),
    ] {
        let (answered, body) = studio.get(&format!("/api/v1/t/0/analysis/{path}"));
        assert_eq!(answered, status, "{path}: {}", String::from_utf8_lossy(&body));
    }
    // The GPU has another stream with work, so its idle time is not that of one stream.
    let studio = self::studio(&[DEMO, "--no-browser"]);
    studio.ready();
    let (answered, body) = studio.get("/api/v1/t/0/analysis/idle?stream=14");
    assert_eq!(answered, 400, "{}", String::from_utf8_lossy(&body));
}

#[test]
fn a_comparison_is_what_the_command_prints() {
    let studio = studio(&[TRAIN, FIXED, "--no-browser"]);
    studio.ready();
    studio.ready_number(1);
    let command = |args: &[&str]| -> Value {
        let args = ["diff", "--format", "json"].iter().chain(args);
        serde_json::from_str(&tracesmith(args).ok()).unwrap()
    };
    let answer = studio.json("diff?a=0&b=1");
    assert!(!answer["kernels"].as_array().unwrap().is_empty());
    assert_eq!(answer, command(&[TRAIN, FIXED]));
    assert_eq!(studio.json("diff?a=1&b=0&by=name"), command(&[FIXED, TRAIN]));
    assert_eq!(
        studio.json("diff?a=0&b=1&by=short"),
        command(&[TRAIN, FIXED, "--by", "short"])
    );
    for (query, status) in [
        ("a=0&b=7", 404),
        ("a=0", 400),
        ("a=0&b=1&by=absent", 400),
        ("a=0&b=x", 400),
    ] {
        let (answered, body) = studio.get(&format!("/api/v1/diff?{query}"));
        assert_eq!(answered, status, "{query}: {}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn ctrl_c_ends_it_at_once_also_with_an_open_stream() {
    for signal in [Signal::INT, Signal::TERM] {
        let studio = studio(&[TRAIN, "--no-browser"]);
        studio.ready();
        let mut stream = studio.send("/api/v1/events");
        let mut head = [0; 64];
        stream.read_exact(&mut head).unwrap();
        assert!(head.starts_with(b"HTTP/1.1 200"));
        let (waited, code, talk) = studio.end_with(signal);
        assert_eq!(code, Some(0), "{talk}");
        assert!(waited < Duration::from_secs(1), "{waited:?}");
        assert!(talk.contains("ssh -L") && talk.contains("Ctrl-C"), "{talk}");
    }
}

#[test]
fn it_starts_without_a_file_and_opens_those_of_the_folder() {
    let mut program = command();
    program
        .arg("studio")
        .arg("--no-browser")
        .current_dir(root().join("fixtures"));
    let studio = start(&mut program);
    let session = studio.json("session");
    assert_eq!(
        (&session["traces"], &session["control"]),
        (&Value::Array(Vec::new()), &false.into())
    );
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    let files = studio.json("files");
    let names: Vec<&str> = files["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    assert!(names.contains(&"train-h200.sbt"), "{names:?}");
    assert_eq!(studio.get("/api/v1/t/0/layout").0, 404);
}

#[test]
fn the_browser_gets_a_file_that_only_the_user_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let (runtime, bin, seen) = (
        folder.path().join("run"),
        folder.path().join("bin"),
        folder.path().join("seen"),
    );
    fs::create_dir(&runtime).unwrap();
    fs::create_dir(&bin).unwrap();
    let opener = bin.join("xdg-open");
    fs::write(
        &opener,
        format!(
            "#!/bin/sh\nprintf %s \"$1\" > {0}.part\nmv {0}.part {0}\n",
            seen.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    )))
    .unwrap();
    let mut program = command();
    program
        .args(["studio", TRAIN])
        .env("DISPLAY", ":99")
        .env("PATH", path)
        .env("XDG_RUNTIME_DIR", &runtime);
    let studio = start(&mut program);
    let begin = Instant::now();
    while !seen.exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "no browser was started"
        );
        thread::sleep(Duration::from_millis(10));
    }
    let file = fs::read_to_string(&seen).unwrap();
    assert!(
        !file.contains(studio.key()),
        "the key is in a command line: {file}"
    );
    let file = Path::new(&file);
    assert!(file.starts_with(&runtime));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(file).unwrap().contains(&studio.url));
    // It goes when a page has the key, not when somebody else asks for the page.
    studio.get("/");
    assert!(file.exists());
    studio.json("session");
    assert!(!file.exists());
    // A server that no page with the key has asked leaves no file either.
    fs::remove_file(&seen).unwrap();
    let unused = start(&mut program);
    while !seen.exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "no browser was started"
        );
        thread::sleep(Duration::from_millis(10));
    }
    // It runs when it answers.
    unused.get("/");
    assert_eq!(unused.end_with(Signal::INT).1, Some(0));
    assert_eq!(fs::read_dir(&runtime).unwrap().count(), 0);
}

#[test]
fn other_addresses_are_warned_of_and_wrong_arguments_fail() {
    let listening = studio(&[
        TRAIN,
        "--no-browser",
        "--listen",
        "127.0.0.1",
        "--allow-host",
        "gpu.example",
    ]);
    let (_, _, talk) = listening.end_with(Signal::INT);
    assert!(!talk.contains("warning"), "{talk}");
    let mut program = command();
    program.args(["studio", TRAIN, "--no-browser", "--listen", "0.0.0.0"]);
    let open = start(&mut program);
    let (_, _, talk) = open.end_with(Signal::INT);
    assert!(talk.contains("warning: everyone who reaches 0.0.0.0"), "{talk}");
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    for (args, words) in [
        (vec!["absent.sbt"], "cannot open absent.sbt"),
        (vec!["--port", &port], "cannot listen on 127.0.0.1:"),
        (vec!["--listen", "nowhere"], "invalid"),
        (vec!["--format", "csv"], "csv"),
    ] {
        let args = ["studio", "--no-browser"].into_iter().chain(args);
        let run = tracesmith(args);
        assert_eq!(run.code, Some(2), "{words}");
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}
