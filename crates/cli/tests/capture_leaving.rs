//! A program that ends without exit handlers, becomes another one, or closes our descriptors: what it did until then is in
//! the trace, and what is missing is counted.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::time::{Duration, Instant};

use support::rows::{assert_whole, call_counts, health, joined_kernels, rows};
use support::stage::{Place, Talk, run, stage};
use tracesmith_format::tables::{HealthCause, ProcessEnd};
use tracesmith_trace::Trace;

/// How the first process ended.
fn end(trace: &Trace) -> (ProcessEnd, i32) {
    let process = &trace.processes[0];
    (process.end, process.end_code)
}

/// Kernels of the process that came first.
fn kernels_of_first(trace: &Trace) -> usize {
    let first = trace.processes[0].id;
    let kernels = rows(&trace.kernels);
    kernels
        .iter()
        .filter(|kernel| kernel.place.process == first)
        .count()
}

#[test]
fn what_was_launched_just_before_exit_without_handlers_is_recorded_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // By _exit, and by quick_exit.
    for plan in ["ikkk_", "ikkkQ"] {
        let run = run(&mut place.profile("", &format!("guest {plan}")));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(7), "leaving after 30\n"),
            "{}",
            run.stderr
        );
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 30, "{plan}");
        assert_eq!(end(&trace), (ProcessEnd::EXITED, 7));
    }
}

#[test]
fn a_handler_that_leaves_in_the_middle_of_anything_is_not_held_up_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut kernels = 0;
    for _ in 0..10 {
        let begun = Instant::now();
        let run = run(&mut place.profile("", "sudden_ends handler"));
        assert_eq!(run.code, Some(7), "{}", run.stderr);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let trace = place.trace("t.sbt");
        assert_eq!(end(&trace), (ProcessEnd::EXITED, 7));
        kernels += trace.kernels.rows();
    }
    assert!(kernels > 1000, "{kernels} in all");
}

#[test]
fn what_was_launched_just_before_another_program_is_recorded_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("", "guest ikkkx"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(end(&trace), (ProcessEnd::REPLACED, 0));
    assert_eq!((kernels_of_first(&trace), joined_kernels(&trace).len()), (30, 33));
}

#[test]
fn a_program_that_fails_to_become_another_is_recorded_on_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("", "guest ikXkVVk");
    assert!(run.stdout.starts_with("launched 30 "), "{}", run.stdout);
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 30);
}

#[test]
fn what_was_launched_just_before_an_abort_is_recorded_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("", "guest ikkkA"));
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(-6), "aborting after 30\n"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    assert_eq!(end(&trace), (ProcessEnd::KILLED, 6));
    assert_eq!(joined_kernels(&trace).len(), 30);
    let died = health(&trace, HealthCause::PROCESS_DIED);
    assert_eq!(
        (died.len(), died[0].count),
        (1, 0),
        "nothing is missing: {died:?}"
    );
}

/// The bound is a tenth of a second. Everyone who allocates waits for ever, our own thread too.
#[test]
fn an_abort_with_a_broken_heap_is_not_held_up_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut program = Talk::start(&mut place.profile("", "sudden_ends heap"));
    program.hear("aborting");
    let begun = Instant::now();
    let run = program.end();
    assert_eq!(run.code, Some(-6), "{}", run.stderr);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn launches_whose_kernels_are_missing_are_counted_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // The second part is killed before it is handed over. What is captured into a graph is no launch.
    let run = run(&mut place.profile("", "guest ikkkzzzzzzzzzzzbkkk!"));
    assert_eq!(run.code, Some(-9), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    let died = health(&trace, HealthCause::PROCESS_DIED);
    assert_eq!(died.len(), 1, "{:?}", trace.health());
    let launches = call_counts(&trace)["cuLaunchKernel"] as u64;
    assert_eq!(launches, 70);
    let kernels = trace.kernels.rows();
    assert!(kernels >= 30, "{kernels}");
    assert_eq!(died[0].count, 60 - kernels, "{died:?}");
    if kernels < 60 {
        let words = format!("{} launches have no kernel row", 60 - kernels);
        assert!(run.stderr.contains(&words), "{}", run.stderr);
    }
}

#[test]
fn a_program_that_closes_all_descriptors_is_recorded_while_it_goes_on_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // It is killed two periods after its last launch: what is there was handed over by our thread.
    for options in ["", "--no-preload"] {
        let run = run(&mut place.profile(options, "guest ikCzzzzzzzzzzzzkzzzzzzzzzzzzkzzzzzzzzzzzz!"));
        assert_eq!(run.code, Some(-9), "{}", run.stderr);
        let trace = place.trace("t.sbt");
        assert_eq!(joined_kernels(&trace).len(), 30, "{options}");
        assert_eq!(end(&trace), (ProcessEnd::KILLED, 9));
    }
}

#[test]
fn a_program_that_forbids_itself_descriptors_is_recorded_and_loses_no_core_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("", "guest ikNk"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(joined_kernels(&place.trace("t.sbt")).len(), 20);
    let spent = run.stdout.split(" ms of CPU time").next().unwrap();
    let spent: u64 = spent.rsplit('\n').next().unwrap().parse().unwrap();
    assert!(spent < 250, "{spent} ms of 500");
}

#[test]
fn launches_are_not_said_to_lack_kernels_when_only_calls_are_recorded_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("--trace api", "guest ikkzzzzzzzzzzz!"));
    assert_eq!(run.code, Some(-9), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(call_counts(&trace)["cuLaunchKernel"], 20);
    let died = health(&trace, HealthCause::PROCESS_DIED);
    assert_eq!((died.len(), died[0].count), (1, 0), "{died:?}");
}

#[test]
fn a_window_in_a_program_that_closes_all_descriptors_can_be_closed_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgCzzzzzzzzzzkgkgk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let window = place.start_window(&mut place.record(pid, ""), pid);
    armed.say();
    armed.hear("at 20");
    let run = place.close_window(window);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 10);
    // Its own socket is there again as well: another window can be opened.
    armed.say();
    armed.hear("at 30");
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    let program = armed.end();
    assert_eq!(program.code, Some(0), "{}", program.stderr);
    assert_eq!(support::stage::ended(window).code, Some(0));
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 10);
}
