//! The actions of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Action, Mode};

/// Keys and what they do, for people.
pub(super) const HELP: [(&str, &str); 19] = [
    ("left right  h l", "move in time"),
    ("H L", "move by one screen"),
    ("+ -  i o", "zoom in and out"),
    ("0  w", "the whole trace"),
    ("g G  Home End", "go to the start or the end"),
    (":  s", "go to a time or row (1.5s, 25%, kernels:9094); to a step"),
    ("up down  k j", "select a row"),
    ("PgUp PgDn", "move by a page of rows"),
    ("Tab S-Tab  ] [", "next and previous event or sample of the row"),
    ("Enter", "inspect the selected event"),
    ("f", "zoom to the selected event"),
    ("/", "search names: a part, a glob, or /a regular expression/"),
    ("n N", "next and previous match"),
    ("t", "show or hide thread rows"),
    ("c", "show or hide counters"),
    ("Esc", "clear selection and search"),
    ("?", "this help"),
    ("Ctrl-Z", "suspend; fg resumes"),
    ("q  Ctrl-C", "quit"),
];

/// The action of a key. `None` for an unknown key.
pub(super) fn action(key: KeyEvent, mode: Mode) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Some(Action::Quit),
            KeyCode::Char('z') => Some(Action::Suspend),
            _ => None,
        };
    }
    let action = match key.code {
        KeyCode::Enter => Action::Enter,
        KeyCode::Esc => Action::Escape,
        KeyCode::Backspace => Action::Erase,
        KeyCode::Char(char) if mode == Mode::Prompt => Action::Type(char),
        _ if mode == Mode::Prompt => return None,
        KeyCode::Left => Action::Left,
        KeyCode::Right => Action::Right,
        KeyCode::Up => Action::Up,
        KeyCode::Down => Action::Down,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Tab => Action::Next,
        KeyCode::BackTab => Action::Previous,
        KeyCode::Char(char) => return browse(char),
        _ => return None,
    };
    Some(action)
}

fn browse(char: char) -> Option<Action> {
    Some(match char {
        'q' => Action::Quit,
        'h' => Action::Left,
        'l' => Action::Right,
        'H' => Action::PageLeft,
        'L' => Action::PageRight,
        '+' | '=' | 'i' => Action::ZoomIn,
        '-' | '_' | 'o' => Action::ZoomOut,
        '0' | 'w' => Action::Whole,
        'g' => Action::First,
        'G' => Action::Last,
        'k' => Action::Up,
        'j' => Action::Down,
        ']' => Action::Next,
        '[' => Action::Previous,
        'n' => Action::NextMatch,
        'N' => Action::PreviousMatch,
        'f' => Action::Fit,
        '/' => Action::Search,
        ':' => Action::GoToTime,
        's' => Action::GoToStep,
        't' => Action::Rows,
        'c' => Action::Counters,
        '?' => Action::Help,
        _ => return None,
    })
}
