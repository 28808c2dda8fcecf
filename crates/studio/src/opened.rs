//! A file that was opened: how far it is read, what is known of it, and whether it is still the same file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::StatusCode;
use tracesmith_trace::Progress;
use tracesmith_trace::tables::Cancel;

use crate::events::{Change, Hub};
use crate::identity::{Identity, Known};
use crate::key::random_text;
use crate::reading::Reading;
use crate::ready::{Generation, Ready};
use crate::reply::Failure;
use crate::tabs::Tabs;

/// Number of progress messages to the pages.
const STEPS: u64 = 50;

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: usize,
    pub(crate) path: PathBuf,
    known: RwLock<Known>,
    /// Differs between two times that a file was opened.
    stamp: String,
    hub: Hub,
    pub(crate) tabs: Arc<Tabs>,
    pub(crate) cancel: Cancel,
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

impl Opened {
    /// Starts to read a file.
    pub(crate) fn begin(id: usize, path: PathBuf, hub: Hub, tabs: Arc<Tabs>) -> Arc<Self> {
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
            known: RwLock::new(identity.ok().flatten().map_or(Known::Stream, Known::Whole)),
            // Without random numbers there would be no key either.
            stamp: random_text().unwrap_or_default()[..16].to_owned(),
            hub,
            tabs,
            cancel: Cancel::default(),
            read_bytes: AtomicU64::new(0),
            state: RwLock::new(state),
            path,
        });
        if is_there {
            let reading = Reading(Arc::clone(&opened));
            let thread = std::thread::Builder::new().name("studio-read".to_owned());
            if let Err(error) = thread.spawn(move || reading.run()) {
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

    /// Whether it is a file, and not a pipe.
    pub(crate) fn is_file(&self) -> bool {
        self.known() != Known::Stream
    }

    /// The file's size when it was read.
    pub(crate) fn bytes(&self) -> u64 {
        self.known().bytes()
    }

    /// What is known of the file.
    pub(crate) fn known(&self) -> Known {
        *self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the file is now.
    pub(crate) fn know(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// How far it is read now.
    pub(crate) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the path does not lead to the same content any longer. A trace that is being written may grow.
    pub(crate) fn has_changed(&self) -> bool {
        // The answer takes longer than reading what is known, which may have become more meanwhile.
        let known = self.known();
        known.differs_from(&self.path) && (known == self.known() || self.known().differs_from(&self.path))
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

    /// The error for requests about the previous content of the file.
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
            State::Reading => ("reading", Generation::NONE),
            State::Ready(ready) => ("ready", ready.generation()),
            State::Failed(_) => ("failed", Generation::NONE),
        };
        Change {
            trace: self.id,
            generation: self.text_of(generation),
            state,
            progress: self.progress(),
        }
    }

    /// A generation as pages know it: it differs between two times that the file was opened.
    pub(crate) fn text_of(&self, generation: Generation) -> String {
        format!("{}-{}", self.stamp, generation.0)
    }

    /// The generation of a text.
    pub(crate) fn generation_of(&self, text: &str) -> Option<Generation> {
        let number = text.strip_prefix(self.stamp.as_str())?.strip_prefix('-')?;
        number.parse().ok().map(Generation)
    }

    /// Replaces what is known of the content, and tells pages.
    pub(crate) fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.hub.tell(self.change());
    }

    /// The file has another content: pages ask, and get an error.
    pub(crate) fn lose(&self) {
        self.know(Known::Changed);
        let mut change = self.change();
        change.generation = self.text_of(Generation::NONE);
        self.hub.tell(change);
    }

    /// A part of the file was read.
    pub(crate) fn note(&self, progress: Progress) {
        let Progress::Read(bytes) = progress else { return };
        let before = self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        let step = (self.bytes() / STEPS).max(1);
        if before / step != (before + bytes) / step {
            self.hub.tell(self.change());
        }
    }
}
