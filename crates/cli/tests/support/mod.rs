//! Running the binary as a user does.

#![allow(dead_code, reason = "not every test file needs all of it")]

pub mod page_traces;
pub mod perfetto;
pub mod python;
pub mod reader;
pub mod replay;
pub mod rows;
pub mod session;
pub mod stacks;
pub mod stage;
pub mod studio;
pub mod terminal;

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// All of it, for a snapshot.
    pub fn transcript(&self) -> String {
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            text += &format!("----- stderr\n{}", self.stderr);
        }
        if self.code != Some(0) {
            text += &format!("----- exit code {:?}\n", self.code);
        }
        text
    }

    /// The answer of a run that must succeed.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }
}

/// The binary, away from the settings of whoever runs the tests.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracesmith"));
    command.current_dir(root()).stdin(Stdio::null());
    command.env("TRACESMITH_CACHE", "off");
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// Runs the binary in the repository's root.
pub fn tracesmith<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    run(command().args(args))
}

/// Runs the binary with a trace on standard input.
pub fn tracesmith_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    run_of(child.wait_with_output().unwrap())
}

pub fn run(command: &mut Command) -> Run {
    run_of(command.output().unwrap())
}

fn run_of(output: std::process::Output) -> Run {
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The trace that most tests look at.
pub const FIXTURE: &str = "fixtures/synthetic-v1.sbt";
