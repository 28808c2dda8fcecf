//! `tracesmith studio` as a test starts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::command;

/// A server that runs. It is killed with the test.
pub struct Studio {
    child: Child,
    /// The address with its key.
    pub url: String,
}

impl Drop for Studio {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it with these arguments.
pub fn studio(args: &[&str]) -> Studio {
    start(
        command()
            .arg("studio")
            .args(args)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY"),
    )
}

/// Starts it as a command that was made ready.
pub fn start(command: &mut Command) -> Studio {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut url)
        .unwrap();
    let url = url.trim().to_owned();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    Studio { child, url }
}

impl Studio {
    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        let port = self.url.trim_start_matches("http://127.0.0.1:");
        port.split('/').next().unwrap().parse().unwrap()
    }

    /// The key of its address.
    pub fn key(&self) -> &str {
        self.url.split_once("#key=").unwrap().1
    }

    /// Sends a request and returns the connection.
    pub fn send(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost:{}\r\nx-tracesmith-key: {}\r\nconnection: close\r\n\r\n",
            self.port(),
            self.key()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The status and the JSON of an answer to something that was sent.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        let request = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nhost: localhost:{}\r\nx-tracesmith-key: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.port(),
            self.key(),
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (status, body) = answer_of(&mut stream);
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// The status and the body of an answer.
    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        answer_of(&mut self.send(path))
    }

    /// The answer of a route.
    pub fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(&format!("/api/v1/{path}"));
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Waits until the first trace can be drawn, and returns its layout.
    pub fn ready(&self) -> Value {
        self.ready_number(0)
    }

    /// Waits until that trace can be drawn, and returns its layout.
    pub fn ready_number(&self, trace: usize) -> Value {
        let begin = Instant::now();
        loop {
            let layout = self.json(&format!("t/{trace}/layout"));
            if layout["state"] == "ready" && layout["idle"] != "pending" {
                return layout;
            }
            assert!(
                layout["state"] != "failed" && begin.elapsed() < Duration::from_secs(120),
                "{layout}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, and waits for the end: how long it took, the exit code, and what was said.
    pub fn end_with(mut self, signal: Signal) -> (Duration, Option<i32>, String) {
        let begin = Instant::now();
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let status = self.child.wait().unwrap();
        let waited = begin.elapsed();
        let mut talk = String::new();
        self.child
            .stderr
            .as_mut()
            .unwrap()
            .read_to_string(&mut talk)
            .unwrap();
        (waited, status.code(), talk)
    }
}

/// The status and the body of an answer, to the end of its connection.
fn answer_of(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..end]);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, bytes[end + 4..].to_vec())
}
