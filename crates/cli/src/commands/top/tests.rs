//! The view without a terminal: keys go in, screens come out.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::path::Path;
use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use tracesmith_format::tables::{Kernel, KernelShape, Place};
use tracesmith_format::{ClockId, DeviceId, StreamId, Timestamp, Writer, WriterOptions};
use tracesmith_trace::overview::{Browser, DEVICE_KINDS, HOST_KINDS, RowKey, VALUE_KINDS};
use tracesmith_trace::{Query, Trace};

use super::draw::Look;
use super::lines::RowsShown;
use super::state::Mode;
use super::terminal::{Screen, Signals};
use super::{Going, Top, keys};
use crate::output::Colors;
use crate::timeline::Charset;

const PLAIN: Look = Look {
    charset: Charset::Unicode,
    colors: Colors::Hidden,
};

fn fixture(name: &str) -> Arc<Trace> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    Arc::new(Trace::open(&file).unwrap())
}

fn browser(trace: &Arc<Trace>) -> Option<Browser> {
    let query = Query {
        kinds: Some([DEVICE_KINDS, HOST_KINDS, VALUE_KINDS].concat()),
        ..Query::default()
    };
    Browser::new(trace, &query, None)
}

fn top(trace: &Arc<Trace>, look: Look) -> Top {
    let browser = browser(trace).unwrap();
    let window = browser.summary().window();
    Top::new(browser, window, "test.sbt".to_owned(), look)
}

/// Presses keys as they are written; names of others stand in brackets.
fn press(top: &mut Top, keys: &str) -> Going {
    let mut rest = keys;
    let mut going = Going::On;
    while let Some(char) = rest.chars().next() {
        let (code, length) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, _)) => (
                match name {
                    "enter" => KeyCode::Enter,
                    "esc" => KeyCode::Esc,
                    "tab" => KeyCode::Tab,
                    "backtab" => KeyCode::BackTab,
                    "down" => KeyCode::Down,
                    "up" => KeyCode::Up,
                    "pagedown" => KeyCode::PageDown,
                    "back" => KeyCode::Backspace,
                    other => panic!("no key {other}"),
                },
                name.len() + 2,
            ),
            None => (KeyCode::Char(char), char.len_utf8()),
        };
        rest = &rest[length..];
        top.read();
        if let Some(action) = keys::action(KeyEvent::new(code, KeyModifiers::NONE), top.state.mode) {
            going = top.act(action);
        }
    }
    going
}

fn screen(top: &mut Top, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    top.resize(Rect::new(0, 0, width, height));
    top.read();
    terminal.draw(|frame| top.draw(frame)).unwrap();
    terminal
}

fn shown(top: &mut Top, width: u16, height: u16) -> String {
    screen(top, width, height).backend().to_string()
}

/// A trace of kernels: start, end and stream of each, all with one name.
fn trace_of(rows: impl IntoIterator<Item = (u64, u64, u64)>) -> Arc<Trace> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let name = writer.string("kernel").unwrap();
    for (start, end, stream) in rows {
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(end),
            place: Place {
                device: DeviceId(1),
                stream: StreamId(stream),
                ..Place::default()
            },
            shape: KernelShape {
                name,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    Arc::new(Trace::from_bytes(writer.finish().unwrap()).unwrap())
}

#[test]
fn the_first_screen_shows_the_whole_trace() {
    let trace = fixture("synthetic-v1.sbt");
    assert_snapshot!("whole", shown(&mut top(&trace, PLAIN), 100, 24));
    let ascii = Look {
        charset: Charset::Ascii,
        ..PLAIN
    };
    let plain = shown(&mut top(&trace, ascii), 100, 24);
    assert!(plain.is_ascii(), "{plain}");
}

#[test]
fn an_event_is_selected_and_inspected() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 24);
    press(&mut top, "j<tab><tab><tab>f");
    assert_snapshot!("selected", shown(&mut top, 100, 24));
    press(&mut top, "<enter>");
    assert_eq!(top.state.mode, Mode::Inspect);
    assert_snapshot!("inspected", shown(&mut top, 100, 30));
    press(&mut top, "<pagedown>");
    assert_snapshot!("inspected_further", shown(&mut top, 100, 12));
    press(&mut top, "<esc>");
    assert_eq!(top.state.mode, Mode::Browse);
}

#[test]
fn names_are_searched_for_as_view_does() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 24);
    press(&mut top, "/flash*");
    assert!(shown(&mut top, 100, 24).contains("/flash*"));
    press(&mut top, "<enter>");
    assert_snapshot!("searched", shown(&mut top, 100, 24));
    let mut starts = vec![top.state.picked.as_ref().unwrap().event.start];
    for _ in 0..20 {
        press(&mut top, "n");
        starts.push(top.state.picked.as_ref().unwrap().event.start);
    }
    assert!(starts.is_sorted());
    starts.dedup();
    assert_eq!(starts.len(), 18, "view finds as many");
    assert_eq!(top.state.message, "no later event");
    press(&mut top, "N");
    assert_eq!(top.state.picked.as_ref().unwrap().event.start, starts[16]);
    press(&mut top, "/no such name<enter>");
    assert_eq!(top.state.message, "no event matches no such name");
    press(&mut top, "//[/<enter>");
    assert!(
        top.state
            .message
            .starts_with("reading the regular expression /[/")
    );
}

#[test]
fn events_of_a_row_come_one_after_the_other() {
    let trace = fixture("demo-h200.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 40);
    press(&mut top, "jj<tab>");
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let picked = top.state.picked.as_ref().unwrap();
        if seen.last() == Some(&picked.position) {
            break;
        }
        assert!(matches!(picked.key, RowKey::Stream { stream, .. } if stream == StreamId(14)));
        assert!(
            top.state.viewport.window().from <= picked.event.start
                && picked.event.start <= top.state.viewport.window().to
        );
        seen.push(picked.position);
        press(&mut top, "<tab>");
    }
    assert!(seen.is_sorted());
    let overview = top.browser.summary();
    let row = overview.rows.iter().find(|row| Some(row.key) == top.state.row());
    assert_eq!(seen.len() as u64, row.unwrap().events);
    for position in seen.iter().rev().skip(1) {
        press(&mut top, "<backtab>");
        assert_eq!(top.state.picked.as_ref().unwrap().position, *position);
    }
}

#[test]
fn the_window_moves_within_the_trace() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 24);
    let whole = top.state.viewport.whole();
    press(&mut top, "-hHlL");
    assert_eq!(top.state.viewport.window(), whole, "there is nothing beyond");
    press(&mut top, "++");
    assert_eq!(top.state.viewport.window().nanos(), whole.nanos() / 4);
    press(&mut top, "g");
    assert_eq!(top.state.viewport.window().from, whole.from);
    press(&mut top, "G");
    assert_eq!(top.state.viewport.window().to, whole.to);
    for _ in 0..100 {
        press(&mut top, "+");
    }
    assert_eq!(top.state.viewport.window().nanos(), 66, "a nanosecond a cell");
    press(&mut top, "0");
    assert_eq!(top.state.viewport.window(), whole);
    let at_most_one = |top: &mut Top| {
        top.read();
        let (.., picture) = top.picture.as_ref().unwrap();
        let overview = &picture.overview;
        let shares = overview
            .rows
            .iter()
            .flat_map(|row| (0..overview.cells()).map(|cell| overview.share(row, cell)));
        assert!(shares.into_iter().all(|share| share <= 1.0));
    };
    for key in ["+", "l", "+", "l", "+", "h", "+", "+", "+", "+", "+"] {
        press(&mut top, key);
        at_most_one(&mut top);
    }
}

#[test]
fn colours_and_highlights_are_there_where_they_may_be() {
    let trace = fixture("synthetic-v1.sbt");
    let colored = Look {
        charset: Charset::Unicode,
        colors: Colors::Shown,
    };
    let mut top = top(&trace, colored);
    shown(&mut top, 100, 24);
    press(&mut top, "/flash<enter>");
    let terminal = screen(&mut top, 100, 24);
    let buffer = terminal.backend().buffer();
    let has = |test: &dyn Fn(&ratatui::buffer::Cell) -> bool| buffer.content.iter().any(test);
    for color in [
        Color::Green,
        Color::Magenta,
        Color::Yellow,
        Color::Cyan,
        Color::LightBlue,
    ] {
        assert!(has(&|cell| cell.fg == color), "{color}");
    }
    assert!(has(
        &|cell| cell.modifier.contains(Modifier::UNDERLINED) && cell.fg == Color::Green
    ));
    top.look = PLAIN;
    let terminal = screen(&mut top, 100, 24);
    assert!(
        terminal
            .backend()
            .buffer()
            .content
            .iter()
            .all(|cell| cell.fg == Color::Reset)
    );
}

#[test]
fn help_lies_over_everything() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 24);
    press(&mut top, "?");
    assert_snapshot!("help", shown(&mut top, 100, 24));
    press(&mut top, "x");
    assert_eq!(top.state.mode, Mode::Help, "a key that nobody knows does nothing");
    press(&mut top, "?");
    assert_eq!(top.state.mode, Mode::Browse);
    assert_eq!(press(&mut top, "q"), Going::Over);
}

#[test]
fn any_size_of_terminal_will_do() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 24);
    press(&mut top, "j<tab><enter>");
    for mode in ["", "<esc>?", "?/abc", "<esc>"] {
        press(&mut top, mode);
        for (width, height) in [(1, 1), (2, 3), (10, 4), (24, 14), (300, 100), (80, 2), (3, 80)] {
            shown(&mut top, width, height);
        }
    }
    assert_snapshot!("small", shown(&mut top, 40, 10));
}

#[test]
fn one_event_none_and_moments_can_be_looked_at() {
    let none = trace_of([]);
    assert!(browser(&none).is_none());
    let one = trace_of([(500, 700, 1)]);
    let mut view = top(&one, PLAIN);
    shown(&mut view, 80, 16);
    press(&mut view, "<tab>");
    assert_snapshot!("one", shown(&mut view, 80, 16));
    let moments = trace_of([
        (500, 500, 1),
        (500, 500, 1),
        (400, 300, 1),
        (450, 0, 1),
        (0, 0, 1),
    ]);
    let mut view = top(&moments, PLAIN);
    shown(&mut view, 80, 16);
    let mut positions = Vec::new();
    for _ in 0..5 {
        press(&mut view, "<tab>");
        positions.push(view.state.picked.as_ref().unwrap().position);
    }
    positions.dedup();
    assert_eq!(positions.len(), 4, "all that have a time: {positions:?}");
}

#[test]
fn ten_thousand_rows_are_scrolled_and_counted() {
    let trace = trace_of((0..10_000).map(|at| (1_000 + at, 1_100 + at, at)));
    let mut top = top(&trace, PLAIN);
    let first = shown(&mut top, 80, 20);
    assert!(first.contains("9,990 more rows"), "{first}");
    for _ in 0..2_000 {
        press(&mut top, "<pagedown>");
    }
    let last = shown(&mut top, 80, 20);
    assert!(last.contains("> stream 9999"), "{last}");
    assert!(top.browser.summary().cells() * 10_001 <= 4 << 20);
    press(&mut top, "<tab>");
    let picked = top.state.picked.as_ref().unwrap();
    assert!(matches!(picked.key, RowKey::Stream { stream, .. } if stream == StreamId(9_999)));
}

#[test]
fn a_time_a_row_and_a_step_are_gone_to() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    shown(&mut top, 100, 30);
    let whole = top.state.viewport.window();
    let middle = Timestamp(whole.from.0 + whole.nanos() / 2);
    press(&mut top, ":");
    assert!(shown(&mut top, 100, 30).contains("go to time: "));
    press(&mut top, &format!("@{}<enter>", middle.0));
    let window = top.state.viewport.window();
    assert!(window.from <= middle && middle <= window.to && window.nanos() < whole.nanos() / 100);
    press(&mut top, ":kernels:9<enter>");
    let kernel = trace.with_row(tracesmith_trace::EventKind::Kernel, 9, |found| found.event);
    let kernel = kernel.unwrap();
    let window = top.state.viewport.window();
    assert!(window.from <= kernel.start && kernel.end <= window.to);
    assert!(window.nanos() < 10 * kernel.duration());
    press(&mut top, "s1<enter>");
    let step = tracesmith_trace::analysis::Analysis::of_step(&trace, 1).unwrap();
    let window = top.state.viewport.window();
    let expected = step.activity.window;
    assert_eq!(
        (Some(window.from.0), Some(window.to.0)),
        (expected.from, expected.to)
    );
    for (keys, words) in [
        (":never<enter>", "'never' is not a time"),
        (":kernels:9999<enter>", "kernels has no row 9999"),
        (":900s<enter>", "not in the time range"),
        ("s99<enter>", "there is no step 99"),
        ("sx<enter>", "'x' is not the number of a step"),
    ] {
        press(&mut top, keys);
        assert!(shown(&mut top, 100, 30).contains(words), "{keys}");
        assert_eq!(top.state.viewport.window(), window, "{keys}");
    }
    press(&mut top, ":1<esc>s<enter>");
    assert_eq!(
        (top.state.viewport.window(), top.state.mode),
        (window, Mode::Browse)
    );
    press(&mut top, "?");
    let help = shown(&mut top, 100, 40);
    assert!(
        help.contains("go to a time or row") && help.contains("to a step"),
        "{help}"
    );
}

#[test]
fn rows_of_threads_can_be_hidden() {
    let trace = fixture("synthetic-v1.sbt");
    let mut top = top(&trace, PLAIN);
    assert!(shown(&mut top, 100, 40).contains("api 4000 main"));
    press(&mut top, "t");
    assert_eq!(top.state.rows_shown, RowsShown::Devices);
    let devices = shown(&mut top, 100, 40);
    assert!(
        !devices.contains("api 4000") && !devices.contains("python pid"),
        "{devices}"
    );
    press(&mut top, "/cudaLaunchKernel<enter>");
    assert_eq!(
        top.state.rows_shown,
        RowsShown::All,
        "a match is shown wherever it is"
    );
}

/// The number of the line of the screen that has a text, and the line.
fn line_with(screen: &str, text: &str) -> (usize, String) {
    let found = screen.lines().enumerate().find(|(_, line)| line.contains(text));
    let (number, line) = found.unwrap_or_else(|| panic!("no {text} in\n{screen}"));
    (number, line.to_owned())
}

#[test]
fn counters_are_rows_of_their_device() {
    let trace = fixture("train-h200.sbt");
    let mut top = top(&trace, PLAIN);
    assert_snapshot!("counters", shown(&mut top, 110, 40));
    let ascii = Look {
        charset: Charset::Ascii,
        ..PLAIN
    };
    top.look = ascii;
    let plain = shown(&mut top, 110, 40);
    assert!(plain.is_ascii(), "{plain}");
    assert_snapshot!("counters_ascii", plain);
    for (width, height) in [(1, 1), (2, 3), (14, 20), (24, 14), (80, 24), (300, 100)] {
        shown(&mut top, width, height);
    }
}

#[test]
fn a_selected_counter_shows_its_values() {
    let trace = fixture("train-h200.sbt");
    let mut top = top(&trace, PLAIN);
    let (streams, _) = line_with(&shown(&mut top, 110, 40), "all streams");
    let (power, _) = line_with(&shown(&mut top, 110, 40), "power (W)");
    press(&mut top, &"j".repeat(power - streams));
    let selected = shown(&mut top, 110, 40);
    assert!(line_with(&selected, "power (W)").1.contains("> power"));
    let (_, values) = line_with(&selected, "in this window: mean");
    assert!(values.contains("min") && values.contains("max"), "{values}");
    press(&mut top, "<tab>");
    assert_snapshot!("counter_selected", shown(&mut top, 110, 40));
    press(&mut top, "f+++");
    let narrow = shown(&mut top, 110, 40);
    assert!(narrow.contains("in this window: mean"), "{narrow}");
    press(&mut top, "<enter>");
    assert_snapshot!("counter_inspected", shown(&mut top, 110, 24));
    press(&mut top, "<esc><esc>");
    assert!(!shown(&mut top, 110, 40).contains("  at "));
}

#[test]
fn samples_of_a_counter_come_one_after_the_other() {
    let trace = fixture("train-h200.sbt");
    let mut top = top(&trace, PLAIN);
    let whole = top.state.viewport.whole();
    let (streams, _) = line_with(&shown(&mut top, 110, 40), "all streams");
    let (power, _) = line_with(&shown(&mut top, 110, 40), "power (W)");
    press(&mut top, &"j".repeat(power - streams));
    let Some(RowKey::Counter(key)) = top.state.row() else {
        panic!("{:?}", top.state.row())
    };
    let query = Query {
        kinds: Some(VALUE_KINDS.to_vec()),
        from: Some(whole.from),
        to: Some(whole.to),
        ..Query::default()
    };
    let power = trace.events(&query);
    let power = power.filter(|event| trace.event_name(event) == trace.string(key.name));
    let expected: Vec<Timestamp> = power.map(|event| event.start).collect();
    let mut found = Vec::new();
    while top.state.message.is_empty() {
        press(&mut top, "<tab>");
        found.push(top.state.picked.as_ref().unwrap().event.start);
    }
    assert_eq!(top.state.message, "no later sample");
    found.pop();
    assert_eq!(found, expected);
    for time in expected.iter().rev().skip(1) {
        press(&mut top, "<backtab>");
        assert_eq!(top.state.picked.as_ref().unwrap().event.start, *time);
    }
    press(&mut top, "<backtab>");
    assert_eq!(top.state.message, "no earlier sample");
}

#[test]
fn counters_can_be_hidden() {
    let trace = fixture("train-h200.sbt");
    let mut top = top(&trace, PLAIN);
    let (power, _) = line_with(&shown(&mut top, 110, 60), "power (W)");
    press(&mut top, "c");
    let without = shown(&mut top, 110, 60);
    assert!(!without.contains("power (W)"), "{without}");
    press(&mut top, "c");
    assert_eq!(line_with(&shown(&mut top, 110, 60), "power (W)").0, power);
    press(&mut top, "t");
    let devices = shown(&mut top, 110, 60);
    assert!(
        devices.contains("power (W)") && !devices.contains("api "),
        "{devices}"
    );
    let mut none = super::tests::top(&trace_of([(500, 700, 1)]), PLAIN);
    press(&mut none, "c");
    assert_eq!(none.state.message, "there are no counters");
    let query = Query {
        kinds: Some(VALUE_KINDS.to_vec()),
        ..Query::default()
    };
    let browser = Browser::new(&trace, &query, None).unwrap();
    let window = browser.summary().window();
    let mut only = Top::new(browser, window, "test.sbt".to_owned(), PLAIN);
    let screen = shown(&mut only, 110, 60);
    assert!(
        screen.contains("power (W)") && !screen.contains("stream"),
        "{screen}"
    );
    press(&mut only, "c");
    assert_eq!(only.state.message, "there are only counters");
    press(&mut only, "<tab>+++lh-f<enter>");
    shown(&mut only, 110, 60);
}

/// The terminal that tests of the command use too.
#[path = "../../../tests/support/terminal.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses its own part")]
mod pty;

/// Set in the process that panics.
const PANICS: &str = "TRACESMITH_TEST_TOP_PANICS";

#[test]
fn a_panic_gives_the_terminal_back() {
    if std::env::var_os(PANICS).is_some() {
        let _screen = Screen::take(Signals::catch().unwrap()).unwrap();
        panic!("as a bug would");
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "commands::top::tests::a_panic_gives_the_terminal_back",
            "--nocapture",
        ])
        .env(PANICS, "1");
    let mut terminal = pty::Terminal::start(command, 80, 24);
    assert!(!terminal.end().success());
    assert!(
        terminal.screen.contains("as a bug would"),
        "{}",
        terminal.screen.text()
    );
    assert!(!terminal.screen.alternate && terminal.screen.cursor_shown && terminal.is_cooked());
}
