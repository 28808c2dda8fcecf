//! However a program ends, it ends as it would have alone, and its trace holds what was handed over and says how it was.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::rows::{assert_whole, health, joined_kernels, rows};
use support::stage::{Place, Talk, ended, run, signal, stage, start, type_in, until};
use tracesmith_format::tables::{HealthCause, ProcessEnd};
use tracesmith_trace::Trace;

/// How the first process ended.
fn end(trace: &Trace) -> (ProcessEnd, i32) {
    let process = &trace.processes[0];
    (process.end, process.end_code)
}

#[test]
fn exit_codes_are_the_programs_own() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for code in [0, 1, 7, 255] {
        let run = run(&mut place.profile("", &format!("launcher exit {code}")));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(code), "launched 10\n"),
            "{}",
            run.stderr
        );
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 10);
        assert_eq!(end(&trace), (ProcessEnd::EXITED, code));
    }
}

#[test]
fn a_crash_is_told_and_what_came_before_is_there() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("", "launcher segv"));
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(-11), "launched 100\n"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    assert_eq!(end(&trace), (ProcessEnd::KILLED, 11));
    let died = health(&trace, HealthCause::PROCESS_DIED);
    assert_eq!(died.len(), 1, "{:?}", trace.health());
    assert!(died[0].detail.starts_with("killed by signal 11"), "{died:?}");
    assert!(run.stderr.contains("killed by signal 11"), "{}", run.stderr);
}

/// Where we are not preloaded, our `_exit` is not called.
#[test]
fn leaving_without_exit_handlers_is_told_too() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for (options, deaths) in [("", 0), ("--no-preload", 1)] {
        let run = run(&mut place.profile(options, "launcher exit_early"));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(3), "launched 100\n"),
            "{}",
            run.stderr
        );
        let trace = place.trace("t.sbt");
        assert_eq!(end(&trace), (ProcessEnd::EXITED, 3));
        assert_eq!(
            health(&trace, HealthCause::PROCESS_DIED).len(),
            deaths,
            "{options}"
        );
    }
}

#[test]
fn what_was_handed_over_is_there_after_a_crash() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // Longer than the period in which buffers are handed over, before the crash.
    let run = run(&mut place.profile("", "guest ikkkzzzzzzzzzzzzzzz!"));
    assert_eq!(run.code, Some(-9), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(joined_kernels(&trace).len(), 30);
    assert_eq!(end(&trace), (ProcessEnd::KILLED, 9));
}

#[test]
fn a_program_killed_at_any_moment_leaves_a_trace_that_says_so() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut kernels = 0;
    for round in 0..100u64 {
        let _ = fs::remove_file(place.path("t.sbt"));
        let child = start(&mut place.profile("", "launcher forever"));
        // From before the program has begun to several hand-overs later, in no order.
        let moment = Duration::from_millis(round * 7919 % 241);
        let program = child_of(child.id());
        thread::sleep(moment);
        kill_process(Pid::from_raw(program).unwrap(), Signal::KILL).unwrap();
        let run = ended(child);
        assert_eq!(run.code, Some(-9), "after {moment:?}: {}", run.stderr);
        let launched = run
            .stdout
            .lines()
            .last()
            .map_or(0, |line| line[9..].parse().unwrap());
        kernels += check_killed(&place.trace("t.sbt"), launched, moment);
    }
    assert!(kernels > 1000, "{kernels} in all");
}

/// The one child of a process.
fn child_of(parent: u32) -> i32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = || fs::read_to_string(&path).unwrap_or_default();
    until(|| !children().trim().is_empty());
    children().trim().parse().unwrap()
}

/// Checks a trace of a program that was killed, and counts its kernels.
fn check_killed(trace: &Trace, launched: u64, moment: Duration) -> usize {
    let Some(process) = trace.processes.first() else {
        assert_eq!(launched, 0, "it was killed before it came");
        return 0;
    };
    assert_eq!(
        (process.end, process.end_code),
        (ProcessEnd::KILLED, 9),
        "after {moment:?}"
    );
    let is_recording = trace
        .metadata
        .contains_key(&format!("process.{}.window.opened", process.pid));
    let died = health(trace, HealthCause::PROCESS_DIED);
    assert_eq!(died.len(), usize::from(is_recording), "{:?}", trace.health());
    // What is there is the beginning of what was done, without a gap.
    let kernels = rows(&trace.kernels);
    let correlations: BTreeSet<u64> = kernels.iter().map(|kernel| kernel.correlation.0).collect();
    let calls: BTreeSet<u64> = rows(&trace.api_calls)
        .iter()
        .filter(|call| trace.string(call.shape.name) == "cuLaunchKernel")
        .map(|call| call.correlation.0)
        .collect();
    assert_eq!(correlations.len(), kernels.len(), "no kernel twice");
    // A kernel can end before its launch is left.
    let launches: BTreeSet<u64> = calls.union(&correlations).copied().collect();
    let first: BTreeSet<u64> = launches.iter().copied().take(correlations.len()).collect();
    assert_eq!(correlations, first, "after {moment:?}: a gap");
    assert!(
        kernels.len() as u64 <= launched + 100,
        "{} of {launched}",
        kernels.len()
    );
    kernels.len()
}

#[test]
fn input_and_output_pass_through() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut child = start(place.profile("", "guest igkgk").stdin(Stdio::piped()));
    type_in(&mut child, b"one\ntwo\n");
    let run = ended(child);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.starts_with("at 0\nat 10\nlaunched 20 "),
        "{}",
        run.stdout
    );
    assert_whole(&place.trace("t.sbt"));
}

#[test]
fn a_signal_ends_the_program_as_it_would_alone() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for (sent, number) in [(Signal::TERM, 15), (Signal::INT, 2)] {
        let child = start(&mut place.profile("", "launcher forever"));
        let program = child_of(child.id());
        until(|| {
            fs::read_to_string(format!("/proc/{program}/maps"))
                .is_ok_and(|maps| maps.contains("tracesmith-ring"))
        });
        thread::sleep(Duration::from_millis(50));
        signal(&child, sent);
        let run = ended(child);
        assert_eq!(run.code, Some(-number), "{}", run.stderr);
        let trace = place.trace("t.sbt");
        assert_eq!(end(&trace), (ProcessEnd::KILLED, number));
        assert!(run.stderr.contains("wrote t.sbt"), "{}", run.stderr);
    }
}

#[test]
fn a_fork_without_exec_disturbs_nobody() {
    let Some(stage) = stage() else { return };
    let (run, trace) = Place::new(stage).profiled("", "launcher fork");
    assert_eq!(run.stdout, "launched 200 child 0\n");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 200);
    assert_eq!(trace.processes.len(), 1, "the child did nothing of its own");
}

#[test]
fn a_program_that_closes_all_descriptors_is_recorded_to_its_end() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for options in ["", "--no-preload"] {
        let (run, trace) = place.profiled(options, "launcher closefds");
        assert_eq!(run.stdout, "launched 100 closed 1 sync 1\n");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 100);
    }
}

#[test]
fn closed_standard_streams_are_no_trouble() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let line = |redirections: &str| {
        let binary = env!("CARGO_BIN_EXE_tracesmith");
        let launcher = stage.path("launcher");
        format!(
            "'{binary}' profile -o t.sbt --force -- '{}' launch 10 {redirections}",
            launcher.display()
        )
    };
    for redirections in ["2>&-", "<&-", "2>&- <&-", ">&-", ">&- 2>&- <&-"] {
        let run = run(place.command("sh").args(["-c", &line(redirections)]));
        assert_eq!(run.code, Some(0), "{redirections}: {}", run.stderr);
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        assert_eq!(trace.kernels.rows(), 10, "{redirections}");
        let expected = if redirections.starts_with('>') {
            ""
        } else {
            "launched 10\n"
        };
        assert_eq!(run.stdout, expected, "{redirections}");
    }
}

#[test]
fn work_in_exit_handlers_is_recorded() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("", "launcher at_exit");
    assert_eq!(run.stdout, "launched 10\nlaunched 5 at exit\n");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 15);
}

#[test]
fn a_killed_collector_leaves_the_program_alone() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let output = fs::File::create(place.path("out.txt")).unwrap();
    let mut command = place.profile("", "guest ikgkkzzzzzzzzzzzzk#");
    // A pipe of its own: the program's input must outlive the collector.
    let mut collector = command
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = || fs::read_to_string(place.path("out.txt")).unwrap();
    until(|| said().contains("at 10"));
    thread::sleep(Duration::from_millis(1200));
    signal(&collector, Signal::KILL);
    let mut input = collector.stdin.take();
    collector.wait().unwrap();
    use std::io::Write;
    input.as_mut().unwrap().write_all(b"go\n").unwrap();
    until(|| said().contains("launched"));
    assert!(said().starts_with("at 10\nlaunched 40 "), "{}", said());
    until(|| said().contains("left with 0"));
    // What had been written by then can be read.
    let trace = Trace::open(&place.path("t.sbt")).unwrap();
    assert_eq!(trace.kernels.rows(), 10);
}

/// A crash there is told to whoever handles crashes in the program, as one in any other thread is; a signal that is sent
/// to the program is handled by a thread of its own.
#[test]
fn our_thread_blocks_signals_that_are_sent_and_none_that_it_causes() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ig"));
    armed.hear("at 0");
    let tasks = format!("/proc/{}/task", armed.child().id());
    let ours = || -> Vec<String> {
        let tasks = fs::read_dir(&tasks).unwrap();
        tasks
            .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
            .filter(|status| status.starts_with("Name:\ttracesmith\n"))
            .collect()
    };
    // It names itself when it comes to run.
    until(|| !ours().is_empty());
    let ours = ours();
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    assert_eq!(ours.len(), 1, "{ours:?}");
    let line = ours[0]
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:"))
        .unwrap();
    let blocked = u64::from_str_radix(line.trim(), 16).unwrap();
    let is_blocked = |signal: Signal| blocked >> (signal.as_raw() - 1) & 1 == 1;
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::USR2,
        Signal::CHILD,
        Signal::ALARM,
    ] {
        assert!(is_blocked(signal), "{signal:?}: {blocked:x}");
    }
    for signal in [
        Signal::SEGV,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::ABORT,
        Signal::TRAP,
    ] {
        assert!(!is_blocked(signal), "{signal:?}: {blocked:x}");
    }
}

#[test]
fn a_program_that_is_stopped_does_not_hold_the_recorder() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkgk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let window = place.start_window(&mut place.record(pid, ""), pid);
    armed.say();
    armed.hear("at 20");
    signal(armed.child(), Signal::STOP);
    let run = place.close_window(window);
    signal(armed.child(), Signal::CONT);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let words = format!("unavailable: process {pid} did not respond in time; its last records are missing");
    assert!(run.stderr.contains(&words), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(health(&trace, HealthCause::UNAVAILABLE).len(), 1);
    assert_eq!(trace.processes[0].end, ProcessEnd::RUNNING);
    // It closes its window by itself, and the next one is whole.
    let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    until(|| !maps().contains("tracesmith-ring"));
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    let program = armed.end();
    assert_eq!(program.code, Some(0), "{}", program.stderr);
    assert_eq!(ended(window).code, Some(0));
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 10);
}
