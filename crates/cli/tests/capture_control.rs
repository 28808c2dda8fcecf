//! `record --control`: a program starts a recording, directs it by lines, and reads what happens.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::rows::{assert_whole, joined_kernels};
use support::stage::{Place, Talk, ended, kill, run, signal, stage, start};

/// A recording that is directed.
struct Directed {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Directed {
    fn start(place: &Place, pid: u32, options: &str) -> Self {
        let line = format!("-q record --control --pid {pid} {options}");
        let mut child = start(place.tracesmith(&line).stdin(Stdio::piped()));
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            orders,
            answers,
        }
    }

    fn order(&mut self, word: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{word}").unwrap();
    }

    /// The next answer, which must be this event.
    fn hear(&mut self, event: &str) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(answer["event"], event, "{answer}");
        answer
    }

    /// What it leaves.
    fn end(mut self) -> support::Run {
        self.orders = None;
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.answers, &mut rest).unwrap();
        assert_eq!(rest, "", "after the last answer");
        ended(self.child)
    }
}

#[test]
fn a_recording_is_directed_by_lines() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkkgkkk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let mut recorder = Directed::start(&place, pid, "-o t.sbt");
    recorder.hear("open");
    armed.say();
    armed.hear("at 30");
    recorder.order("fly");
    let rejected = recorder.hear("rejected");
    assert_eq!(rejected["order"], "fly");
    recorder.order("begin");
    assert!(
        recorder.hear("rejected")["message"]
            .as_str()
            .unwrap()
            .contains("--capture-range signal")
    );
    recorder.order("stop");
    recorder.hear("closed");
    let done = recorder.hear("done");
    assert_eq!(done["report"]["rows"]["kernels"], 20, "{done}");
    assert_eq!(done["report"]["whole"], true, "{done}");
    assert_eq!(done["report"]["files"].as_array().unwrap().len(), 1, "{done}");
    let run = recorder.end();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(joined_kernels(&place.trace("t.sbt")).len(), 20);
    assert_eq!(armed.answer_all().code, Some(0));
}

/// Names of functions are looked up after the window. The next one can open meanwhile.
#[test]
fn a_process_is_free_as_soon_as_its_window_is_closed() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let mut recorders = Vec::new();
    for number in 0..4 {
        let mut recorder = Directed::start(&place, armed.id(), &format!("-o {number}.sbt"));
        recorder.hear("open");
        std::thread::sleep(Duration::from_millis(50));
        recorder.order("stop");
        recorder.hear("closed");
        recorders.push(recorder);
    }
    for (number, mut recorder) in recorders.into_iter().enumerate() {
        recorder.hear("done");
        assert_eq!(recorder.end().code, Some(0));
        let trace = place.trace(&format!("{number}.sbt"));
        assert_whole(&trace);
        assert!(trace.kernels.rows() > 0);
    }
    kill(armed);
}

#[test]
fn the_end_of_the_orders_ends_the_recording() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let mut recorder = Directed::start(&place, armed.id(), "-o t.sbt");
    recorder.hear("open");
    recorder.orders = None;
    recorder.hear("closed");
    recorder.hear("done");
    assert_eq!(recorder.end().code, Some(0));
    kill(armed);
}

#[test]
fn ranges_are_recorded_on_order() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkkgkkk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let mut recorder = Directed::start(&place, pid, "-o t.sbt --capture-range signal");
    recorder.hear("open");
    armed.say();
    armed.hear("at 30");
    recorder.order("begin");
    // An order is carried out by another thread of the program; nothing answers it.
    std::thread::sleep(Duration::from_millis(500));
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    recorder.hear("closed");
    let done = recorder.hear("done");
    assert_eq!(done["report"]["rows"]["kernels"], 30, "{done}");
    assert_eq!(recorder.end().code, Some(0));
}

#[test]
fn a_flight_recorder_is_written_on_order() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkkgkkk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let mut recorder = Directed::start(&place, pid, "-o t.sbt --flight-recorder 4M");
    recorder.hear("open");
    armed.say();
    armed.hear("at 30");
    // The records of kernels are handed over ten times a second.
    std::thread::sleep(Duration::from_millis(500));
    recorder.order("dump");
    let dumped = recorder.hear("dumped");
    let file = dumped["file"].as_str().unwrap();
    assert_eq!(place.trace(file).kernels.rows(), 20);
    recorder.order("stop");
    recorder.hear("closed");
    recorder.hear("done");
    assert_eq!(recorder.end().code, Some(0));
    assert_eq!(armed.answer_all().code, Some(0));
}

#[test]
fn a_refusal_has_a_reason_and_leaves_no_file() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let mut first = Directed::start(&place, armed.id(), "-o t.sbt");
    first.hear("open");
    let mut second = Directed::start(&place, armed.id(), "-o u.sbt");
    let error = second.hear("error");
    assert_eq!(error["reason"], "busy", "{error}");
    assert_eq!(second.end().code, Some(2));
    assert!(!place.path("u.sbt").exists());
    first.order("stop");
    first.hear("closed");
    first.hear("done");
    assert_eq!(first.end().code, Some(0));
    let mut exists = Directed::start(&place, armed.id(), "-o t.sbt");
    let error = exists.hear("error");
    assert_eq!(
        (&error["reason"], error["hint"].is_string()),
        (&"exists".into(), true),
        "{error}"
    );
    assert_eq!(exists.end().code, Some(2));
    let mut unwritable = Directed::start(&place, armed.id(), "-o no/such/folder/t.sbt");
    assert_eq!(unwritable.hear("error")["reason"], "unwritable");
    assert_eq!(unwritable.end().code, Some(2));
    let mut stranger = Directed::start(&place, std::process::id(), "-o v.sbt");
    assert_eq!(stranger.hear("error")["reason"], "not-armed");
    assert_eq!(stranger.end().code, Some(2));
    kill(armed);
}

/// A profiler whose session began before our library was there keeps CUPTI, and its data.
#[test]
fn a_conflict_with_another_profiler_is_a_refusal() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let variables = run(&mut place.tracesmith("--format json env"));
    let variables: Value = serde_json::from_str(&variables.stdout).unwrap();
    let library = variables["CUDA_INJECTION64_PATH"].as_str().unwrap();
    // I is where our library is loaded, c where the session ends.
    let mut program = Talk::start(place.target("guest isokIgkckgkuk").env("GUEST_LATE", library));
    program.hear("at 10");
    place.wait_until_armed(program.child());
    let pid = program.child().id();
    let mut recorder = Directed::start(&place, pid, "-o t.sbt");
    let error = recorder.hear("error");
    assert_eq!(error["reason"], "conflict", "{error}");
    assert_eq!(recorder.end().code, Some(2));
    assert!(!place.path("t.sbt").exists());
    program.say();
    program.hear("at 30");
    // The session has ended.
    let mut recorder = Directed::start(&place, pid, "-o t.sbt");
    recorder.hear("open");
    let run = program.answer_all();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("foreign 0"), "{}", run.stdout);
    recorder.hear("closed");
    recorder.hear("done");
    assert_eq!(recorder.end().code, Some(0));
}

#[test]
fn a_program_that_ends_completes_its_trace() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkzzzzzzzzzzzzzzz!"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let mut recorder = Directed::start(&place, pid, "-o t.sbt");
    recorder.hear("open");
    armed.say();
    assert_eq!(armed.end().code, Some(-9));
    recorder.hear("closed");
    let done = recorder.hear("done");
    assert_eq!(done["report"]["rows"]["kernels"], 10, "{done}");
    assert_eq!(
        done["report"]["whole"], false,
        "it was killed within its window: {done}"
    );
    assert_eq!(recorder.end().code, Some(0));
}

#[test]
fn a_program_that_dies_while_its_window_opens_leaves_the_earlier_trace() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher sleep 60"));
    place.wait_until_armed(&armed);
    fs::write(place.path("t.sbt"), "an earlier trace").unwrap();
    let mut recorder = Directed::start(&place, armed.id(), "-o t.sbt --force --delay 3s");
    // It is connected by then, and the window opens while the program cannot answer.
    std::thread::sleep(Duration::from_millis(1000));
    signal(&armed, Signal::STOP);
    std::thread::sleep(Duration::from_millis(3500));
    kill(armed);
    let error = recorder.hear("error");
    assert_eq!(error["reason"], "refused", "{error}");
    assert_eq!(recorder.end().code, Some(2));
    let left = fs::read_to_string(place.path("t.sbt")).unwrap();
    assert_eq!(left, "an earlier trace");
}

/// While nothing happens, nothing is done: no thread of the collector turns in circles when its orders have ended.
#[test]
fn waiting_costs_little() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher sleep 60"));
    place.wait_until_armed(&armed);
    let mut recorder = Directed::start(&place, armed.id(), "-o t.sbt -t kernels");
    recorder.hear("open");
    let ticks = |pid: u32| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (before, begun) = (ticks(recorder.child.id()), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    // A hundred ticks are a second.
    let used = ticks(recorder.child.id()) - before;
    assert!(used < 40, "{used} ticks in {:?}", begun.elapsed());
    recorder.order("stop");
    recorder.hear("closed");
    recorder.hear("done");
    assert_eq!(recorder.end().code, Some(0));
    kill(armed);
}

#[test]
fn control_needs_a_process() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.tracesmith("record --control -o t.sbt"));
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--pid"), "{}", run.stderr);
}
