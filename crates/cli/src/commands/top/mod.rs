//! `tracesmith top`: a trace to move around in.
//!
//! `state` is what is shown and how keys change it, the library's `Browser` reads, `draw` draws, `terminal` is the outside world. This file
//! lets them talk to each other.

mod counters;
mod draw;
mod inspect;
mod keys;
mod lines;
mod state;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stdout};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::Signal;
use ratatui::Frame;
use ratatui::crossterm::event::Event;
use ratatui::layout::Rect;
use tracesmith_format::Timestamp;
use tracesmith_trace::overview::{
    Browser, CounterKey, DEVICE_KINDS, HOST_KINDS, Picture, RowKey, Surroundings, TimeSpan, VALUE_KINDS,
};
use tracesmith_trace::{NamePattern, Query, Selection};

use crate::args::{Format, TimeRangeArgs, TopArgs};
use crate::exit::Exit;
use crate::input::{open_trace, warn_of_damage};
use crate::output::{Hinted, Output};
use crate::progress::Progress;
use crate::select::{Moment, range_of, selection};
use crate::timeline::Charset;
use draw::{Look, Scene};
use state::{Action, Request, State};
use terminal::{Input, Screen, Signals};

pub(crate) fn run(args: &TopArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if output.format != Format::Table {
        bail!("top is for people; 'tracesmith view --timeline' writes json and csv");
    }
    if !stdout().is_terminal() {
        return Err(Hinted::error(
            &anyhow!("top needs a terminal, and standard output is not a terminal"),
            "'tracesmith view --timeline' prints the same picture anywhere",
        ));
    }
    let signals = Signals::catch()?;
    let trace = Arc::new(open_trace(&args.file)?);
    let selection = selection(&args.select, &trace)?;
    let all_kinds = [DEVICE_KINDS, HOST_KINDS, VALUE_KINDS].concat();
    let query = Query {
        kinds: Some(if args.kind.is_empty() {
            all_kinds.clone()
        } else {
            args.kind.clone()
        }),
        streams: selection.streams.clone(),
        devices: selection.devices.clone(),
        processes: selection.processes.clone(),
        ..Query::default()
    };
    let is_filtered = query
        != Query {
            kinds: Some(all_kinds),
            ..Query::default()
        };
    let progress = Progress::new("reading", trace.file_bytes(), output.bar()).into_fn();
    let browser = Browser::new(&trace, &query, Some(&progress));
    drop(progress);
    let Some(browser) = browser else {
        output.note(if is_filtered {
            "no such events"
        } else {
            "no events"
        });
        return Ok(Exit::Done);
    };
    let look = Look {
        charset: if args.ascii {
            Charset::Ascii
        } else {
            Charset::of_locale()
        },
        colors: output.colors(),
    };
    let title = match args.file.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    };
    let window = first_window(args, &selection, &browser)?;
    let mut top = Top::new(browser, window, title, look);
    top.selection = selection;
    let ended = browse(top, signals)?;
    // Damage that was met on the way.
    warn_of_damage(&trace, &args.file, output);
    Ok(match ended {
        None => Exit::Done,
        Some(signal) => {
            Signals::unblock();
            Exit::Signal(signal as i32)
        }
    })
}

fn first_window(args: &TopArgs, selection: &Selection, browser: &Browser) -> anyhow::Result<TimeSpan> {
    let whole = browser.summary().window();
    if let Some(at) = args.at {
        return around(at, browser).context("--at");
    }
    let range = range_of(&args.select.stretch, selection, browser.trace())?;
    let (from, to) = (range.from.unwrap_or(whole.from), range.to.unwrap_or(whole.to));
    if from >= to {
        bail!("the chosen events are not in the time range of --from and --to");
    }
    Ok(TimeSpan::new(from, to))
}

/// The time range around a time or an event: the event fills a fifth of it, and a time has a thousandth of the trace around
/// it.
fn around(moment: Moment, browser: &Browser) -> anyhow::Result<TimeSpan> {
    let whole = browser.summary().window();
    let (start, end) = moment.resolve(browser.trace())?;
    let around = match end.0 - start.0 {
        0 => ((whole.to.0 - whole.from.0) / 2000).max(1),
        length => 2 * length,
    };
    let from = start.0.saturating_sub(around).max(whole.from.0);
    let to = end.0.saturating_add(around).min(whole.to.0);
    if from >= to {
        bail!("this is not in the time range of the chosen events");
    }
    Ok(TimeSpan::new(Timestamp(from), Timestamp(to)))
}

/// Shows pictures and takes keys until somebody quits, or a signal comes.
fn browse(mut top: Top, signals: Signals) -> anyhow::Result<Option<Signal>> {
    let mut screen = Screen::take(signals)?;
    loop {
        let size = screen
            .terminal
            .size()
            .context("asking the terminal for its size")?;
        top.resize(Rect::new(0, 0, size.width, size.height));
        top.read();
        screen
            .terminal
            .draw(|frame| top.draw(frame))
            .context("drawing on the terminal")?;
        let mut next = Some(screen.next()?);
        while let Some(input) = next {
            match input {
                Input::Event(Event::Key(key)) => {
                    let action = keys::action(key, top.state.mode);
                    match action.map_or(Going::On, |action| top.act(action)) {
                        Going::On => {}
                        Going::Asleep => screen.suspend()?,
                        Going::Over => return Ok(None),
                    }
                }
                // A new size is seen before the next picture.
                Input::Event(_) => {}
                Input::Signal(Signal::SIGTSTP) => screen.suspend()?,
                // Somebody stopped it without asking, and the terminal may be as the shell wants it.
                Input::Signal(Signal::SIGCONT) => screen.retake()?,
                Input::Signal(signal) => return Ok(Some(signal)),
                Input::Gone(error) => return Err(error).context("reading keys"),
            }
            next = screen.next_at_once();
        }
    }
}

/// Whether the view goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    On,
    Asleep,
    Over,
}

/// State and data together: all but the terminal.
struct Top {
    browser: Browser,
    state: State,
    title: String,
    look: Look,
    /// The processes whose steps are counted.
    selection: Selection,
    /// What was read last, and for which window and number of cells.
    picture: Option<(TimeSpan, usize, Picture)>,
    /// The call, ranges and stack of the selected event.
    inspected: Option<Surroundings>,
    /// The counter of the selected row, a time, and its value then.
    counted: Option<(CounterKey, Timestamp, Option<f64>)>,
}

impl Top {
    fn new(browser: Browser, window: TimeSpan, title: String, look: Look) -> Self {
        let state = State::new(browser.summary().window(), window, lines::lines(browser.rows()));
        Top {
            browser,
            state,
            title,
            look,
            selection: Selection::default(),
            picture: None,
            inspected: None,
            counted: None,
        }
    }

    fn resize(&mut self, area: Rect) {
        let (cells, height) = draw::space(area);
        self.state.resize(cells, height);
    }

    /// Performs the action of a key.
    fn act(&mut self, action: Action) -> Going {
        let had_search = self.state.search.is_some();
        let mut request = self.state.act(action);
        if had_search && self.state.search.is_none() {
            self.browser.end_search();
            self.picture = None;
        }
        loop {
            match request {
                Request::Nothing => return Going::On,
                Request::Quit => return Going::Over,
                Request::Suspend => return Going::Asleep,
                Request::Seek { key, from, direction } => {
                    let picked = self.browser.seek(key, from, direction);
                    self.inspected = None;
                    self.state.found(picked, direction);
                    return Going::On;
                }
                Request::GoToTime(text) => {
                    let window = text.parse().map_err(anyhow::Error::msg);
                    self.go_to(window.and_then(|moment| around(moment, &self.browser)));
                    return Going::On;
                }
                Request::GoToStep(text) => {
                    self.go_to(self.step(&text));
                    return Going::On;
                }
                Request::Search(pattern) => {
                    self.picture = None;
                    request = match NamePattern::new(&pattern) {
                        Ok(names) => {
                            let count = self.browser.search(names);
                            self.state.searched(pattern, count)
                        }
                        Err(error) => {
                            self.state.message = format!("{:#}", anyhow::Error::new(error));
                            Request::Nothing
                        }
                    };
                }
            }
        }
    }

    /// Shows a time range, or why there is none.
    fn go_to(&mut self, window: anyhow::Result<TimeSpan>) {
        match window {
            Ok(window) => self.state.go_to(window),
            Err(error) => self.state.message = format!("{error:#}"),
        }
    }

    /// The time range of a step, by its number.
    fn step(&self, text: &str) -> anyhow::Result<TimeSpan> {
        let step = text.parse();
        let stretch = TimeRangeArgs {
            from: None,
            to: None,
            step: Some(step.map_err(|_| anyhow!("'{text}' is not the number of a step"))?),
        };
        let range = range_of(&stretch, &self.selection, self.browser.trace())?;
        let whole = self.browser.summary().window();
        let (from, to) = (range.from.unwrap_or(whole.from), range.to.unwrap_or(whole.to));
        Ok(TimeSpan::new(from, to))
    }

    /// Reads what the next picture needs and is not there yet.
    fn read(&mut self) {
        let wanted = (self.state.viewport.window(), self.state.viewport.cells());
        if !matches!(&self.picture, Some((window, cells, _)) if (*window, *cells) == wanted) {
            let picture = self.browser.picture(wanted.0, wanted.1);
            self.picture = Some((wanted.0, wanted.1, picture));
        }
        if let Some(picked) = &self.state.picked
            && self.inspected.is_none()
        {
            self.inspected = Some(self.browser.surroundings(picked));
        }
        if let (Some(picked), Some(RowKey::Counter(key))) = (&self.state.picked, self.state.row()) {
            let time = picked.event.start;
            if self
                .counted
                .is_none_or(|(known, at, _)| (known, at) != (key, time))
            {
                self.counted = Some((key, time, self.browser.counter_at(key, time)));
            }
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let Some((.., picture)) = &self.picture else {
            return;
        };
        let scene = Scene {
            trace: self.browser.trace(),
            title: &self.title,
            state: &self.state,
            picture,
            inspected: self.inspected.as_ref(),
            counted: self.counted,
            look: self.look,
        };
        scene.draw(frame);
    }
}
