//! The replay of a trace: who may start it, what is exchanged with the child, and how the child ends. The child is a
//! program of the test that speaks the protocol.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tracesmith_studio::{Control, Options, Replayer};

use crate::support::{Answer, Running, fixtures, start_with};

/// A child that is ready, and answers as the request says.
const CHILD: &str = r#"#!/bin/sh
printf '%s\n' "$*" > "$0.arguments"
echo $$ > "$0.pid"
echo 'warning: a message' >&2
echo '{"id":null,"progress":{"call":1}}'
echo '{"event":"ready","protocol":1,"offline":null,"process":1,"calls":2}'
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  printf '%s\n' "$line" >> "$0.lines"
  case "$line" in
    *die*) printf 'error: the GPU is gone\n\nhint: restart it\n' >&2; exit 2 ;;
    *sleep*) sleep 60 ;;
    *flood*) yes "{\"id\":$id,\"progress\":{\"pad\":\"$(printf '%01000d' 0)\"}}" | head -n 30000
      echo "{\"id\":$id,\"ok\":{}}" ;;
    *babble*) echo 'this is no JSON' ;;
    *refuse*) echo "{\"id\":$id,\"error\":\"no such buffer\",\"hint\":\"look for another\",\"readable\":[[0,1]]}" ;;
    *) echo "{\"id\":$id,\"progress\":{\"call\":2}}"; echo '{"id":999,"ok":{}}'; echo "{\"id\":$id,\"ok\":{\"place\":7}}" ;;
  esac
done
"#;

struct Place {
    folder: TempDir,
    server: Running,
}

impl Place {
    fn new(control: Control, change: impl FnOnce(&mut Replayer)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("child");
        fs::write(&program, CHILD).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(folder.path().join("start")).unwrap();
        fs::copy(
            fixtures().join("replay-h200.sbt"),
            folder.path().join("start/t.sbt"),
        )
        .unwrap();
        let mut replayer = Replayer::new(program);
        change(&mut replayer);
        let server = start_with(Options {
            files: vec![folder.path().join("start/t.sbt")],
            folder: folder.path().join("start"),
            control,
            replayer: Some(replayer),
            ..Options::default()
        });
        server.ready(0);
        Self { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn start(&self, run: bool) -> Vec<Value> {
        lines(
            &self
                .server
                .post("t/0/replay/start", &json!({ "run": run }).to_string()),
        )
    }

    fn ask(&self, request: &Value) -> Vec<Value> {
        lines(&self.server.post("t/0/replay/ask", &request.to_string()))
    }

    fn state(&self) -> Value {
        self.server.json("t/0/replay")
    }

    /// Waits until the child has ended.
    fn until_gone(&self) {
        let pid = self.text("child.pid");
        let begin = Instant::now();
        while Path::new(&format!("/proc/{}", pid.trim())).exists() {
            assert!(begin.elapsed() < Duration::from_secs(30), "the child goes on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    answer.assert_protected();
    let text = answer.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn recorded_calls_run_only_with_control() {
    let place = Place::new(Control::Refused, |_| {});
    let state = place.state();
    assert_eq!(
        (
            &state["is_recording"],
            &state["can_look"],
            &state["can_run"],
            &state["state"]
        ),
        (&json!(true), &json!(true), &json!(false), &json!("none"))
    );
    let refused = place.server.post("t/0/replay/start", "{\"run\":true}");
    assert!(refused.error(403).contains("this server only reads"));
    assert!(refused.value()["hint"].as_str().unwrap().contains("--control"));
    assert!(!place.path("child.pid").exists(), "nothing was started");
    // Recorded contents may be looked at. Then nothing is run.
    assert_eq!(place.start(false).last().unwrap()["event"], "ready");
    assert!(
        place
            .text("child.arguments")
            .trim()
            .ends_with("t.sbt --step --format json --no-color --mode dry-run")
    );
    let state = place.state();
    assert_eq!(
        (&state["state"], &state["mode"]),
        (&json!("ready"), &json!("look"))
    );
    assert_eq!(state["ready"]["calls"], 2);
}

#[test]
fn requests_are_answered_with_progress_before() {
    let place = Place::new(Control::Allowed, |_| {});
    let nothing = place.server.post("t/0/replay/ask", "{\"do\":\"position\"}");
    assert!(nothing.error(409).contains("no replay of this trace was started"));
    let started = place.start(true);
    assert_eq!(started.len(), 2);
    assert_eq!(started[0]["progress"]["call"], 1);
    assert!(
        place
            .text("child.arguments")
            .trim()
            .ends_with("t.sbt --step --format json --no-color")
    );
    let pid = place.text("child.pid");
    // Another page finds the same child.
    assert_eq!(place.start(true), started[1..]);
    assert_eq!(place.text("child.pid"), pid);
    let answer = place.ask(&json!({ "do": "position", "id": "mine" }));
    assert_eq!(answer.len(), 2, "{answer:?}");
    assert_eq!(
        (&answer[0]["progress"]["call"], &answer[1]["ok"]["place"]),
        (&json!(2), &json!(7))
    );
    let refused = place.ask(&json!({ "do": "refuse" }));
    assert_eq!(
        (&refused[0]["error"], &refused[0]["readable"]),
        (&json!("no such buffer"), &json!([[0, 1]]))
    );
    // A new line would be another request.
    place.ask(&json!({ "do": "one\n{\"do\":\"two\"}" }));
    let last = place.text("child.lines").lines().last().unwrap().to_owned();
    assert_eq!(
        serde_json::from_str::<Value>(&last).unwrap()["do"],
        "one\n{\"do\":\"two\"}"
    );
    assert!(
        place
            .server
            .post("t/0/replay/ask", "{\"do\":\"quit\"}")
            .error(400)
            .contains("stop")
    );
    assert_eq!(place.server.post("t/0/replay/ask", "[]").status, 400);
    assert_eq!(
        place.server.post("t/7/replay/start", "{\"run\":true}").status,
        404
    );
    // A recording of contents takes its place, and the other child ends.
    place.start(false);
    assert_ne!(place.text("child.pid"), pid);
}

#[test]
fn a_page_that_does_not_read_holds_up_no_other_page() {
    let place = Place::new(Control::Allowed, |_| {});
    place.start(true);
    let mut idle = place.server.connect();
    let request = place.server.post_text("t/0/replay/ask", "{\"do\":\"flood\"}");
    idle.write_all(request.as_bytes()).unwrap();
    while !place.path("child.lines").exists() {
        thread::sleep(Duration::from_millis(10));
    }
    let (sender, answered) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let answer = place.ask(&json!({ "do": "position" }));
            sender.send(answer.last().unwrap()["ok"]["place"].clone())
        });
        let answer = answered.recv_timeout(Duration::from_secs(30));
        // Otherwise the other thread would wait, too.
        drop(idle);
        assert_eq!(answer.ok(), Some(json!(7)));
    });
}

#[test]
fn pages_that_start_at_the_same_moment_share_a_child() {
    let place = Place::new(Control::Allowed, |_| {});
    let started: Vec<Value> = thread::scope(|scope| {
        let pages: Vec<_> = (0..8).map(|_| scope.spawn(|| place.start(true))).collect();
        let answers = pages.into_iter().map(|page| page.join().unwrap());
        answers
            .map(|lines| lines.last().unwrap()["event"].clone())
            .collect()
    });
    assert_eq!(started, vec![json!("ready"); 8]);
}

#[test]
fn kernels_are_read_below_the_start_folder_only() {
    let place = Place::new(Control::Allowed, |_| {});
    place.start(true);
    fs::write(place.path("secret.ptx"), "x").unwrap();
    fs::write(place.path("start/new.ptx"), "x").unwrap();
    for wrong in ["../secret.ptx", "/etc/passwd", "absent.ptx"] {
        let request = json!({ "do": "replace", "call": 4, "file": wrong });
        let refused = place.server.post("t/0/replay/ask", &request.to_string());
        assert!(refused.error(404).contains("there is no"), "{wrong}");
    }
    place.ask(&json!({ "do": "replace", "call": 4, "file": "new.ptx" }));
    let real = place.path("start/new.ptx").canonicalize().unwrap();
    assert!(place.text("child.lines").contains(real.to_str().unwrap()));
}

#[test]
fn the_death_of_a_child_is_reported_and_another_can_be_started() {
    let place = Place::new(Control::Allowed, |_| {});
    place.start(true);
    let died = place.ask(&json!({ "do": "die" }));
    let last = died.last().unwrap();
    assert_eq!(
        (&last["error"], &last["hint"], &last["ended"]),
        (&json!("the GPU is gone"), &json!("restart it"), &json!(true))
    );
    let state = place.state();
    assert_eq!(
        (&state["state"], &state["error"]),
        (&json!("ended"), &json!("the GPU is gone"))
    );
    let again = place.ask(&json!({ "do": "position" }));
    assert_eq!(again.last().unwrap()["error"], "the GPU is gone");
    assert_eq!(place.start(true).last().unwrap()["event"], "ready");
    let babbled = place.ask(&json!({ "do": "babble" }));
    assert!(
        babbled.last().unwrap()["error"]
            .as_str()
            .unwrap()
            .contains("not JSON")
    );
    place.until_gone();
}

#[test]
fn a_child_is_ended_when_it_is_silent_unused_or_not_wanted() {
    let silent = Place::new(Control::Allowed, |replayer| {
        replayer.silence_limit = Duration::from_millis(400)
    });
    silent.start(true);
    let answer = silent.ask(&json!({ "do": "sleep" }));
    assert!(
        answer.last().unwrap()["error"]
            .as_str()
            .unwrap()
            .contains("wrote nothing for")
    );
    silent.until_gone();
    let unused = Place::new(Control::Allowed, |replayer| {
        replayer.idle_limit = Duration::from_millis(300)
    });
    unused.start(true);
    unused.until_gone();
    assert!(unused.state()["error"].as_str().unwrap().contains("was not used"));
    let stopped = Place::new(Control::Allowed, |_| {});
    stopped.start(true);
    assert_eq!(stopped.server.post("t/0/replay/stop", "{}").status, 200);
    stopped.until_gone();
    assert_eq!(stopped.state()["error"], "the replay was stopped");
    // The file is another one: what was run is not what it contains.
    let changed = Place::new(Control::Allowed, |_| {});
    changed.start(true);
    fs::copy(fixtures().join("demo-h200.sbt"), changed.path("start/t.sbt")).unwrap();
    assert_eq!(
        changed
            .server
            .post("t/0/replay/ask", "{\"do\":\"position\"}")
            .status,
        409
    );
    changed.until_gone();
}

#[test]
fn a_server_without_a_program_says_so() {
    let server = start_with(Options {
        files: vec![fixtures().join("replay-h200.sbt")],
        folder: fixtures(),
        control: Control::Allowed,
        ..Options::default()
    });
    server.ready(0);
    let state = server.json("t/0/replay");
    assert_eq!(
        (&state["can_look"], &state["can_run"]),
        (&json!(false), &json!(false))
    );
    assert!(
        server
            .post("t/0/replay/start", "{\"run\":false}")
            .error(501)
            .contains("no program")
    );
    // The operations of a call, by its correlation.
    let places = server.json("t/0/replay/places?correlation=9&process=1");
    assert_eq!(
        (&places[0]["kind"], &places[0]["name"]),
        (&json!("kernel"), &json!("scale(float*, int)"))
    );
    assert_eq!(
        server.json("t/0/replay/places?correlation=9&process=2"),
        json!([])
    );
}
