//! `top` in a terminal, as a user sees it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::os::unix::process::{CommandExt, ExitStatusExt};

use rustix::process::Signal;
use support::terminal::Terminal;
use support::{FIXTURE, command, run};

fn top() -> Terminal {
    top_with(&[])
}

fn top_with(options: &[&str]) -> Terminal {
    let mut command = command();
    command
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm")
        .args(["top", FIXTURE])
        .args(options)
        // A shell gives every job a group of its own; without one nobody could wake it.
        .process_group(0);
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.wait_for("first picture", |screen| {
        screen.contains("synthetic-v1.sbt") && screen.contains("q quit")
    });
    terminal
}

#[test]
fn a_trace_is_walked_through_with_keys() {
    let mut terminal = top();
    assert!(terminal.screen.alternate && !terminal.screen.cursor_shown);
    assert!(!terminal.is_cooked(), "keys come one by one");
    assert!(terminal.screen.contains("gpu 0 Example GPU") && terminal.screen.contains("> all streams"));
    terminal.send("/flash*\r");
    terminal.wait_for("match", |screen| {
        screen.contains("kernel flash_fwd_kernel") && screen.contains("API call cudaLaunchKernel")
    });
    terminal.send("\r");
    terminal.wait_for("inspection", |screen| screen.contains("columns, as stored"));
    terminal.send("\u{1b}");
    terminal.wait_for("end of it", |screen| !screen.contains("columns, as stored"));
    terminal.send("?");
    terminal.wait_for("help", |screen| screen.contains("zoom to the selected event"));
    terminal.send("q");
    let status = terminal.end();
    assert_eq!(status.code(), Some(0));
    assert_given_back(&terminal);
}

#[test]
fn a_terminal_of_another_size_is_drawn_anew() {
    let mut terminal = top();
    terminal.resize(60, 12);
    terminal.wait_for("picture of the new size", |screen| {
        let text = screen.text();
        let last = text.lines().last().unwrap_or_default();
        text.lines().count() == 12 && last.starts_with("? help")
    });
    terminal.send("q");
    assert_eq!(terminal.end().code(), Some(0));
    assert_given_back(&terminal);
}

#[test]
fn whatever_ends_it_gives_the_terminal_back() {
    let mut by_key = top();
    by_key.send("\u{3}");
    assert_eq!(by_key.end().code(), Some(0));
    assert_given_back(&by_key);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut terminal = top();
        terminal.signal(signal);
        let status = terminal.end();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        assert_given_back(&terminal);
    }
}

#[test]
fn the_shell_gets_the_terminal_while_it_is_stopped() {
    let mut terminal = top();
    for stop in [Stop::Key, Stop::Signal] {
        match stop {
            Stop::Key => terminal.send("\u{1a}"),
            Stop::Signal => terminal.signal(Signal::TSTP),
        }
        terminal.wait_until_stopped();
        assert_given_back(&terminal);
        terminal.signal(Signal::CONT);
        terminal.wait_for("the picture again", |screen| {
            screen.alternate && screen.contains("synthetic-v1.sbt") && screen.contains("q quit")
        });
        assert!(!terminal.is_cooked(), "keys come one by one again");
    }
    terminal.send("?");
    terminal.wait_for("help", |screen| screen.contains("suspend; fg resumes"));
    terminal.send("q");
    assert_eq!(terminal.end().code(), Some(0));
    assert_given_back(&terminal);
}

#[derive(Clone, Copy)]
enum Stop {
    Key,
    Signal,
}

#[test]
fn only_what_is_asked_for_is_shown() {
    let all = top();
    assert!(all.screen.contains("gpu 0") && all.screen.contains("gpu 1") && all.screen.contains("api"));
    let mut some = top_with(&["--device", "1", "--stream", "7", "--kind", "kernel"]);
    assert!(
        some.screen.contains("gpu 1") && some.screen.contains("stream 7"),
        "{}",
        some.screen.text()
    );
    assert!(!some.screen.contains("gpu 0") && !some.screen.contains("api"));
    some.send("q");
    assert_eq!(some.end().code(), Some(0));
    let mut none = command();
    none.args(["top", FIXTURE, "--process", "4001", "--device", "0"]);
    let mut none = Terminal::start(none, 80, 24);
    assert_eq!(none.end().code(), Some(0));
    assert!(none.screen.contains("no such events"));
    assert_given_back(&none);
    let mut unknown = command();
    unknown.args(["top", FIXTURE, "--stream", "99"]);
    let mut unknown = Terminal::start(unknown, 80, 24);
    assert_eq!(unknown.end().code(), Some(2));
    assert!(
        unknown
            .screen
            .contains("the trace has no stream 99; it has stream 7, 13")
    );
    assert_given_back(&unknown);
}

fn assert_given_back(terminal: &Terminal) {
    assert!(!terminal.screen.alternate, "the first screen is back");
    assert!(terminal.screen.cursor_shown, "with its cursor");
    assert!(terminal.is_cooked(), "and lines are edited");
}

#[test]
fn without_a_terminal_it_says_so() {
    let piped = run(command().args(["top", FIXTURE]));
    assert_eq!(piped.code, Some(2));
    assert_eq!(
        piped.stderr,
        "error: top needs a terminal, and standard output is not a terminal\n\nhint: 'tracesmith view --timeline' prints the same picture anywhere\n"
    );
    let json = run(command().args(["top", FIXTURE, "--format", "json"]));
    assert_eq!(json.code, Some(2));
    assert!(json.stderr.contains("view --timeline"), "{}", json.stderr);
}

#[test]
fn a_file_that_is_no_trace_leaves_the_terminal_alone() {
    let mut command = command();
    command.args(["top", "Cargo.toml"]);
    let mut terminal = Terminal::start(command, 80, 24);
    assert_eq!(terminal.end().code(), Some(2));
    assert!(terminal.screen.contains("error: reading trace Cargo.toml"));
    assert_given_back(&terminal);
}
