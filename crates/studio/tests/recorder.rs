//! Recordings that pages start. The recorder is a program of the test that speaks the protocol.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tracesmith_studio::{Control, Options, Recorder};

use crate::support::start_with;

/// A recorder with many messages.
const TALKER: &str = r#"#!/bin/sh
yes 'warning: a message that nobody needs' | head -n 5000 >&2 || exit 2
echo '{"event":"open"}'
read -r order
echo '{"event":"closed"}'
echo '{"event":"done","report":{"whole":true}}'
"#;

#[test]
fn a_recorder_with_many_messages_is_not_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("recorder");
    fs::write(&program, TALKER).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let server = start_with(Options {
        folder: folder.path().to_owned(),
        control: Control::Allowed,
        recorder: Some(Recorder {
            program,
            processes: Vec::new,
        }),
        ..Options::default()
    });
    let until = |state: &str| {
        let begin = Instant::now();
        loop {
            let one = server.json("recordings")[0].clone();
            if one["state"] == state {
                return one;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{one}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let wish = json!({ "pid": 7, "path": "new.sbt" });
    server.post("recordings", &wish.to_string()).good();
    until("recording");
    server.post("recordings/0/stop", "{}").good();
    assert_eq!(until("done")["report"]["whole"], true);
}
