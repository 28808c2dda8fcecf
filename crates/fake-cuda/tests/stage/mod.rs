//! A folder with the fake's libraries and the compiled targets, and a way to run a program on it.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tracesmith_fake_cuda::{Options, install};

/// What is set up once for all tests of a file.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
}

/// The stage, or None where no C compiler is: then a test says so and does nothing.
pub(crate) fn stage() -> Option<&'static Stage> {
    static STAGE: OnceLock<Option<Stage>> = OnceLock::new();
    let stage = STAGE.get_or_init(Stage::set_up).as_ref();
    if stage.is_none() {
        tracesmith_skip::without("cc", "");
    }
    stage
}

impl Stage {
    fn set_up() -> Option<Self> {
        Command::new("cc").arg("--version").output().ok()?;
        let folder = tempfile::tempdir().unwrap();
        install(folder.path()).unwrap();
        let stage = Self { folder };
        stage.compile("launcher", &["launcher.c"], &["-ldl", "-lpthread"]);
        stage.compile("spy.so", &["spy.c"], &["-shared", "-fPIC", "-ldl", "-lpthread"]);
        let search = format!("-L{}", stage.folder.path().display());
        stage.compile(
            "linked_client",
            &["linked_client.c"],
            &[&search, "-lcupti", "-ldl"],
        );
        Some(stage)
    }

    fn compile(&self, output: &str, sources: &[&str], flags: &[&str]) {
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
        let result = Command::new("cc")
            .args(["-w", "-O1", "-g", "-o"])
            .arg(self.path(output))
            .args(sources.iter().map(|source| targets.join(source)))
            .args(flags)
            .output()
            .unwrap();
        assert!(
            result.status.success(),
            "{}",
            String::from_utf8_lossy(&result.stderr)
        );
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program of the stage with the fake in its way; `line` is the program and its arguments.
    pub(crate) fn command(&self, line: &str, options: &Options) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(self.path(words.next().unwrap()));
        command
            .args(words)
            .env("LD_LIBRARY_PATH", self.folder.path())
            .envs(options.variables());
        command
    }

    /// Runs a program to its end and returns what it printed.
    pub(crate) fn run(&self, line: &str, options: &Options) -> String {
        let output = finished(&mut self.command(line, options));
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{line}: {:?}\n{text}{errors}",
            output.status
        );
        text
    }

    /// Runs a program under the spy and returns the spy's lines.
    pub(crate) fn spy(&self, line: &str, options: &Options, wishes: &[(&str, &str)]) -> Vec<String> {
        let report = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        let mut command = self.command(line, options);
        command
            .env("CUDA_INJECTION64_PATH", self.path("spy.so"))
            .env("SPY_OUT", report.path())
            .envs(wishes.iter().copied());
        let output = finished(&mut command);
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = std::fs::read_to_string(report.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// The output of a command that must end within a minute.
pub(crate) fn finished(command: &mut Command) -> Output {
    use std::process::Stdio;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("still running after a minute: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// The number that follows a word in a line of the spy.
pub(crate) fn number_after(line: &str, word: &str) -> u64 {
    let mut words = line.split_whitespace();
    words
        .by_ref()
        .find(|&found| found == word)
        .unwrap_or_else(|| panic!("no {word} in {line}"));
    words.next().unwrap().parse().unwrap()
}

/// The lines about records of a kind.
pub(crate) fn records(lines: &[String], kind: u32) -> Vec<&str> {
    let start = format!("record {kind} ");
    lines
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with(&start))
        .collect()
}
