//! A file that was opened: how far it is read, what is known of it, and whether it is still the same file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::StatusCode;
use tracesmith_trace::grid::{Grid, GridOptions};
use tracesmith_trace::tables::Cancel;
use tracesmith_trace::{Progress, ProgressFn, Trace};

use crate::events::{Change, Hub};
use crate::facts::Facts;
use crate::identity::Identity;
use crate::idle::with_idle_tracks;
use crate::key::random_text;
use crate::reply::{Failure, sentence};

/// Changes of progress that pages are told of.
const STEPS: u64 = 50;

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: usize,
    pub(crate) path: PathBuf,
    identity: Option<Identity>,
    /// Differs between two times that a file was opened.
    stamp: String,
    hub: Hub,
    cancel: Cancel,
    read_bytes: AtomicU64,
    state: RwLock<State>,
}

/// How far a file is read.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Reading,
    Ready(Ready),
    Failed(Failure),
}

/// A trace that can be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) trace: Arc<Trace>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) idle: Idle,
    /// All grids so far with their generations, the newest last. An older one has fewer rows, with the same numbers.
    grids: Vec<(String, Arc<Grid>)>,
}

/// Whether the rows with idle times are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Idle {
    Pending,
    Ready,
    None,
}

impl Ready {
    /// Differs between two times that a file was opened.
    pub(crate) fn stamp(&self) -> &str {
        let (generation, _) = self.grids.first().expect("a trace that is ready has a grid");
        generation
    }

    /// The same trace with a predicted timeline.
    pub(crate) fn predicted(&self, generation: String, grid: Grid) -> Self {
        Ready {
            trace: Arc::clone(&self.trace),
            facts: Arc::clone(&self.facts),
            idle: Idle::None,
            grids: vec![(generation, Arc::new(grid))],
        }
    }

    /// The newest grid.
    pub(crate) fn grid(&self) -> &Arc<Grid> {
        let (_, grid) = self.grids.last().expect("a trace that is ready has a grid");
        grid
    }

    /// The generation of the newest grid.
    pub(crate) fn generation(&self) -> &str {
        let (generation, _) = self.grids.last().expect("a trace that is ready has a grid");
        generation
    }

    /// The grid of a generation.
    pub(crate) fn grid_of(&self, generation: &str) -> Option<&Arc<Grid>> {
        let mut grids = self.grids.iter();
        grids.find(|(known, _)| known == generation).map(|(_, grid)| grid)
    }
}

impl Opened {
    /// Starts to read a file.
    pub(crate) fn begin(id: usize, path: PathBuf, hub: Hub) -> Arc<Self> {
        let identity = Identity::of(&path);
        let failed =
            |error: &std::io::Error| Failure::missing(format!("cannot open {}: {error}", path.display()));
        let state = match &identity {
            Ok(_) => State::Reading,
            Err(error) => State::Failed(failed(error)),
        };
        let is_there = identity.is_ok();
        let opened = Arc::new(Opened {
            id,
            identity: identity.ok().flatten(),
            // Without random numbers there would be no key either.
            stamp: random_text().unwrap_or_default()[..16].to_owned(),
            hub,
            cancel: Cancel::default(),
            read_bytes: AtomicU64::new(0),
            state: RwLock::new(state),
            path,
        });
        if is_there {
            let reading = Reading(Arc::clone(&opened));
            let thread = std::thread::Builder::new().name("studio-read".to_owned());
            if let Err(error) = thread.spawn(move || reading.read()) {
                opened.set(State::Failed(Failure::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("cannot start a thread: {error}"),
                )));
            }
        }
        opened
    }

    /// Ends the reading: the file is read again.
    pub(crate) fn end(&self) {
        self.cancel.cancel();
    }

    /// The file's name.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The file's size when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.identity.map_or(0, |identity| identity.bytes())
    }

    /// How far it is read now.
    pub(crate) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the path does not lead to the same file any longer.
    pub(crate) fn has_changed(&self) -> bool {
        self.identity
            .is_some_and(|known| !matches!(Identity::of(&self.path), Ok(Some(now)) if now == known))
    }

    /// What the file is, if it has not changed since it was opened and is read.
    pub(crate) fn ready(&self) -> Result<Ready, Failure> {
        self.unchanged()?;
        match self.state() {
            State::Ready(ready) => Ok(ready),
            State::Failed(failure) => Err(failure),
            State::Reading => Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{} is still being read", self.name()),
            )),
        }
    }

    /// Fails if the file has changed: a picture of two files would be wrong.
    pub(crate) fn unchanged(&self) -> Result<(), Failure> {
        match self.has_changed() {
            true => Err(self.changed()),
            false => Ok(()),
        }
    }

    /// The answer to those who ask for what was in the file before.
    pub(crate) fn changed(&self) -> Failure {
        Failure::new(
            StatusCode::CONFLICT,
            format!("{} changed while it was open", self.name()),
        )
        .with_hint("reload the page to read it again")
    }

    /// Between 0 and 1.
    pub(crate) fn progress(&self) -> f64 {
        match *self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Ready(_) => 1.0,
            State::Failed(_) => 0.0,
            State::Reading => {
                let read = self.read_bytes.load(Ordering::Relaxed) as f64;
                // The file may be read more than once.
                (read / self.bytes().max(1) as f64).min(0.99)
            }
        }
    }

    /// How it is, for pages.
    pub(crate) fn change(&self) -> Change {
        let (state, generation) = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Reading => ("reading", self.generation(0)),
            State::Ready(ready) => ("ready", ready.generation().to_owned()),
            State::Failed(_) => ("failed", self.generation(0)),
        };
        Change {
            trace: self.id,
            generation,
            state,
            progress: self.progress(),
        }
    }

    fn generation(&self, number: usize) -> String {
        format!("{}-{number}", self.stamp)
    }

    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.hub.tell(self.change());
    }

    fn note(&self, progress: Progress) {
        let Progress::Read(bytes) = progress else { return };
        let before = self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        let step = (self.bytes() / STEPS).max(1);
        if before / step != (before + bytes) / step {
            self.hub.tell(self.change());
        }
    }
}

/// The thread that reads a file. If it panics, pages are told so.
struct Reading(Arc<Opened>);

impl Reading {
    fn read(self) {
        let opened = &self.0;
        let ready = match self.trace_and_grid() {
            Ok(ready) => ready,
            Err(failure) => return opened.set(State::Failed(failure)),
        };
        opened.set(State::Ready(ready.clone()));
        // Without idle rows, all others can still be looked at.
        let idle = with_idle_tracks(&ready.trace, ready.grid(), &ready.facts);
        let ready = match idle {
            Ok(Some(grid)) => {
                let mut grids = ready.grids.clone();
                grids.push((opened.generation(grids.len() + 1), Arc::new(grid)));
                let idle = Idle::Ready;
                Ready { grids, idle, ..ready }
            }
            Ok(None) | Err(_) => Ready {
                idle: Idle::None,
                ..ready
            },
        };
        opened.set(State::Ready(ready));
    }

    fn trace_and_grid(&self) -> Result<Ready, Failure> {
        let opened = &self.0;
        let unreadable = |error: &dyn std::error::Error| {
            let text = format!("cannot read {}: {}", opened.path.display(), sentence(error));
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, text)
        };
        let trace = tracesmith_interop::open(&opened.path).map_err(|error| unreadable(&error))?;
        let trace = Arc::new(trace);
        let weak = Arc::downgrade(opened);
        let progress: ProgressFn = Arc::new(move |progress| {
            if let Some(opened) = weak.upgrade() {
                opened.note(progress);
            }
        });
        let options = GridOptions {
            progress: Some(progress),
            cancel: opened.cancel.clone(),
        };
        let grid = Grid::new(&trace, options).map_err(|error| unreadable(&error))?;
        // What was read before and after the change does not belong together.
        opened.unchanged()?;
        Ok(Ready {
            trace,
            facts: Arc::new(Facts::default()),
            idle: Idle::Pending,
            grids: vec![(opened.generation(1), Arc::new(grid))],
        })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(State::Failed(Failure::bug()));
        }
    }
}
