//! What the interactive view shows, and how keys change it. Nothing here reads a trace or draws. A [`Request`] states what
//! must be read, and the caller reports what it found.

use tracesmith_format::Timestamp;
use tracesmith_trace::overview::{Direction, Picked, Position, RowKey, TimeSpan, Viewport};

use super::lines::{CountersShown, Line, RowsShown, chosen};

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// The shell is wanted for a while.
    Suspend,
    Left,
    Right,
    PageLeft,
    PageRight,
    ZoomIn,
    ZoomOut,
    Whole,
    Fit,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Next,
    Previous,
    NextMatch,
    PreviousMatch,
    Search,
    GoToTime,
    GoToStep,
    Rows,
    Counters,
    Help,
    Enter,
    Escape,
    Erase,
    Type(char),
}

/// What has to be read before the next picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Nothing,
    Quit,
    Suspend,
    /// The event next to a position; `None` is any row.
    Seek {
        key: Option<RowKey>,
        from: Position,
        direction: Direction,
    },
    /// Events with such a name.
    Search(String),
    /// The time range around a time or row, as it was typed.
    GoToTime(String),
    /// The time range of a step, as it was typed.
    GoToStep(String),
}

/// What the keys go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    Prompt,
    Inspect,
    Help,
}

/// What the prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    Search,
    Time,
    Step,
}

impl Prompt {
    /// What is shown before the typed text.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Time => "go to time: ",
            Self::Step => "go to step: ",
        }
    }
}

/// All that is shown but the trace.
pub(super) struct State {
    /// The part of the trace that is shown.
    pub(super) viewport: Viewport,
    /// Lines of the list that fit.
    pub(super) height: usize,
    pub(super) mode: Mode,
    pub(super) rows_shown: RowsShown,
    pub(super) counters_shown: CountersShown,
    pub(super) picked: Option<Picked>,
    /// What the prompt is for, and what is typed there.
    pub(super) prompt_for: Prompt,
    pub(super) prompt: String,
    pub(super) message: String,
    /// How far the inspected event is scrolled.
    pub(super) scroll: usize,
    /// The pattern that was searched for, and how many events have it.
    pub(super) search: Option<(String, u64)>,
    all: Vec<Line>,
    lines: Vec<Line>,
    /// The selected line, always a row where there is one.
    selected: usize,
    /// The first line that is shown.
    top: usize,
}

impl State {
    pub(super) fn new(whole: TimeSpan, window: TimeSpan, lines: Vec<Line>) -> Self {
        let mut state = State {
            viewport: Viewport::new(whole, window),
            height: 1,
            mode: Mode::Browse,
            rows_shown: RowsShown::All,
            counters_shown: CountersShown::Yes,
            picked: None,
            prompt_for: Prompt::Search,
            prompt: String::new(),
            message: String::new(),
            scroll: 0,
            search: None,
            lines: lines.clone(),
            all: lines,
            selected: 0,
            top: 0,
        };
        state.select_near(0);
        state
    }

    /// The lines that are shown, each with whether it is the selected one.
    pub(super) fn visible(&self) -> impl Iterator<Item = (&Line, Selected)> {
        let lines = self.lines.iter().enumerate().skip(self.top).take(self.height);
        lines.map(|(number, line)| {
            let selected = if number == self.selected {
                Selected::Yes
            } else {
                Selected::No
            };
            (line, selected)
        })
    }

    /// The selected row.
    pub(super) fn row(&self) -> Option<RowKey> {
        match self.lines.get(self.selected) {
            Some(Line::Row { key, .. }) => Some(*key),
            _ => None,
        }
    }

    /// Rows that do not fit the screen.
    pub(super) fn hidden_rows(&self) -> usize {
        let rows = |lines: &[Line]| lines.iter().filter(|line| line.is_row()).count();
        let end = (self.top + self.height).min(self.lines.len());
        rows(&self.lines) - rows(&self.lines[self.top.min(end)..end])
    }

    /// The terminal has this much space for the timeline.
    pub(super) fn resize(&mut self, cells: usize, height: usize) {
        self.viewport.resize(cells);
        self.height = height.max(1);
        self.follow_selection();
    }

    /// Performs the action of a key.
    pub(super) fn act(&mut self, action: Action) -> Request {
        self.message.clear();
        match self.mode {
            // Typing and reading go on where they were.
            _ if action == Action::Suspend => Request::Suspend,
            Mode::Prompt => self.act_in_prompt(action),
            Mode::Help => {
                match action {
                    Action::Quit => return Request::Quit,
                    _ => self.mode = Mode::Browse,
                }
                Request::Nothing
            }
            Mode::Inspect => self.act_in_inspection(action),
            Mode::Browse => self.act_in_browser(action),
        }
    }

    fn act_in_prompt(&mut self, action: Action) -> Request {
        match action {
            Action::Type(char) => self.prompt.push(char),
            Action::Erase if self.prompt.is_empty() => self.mode = Mode::Browse,
            Action::Erase => {
                self.prompt.pop();
            }
            Action::Enter => {
                self.mode = Mode::Browse;
                let text = std::mem::take(&mut self.prompt);
                return match self.prompt_for {
                    Prompt::Search if text.is_empty() => {
                        self.search = None;
                        Request::Nothing
                    }
                    _ if text.trim().is_empty() => Request::Nothing,
                    Prompt::Search => Request::Search(text),
                    Prompt::Time => Request::GoToTime(text.trim().to_owned()),
                    Prompt::Step => Request::GoToStep(text.trim().to_owned()),
                };
            }
            Action::Escape => {
                self.prompt.clear();
                self.mode = Mode::Browse;
            }
            Action::Quit => return Request::Quit,
            _ => {}
        }
        Request::Nothing
    }

    fn act_in_inspection(&mut self, action: Action) -> Request {
        let page = self.height.max(2) - 1;
        match action {
            Action::Quit => return Request::Quit,
            Action::Up => self.scroll = self.scroll.saturating_sub(1),
            Action::Down => self.scroll += 1,
            Action::PageUp => self.scroll = self.scroll.saturating_sub(page),
            Action::PageDown => self.scroll += page,
            Action::First => self.scroll = 0,
            Action::Next | Action::Previous | Action::NextMatch | Action::PreviousMatch => {
                self.scroll = 0;
                return self.act_in_browser(action);
            }
            Action::Help => self.mode = Mode::Help,
            _ => self.mode = Mode::Browse,
        }
        Request::Nothing
    }

    fn act_in_browser(&mut self, action: Action) -> Request {
        let before = self.viewport.window();
        let length = before.nanos();
        match action {
            Action::Quit => return Request::Quit,
            Action::Left => self.viewport.pan_back((length / 8).max(1)),
            Action::Right => self.viewport.pan_forward((length / 8).max(1)),
            Action::PageLeft => self.viewport.pan_back(length),
            Action::PageRight => self.viewport.pan_forward(length),
            Action::ZoomIn => self.zoom(length / 2),
            Action::ZoomOut => self.zoom(length.saturating_mul(2)),
            Action::Whole => self.viewport.show_whole(),
            Action::First => self.viewport.go_to_start(),
            Action::Last => self.viewport.go_to_end(),
            Action::Fit => self.fit(),
            Action::Up => self.select(self.selected.saturating_sub(1), Direction::Back),
            Action::Down => self.select(self.selected + 1, Direction::Forward),
            Action::PageUp => self.select(self.selected.saturating_sub(self.height), Direction::Back),
            Action::PageDown => self.select(self.selected + self.height, Direction::Forward),
            Action::Next => return self.seek(self.row(), Direction::Forward),
            Action::Previous => return self.seek(self.row(), Direction::Back),
            Action::NextMatch | Action::PreviousMatch => {
                let direction = match action {
                    Action::NextMatch => Direction::Forward,
                    _ => Direction::Back,
                };
                if self.search.is_some() {
                    return self.seek(None, direction);
                }
                "no search yet; press / to search".clone_into(&mut self.message);
            }
            Action::Search => self.ask(Prompt::Search),
            Action::GoToTime => self.ask(Prompt::Time),
            Action::GoToStep => self.ask(Prompt::Step),
            Action::Rows => self.switch_rows(),
            Action::Counters => self.switch_counters(),
            Action::Help => self.mode = Mode::Help,
            Action::Enter => {
                if self.picked.is_some() {
                    self.scroll = 0;
                    self.mode = Mode::Inspect;
                } else {
                    return self.seek(self.row(), Direction::Forward);
                }
            }
            Action::Escape => {
                self.picked = None;
                self.search = None;
            }
            Action::Suspend => return Request::Suspend,
            Action::Erase | Action::Type(_) => {}
        }
        if self.viewport.window() != before {
            self.message.clear();
        }
        Request::Nothing
    }

    fn ask(&mut self, what: Prompt) {
        self.prompt.clear();
        self.prompt_for = what;
        self.mode = Mode::Prompt;
    }

    /// Shows a time range.
    pub(super) fn go_to(&mut self, window: TimeSpan) {
        self.viewport.show(window.from, window.nanos());
    }

    /// An event was found, or there is none on that side.
    pub(super) fn found(&mut self, picked: Option<Picked>, direction: Direction) {
        let Some(picked) = picked else {
            let side = match direction {
                Direction::Forward => "later",
                Direction::Back => "earlier",
            };
            let what = match self.row() {
                Some(RowKey::Counter(_)) if self.search.is_none() => "sample",
                _ => "event",
            };
            self.message = format!("no {side} {what}");
            return;
        };
        let has_it = |line: &Line| matches!(line, Line::Row { key, .. } if *key == picked.key);
        let stays = match self.row() {
            Some(RowKey::Device { device }) => picked.key.device() == Some(device),
            Some(key) => key == picked.key,
            None => false,
        };
        if !stays {
            if !self.lines.iter().any(has_it) {
                self.switch_rows();
            }
            if let Some(number) = self.lines.iter().position(has_it) {
                self.selected = number;
                self.follow_selection();
            }
        }
        self.viewport.reveal(picked.event.start, picked.event.end);
        self.picked = Some(picked);
    }

    /// A search came to an end: so many have such a name.
    pub(super) fn searched(&mut self, pattern: String, count: u64) -> Request {
        if count == 0 {
            self.search = None;
            self.message = format!("no event matches {pattern}");
            return Request::Nothing;
        }
        self.search = Some((pattern, count));
        Request::Seek {
            key: None,
            from: Position::before(self.viewport.window().from),
            direction: Direction::Forward,
        }
    }

    /// From the selected event if it is seen, else from that side of the window that lies ahead.
    fn seek(&self, key: Option<RowKey>, direction: Direction) -> Request {
        let from = match (&self.picked, direction) {
            (Some(picked), _) if self.sees(picked) => picked.position,
            (_, Direction::Forward) => Position::before(self.viewport.window().from),
            (_, Direction::Back) => Position::behind(self.viewport.window().to),
        };
        if key.is_none() && self.search.is_none() {
            return Request::Nothing;
        }
        Request::Seek { key, from, direction }
    }

    fn sees(&self, picked: &Picked) -> bool {
        self.viewport.overlaps(picked.event.start, picked.event.end)
    }

    /// Zooms around the middle of the selected event's visible part, or around the middle of the window.
    fn zoom(&mut self, nanos: u64) {
        let window = self.viewport.window();
        let focus = self
            .picked
            .as_ref()
            .filter(|picked| self.sees(picked))
            .map(|picked| {
                let begin = picked.event.start.max(window.from).0;
                let end = picked.event.end.max(picked.event.start).min(window.to).0;
                Timestamp(begin + (end - begin) / 2)
            });
        self.viewport.zoom(nanos, focus);
    }

    /// Makes the selected event a third of the window.
    fn fit(&mut self) {
        match &self.picked {
            Some(picked) => self.viewport.fit(picked.event.start, picked.event.end),
            None => "no event selected; press Tab to select the next one".clone_into(&mut self.message),
        }
    }

    fn switch_rows(&mut self) {
        self.rows_shown = match self.rows_shown {
            RowsShown::All => RowsShown::Devices,
            RowsShown::Devices => RowsShown::All,
        };
        self.choose_lines();
    }

    fn switch_counters(&mut self) {
        let rows = || self.all.iter().filter(|line| line.is_row());
        if rows().all(Line::is_counter) {
            "there are only counters".clone_into(&mut self.message);
            return;
        }
        if !rows().any(Line::is_counter) {
            "there are no counters".clone_into(&mut self.message);
            return;
        }
        self.counters_shown = match self.counters_shown {
            CountersShown::Yes => CountersShown::No,
            CountersShown::No => CountersShown::Yes,
        };
        self.choose_lines();
    }

    /// Shows the lines of the rows that are not hidden.
    fn choose_lines(&mut self) {
        let row = self.row();
        self.lines = chosen(&self.all, self.rows_shown, self.counters_shown);
        let same = |line: &Line| matches!(line, Line::Row { key, .. } if Some(*key) == row);
        let number = self.lines.iter().position(same).unwrap_or(0);
        self.top = 0;
        self.select_near(number);
    }

    fn select(&mut self, number: usize, direction: Direction) {
        let last = self.lines.len().saturating_sub(1);
        let is_row = |number: &usize| matches!(self.lines.get(*number), Some(Line::Row { .. }));
        let number = number.min(last);
        let found = match direction {
            Direction::Forward => (number..self.lines.len()).find(is_row),
            Direction::Back => (0..=number).rev().find(is_row),
        };
        if let Some(found) = found {
            self.selected = found;
        }
        self.follow_selection();
    }

    fn select_near(&mut self, number: usize) {
        self.selected = number;
        self.select(number, Direction::Forward);
    }

    /// Scrolls so that the selected row is seen, and what it stands below when that is the line before.
    fn follow_selection(&mut self) {
        let group = self.selected > 0 && matches!(self.lines.get(self.selected - 1), Some(Line::Group(_)));
        let first = self.selected - usize::from(group && self.height > 1);
        self.top = self
            .top
            .min(first)
            .max((self.selected + 1).saturating_sub(self.height));
        self.top = self.top.min(self.lines.len().saturating_sub(self.height));
    }
}

/// Whether a line is the selected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    Yes,
    No,
}
