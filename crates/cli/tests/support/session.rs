//! `tracesmith replay --step --format json`, as a test speaks with it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Run;
use super::stage::ended;

/// A session. It is killed with the test.
pub struct Session {
    child: Option<Child>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The first line.
    pub ready: Value,
    /// Lines of progress so far.
    pub progress: Vec<Value>,
    requests: u64,
}

impl Session {
    /// Starts it, and reads its first line.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut session = Self {
            child: Some(child),
            input,
            output,
            ready: Value::Null,
            progress: Vec::new(),
            requests: 0,
        };
        session.ready = session.line();
        assert_eq!(session.ready["event"], "ready", "{}", session.ready);
        session
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Writes a line as it is.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next line that is no progress.
    pub fn line(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            match value.get("progress") {
                None => return value,
                Some(_) => self.progress.push(value),
            }
        }
    }

    /// The whole answer to a request.
    pub fn answer(&mut self, mut request: Value) -> Value {
        self.requests += 1;
        request["id"] = self.requests.into();
        self.write(&request.to_string());
        let answer = self.line();
        assert_eq!(answer["id"], self.requests, "{answer}");
        answer
    }

    /// The answer to a request that must be good.
    pub fn ask(&mut self, request: Value) -> Value {
        let answer = self.answer(request.clone());
        assert!(answer["ok"].is_object(), "{request}: {answer}");
        answer["ok"].clone()
    }

    /// The message of a request that must fail.
    pub fn error(&mut self, request: Value) -> String {
        let answer = self.answer(request.clone());
        let error = answer["error"].as_str();
        error.unwrap_or_else(|| panic!("{request}: {answer}")).to_owned()
    }

    /// Numbers in memory.
    pub fn floats(&mut self, address: &Value, count: usize) -> Vec<f32> {
        let read = self.ask(json!({ "do": "read", "address": address, "bytes": 4 * count }));
        let hex = read["hex"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| f32::from_le_bytes(*word)).collect()
    }

    /// Closes its input, and waits for the end.
    pub fn end(mut self) -> Run {
        drop(self.input.take());
        ended(self.child.take().unwrap())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
