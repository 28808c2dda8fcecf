//! The prompt of `tracesmith sql`, in a terminal.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support;
use support::command;
use support::terminal::Terminal;

const DEMO: &str = "fixtures/demo-h200.sbt";
const PROMPT: &str = "sql> ";
const ENDLESS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n;\r";

/// Opens a prompt whose terminal sends signals for its keys, as a shell's does: setsid makes it the controlling one.
fn prompt(state: &Path) -> Terminal {
    let ours = command();
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(ours.get_program())
        .args(["sql", DEMO])
        .current_dir(ours.get_current_dir().unwrap_or(Path::new(".")))
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env("NO_COLOR", "1")
        .env("XDG_STATE_HOME", state);
    let mut terminal = Terminal::start(command, 100, 40);
    terminal.answer("", |written| written.contains(PROMPT));
    terminal
}

/// Types a line. Waits for a text and, on a later line, for the next prompt: keys before it would reach another mode of
/// the terminal.
fn ask(terminal: &mut Terminal, keys: &str, wanted: &str) -> String {
    terminal.answer(keys, |written| {
        let end = written.rfind('\n').unwrap_or(0);
        written[..end].contains(wanted.trim_end()) && written[end..].contains(PROMPT)
    })
}

#[test]
fn the_prompt_answers_queries_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = prompt(folder.path());
    // Over two lines, up to the semicolon.
    let counted = ask(&mut terminal, "select count(*) as n\rfrom kernels;\r", "300\r\n");
    assert!(!counted.contains("error"), "{counted}");
    ask(&mut terminal, ".mode json\r", "");
    ask(
        &mut terminal,
        "select 'a' as x; select 'b' as y;\r",
        "{\"y\":\"b\"}",
    );
    ask(&mut terminal, ".mode csv\r", "");
    ask(&mut terminal, "select 1 as x, 'two' as y;\r", "x,y\r\n1,two\r\n");
    ask(&mut terminal, ".mode table\r", "");
    let tables = ask(&mut terminal, ".tables\r", "stack_frames(stack)");
    assert!(tables.contains("gaps(at_least)"), "{tables}");
    ask(
        &mut terminal,
        ".schema idle_gaps\r",
        "When the next operation started.",
    );
    ask(&mut terminal, ".help\r", "choose how results are printed");
    ask(
        &mut terminal,
        ".mode xml\r",
        "unknown mode: xml; use table, json, csv",
    );
    ask(&mut terminal, ".nonsense\r", "unknown command: .nonsense");
    // A mistake is explained, and the prompt goes on.
    ask(
        &mut terminal,
        "select x from kernels;\r",
        "no such column: x, at line 1, column 8",
    );
    ask(&mut terminal, ".timeout 100ms\r", "");
    ask(&mut terminal, ENDLESS, "did not end within 100ms");
    ask(&mut terminal, ".timeout\r", "100ms\r\n");
    ask(&mut terminal, ".timeout off\r", "");
    ask(&mut terminal, "select 'still ' || 'here';\r", "still here");
    terminal.send(".quit\r");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(terminal.is_cooked());
}

#[test]
fn ctrl_c_ends_the_query_and_not_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = prompt(folder.path());
    // While a line is edited, it gives up the line.
    ask(&mut terminal, "select 1 +\x03", "");
    for _ in 0..2 {
        // The terminal echoes a newline and goes back to its usual modes when the query starts.
        terminal.send(ENDLESS);
        while !terminal.is_cooked() {
            std::thread::yield_now();
        }
        ask(&mut terminal, "\x03", "error: interrupted");
    }
    ask(&mut terminal, "select 'still ' || 'here';\r", "still here");
    // Ctrl-D ends it.
    terminal.send("\x04");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn tab_completes_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = prompt(folder.path());
    let completed = ask(
        &mut terminal,
        "select sum(n) from (select count(next_name) n from idle_g\t where dura\t > 0);\r",
        "sum(n)\r\n",
    );
    assert!(!completed.contains("error"), "{completed}");
    ask(&mut terminal, ".sch\tkernel_s\t\r", "Standard deviation");
    terminal.send("\x04");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn history_is_kept_for_the_next_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = prompt(folder.path());
    ask(&mut first, "select 'rem' || 'embered';\r", "remembered");
    first.send("\x04");
    assert_eq!(first.end().code(), Some(0));
    let kept = fs::read_to_string(folder.path().join("tracesmith/sql_history")).unwrap();
    assert!(kept.contains("select 'rem' || 'embered';"), "{kept}");
    let mut second = prompt(folder.path());
    ask(&mut second, "\x1b[A\r", "remembered");
    second.send("\x04");
    assert_eq!(second.end().code(), Some(0));
}

#[test]
fn a_history_that_cannot_be_written_does_not_disturb() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut terminal = prompt(&file);
    ask(&mut terminal, "select 'no ' || 'history';\r", "no history");
    ask(&mut terminal, "\x1b[A\r", "no history");
    terminal.send(".quit\r");
    assert_eq!(terminal.end().code(), Some(0));
}
