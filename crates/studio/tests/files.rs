//! Which files a page can see, open and read: those below the start folder, and sources that a trace names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;
use tracesmith_studio::{Control, Options};

use crate::support::{Running, start_with, traces};

/// A folder `start` with traces, and secrets beside it.
fn folders() -> TempDir {
    let all = tempfile::tempdir().unwrap();
    let start = all.path().join("start");
    fs::create_dir_all(start.join("sub")).unwrap();
    let trace = traces::kernels(
        &[("k", 1_000, 50)],
        &["train.py", "linked.py", "../secret.py", "/etc/hostname"],
    );
    fs::write(start.join("sub/a.sbt"), &trace).unwrap();
    fs::write(all.path().join("secret.sbt"), &trace).unwrap();
    fs::write(all.path().join("secret.py"), "password = 1\n").unwrap();
    fs::write(start.join("train.py"), "import torch\nloss.backward()\n").unwrap();
    symlink("../secret.sbt", start.join("link.sbt")).unwrap();
    symlink("../secret.py", start.join("linked.py")).unwrap();
    symlink("..", start.join("up")).unwrap();
    all
}

fn server(all: &Path, control: Control) -> Running {
    start_with(Options {
        folder: all.join("start"),
        control,
        ..Options::default()
    })
}

fn open(server: &Running, path: &str) -> u16 {
    let body = serde_json::json!({ "path": path }).to_string();
    server.post("open", &body).status
}

const OUTSIDE: [&str; 8] = [
    "..",
    "../secret.sbt",
    "sub/../../secret.sbt",
    "link.sbt",
    "up/secret.sbt",
    "/etc/passwd",
    "/",
    "absent.sbt",
];

#[test]
fn folders_end_at_the_start() {
    let all = folders();
    let server = server(all.path(), Control::Refused);
    let listing = server.json("files");
    let names: Vec<&str> = listing["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["sub", "train.py"]);
    assert!(listing["parent"].is_null());
    let below = server.json("files?path=sub");
    assert_eq!((&below["path"], &below["parent"]), (&"sub".into(), &"".into()));
    let entry = &below["entries"][0];
    assert_eq!(
        (&entry["name"], &entry["kind"]),
        (&"a.sbt".into(), &"trace".into())
    );
    assert!(entry["bytes"].as_u64().unwrap() > 100 && entry["modified"].as_u64().unwrap() > 1_600_000_000);
    for path in [
        "..",
        "up",
        "/",
        "%2e%2e",
        "..%2f",
        "sub/../..",
        "%2fetc",
        "absent",
    ] {
        server.get(&format!("files?path={path}")).error(404);
    }
}

#[test]
fn files_outside_cannot_be_opened() {
    let all = folders();
    let server = server(all.path(), Control::Refused);
    for path in OUTSIDE {
        assert_eq!(open(&server, path), 404, "{path}");
    }
    assert_eq!(open(&server, "sub"), 400);
    let opened = server.post("open", r#"{"path": "sub/a.sbt"}"#).good();
    assert_eq!(opened["id"], 0);
    assert_eq!(server.ready(0)["state"], "ready");
    // The same file has one number.
    let whole = all.path().join("start/sub/a.sbt").canonicalize().unwrap();
    let again = serde_json::json!({ "path": whole }).to_string();
    assert_eq!(server.post("open", &again).good()["id"], 0);
    assert_eq!(server.json("session")["traces"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_that_was_named_may_lie_anywhere() {
    let all = folders();
    let secret = all.path().join("secret.sbt");
    let server = start_with(Options {
        files: vec![secret.clone()],
        folder: all.path().join("start"),
        ..Options::default()
    });
    let layout = server.ready(0);
    assert_eq!(
        (&layout["name"], &layout["state"]),
        (&"secret.sbt".into(), &"ready".into())
    );
    let path = layout["path"].as_str().unwrap();
    assert_eq!(open(&server, path), 200);
    assert_eq!(open(&server, "../secret.sbt"), 404);
    assert_eq!(server.get("t/1/layout").status, 404);
}

#[test]
fn only_sources_that_the_trace_names_are_shown() {
    let all = folders();
    let server = server(all.path(), Control::Refused);
    assert_eq!(open(&server, "sub/a.sbt"), 200);
    server.ready(0);
    let source = server.json("t/0/source?file=train.py&line=2");
    assert_eq!(
        source["lines"],
        serde_json::json!(["import torch", "loss.backward()"])
    );
    assert_eq!((&source["first"], &source["line"]), (&1.into(), &2.into()));
    for file in [
        // Not named.
        "sub/a.sbt",
        "/etc/passwd",
        "./train.py",
        "train.py%00",
        "",
        // Named, but outside of the folder.
        "../secret.py",
        "linked.py",
    ] {
        let answer = server.get(&format!("t/0/source?file={file}&line=1"));
        answer.error(404);
        assert!(!answer.text().contains("password"));
    }
    // A whole path is what the program had: it can be shown if it is there.
    if Path::new("/etc/hostname").is_file() {
        assert_eq!(server.get("t/0/source?file=/etc/hostname&line=1").status, 200);
    }
}

#[test]
fn pages_outside_of_their_folder_are_not_served() {
    let all = folders();
    let pages = all.path().join("start");
    fs::write(pages.join("index.html"), "<!doctype html><head></head>").unwrap();
    fs::write(pages.join("main.js"), "//").unwrap();
    symlink("../secret.py", pages.join("link.js")).unwrap();
    fs::write(all.path().join("secret.js"), "secret").unwrap();
    let server = start_with(Options {
        folder: pages.clone(),
        pages: Some(pages),
        ..Options::default()
    });
    let host = server.host();
    let index = server.with("GET", "/", &[&host]);
    assert_eq!(
        (index.status, index.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(
        index
            .text()
            .contains("<link rel=\"modulepreload\" href=\"main.js\">")
    );
    assert_eq!(
        server.with("GET", "/main.js", &[&host]).header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    for path in [
        "/../secret.js",
        "/sub/../../secret.js",
        "/%2e%2e/secret.js",
        "/..%2fsecret.js",
        "/link.js",
        "//etc/passwd",
        "/sub/a.sbt",
        "/train.py",
        "/main.js/",
    ] {
        let answer = server.with("GET", path, &[&host]);
        answer.error(404);
        answer.assert_protected();
    }
}

#[test]
fn files_are_written_only_with_control_and_only_below_the_start() {
    let all = folders();
    let body = |path: &str| serde_json::json!({ "from": 0, "to": 60, "path": path }).to_string();
    let reading = server(all.path(), Control::Refused);
    assert_eq!(open(&reading, "sub/a.sbt"), 200);
    reading.ready(0);
    let refused = reading.post("t/0/cut", &body("new.sbt"));
    assert!(refused.value()["hint"].as_str().unwrap().contains("--control"));
    refused.error(403);
    let writing = server(all.path(), Control::Allowed);
    assert_eq!(open(&writing, "sub/a.sbt"), 200);
    writing.ready(0);
    for path in ["../new.sbt", "/tmp/new.sbt", "up/new.sbt", "absent/new.sbt"] {
        writing.post("t/0/cut", &body(path)).error(404);
    }
    for path in ["", "..", "/"] {
        writing.post("t/0/cut", &body(path)).error(400);
    }
    for path in ["sub/a.sbt", "link.sbt", "train.py"] {
        writing.post("t/0/cut", &body(path)).error(409);
    }
    let written = writing.post("t/0/cut", &body("sub/new.sbt")).good();
    let path = written["path"].as_str().unwrap();
    assert_eq!(
        written["bytes"].as_u64().unwrap(),
        fs::metadata(path).unwrap().len()
    );
    let part = tracesmith_trace::Trace::open(Path::new(path)).unwrap();
    assert_eq!(part.kernels.rows(), 1);
    let names: Vec<_> = fs::read_dir(all.path().join("start/sub"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        fs::read(all.path().join("start/train.py"))
            .unwrap()
            .starts_with(b"import")
    );
}
