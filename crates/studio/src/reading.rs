//! Reading a file: the first time whole, and then again as long as its writer adds to it.

use std::sync::Arc;
use std::time::Duration;

use tracesmith_format::FILE_HEADER_BYTES;
use tracesmith_trace::grid::{Grid, GridOptions};
use tracesmith_trace::{ProgressFn, Trace};

use crate::follow::Follower;
use crate::identity::{Identity, Known};
use crate::idle::{idle_tracks, with_tracks};
use crate::opened::{Opened, State};
use crate::ready::{Generation, Live, LiveState, Ready};
use crate::reply::{Failure, sentence};
use crate::writer::{Writer, is_locked};

/// A file that a collector has just created has no header yet. It is looked at again after this time.
const NEW_FILE_PAUSE: Duration = Duration::from_millis(100);
/// Larger files are not read as a whole to find damage.
const CHECKED_BYTES: u64 = 256 << 20;

/// The thread that reads a file. If it panics, the pages get an error.
pub(crate) struct Reading(pub(crate) Arc<Opened>);

impl Reading {
    pub(crate) fn run(self) {
        let opened = &self.0;
        let ready = match self.trace_and_grid() {
            Ok(ready) => ready,
            Err(failure) => return opened.set(State::Failed(failure)),
        };
        opened.set(State::Ready(ready.clone()));
        // Without idle rows, all others can still be looked at.
        let tracks = idle_tracks(&ready.trace, &ready.facts).unwrap_or_default();
        let with_idle = with_tracks(ready.grid(), &tracks);
        let ready = checked(opened, ready).with_idle(with_idle, 0);
        opened.set(State::Ready(ready.clone()));
        if let Some(follower) = Follower::of(opened, ready, tracks) {
            follower.run();
        }
    }

    fn trace_and_grid(&self) -> Result<Ready, Failure> {
        let opened = &self.0;
        let trace = Arc::new(self.trace()?);
        let mut live = None;
        if let (Known::Whole(identity), true) = (opened.known(), trace.is_unfinished()) {
            let number = trace.header().map_or([0; 16], |header| header.id);
            opened.know(Known::Growing(identity, number));
            let state = match Writer::new().is_there(&opened.path) {
                true => LiveState::Recording,
                false => LiveState::Stopped,
            };
            live = Some(Live::new(state));
        }
        let weak = Arc::downgrade(opened);
        let progress: ProgressFn = Arc::new(move |progress| {
            if let Some(opened) = weak.upgrade() {
                opened.note(progress);
            }
        });
        let options = GridOptions {
            progress: Some(progress),
            cancel: opened.cancel.clone(),
            like: None,
        };
        let grid = Grid::new(&trace, options).map_err(|error| unreadable(opened, &error))?;
        // What was read before and after the change does not belong together.
        opened.unchanged()?;
        let ready = Ready::new(trace, Arc::new(grid), Generation::FIRST);
        Ok(Ready { live, ..ready })
    }

    /// The trace. A collector writes the header soon after it has created the file.
    fn trace(&self) -> Result<Trace, Failure> {
        let opened = &self.0;
        let mut has_waited = false;
        loop {
            let identity = Identity::of(&opened.path).ok().flatten();
            let error = match (tracesmith_interop::open(&opened.path), identity) {
                (Ok(trace), Some(identity)) if has_waited => {
                    opened.know(Known::Whole(identity));
                    return Ok(trace);
                }
                (Ok(trace), _) => return Ok(trace),
                (Err(error), _) => error,
            };
            let is_new = identity.is_some_and(|identity| identity.bytes() < FILE_HEADER_BYTES as u64);
            if !is_new || opened.cancel.is_cancelled() || !is_locked(&opened.path) {
                return Err(unreadable(opened, &error));
            }
            // Until then it is no other file, whatever is written to it.
            opened.know(Known::Stream);
            has_waited = true;
            std::thread::sleep(NEW_FILE_PAUSE);
        }
    }
}

/// Reads what the picture did not need, such as recorded contents. If any of it is damaged, pages ask again for what has
/// a new generation, also for the health of the file. A large file is not read for this: `tracesmith info --verify`
/// does. One that grows is read when it is finished.
pub(crate) fn checked(opened: &Opened, ready: Ready) -> Ready {
    let trace = &ready.trace;
    if ready.live.is_some() || trace.file_bytes() > CHECKED_BYTES {
        return ready;
    }
    let known = trace.health().damage.len();
    // Only a file that has changed meanwhile cancels it, and that is reported anyway.
    let _ = trace.verify(&(Arc::new(|_| {}) as ProgressFn), &opened.cancel);
    match trace.health().damage.len() > known {
        true => ready.again(),
        false => ready,
    }
}

/// A file cannot be read.
pub(crate) fn unreadable(opened: &Opened, error: &dyn std::error::Error) -> Failure {
    Failure::unprocessable(format!(
        "cannot read {}: {}",
        opened.path.display(),
        sentence(error)
    ))
}

impl Drop for Reading {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(State::Failed(Failure::bug()));
        }
    }
}
