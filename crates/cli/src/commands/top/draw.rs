//! Drawing: from state and what was read to the cells of a screen.

use anstyle::AnsiColor;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as TextLine, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use tracesmith_format::Timestamp;
use tracesmith_trace::overview::{
    ActivityKind, Axis, CounterKey, Overview, OverviewRow, Picture, RowKey, Surroundings,
};
use tracesmith_trace::{EventName, Trace, units};

use super::counters;
use super::inspect;
use super::keys::HELP;
use super::lines::Line;
use super::state::{Mode, Selected, State};
use crate::output::Colors;
use crate::output::table::clipped;
use crate::timeline::{Charset, color, percent};

/// Columns of a row's percentage, with the space before it.
const PERCENT_WIDTH: u16 = 9;
/// Bounds of the columns of a row's label, a quarter of the screen's between them.
const LABEL_WIDTHS: (u16, u16) = (14, 28);
/// Lines of the selected event below the rows, where the screen is high enough.
const DETAIL_LINES: u16 = 5;
/// A screen lower than this has no lines for it.
const HIGH_ENOUGH: u16 = 14;
/// Events take at least so many cells to have their names written.
const NAME_LEAST: usize = 4;

/// The color of counters.
const COUNTER_COLOR: Color = Color::Blue;

/// How the screen is to be drawn.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) charset: Charset,
    pub(super) colors: Colors,
}

/// All that a screen shows.
pub(super) struct Scene<'a> {
    pub(super) trace: &'a Trace,
    pub(super) title: &'a str,
    pub(super) state: &'a State,
    pub(super) picture: &'a Picture,
    pub(super) inspected: Option<&'a Surroundings>,
    /// The counter of the selected row, a time, and its value then.
    pub(super) counted: Option<(CounterKey, Timestamp, Option<f64>)>,
    pub(super) look: Look,
}

/// Draws a part of the screen.
type DrawFn<S> = fn(&S, &mut Frame<'_>, Rect);

/// Where the parts of the screen are.
struct Places {
    title: Rect,
    axis: Rect,
    rows: Rect,
    detail: Rect,
    status: Rect,
}

impl Places {
    fn of(area: Rect) -> Self {
        let detail = if area.height >= HIGH_ENOUGH {
            DETAIL_LINES
        } else {
            0
        };
        let [title, axis, rows, detail, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(detail),
            Constraint::Length(1),
        ])
        .areas(area);
        Places {
            title,
            axis,
            rows,
            detail,
            status,
        }
    }
}

/// Columns of the timeline and lines of the list on a screen of this size.
pub(super) fn space(area: Rect) -> (usize, usize) {
    let places = Places::of(area);
    let cells = area.width.saturating_sub(label_width(area) + PERCENT_WIDTH);
    (usize::from(cells).max(1), usize::from(places.rows.height).max(1))
}

fn label_width(area: Rect) -> u16 {
    (area.width / 4).clamp(LABEL_WIDTHS.0, LABEL_WIDTHS.1)
}

impl Scene<'_> {
    /// Draws everything.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let places = Places::of(area);
        // A screen may be too low for some of them.
        let drawn: [(Rect, DrawFn<Self>); 5] = [
            (places.title, Self::head),
            (places.axis, Self::axis),
            (places.rows, Self::rows),
            (places.detail, Self::detail),
            (places.status, Self::status),
        ];
        for (place, draw) in drawn.into_iter().filter(|(place, _)| !place.is_empty()) {
            draw(self, frame, place);
        }
        match self.state.mode {
            Mode::Help => self.help(frame, area),
            Mode::Inspect => self.inspection(frame, area),
            Mode::Browse | Mode::Prompt => {}
        }
    }

    fn detail(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines = match self.state.row() {
            Some(RowKey::Counter(key)) => counters::detail(self, key),
            _ => inspect::short(self),
        };
        frame.render_widget(Paragraph::new(self.lines_of(&lines)), area);
    }

    /// A style that is a colour, where there are colours.
    fn style(&self, activity: ActivityKind) -> Style {
        match self.look.colors {
            Colors::Shown => Style::new().fg(terminal_color(color(activity))),
            Colors::Hidden => Style::new(),
        }
    }

    fn text(&self, text: &str) -> String {
        self.look.charset.text(text)
    }

    fn lines_of(&self, lines: &[String]) -> Vec<TextLine<'static>> {
        lines.iter().map(|line| TextLine::from(self.text(line))).collect()
    }

    pub(super) fn zero(&self) -> u64 {
        self.trace.span().map_or(0, |(first, _)| first.0)
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let window = self.picture.overview.window();
        let axis = Axis::new(window, self.zero());
        let mut text = format!(
            "{}  {} from {} to {}",
            self.title,
            units::nanos(window.nanos()),
            axis.moment(window.from),
            axis.moment(window.to)
        );
        if let Some((pattern, count)) = &self.state.search {
            text += &format!("  {pattern}: {}", units::count(*count));
        }
        let hidden = self.state.hidden_rows();
        if hidden > 0 {
            text += &format!("  {} more rows", units::count(hidden as u64));
        }
        let left_out = self.picture.counters.left_out;
        if left_out > 0 {
            text += &format!("  {} more counters are not shown", units::count(left_out as u64));
        }
        let style = Style::new().add_modifier(Modifier::REVERSED);
        frame.buffer_mut().set_style(area, style);
        frame
            .buffer_mut()
            .set_stringn(area.x, area.y, self.text(&text), usize::from(area.width), style);
    }

    fn axis(&self, frame: &mut Frame<'_>, area: Rect) {
        let overview = &self.picture.overview;
        let label = label_width(area);
        let style = Style::new().add_modifier(Modifier::DIM);
        let buffer = frame.buffer_mut();
        let cells = usize::from(area.width.saturating_sub(label + PERCENT_WIDTH));
        for tick in Axis::new(overview.window(), self.zero()).ticks(cells) {
            let text = format!("{}{}", self.look.charset.tick(), self.text(&tick.label));
            let column = area.x + label + tick.column as u16;
            buffer.set_stringn(column, area.y, text, cells.saturating_sub(tick.column), style);
        }
        // Where the selected event is, whatever row it is in.
        if let Some((first, _)) = self.picked_cells()
            && first < cells
        {
            let sign = match self.look.charset {
                Charset::Unicode => "▼",
                Charset::Ascii => "v",
            };
            buffer.set_stringn(area.x + label + first as u16, area.y, sign, 1, Style::new());
        }
    }

    /// The cells of the selected event, if it is seen.
    fn picked_cells(&self) -> Option<(usize, usize)> {
        let event = &self.state.picked.as_ref()?.event;
        cells_of(&self.picture.overview, event.start, event.end)
    }

    fn rows(&self, frame: &mut Frame<'_>, area: Rect) {
        let label = usize::from(label_width(area));
        for (number, (line, selected)) in self.state.visible().take(usize::from(area.height)).enumerate() {
            let y = area.y + number as u16;
            match line {
                Line::Group(name) => {
                    let style = Style::new().add_modifier(Modifier::BOLD);
                    let name = self.text(name);
                    frame
                        .buffer_mut()
                        .set_stringn(area.x, y, name, usize::from(area.width), style);
                }
                Line::Row { key, label: name } => {
                    let (sign, style) = match selected {
                        Selected::Yes => (">", Style::new().add_modifier(Modifier::REVERSED)),
                        Selected::No => (" ", Style::new()),
                    };
                    let name = self.text(&format!("{sign} {name}"));
                    let name = clipped(&name, label - 1);
                    let buffer = frame.buffer_mut();
                    buffer.set_stringn(area.x, y, self.text(&name), label - 1, style);
                    let line = Rect { y, height: 1, ..area };
                    if let RowKey::Counter(key) = key {
                        self.counter(frame, line, *key);
                    } else if let Some(row) = self.picture.overview.row(*key) {
                        self.row(frame, line, row);
                    }
                }
            }
        }
    }

    fn row(&self, frame: &mut Frame<'_>, area: Rect, row: &OverviewRow) {
        let (overview, charset) = (&self.picture.overview, self.look.charset);
        let left = area.x + label_width(area);
        let right = area.right().saturating_sub(PERCENT_WIDTH);
        let matches = self
            .picture
            .matches
            .as_ref()
            .and_then(|matches| matches.row(row.key));
        let picked = self.picked_cells().filter(|_| self.is_in(row.key));
        for cell in 0..overview.cells() {
            let x = left + cell as u16;
            if x >= right {
                break;
            }
            let activity = row.activity(cell);
            let share = overview.share(row, cell);
            let shown = match activity {
                _ if share > 0.0 => charset.level(share),
                Some(ActivityKind::Sync) => charset.wait(),
                _ if row.starts(cell) > 0 => charset.moment(),
                _ => ' ',
            };
            let mut style = activity.map_or(Style::new(), |activity| self.style(activity));
            let has_match = |found: &OverviewRow| {
                cell < self.matched_cells() && (found.busy_nanos_of(cell) > 0 || found.starts(cell) > 0)
            };
            if matches.is_some_and(has_match) {
                style = style.add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
            }
            if picked.is_some_and(|(first, last)| (first..=last).contains(&cell)) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            frame.buffer_mut()[(x, area.y)].set_char(shown).set_style(style);
        }
        self.names(frame, area, row.key);
        let busy = if row.has_work() {
            percent(overview.utilization(row))
        } else {
            String::new()
        };
        let text = format!("{busy:>width$}", width = usize::from(PERCENT_WIDTH));
        frame
            .buffer_mut()
            .set_stringn(right, area.y, text, usize::from(PERCENT_WIDTH), Style::new());
    }

    /// A counter: its mean in each cell as a height, and its maximum in the window.
    fn counter(&self, frame: &mut Frame<'_>, area: Rect, key: CounterKey) {
        let Some(row) = self.picture.counters.row(key) else {
            return;
        };
        let Some(window) = row.window() else { return };
        let left = area.x + label_width(area);
        let right = area.right().saturating_sub(PERCENT_WIDTH);
        let picked = self.picked_cells().filter(|_| self.is_in(RowKey::Counter(key)));
        let cells = self
            .picture
            .counters
            .cells()
            .min(usize::from(right.saturating_sub(left)));
        for cell in 0..cells {
            let shown = row.cell(cell).map_or(' ', |values| {
                counters::height(self.look.charset, values.mean, window)
            });
            let mut style = match self.look.colors {
                Colors::Shown => Style::new().fg(COUNTER_COLOR),
                Colors::Hidden => Style::new(),
            };
            if picked.is_some_and(|(first, last)| (first..=last).contains(&cell)) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            let x = left + cell as u16;
            frame.buffer_mut()[(x, area.y)].set_char(shown).set_style(style);
        }
        let width = usize::from(PERCENT_WIDTH);
        let most = counters::short(window.max, self.trace.string(key.unit), width - 1);
        let text = format!("{:>width$}", self.text(&most));
        frame
            .buffer_mut()
            .set_stringn(right, area.y, text, width, Style::new());
    }

    fn matched_cells(&self) -> usize {
        self.picture.matches.as_ref().map_or(0, Overview::cells)
    }

    /// Whether the selected event belongs to a row.
    fn is_in(&self, key: RowKey) -> bool {
        self.state.picked.as_ref().is_some_and(|picked| match key {
            RowKey::Device { device } => picked.key.device() == Some(device),
            key => key == picked.key,
        })
    }

    /// Names of events that are wide enough, over their cells: inner ones over those around them, and none over what runs
    /// while somebody waits.
    fn names(&self, frame: &mut Frame<'_>, area: Rect, key: RowKey) {
        let overview = &self.picture.overview;
        let left = area.x + label_width(area);
        let right = area.right().saturating_sub(PERCENT_WIDTH);
        for named in self
            .picture
            .named
            .iter()
            .filter(|named| named.key == key && named.activity.is_work())
        {
            let Some((first, last)) = cells_of(overview, named.start, named.end) else {
                continue;
            };
            let width = last + 1 - first;
            if width < NAME_LEAST {
                continue;
            }
            let name = match named.name {
                EventName::Id(id) => self.trace.string(id),
                EventName::Word(word) => word,
            };
            // The first cell stays as it is: it tells one event from the one before.
            let text = self.text(&clipped(name, width - 2));
            let x = left + first as u16 + 1;
            if x < right {
                let style = match self.look.colors {
                    Colors::Shown => Style::new()
                        .fg(Color::Black)
                        .bg(terminal_color(color(named.activity))),
                    Colors::Hidden => Style::new().add_modifier(Modifier::REVERSED),
                };
                let room = usize::from(right - x).min(width - 2);
                frame.buffer_mut().set_stringn(x, area.y, text, room, style);
            }
        }
    }

    fn status(&self, frame: &mut Frame<'_>, area: Rect) {
        let text = match self.state.mode {
            Mode::Prompt => format!("{}{}", self.state.prompt_for.label(), self.state.prompt),
            _ if !self.state.message.is_empty() => self.state.message.clone(),
            _ => "? help  arrows move  + - zoom  Tab next event  Enter inspect  / search  q quit".to_owned(),
        };
        let width = usize::from(area.width);
        frame
            .buffer_mut()
            .set_stringn(area.x, area.y, self.text(&text), width, Style::new());
        if self.state.mode == Mode::Prompt {
            let column = area.x + (text.chars().count() as u16).min(area.width.saturating_sub(1));
            frame.set_cursor_position((column, area.y));
        }
    }

    fn help(&self, frame: &mut Frame<'_>, area: Rect) {
        let [least, .., most] = self.look.charset.levels();
        let mut lines: Vec<TextLine<'_>> = HELP
            .iter()
            .map(|(keys, what)| TextLine::from(format!("{keys:<17}{what}")))
            .collect();
        lines.push(TextLine::from(""));
        let charset = self.look.charset;
        lines.push(TextLine::from(format!(
            "{least} to {most}  busy share, counter value   {} wait   {} no duration",
            charset.wait(),
            charset.moment()
        )));
        let mut legend = Vec::new();
        for activity in ActivityKind::ALL {
            if self
                .picture
                .overview
                .rows
                .iter()
                .any(|row| row.cells_of(activity).is_some())
            {
                legend.push(Span::styled(
                    format!("{} ", activity.name()),
                    self.style(activity),
                ));
            }
        }
        lines.push(TextLine::from(legend));
        let height = (lines.len() as u16 + 2).min(area.height);
        let width = 78.min(area.width);
        let place = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        self.panel(frame, place, "keys", lines);
    }

    fn inspection(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines = inspect::full(self);
        let last = lines
            .len()
            .saturating_sub(usize::from(area.height.saturating_sub(2)));
        let shown = &lines[self.state.scroll.min(last)..];
        self.panel(frame, area, "event", self.lines_of(shown));
    }

    fn panel(&self, frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<TextLine<'_>>) {
        frame.render_widget(Clear, area);
        let mut block = Block::bordered().title(format!(" {title} "));
        if self.look.charset == Charset::Ascii {
            block = block.border_set(ratatui::symbols::border::Set {
                top_left: "+",
                top_right: "+",
                bottom_left: "+",
                bottom_right: "+",
                vertical_left: "|",
                vertical_right: "|",
                horizontal_top: "-",
                horizontal_bottom: "-",
            });
        }
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }
}

/// The first and last cell of a stretch of time, as far as it is seen.
fn cells_of(overview: &Overview, start: Timestamp, end: Timestamp) -> Option<(usize, usize)> {
    let window = overview.window();
    if start > window.to || end.max(start) < window.from {
        return None;
    }
    let first = overview.cell_at(start);
    // The moment of its end is no longer its own.
    let last = Timestamp(end.0.saturating_sub(1).max(start.0));
    Some((first, overview.cell_at(last)))
}

fn terminal_color(color: AnsiColor) -> Color {
    match color {
        AnsiColor::Black => Color::Black,
        AnsiColor::Red => Color::Red,
        AnsiColor::Green => Color::Green,
        AnsiColor::Yellow => Color::Yellow,
        AnsiColor::Blue => Color::Blue,
        AnsiColor::Magenta => Color::Magenta,
        AnsiColor::Cyan => Color::Cyan,
        AnsiColor::White => Color::Gray,
        AnsiColor::BrightBlack => Color::DarkGray,
        AnsiColor::BrightRed => Color::LightRed,
        AnsiColor::BrightGreen => Color::LightGreen,
        AnsiColor::BrightYellow => Color::LightYellow,
        AnsiColor::BrightBlue => Color::LightBlue,
        AnsiColor::BrightMagenta => Color::LightMagenta,
        AnsiColor::BrightCyan => Color::LightCyan,
        AnsiColor::BrightWhite => Color::White,
    }
}
