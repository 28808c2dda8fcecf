//! `tracesmith top`: a trace to move around in.
//!
//! `state` is what is shown and how keys change it, `data` reads, `draw` draws, `terminal` is the outside world. This file
//! lets them talk to each other.

mod data;
mod draw;
mod inspect;
mod keys;
mod state;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stdout};

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::Signal;
use ratatui::Frame;
use ratatui::crossterm::event::Event;
use ratatui::layout::Rect;
use tracesmith_format::{StreamId, Timestamp};
use tracesmith_trace::Trace;
use tracesmith_trace::overview::{DEVICE_KINDS, HOST_KINDS, TimeSpan};

use super::view;
use crate::args::{Format, TopArgs};
use crate::exit::Exit;
use crate::input::{open_trace, warn_of_damage};
use crate::output::{Hinted, Output};
use crate::time_arg::time_range;
use crate::timeline::Charset;
use data::{Data, Filter, Inspected, Picture};
use draw::{Look, Scene};
use state::{Action, Request, State};
use terminal::{Input, Screen, Signals};

pub(crate) fn run(args: &TopArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if output.format != Format::Table {
        bail!("top is for people; 'tracesmith view --timeline' writes json and csv");
    }
    if !stdout().is_terminal() {
        return Err(Hinted::error(
            &anyhow!("top needs a terminal, and standard output is none"),
            "'tracesmith view --timeline' prints the same picture anywhere",
        ));
    }
    let signals = Signals::catch()?;
    let trace = open_trace(&args.file)?;
    let filter = Filter {
        kinds: if args.kind.is_empty() {
            [DEVICE_KINDS, HOST_KINDS].concat()
        } else {
            args.kind.clone()
        },
        streams: args.stream.iter().copied().map(StreamId).collect(),
        devices: view::devices(&args.device, &trace)?,
        processes: view::processes(&args.process, &trace)?,
    };
    let is_filtered = filter != Filter::of_kinds([DEVICE_KINDS, HOST_KINDS].concat());
    let Some(data) = Data::new(&trace, filter, output.bar()) else {
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
    let window = first_window(args, &trace, &data)?;
    let ended = browse(Top::new(data, window, title, look), signals)?;
    // Damage that was met on the way.
    warn_of_damage(&trace, &args.file, output);
    Ok(match ended {
        None => Exit::Done,
        Some(signal) => {
            Signals::let_through();
            Exit::Signal(signal as i32)
        }
    })
}

fn first_window(args: &TopArgs, trace: &Trace, data: &Data<'_>) -> anyhow::Result<TimeSpan> {
    let whole = data.summary.window();
    let range = time_range(args.from, args.to, trace.span())?;
    let (from, to) = (range.from.unwrap_or(whole.from), range.to.unwrap_or(whole.to));
    if from >= to {
        bail!("the chosen events are not in the time range of --from and --to");
    }
    Ok(TimeSpan::new(from, to))
}

/// Shows pictures and takes keys until somebody quits, or a signal comes.
fn browse(mut top: Top<'_>, signals: Signals) -> anyhow::Result<Option<Signal>> {
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
struct Top<'t> {
    data: Data<'t>,
    state: State,
    title: String,
    look: Look,
    /// What was read last, and for which window and number of cells.
    picture: Option<(TimeSpan, usize, Picture)>,
    /// What the selected event stands among.
    inspected: Option<(Timestamp, Inspected)>,
}

impl<'t> Top<'t> {
    fn new(data: Data<'t>, window: TimeSpan, title: String, look: Look) -> Self {
        let state = State::new(data.summary.window(), window, data.lines());
        Top {
            data,
            state,
            title,
            look,
            picture: None,
            inspected: None,
        }
    }

    fn resize(&mut self, area: Rect) {
        let (cells, height) = draw::space(area);
        self.state.resize(cells, height);
    }

    /// Does what a key asks for.
    fn act(&mut self, action: Action) -> Going {
        let had_search = self.state.search.is_some();
        let mut request = self.state.act(action);
        if had_search && self.state.search.is_none() {
            self.data.forget_search();
            self.picture = None;
        }
        loop {
            match request {
                Request::Nothing => return Going::On,
                Request::Quit => return Going::Over,
                Request::Suspend => return Going::Asleep,
                Request::Seek { key, from, direction } => {
                    let picked = self.data.seek(key, from, direction);
                    self.inspected = None;
                    self.state.found(picked, direction);
                    return Going::On;
                }
                Request::Search(pattern) => {
                    self.picture = None;
                    request = match self.data.search(&pattern) {
                        Ok(count) => self.state.searched(pattern, count),
                        Err(error) => {
                            self.state.message = format!("{error:#}");
                            Request::Nothing
                        }
                    };
                }
            }
        }
    }

    /// Reads what the next picture needs and is not there yet.
    fn read(&mut self) {
        let wanted = (self.state.window, self.state.cells);
        if !matches!(&self.picture, Some((window, cells, _)) if (*window, *cells) == wanted) {
            let picture = self.data.picture(wanted.0, wanted.1);
            self.picture = Some((wanted.0, wanted.1, picture));
        }
        if let Some(picked) = &self.state.picked
            && self.inspected.is_none()
        {
            self.inspected = Some((picked.event.start, self.data.inspect(picked)));
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let Some((.., picture)) = &self.picture else {
            return;
        };
        let scene = Scene {
            trace: self.data.trace,
            title: &self.title,
            state: &self.state,
            picture,
            inspected: self.inspected.as_ref().map(|(_, inspected)| inspected),
            look: self.look,
        };
        scene.draw(frame);
    }
}
