//! `profile`, `record` and `env`, as a user runs them. The program that is recorded is this test binary, started again:
//! it speaks the collector's protocol as the library does.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::exit,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

#[path = "../../collect/tests/support/script.rs"]
mod script;
use crate::support;
#[path = "../../collect/tests/support/target.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod target;

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Run, command, run};
use target::until;
use tracesmith_trace::Trace;

/// Says what the target does.
pub const TASK: &str = "TRACESMITH_TEST_TASK";

#[test]
fn target_process() {
    script::run();
}

/// A folder to work in, with something that looks like the library.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("library.so"), "not a library").unwrap();
        Place(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary, in this folder.
    fn tracesmith(&self) -> Command {
        let mut command = command();
        command
            .current_dir(self.0.path())
            .env("TRACESMITH_INJECT_LIBRARY", self.path("library.so"))
            .env("TRACESMITH_RUNTIME_DIR", self.path("runtime"));
        command
    }

    /// `profile --no-preload` with these arguments, on what follows.
    fn profile<const N: usize>(&self, options: [&str; N], program: &[&str]) -> Command {
        let mut command = self.tracesmith();
        command
            .args(["profile", "--no-preload"])
            .args(options)
            .arg("--")
            .args(program);
        command
    }

    /// The same on a task of this test binary.
    fn profile_task<const N: usize>(&self, options: [&str; N], task: &str) -> Command {
        let mut command = self.profile(options, &[]);
        command.args(task_command()).env(TASK, task);
        command
    }

    fn trace(&self, name: &str) -> Trace {
        let trace = Trace::open(&self.path(name)).unwrap();
        assert!(trace.health().damage.is_empty(), "{:?}", trace.health().damage);
        trace
    }
}

fn task_command() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let mut command = vec![program.to_str().unwrap().to_owned()];
    command.extend(
        [
            "profile::target_process",
            "--exact",
            "--nocapture",
            "--test-threads=1",
            "-q",
        ]
        .map(str::to_owned),
    );
    command
}

fn start(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    Run {
        code: output
            .status
            .code()
            .or(output.status.signal().map(|signal| -signal)),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_program_is_recorded_and_its_exit_code_is_ours() {
    let place = Place::new();
    let run = run(&mut place.profile_task(["-o", "t.sbt"], "whole:1000"));
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("wrote t.sbt ("), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("1,000 kernels, 0 memcpys and memsets, 1,000 API calls from 1 process"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("next: tracesmith view t.sbt --stats"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    assert!(trace.health().is_good(), "{:?}", trace.health());
    assert_eq!(trace.kernels.rows(), 1000);
    let fact = |key: &str| trace.metadata[key].as_str();
    assert!(fact("recorder").starts_with("tracesmith "));
    assert!(fact("capture.kinds").starts_with("kernels,copies,counters,api"));
    assert_eq!(fact("capture.range"), "everything");
}

#[test]
fn input_and_output_are_the_programs_own() {
    let place = Place::new();
    let mut child = {
        let mut command = place.profile([], &["sh", "-c", "cat; echo done >&2"]);
        command.stdin(Stdio::piped());
        start(command)
    };
    child.stdin.take().unwrap().write_all(b"one\ntwo\0three").unwrap();
    let run = ended(child);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stdout, "one\ntwo\0three");
    assert!(run.stderr.starts_with("done\n"), "{}", run.stderr);
}

#[test]
fn a_program_that_cannot_be_run_is_told_as_a_shell_does() {
    let place = Place::new();
    let missing = run(&mut place.profile([], &["no-such-program"]));
    assert_eq!(missing.code, Some(127));
    assert!(
        missing.stderr.contains("error: no such program: no-such-program"),
        "{}",
        missing.stderr
    );
    fs::write(place.path("plain"), "text").unwrap();
    let plain = run(&mut place.profile([], &["./plain"]));
    assert_eq!(plain.code, Some(126));
    assert!(
        plain.stderr.contains("cannot start ./plain: Permission denied"),
        "{}",
        plain.stderr
    );
    assert!(!place.path("no-such-program.sbt").exists() && !place.path("plain.sbt").exists());
}

#[test]
fn the_trace_takes_the_programs_name_and_replaces_nothing_unasked() {
    let place = Place::new();
    for name in ["true.sbt", "true-2.sbt"] {
        assert_eq!(run(&mut place.profile([], &["true"])).code, Some(0));
        assert!(place.path(name).exists(), "{name}");
    }
    let before = fs::read(place.path("true.sbt")).unwrap();
    let refused = run(&mut place.profile(["-o", "true.sbt"], &["touch", "started"]));
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("hint: replace it with --force"),
        "{}",
        refused.stderr
    );
    assert!(!place.path("started").exists(), "the program must not start");
    assert_eq!(fs::read(place.path("true.sbt")).unwrap(), before);
    let replaced = run(&mut place.profile(["-o", "true.sbt", "--force"], &["true"]));
    assert_eq!(replaced.code, Some(0));
    for wrong in ["-", "."] {
        let refused = run(&mut place.profile(["-o", wrong], &["true"]));
        assert_eq!(refused.code, Some(2), "{wrong}");
    }
}

#[test]
fn a_program_that_uses_no_gpu_is_told_why_nothing_was_recorded() {
    let place = Place::new();
    let run = run(&mut place.profile(["-o", "t.sbt"], &["true"]));
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr
            .contains("warning: nothing was recorded: true started no process"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("tracesmith doctor"), "{}", run.stderr);
    // Once, and without a command that would show nothing.
    assert!(!run.stderr.contains("no process initialised"), "{}", run.stderr);
    assert!(!run.stderr.contains("next: "), "{}", run.stderr);
    assert!(!place.trace("t.sbt").health().is_good());
}

#[test]
fn strict_says_no_when_something_was_lost() {
    let place = Place::new();
    let whole = run(&mut place.profile_task(["--strict", "-o", "a.sbt"], "fork"));
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let lost = run(&mut place.profile_task(["--strict", "-o", "b.sbt"], "garbage"));
    assert_eq!(lost.code, Some(1), "{}", lost.stderr);
    assert!(
        lost.stderr.contains("warning: incomplete: unknown record"),
        "{}",
        lost.stderr
    );
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_only_of_ours() {
    let place = Place::new();
    let ours = run(&mut place.profile_task(["--force", "-o", "/dev/full"], "fork"));
    assert_eq!(ours.code, Some(2), "{}", ours.stderr);
    assert!(ours.stderr.contains("No space left"), "{}", ours.stderr);
    assert!(ours.stderr.contains("hint: free some space"), "{}", ours.stderr);
    let the_programs = run(&mut place.profile_task(["--force", "-o", "/dev/full"], "whole:10"));
    assert_eq!(the_programs.code, Some(3), "{}", the_programs.stderr);
    assert!(
        the_programs.stderr.contains("error: cannot write /dev/full"),
        "{}",
        the_programs.stderr
    );
}

#[test]
fn a_signal_to_us_goes_to_the_program_and_ends_us_as_it_ended_it() {
    let place = Place::new();
    for (sent, number) in [
        (Signal::TERM, 15),
        (Signal::INT, 2),
        (Signal::HUP, 1),
        (Signal::USR1, 10),
    ] {
        let name = format!("{number}.sbt");
        let script = format!("touch ready-{number}; exec sleep 20");
        let child = start(place.profile(["-o", &name], &["sh", "-c", &script]));
        until(|| place.path(&format!("ready-{number}")).exists());
        signal(&child, sent);
        let run = ended(child);
        assert_eq!(run.code, Some(-number), "{}", run.stderr);
        place.trace(&name);
    }
}

/// A group of processes gets from us what a terminal would send to it, and the program gets everything.
#[test]
fn only_signals_of_a_terminal_go_to_the_whole_group() {
    let place = Place::new();
    let child = "trap 'echo child hang-up; exit' HUP; trap 'echo child user' USR1; touch ready-child; while :; do sleep 0.05; done";
    let script = format!(
        "trap 'echo program hang-up; wait; exit 0' HUP; trap 'echo program user; touch caught' USR1; sh -c \"{child}\" & \
         touch ready; while :; do sleep 0.05; done"
    );
    let options = ["--signal-group", "-o", "t.sbt"];
    let mut command = place.profile(options, &["sh", "-c", &script]);
    command.process_group(0);
    let collector = start(command);
    until(|| place.path("ready").exists() && place.path("ready-child").exists());
    signal(&collector, Signal::USR1);
    until(|| place.path("caught").exists());
    signal(&collector, Signal::HUP);
    let run = ended(collector);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut said: Vec<&str> = run.stdout.lines().collect();
    said.sort_unstable();
    assert_eq!(said, ["child hang-up", "program hang-up", "program user"]);
}

/// Until a program is being recorded: it has mapped the rings that a collector gave it.
fn wait_for_rings(pid: u32) {
    let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    until(|| maps().matches("tracesmith-ring").count() >= 2);
    // They are there a moment before the records are asked for.
    thread::sleep(Duration::from_millis(200));
}

#[test]
fn a_signal_that_the_program_handles_is_its_own_affair() {
    let place = Place::new();
    let script = "trap 'echo caught; exit 5' TERM; touch ready; while :; do sleep 0.05; done";
    let child = start(place.profile(["-o", "t.sbt"], &["sh", "-c", script]));
    until(|| place.path("ready").exists());
    signal(&child, Signal::TERM);
    let run = ended(child);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(5), "caught\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn keys_of_the_terminal_end_the_program_and_not_the_trace() {
    let place = Place::new();
    // `script` gives us a terminal; the byte 3 is Ctrl-C, which it sends to the whole foreground group.
    if Command::new("script").arg("--version").output().is_err() {
        return tracesmith_skip::without("script", "");
    }
    // `exec`: a shell that waits for us is sent the key too, and may end by it.
    let line = format!(
        "exec '{}' profile --no-preload -o t.sbt -- sh -c \"trap 'echo caught; touch caught' INT; touch ready; while [ ! -e caught ]; do sleep 0.05; done; exit 6\"",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    let mut command = Command::new("script");
    command
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .current_dir(place.0.path())
        .env("TRACESMITH_INJECT_LIBRARY", place.path("library.so"))
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped());
    let mut child = start(command);
    until(|| place.path("ready").exists());
    child.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    child.stdin.as_mut().unwrap().flush().unwrap();
    let run = ended(child);
    assert_eq!(run.code, Some(6), "{}", run.stdout);
    assert_eq!(
        run.stdout.matches("caught").count(),
        1,
        "once, by the terminal: {}",
        run.stdout
    );
    place.trace("t.sbt");
}

#[test]
fn a_signal_writes_the_flight_recorder_out() {
    let place = Place::new();
    let progress = place.path("progress");
    let mut command = place.profile_task(["-o", "f.sbt", "--flight-recorder", "1M"], "forever");
    command.env(script::PROGRESS, &progress);
    let child = start(command);
    until(|| fs::read(&progress).is_ok_and(|stated| stated.len() == 4));
    thread::sleep(Duration::from_millis(50));
    assert!(!place.path("f.sbt").exists(), "nothing is written unasked");
    for name in ["f.sbt", "f-2.sbt"] {
        signal(&child, Signal::USR2);
        until(|| is_whole(&place.path(name)));
        assert!(place.trace(name).kernels.rows() > 0);
        thread::sleep(Duration::from_millis(20));
    }
    signal(&child, Signal::TERM);
    let run = ended(child);
    assert_eq!(run.code, Some(-15), "{}", run.stderr);
    assert!(place.trace("f-3.sbt").kernels.rows() > 0);
}

fn is_whole(path: &Path) -> bool {
    Trace::open(path).is_ok_and(|trace| trace.health().damage.is_empty())
}

/// An armed program of ours, which waits.
fn start_armed(place: &Place) -> Child {
    let command = task_command();
    let child = Command::new(&command[0])
        .args(&command[1..])
        .env(TASK, "armed")
        .env("TRACESMITH_RUNTIME_DIR", place.path("runtime"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let socket = place.path("runtime").join(format!("{}.sock", child.id()));
    until(|| socket.exists());
    child
}

#[test]
fn a_running_program_is_recorded_for_a_while_and_again() {
    let place = Place::new();
    let mut armed = start_armed(&place);
    let pid = armed.id().to_string();
    for name in ["a.sbt", "b.sbt"] {
        let run = run(place
            .tracesmith()
            .args(["record", "--pid", &pid, "-d", "1", "-o", name]));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = place.trace(name);
        assert!(trace.health().is_good(), "{:?}", trace.health());
        assert!(trace.kernels.rows() > 10);
        let (first, last) = trace.span().unwrap();
        assert!((50_000_000..2_000_000_000).contains(&(last.0 - first.0)));
    }
    armed.kill().unwrap();
    armed.wait().unwrap();
}

#[test]
fn all_armed_programs_are_recorded_also_those_that_come_later() {
    let place = Place::new();
    let mut first = start_armed(&place);
    let recorder = {
        let mut command = place.tracesmith();
        command.args(["record", "-o", "t.sbt"]);
        start(command)
    };
    wait_for_rings(first.id());
    let mut second = start_armed(&place);
    wait_for_rings(second.id());
    signal(&recorder, Signal::INT);
    let run = ended(recorder);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(trace.processes.len(), 2);
    assert!(trace.health().is_good(), "{:?}", trace.health());
    for armed in [&mut first, &mut second] {
        armed.kill().unwrap();
        armed.wait().unwrap();
    }
}

#[test]
fn a_dump_can_be_asked_for_by_pid() {
    let place = Place::new();
    let mut armed = start_armed(&place);
    let pid = armed.id().to_string();
    let refused = run(place.tracesmith().args(["record", "--dump", "--pid", &pid]));
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("no flight recorder runs"),
        "{}",
        refused.stderr
    );

    let recorder = {
        let mut command = place.tracesmith();
        command.args(["record", "--pid", &pid, "--flight-recorder", "1M", "-o", "f.sbt"]);
        start(command)
    };
    wait_for_rings(armed.id());
    let dumped = run(place.tracesmith().args(["record", "--dump", "--pid", &pid]));
    assert_eq!(dumped.code, Some(0), "{}", dumped.stderr);
    assert_eq!(dumped.stdout.trim(), "f.sbt");
    assert!(place.trace("f.sbt").kernels.rows() > 0);
    thread::sleep(Duration::from_millis(50));
    signal(&recorder, Signal::INT);
    assert_eq!(ended(recorder).code, Some(0));
    assert!(place.trace("f-2.sbt").kernels.rows() > 0);
    armed.kill().unwrap();
    armed.wait().unwrap();
}

#[test]
fn a_process_that_was_not_armed_is_told_how() {
    let place = Place::new();
    let refused = run(place.tracesmith().args(["record", "--pid", "1", "-d", "1"]));
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("process 1 cannot be recorded"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("hint: start it with the variables"),
        "{}",
        refused.stderr
    );
    assert!(!place.path("record.sbt").exists());
}

#[test]
fn env_prints_what_arms_a_program() {
    let place = Place::new();
    let library = place.path("library.so").canonicalize().unwrap();
    let printed = run(place.tracesmith().arg("env").env_remove("LD_PRELOAD")).ok();
    let expected = format!(
        "export TRACESMITH_ARMED=1\nexport CUDA_INJECTION64_PATH={0}\nexport NVTX_INJECTION64_PATH={0}\n\
         export LD_PRELOAD={0}\nexport TRACESMITH_RUNTIME_DIR={1}\n",
        library.display(),
        place.path("runtime").display()
    );
    assert_eq!(printed, expected);
    let json = run(place
        .tracesmith()
        .args(["env", "--format", "json", "--no-preload"]))
    .ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["TRACESMITH_ARMED"], "1");
    assert_eq!(json["LD_PRELOAD"], Value::Null);
    let ready = run(place.tracesmith().args(["env", "--ready"])).ok();
    assert!(ready.starts_with("export TRACESMITH_ARMED=ready\n"), "{ready}");
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_anything_starts() {
    let place = Place::new();
    for options in [
        vec!["--steps", "3..5"],
        vec!["--steps", "3..5", "--capture-range", "cuda-profiler-api"],
        vec!["--capture-range", "sometimes"],
        vec!["--level", "light", "-t", "kernels"],
        vec!["--buffer-size", "1K"],
        vec!["-d", "soon"],
    ] {
        let mut command = place.tracesmith();
        command
            .arg("profile")
            .args(&options)
            .args(["--", "touch", "started"]);
        assert_eq!(run(&mut command).code, Some(2), "{options:?}");
    }
    assert!(!place.path("started").exists());
}
