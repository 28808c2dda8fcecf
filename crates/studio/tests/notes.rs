//! Notes next to a trace: who may write them, and what a file of somebody else can do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tracesmith_studio::{Control, Options};

use crate::support::{Running, start_with, traces};

const SIDECAR: &str = "a.sbt.notes.json";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trace = traces::kernels(&[("gemm", 1_000, 50), ("copy", 2_000, 70)], &[]);
    fs::write(folder.path().join("a.sbt"), trace).unwrap();
    folder
}

fn server(folder: &Path, control: Control) -> Running {
    let server = start_with(Options {
        files: vec![folder.join("a.sbt")],
        folder: folder.to_owned(),
        control,
        ..Options::default()
    });
    server.ready(0);
    server
}

fn note(text: &str) -> Value {
    json!({ "from_ns": 0, "to_ns": 50, "track": "stream:1.1.0.7", "lane": 0, "event": "gemm", "text": text })
}

fn save(server: &Running, base: &Value, notes: &[Value]) -> crate::support::Answer {
    server.post("t/0/notes", &json!({ "base": base, "notes": notes }).to_string())
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<PathBuf> = entries
        .map(|entry| PathBuf::from(entry.unwrap().file_name()))
        .collect();
    names.sort();
    names
}

#[test]
fn notes_are_written_next_to_the_trace_and_read_again() {
    let folder = folder();
    let trace = folder.path().join("a.sbt");
    fs::set_permissions(&trace, fs::Permissions::from_mode(0o640)).unwrap();
    let writing = server(folder.path(), Control::Allowed);
    let none = writing.json("t/0/notes");
    assert_eq!(
        (&none["stamp"], &none["can_save"], &none["fits"]),
        (&Value::Null, &true.into(), &true.into())
    );
    assert_eq!(none["document"]["notes"], json!([]));
    assert_eq!(names(folder.path()).len(), 1, "reading wrote a file");
    let markup = note("<img src=x onerror=alert(1)>\nsecond line");
    let moment = json!({ "from_ns": 7, "to_ns": 7, "text": "só" });
    let saved = save(&writing, &Value::Null, &[moment.clone(), markup.clone()]).good();
    assert_eq!(saved["document"]["notes"], json!([moment, markup]));
    assert_eq!(
        names(folder.path()),
        [PathBuf::from("a.sbt"), PathBuf::from(SIDECAR)]
    );
    let path = folder.path().join(SIDECAR);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        file,
        json!({
            "format": "tracesmith-notes", "version": 1, "trace": "a.sbt", "origin_ns": "1000", "notes": [moment, markup]
        })
    );
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // Another server shows them, and cannot change them.
    let reading = server(folder.path(), Control::Refused);
    let shown = reading.json("t/0/notes");
    assert_eq!(
        (&shown["document"], &shown["can_save"], &shown["stamp"]),
        (&file, &false.into(), &saved["stamp"])
    );
    // The list of files does not offer them as a trace.
    let files = reading.json("files");
    let kind = files["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == SIDECAR)
        .unwrap()["kind"]
        .clone();
    assert_eq!(kind, "file");
}

#[test]
fn notes_are_written_only_with_control_and_the_key() {
    let folder = folder();
    let reading = server(folder.path(), Control::Refused);
    let refused = save(&reading, &Value::Null, &[note("x")]);
    assert!(refused.value()["hint"].as_str().unwrap().contains("--control"));
    refused.error(403);
    refused.assert_protected();
    let writing = server(folder.path(), Control::Allowed);
    let body = json!({ "base": null, "notes": [] }).to_string();
    let request = writing.post_text("t/0/notes", &body);
    let without_key = request.replace(&writing.key_line(), "x-other: 1");
    writing.raw(&without_key).unwrap().error(401);
    let foreign = request.replace("connection:", "origin: http://evil.example\r\nconnection:");
    writing.raw(&foreign).unwrap().error(403);
    let cross = request.replace("connection:", "sec-fetch-site: cross-site\r\nconnection:");
    writing.raw(&cross).unwrap().error(403);
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn what_another_page_saved_is_not_written_over() {
    let folder = folder();
    let server = server(folder.path(), Control::Allowed);
    let first = save(&server, &Value::Null, &[note("one")]).good();
    // A page that did not see the file, and one that saw an older one.
    save(&server, &Value::Null, &[note("two")]).error(412);
    let second = save(&server, &first["stamp"], &[note("three")]).good();
    save(&server, &first["stamp"], &[note("four")]).error(412);
    assert_ne!(first["stamp"], second["stamp"]);
    let kept = server.json("t/0/notes");
    assert_eq!(kept["document"]["notes"][0]["text"], "three");
    let cleared = save(&server, &second["stamp"], &[]).good();
    assert_eq!(cleared["document"]["notes"], json!([]));
}

#[test]
fn wrong_notes_are_refused() {
    let folder = folder();
    let server = server(folder.path(), Control::Allowed);
    let long = "x".repeat(10_001);
    let many = vec![json!({ "from_ns": 1, "to_ns": 1, "text": "" }); 10_001];
    for wrong in [
        vec![json!({ "from_ns": 2, "to_ns": 1, "text": "" })],
        vec![json!({ "from_ns": -1, "to_ns": 1, "text": "" })],
        vec![json!({ "from_ns": 0.5, "to_ns": 1, "text": "" })],
        vec![json!({ "from_ns": 0, "to_ns": 1 })],
        vec![note(&long)],
        vec![json!({ "from_ns": 0, "to_ns": 1, "text": "", "event": long })],
        many,
    ] {
        save(&server, &Value::Null, &wrong).error(400);
    }
    save(&server, &Value::Null, &vec![note(&"x".repeat(9_999)); 120]).error(413);
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn a_file_that_holds_something_else_is_reported_and_kept() {
    let folder = folder();
    let path = folder.path().join(SIDECAR);
    let secret = folder.path().join("secret");
    fs::write(&secret, "\"password\"").unwrap();
    let server = server(folder.path(), Control::Allowed);
    let about = json!({ "version": 1, "trace": "a.sbt", "origin_ns": "1000", "notes": [] });
    let with = |name: &str, value: Value| {
        let mut document = about.clone();
        document["format"] = "tracesmith-notes".into();
        document[name] = value;
        document.to_string()
    };
    for (content, words) in [
        ("\"password\"".to_owned(), "line 1 "),
        ("{\n\"password\": 3".to_owned(), "line 2 "),
        (String::new(), "line"),
        (with("format", "other".into()), "not a file with notes"),
        (with("version", 2.into()), "another version"),
        (with("notes", json!([{ "from_ns": "password" }])), "line"),
        (with("notes", json!([note(&"x".repeat(10_001))])), "10000"),
        (
            format!("{}{}", with("version", 1.into()), " ".repeat(1 << 20)),
            "1 MB",
        ),
        ("\u{0}\u{1}".to_owned(), "line"),
    ] {
        fs::write(&path, &content).unwrap();
        let answer = server.json("t/0/notes");
        let problem = answer["problem"].as_str().unwrap();
        assert!(
            problem.contains(words) && !problem.contains("password"),
            "{problem}"
        );
        assert_eq!(
            (&answer["can_save"], &answer["document"]["notes"]),
            (&false.into(), &json!([]))
        );
        for base in [Value::Null, answer["stamp"].clone()] {
            save(&server, &base, &[note("x")]).error(422);
        }
        assert_eq!(fs::read(&path).unwrap(), content.as_bytes());
    }
    // What is no regular file: a link to a secret, a folder, a pipe without a writer.
    fs::remove_file(&path).unwrap();
    symlink(&secret, &path).unwrap();
    let linked = server.json("t/0/notes");
    assert!(
        linked["problem"].as_str().unwrap().contains("symbolic link"),
        "{linked}"
    );
    save(&server, &Value::Null, &[note("x")]).error(422);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "\"password\"");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(server.json("t/0/notes")["problem"].is_string());
    save(&server, &Value::Null, &[note("x")]).error(422);
    fs::remove_dir(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        assert!(server.json("t/0/notes")["problem"].is_string());
        save(&server, &Value::Null, &[note("x")]).error(422);
    }
}

#[test]
fn notes_of_another_recording_are_shown_as_such() {
    let folder = folder();
    let document = json!({
        "format": "tracesmith-notes", "version": 1, "trace": "a.sbt", "origin_ns": "7", "notes": [note("old")]
    });
    fs::write(folder.path().join(SIDECAR), document.to_string()).unwrap();
    let server = server(folder.path(), Control::Allowed);
    let shown = server.json("t/0/notes");
    assert_eq!(
        (&shown["fits"], &shown["document"]["notes"][0]["text"]),
        (&false.into(), &"old".into())
    );
    let saved = save(&server, &shown["stamp"], &[note("new")]).good();
    assert_eq!(
        (&saved["fits"], &saved["document"]["origin_ns"]),
        (&true.into(), &"1000".into())
    );
}
