//! Bad days: files that are damaged, that change, or that have odd names.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use serde_json::Value;
use tracesmith_studio::{Options, Server};

use crate::support::{fixtures, start, start_with, synthetic, traces, train};

#[test]
fn a_damaged_file_shows_what_is_left_and_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(train()).unwrap();
    let cut = folder.path().join("cut.sbt");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let server = start(&[&cut, &train()]);
    let (damaged, good) = (server.ready(0), server.ready(1));
    assert_eq!(
        (&damaged["state"], &damaged["health"]["good"]),
        (&"ready".into(), &false.into())
    );
    let sentences = damaged["health"]["sentences"].as_array().unwrap();
    assert!(
        !sentences.is_empty()
            && sentences
                .iter()
                .all(|sentence| !sentence.as_str().unwrap().is_empty())
    );
    let slices = |layout: &Value| -> u64 {
        let tracks = layout["tracks"].as_array().unwrap().iter();
        tracks.map(|track| track["slices"].as_u64().unwrap()).sum()
    };
    assert!(slices(&damaged) > 0 && slices(&damaged) < slices(&good));
}

#[test]
fn what_is_no_trace_fails_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "dear diary\n").unwrap();
    let server = start(&[&text]);
    let layout = server.ready(0);
    assert_eq!(layout["state"], "failed");
    assert!(
        layout["error"].as_str().unwrap().contains("not a trace"),
        "{layout}"
    );
    let session = server.json("session");
    assert_eq!(session["traces"][0]["state"], "failed");
    assert!(
        server
            .get("t/0/analysis/kernels")
            .error(422)
            .contains("not a trace")
    );
}

#[test]
fn damage_of_what_is_not_drawn_is_reported_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.sbt");
    let mut bytes = fs::read(train()).unwrap();
    // In the recorded modules, which only a replay needs.
    bytes[150_000..150_100].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let server = start(&[&path]);
    let layout = server.ready(0);
    assert_eq!(layout["state"], "ready");
    assert_eq!(layout["health"]["good"], false);
    let words = layout["health"]["sentences"].to_string();
    assert!(words.contains("checksum"), "{words}");
}

#[test]
fn a_file_that_changes_is_an_error_until_it_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.sbt");
    fs::write(&file, traces::kernels(&[("old", 1_000, 50)], &[])).unwrap();
    let server = start(&[&file]);
    let before = server.ready(0);
    let generation = before["generation"].as_str().unwrap();
    let tiles = format!("t/0/{generation}/tiles?level=0&first=0&count=1&rows=0");
    assert_eq!(server.get(&tiles).status, 200);
    // Another file takes its place.
    let new = folder.path().join("new.sbt");
    fs::write(
        &new,
        traces::kernels(&[("new", 1_000, 50), ("newer", 2_000, 50)], &[]),
    )
    .unwrap();
    fs::rename(&new, &file).unwrap();
    for path in [
        tiles.as_str(),
        "t/0/layout",
        "t/0/shapes",
        "t/0/analysis/kernels",
        "t/0/table/kernels",
        "t/0/search?q=old",
        "t/0/flame",
        "t/0/event?row=0&start=0",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.error(409), "live.sbt changed while it was open", "{path}");
        assert_eq!(answer.value()["hint"], "reload the page to read it again");
    }
    // A page that is loaded asks for the session.
    server.json("session");
    let after = server.ready(0);
    assert_ne!(after["generation"], before["generation"]);
    let shapes = server.json("t/0/shapes").to_string();
    assert!(shapes.contains("newer") && !shapes.contains("old"), "{shapes}");
    // What was of the old file is of no use any longer.
    server.get(&tiles).error(409);
    fs::remove_file(&file).unwrap();
    server.get("t/0/shapes").error(409);
}

#[test]
fn a_file_that_grows_is_an_error_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grows.sbt");
    fs::copy(synthetic(), &file).unwrap();
    let server = start(&[&file]);
    server.ready(0);
    fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .unwrap()
        .write_all(b"more")
        .unwrap();
    server.get("t/0/shapes").error(409);
    // Opening it again reads it again.
    let body = serde_json::json!({ "path": file.canonicalize().unwrap() }).to_string();
    assert_eq!(server.post("open", &body).good()["id"], 0);
    assert_eq!(server.ready(0)["state"], "ready");
}

#[test]
fn names_are_data_wherever_they_come_from() {
    const NAME: &str = "<img src=x onerror=alert(1)>";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{NAME}.sbt"));
    let long = "k".repeat(4_000);
    fs::write(
        &file,
        traces::kernels(&[(NAME, 1_000, 50), (&long, 2_000, 50)], &[NAME]),
    )
    .unwrap();
    let server = start_with(Options {
        files: vec![file],
        folder: folder.path().to_owned(),
        ..Options::default()
    });
    let layout = server.ready(0);
    assert_eq!(layout["name"], format!("{NAME}.sbt"));
    for path in [
        "t/0/layout",
        "t/0/shapes",
        "t/0/analysis/kernels",
        "t/0/search?q=onerror",
        "files",
        "t/0/flame",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert!(answer.good().to_string().contains("onerror"), "{path}");
        answer.assert_protected();
    }
    let found = server.json("t/0/search?q=kkkk&in=names");
    assert_eq!(
        (&found["total"], &found["results"][0]["name"]),
        (&1.into(), &Value::from(long))
    );
}

#[test]
fn a_stream_tells_what_changes_and_that_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(Options {
        files: vec![synthetic()],
        folder: folder.path().to_owned(),
        ..Options::default()
    });
    server.ready(0);
    fs::write(folder.path().join("b.sbt"), traces::kernels(&[("k", 1, 1)], &[])).unwrap();
    let mut stream = server.connect();
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\n{}\r\n{}\r\n\r\n",
        server.host(),
        server.key_line()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut next = |wanted: &dyn Fn(&Value) -> bool| -> Value {
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(20));
            let line = lines.next().unwrap();
            if let Some(value) = serde_json::from_str(&line).ok().filter(wanted) {
                return value;
            }
        }
    };
    let first = next(&|line| line["trace"] == 0);
    assert_eq!(
        (&first["state"], &first["progress"]),
        (&"ready".into(), &1.0.into())
    );
    assert_eq!(server.post("open", r#"{"path": "b.sbt"}"#).good()["id"], 1);
    let opened = next(&|line| line["trace"] == 1 && line["state"] == "ready");
    assert!(!opened["generation"].as_str().unwrap().is_empty());
    assert!(next(&|line| line["ping"].is_number())["ping"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_ends_some_time_after_its_last_page() {
    let server = tracesmith_studio::Server::bind(Options {
        idle_limit: Some(Duration::from_millis(300)),
        ..Options::default()
    })
    .unwrap();
    let begin = Instant::now();
    assert_eq!(server.run().unwrap(), tracesmith_studio::Ended::NoPages);
    let waited = begin.elapsed();
    assert!(
        waited >= Duration::from_millis(300) && waited < Duration::from_secs(10),
        "{waited:?}"
    );
}

#[test]
fn a_server_listens_where_the_last_one_did() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let start = || {
        Server::bind(Options {
            folder: fixtures(),
            usual_port: Some(port),
            ..Options::default()
        })
        .unwrap()
    };
    let port_of = |server: &Server| server.addresses()[0].port();
    let first = start();
    // Another program may have taken it since it was free.
    let usual = port_of(&first);
    assert!((port..port.saturating_add(16)).contains(&usual), "{usual}");
    let second = start();
    assert_ne!(port_of(&second), usual);
    drop((first, second));
    assert!(port_of(&start()) <= usual);
    // A port that was asked for is the only one.
    let held = start();
    let refused = Server::bind(Options {
        folder: fixtures(),
        port: port_of(&held),
        usual_port: Some(port),
        ..Options::default()
    });
    assert!(refused.is_err());
}
