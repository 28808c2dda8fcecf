//! A running server, and a client that sends exactly what a test says.

pub mod traces;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::Value;
use tracesmith_studio::{Options, Server};

/// A server, which ends with the tests.
pub struct Running {
    pub port: u16,
    pub key: String,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

/// Starts a server with some files.
pub fn start(files: &[&Path]) -> Running {
    start_with(Options {
        files: files.iter().map(|path| path.to_path_buf()).collect(),
        folder: fixtures(),
        ..Options::default()
    })
}

pub fn start_with(options: Options) -> Running {
    let server = Server::bind(options).unwrap();
    let port = server.addresses()[0].port();
    let (_, key) = server
        .url()
        .split_once("#key=")
        .map(|(_, key)| ((), key.to_owned()))
        .unwrap();
    thread::spawn(move || server.run());
    Running { port, key }
}

pub fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A real training step, and a small trace that has everything.
pub fn train() -> PathBuf {
    fixtures().join("train-h200.sbt")
}

pub fn synthetic() -> PathBuf {
    fixtures().join("synthetic-v1.sbt")
}

impl Running {
    /// Sends these bytes and reads all that comes until the server closes. `None` if nothing came.
    pub fn raw(&self, request: &str) -> Option<Answer> {
        let mut stream = self.connect();
        // The server may close before it has read all.
        let _ = stream.write_all(request.as_bytes());
        read_answer(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// A request with these header lines and no others.
    pub fn with(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
        self.raw(&request)
            .unwrap_or_else(|| panic!("no answer to {request}"))
    }

    pub fn host(&self) -> String {
        format!("host: 127.0.0.1:{}", self.port)
    }

    pub fn key_line(&self) -> String {
        format!("x-tracesmith-key: {}", self.key)
    }

    /// A request as a page sends it, with more header lines.
    pub fn get_with(&self, path: &str, more: &[&str]) -> Answer {
        let (host, key) = (self.host(), self.key_line());
        let headers: Vec<&str> = [host.as_str(), key.as_str()]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        self.with("GET", &format!("/api/v1/{path}"), &headers)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    /// The JSON of an answer that must be good.
    pub fn json(&self, path: &str) -> Value {
        self.get(path).good()
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        let request = self.post_text(path, body);
        self.raw(&request).unwrap()
    }

    pub fn post_text(&self, path: &str, body: &str) -> String {
        format!(
            "POST /api/v1/{path} HTTP/1.1\r\n{}\r\n{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.host(),
            self.key_line(),
            body.len()
        )
    }

    /// Waits until a trace is read, with its idle rows. Gives its layout.
    pub fn ready(&self, id: usize) -> Value {
        let begin = Instant::now();
        loop {
            let layout = self.json(&format!("t/{id}/layout"));
            if layout["state"] == "failed" || (layout["state"] == "ready" && layout["idle"] != "pending") {
                return layout;
            }
            assert!(begin.elapsed() < Duration::from_secs(120), "{layout}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut fields = lines.filter_map(|line| line.split_once(':'));
        fields
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The JSON of an answer that must be good.
    pub fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.value()
    }

    /// The sentence of an answer that must be an error.
    pub fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let error = self.value()["error"].as_str().unwrap().to_owned();
        assert!(!error.is_empty());
        error
    }

    /// Whether it has all headers that protect it.
    pub fn assert_protected(&self) {
        let policy = self.header("content-security-policy").unwrap_or_default();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{part} is missing: {}", self.head);
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(self.header(name), Some(value), "{}", self.head);
        }
        assert!(self.header("cache-control").is_some(), "{}", self.head);
        assert_eq!(self.header("access-control-allow-origin"), None);
        assert_eq!(self.header("set-cookie"), None);
    }
}

/// Reads an answer to the end of the connection.
pub fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    // A connection that is reset has no more to say.
    let _ = stream.read_to_end(&mut bytes);
    let _ = stream.shutdown(Shutdown::Both);
    answer_of(&bytes)
}

fn answer_of(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
    };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = unchunked(&answer.body);
    }
    if answer.header("content-encoding") == Some("gzip") {
        let mut plain = Vec::new();
        GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).unwrap();
        answer.body = plain;
    }
    Some(answer)
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let rest = &bytes[end + 2..];
        if length == 0 || rest.len() < length + 2 {
            break;
        }
        plain.extend_from_slice(&rest[..length]);
        bytes = &rest[length + 2..];
    }
    plain
}
