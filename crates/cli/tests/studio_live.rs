//! `tracesmith studio` beside a recording, and recordings that it starts.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tracesmith_trace::Trace;

use crate::support::stage::{Place, ended, kill, run, signal, stage, start, until};
use crate::support::studio::{self, Studio};

const LIMIT: Duration = Duration::from_secs(60);

fn studio_in(place: &Place, line: &str) -> Studio {
    studio::start(&mut place.tracesmith(&format!("studio --no-browser {line}")))
}

/// Slices of all streams.
fn slices(layout: &Value) -> u64 {
    let tracks = layout["tracks"].as_array().unwrap().iter();
    let streams = tracks.filter(|track| track["kind"] == "stream");
    streams.map(|track| track["slices"].as_u64().unwrap()).sum()
}

fn layout_until(studio: &Studio, trace: u64, wanted: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let layout = studio.json(&format!("t/{trace}/layout"));
        if layout["state"] == "ready" && wanted(&layout) {
            return layout;
        }
        assert!(begin.elapsed() < LIMIT, "{layout}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A recording of a program that launches kernels until it is killed, in a group of its own.
fn profiled_forever(place: &Place) -> Child {
    let recording = start(place.profile("", "launcher forever").process_group(0));
    until(|| fs::metadata(place.path("t.sbt")).is_ok_and(|file| file.len() > 0));
    recording
}

#[test]
fn rows_grow_beside_a_recording_and_nothing_is_lost() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let recording = profiled_forever(&place);
    let studio = studio_in(&place, "t.sbt");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let before = seen.last().copied().unwrap_or(0);
        let layout = layout_until(&studio, 0, |layout| slices(layout) > before);
        assert_eq!(layout["live"]["state"], "recording");
        assert_eq!(layout["health"]["good"], true, "{}", layout["health"]);
        seen.push(slices(&layout));
    }
    // The program gets the signal, and the recording ends with it.
    signal(&recording, Signal::TERM);
    ended(recording);
    let last = layout_until(&studio, 0, |layout| layout["live"].is_null());
    let trace = place.trace("t.sbt");
    assert_eq!(slices(&last), trace.kernels.rows());
    let count = place
        .tracesmith("sql t.sbt --format csv")
        .arg("select count(*) as n from kernels")
        .output();
    let count = String::from_utf8(count.unwrap().stdout).unwrap();
    assert_eq!(count.trim(), format!("n\n{}", slices(&last)));
    assert!(
        seen.windows(2).all(|two| two[0] < two[1]) && seen[3] <= slices(&last),
        "{seen:?}"
    );
    // The same rows as in a server that opens the finished file.
    let again = studio_in(&place, "t.sbt").ready();
    let rows = |layout: &Value| -> Vec<Value> {
        let tracks = layout["tracks"].as_array().unwrap().iter();
        tracks
            .map(|track| json!([track["key"], track["label"], track["slices"], track["rows"]]))
            .collect()
    };
    let last = layout_until(&studio, 0, |layout| layout["idle"] != "pending");
    assert_eq!(rows(&last), rows(&again));
    assert_eq!(
        (&last["span_ns"], &last["origin_ns"]),
        (&again["span_ns"], &again["origin_ns"])
    );
}

#[test]
fn a_killed_collector_leaves_what_it_has_written() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let recording = profiled_forever(&place);
    let studio = studio_in(&place, "t.sbt");
    layout_until(&studio, 0, |layout| slices(layout) > 0);
    let group = Pid::from_child(&recording);
    kill(recording);
    let left = layout_until(&studio, 0, |layout| layout["live"]["state"] == "stopped");
    // The program has gone on.
    kill_process_group(group, Signal::KILL).unwrap();
    assert!(slices(&left) > 0);
    assert!(
        left["health"]["sentences"]
            .to_string()
            .contains("the end marker is missing"),
        "{left}"
    );
    // Another recording takes the place of the file.
    let (run, _) = place.profiled("", "launcher launch 10");
    assert_eq!(run.code, Some(0));
    assert_eq!(studio.get("/api/v1/t/0/layout").0, 409);
}

/// Waits for a state of a recording.
fn recording_until(studio: &Studio, id: u64, states: &[&str]) -> Value {
    let begin = Instant::now();
    loop {
        let recordings = studio.json("recordings");
        let one = &recordings[usize::try_from(id).unwrap()];
        if states.contains(&one["state"].as_str().unwrap()) {
            return one.clone();
        }
        assert!(begin.elapsed() < LIMIT, "{one}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_page_records_a_running_program() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let pid = armed.id();
    let studio = studio_in(&place, "--control");
    assert_eq!(studio.json("session")["records"], true);
    let processes = studio.json("processes");
    let listed = processes
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["pid"] == pid)
        .unwrap();
    assert!(
        listed["command"].as_str().unwrap().ends_with("launcher forever"),
        "{listed}"
    );

    let wish = |path: &str| json!({ "pid": pid, "path": path, "stacks": "native" });
    let (status, begun) = studio.post("recordings", &wish("page.sbt"));
    assert_eq!((status, &begun["state"]), (200, &"starting".into()), "{begun}");
    let id = begun["id"].as_u64().unwrap();
    let open = recording_until(&studio, id, &["recording", "failed"]);
    let trace = open["trace"].as_u64().unwrap_or_else(|| panic!("{open}"));
    let first = layout_until(&studio, trace, |layout| slices(layout) > 0);
    layout_until(&studio, trace, |layout| slices(layout) > slices(&first));
    // It has one collector at a time, and a file is never overwritten.
    let (_, second) = studio.post("recordings", &wish("second.sbt"));
    let second = recording_until(&studio, second["id"].as_u64().unwrap(), &["failed", "done"]);
    assert!(
        second["error"]
            .as_str()
            .unwrap()
            .contains("being recorded already"),
        "{second}"
    );
    assert!(!place.path("second.sbt").exists());
    assert_eq!(studio.post("recordings", &wish("page.sbt")).0, 409);
    assert_eq!(studio.post("recordings", &wish("../page.sbt")).0, 404);

    let (status, _) = studio.post(&format!("recordings/{id}/stop"), &json!({}));
    assert_eq!(status, 200);
    let done = recording_until(&studio, id, &["done", "failed"]);
    assert_eq!(
        (&done["state"], &done["report"]["whole"]),
        (&"done".into(), &true.into()),
        "{done}"
    );
    let last = layout_until(&studio, trace, |layout| layout["live"].is_null());
    assert_eq!(done["report"]["rows"]["kernels"], slices(&last));
    assert_eq!(place.trace("page.sbt").kernels.rows(), slices(&last));
    // Stopping again changes nothing.
    assert_eq!(
        studio.post(&format!("recordings/{id}/stop"), &json!({})).1["state"],
        "done"
    );
    assert_eq!(studio.post("recordings/77/stop", &json!({})).0, 404);
    kill(armed);
}

#[test]
fn a_recording_that_cannot_start_says_why() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let reads = studio_in(&place, "");
    for (path, body) in [
        ("recordings", json!({ "pid": 1, "path": "t.sbt" })),
        ("recordings/0/stop", json!({})),
    ] {
        let (status, refused) = reads.post(path, &body);
        assert_eq!(
            (status, &refused["error"]),
            (403, &"this server only reads".into()),
            "{path}"
        );
        assert!(
            refused["hint"].as_str().unwrap().contains("--control"),
            "{refused}"
        );
    }
    assert_eq!(reads.get("/api/v1/processes").0, 403);
    assert_eq!(reads.json("session")["records"], false);

    let studio = studio_in(&place, "--control");
    let nobody = u32::MAX / 2;
    let own = std::process::id();
    for (body, words) in [
        (
            json!({ "pid": nobody, "path": "a.sbt" }),
            format!("no process {nobody}"),
        ),
        (
            json!({ "pid": own, "path": "b.sbt" }),
            format!("process {own} cannot be recorded"),
        ),
        (
            json!({ "pid": own, "path": "c.sbt", "level": "all" }),
            "invalid value 'all'".to_owned(),
        ),
        (
            json!({ "pid": own, "path": "d.sbt", "duration": "--force" }),
            "invalid value '--force'".to_owned(),
        ),
    ] {
        let (status, begun) = studio.post("recordings", &body);
        assert_eq!(status, 200, "{begun}");
        let failed = recording_until(&studio, begun["id"].as_u64().unwrap(), &["failed", "done"]);
        assert!(
            failed["error"].as_str().unwrap_or_default().contains(&words),
            "{failed}"
        );
        assert!(!place.path(body["path"].as_str().unwrap()).exists());
    }
    for wrong in [
        json!({ "path": "e.sbt" }),
        json!({ "pid": own }),
        json!({ "pid": own, "path": "" }),
        json!({ "pid": own, "path": "e.sbt", "force": true }),
    ] {
        assert_eq!(studio.post("recordings", &wrong).0, 400, "{wrong}");
    }
}

#[test]
fn the_end_of_the_server_completes_a_recording() {
    let Some(stage) = stage() else { return };
    for how in [Signal::INT, Signal::KILL] {
        let place = Place::new(stage);
        let armed = start(&mut place.armed("", "launcher forever"));
        place.wait_until_armed(&armed);
        let studio = studio_in(&place, "--control");
        let wish = json!({ "pid": armed.id(), "path": "t.sbt", "level": "light" });
        let (_, begun) = studio.post("recordings", &wish);
        let open = recording_until(&studio, begun["id"].as_u64().unwrap(), &["recording", "failed"]);
        let trace = open["trace"].as_u64().unwrap_or_else(|| panic!("{open}"));
        layout_until(&studio, trace, |layout| slices(layout) > 0);
        // A stream that is open does not hold the server up.
        let mut stream = studio.send("/api/v1/events");
        stream.read_exact(&mut [0; 64]).unwrap();
        let (waited, ..) = studio.end_with(how);
        assert!(waited < Duration::from_secs(2), "{waited:?}");
        until(|| Trace::open(&place.path("t.sbt")).is_ok_and(|trace| !trace.is_unfinished()));
        assert!(place.trace("t.sbt").kernels.rows() > 0);
        // The program goes on, and can be recorded again.
        until(|| {
            run(&mut place.tracesmith(&format!("record --pid {} -d 0.1s -o u.sbt --force", armed.id()))).code
                == Some(0)
        });
        kill(armed);
    }
}
