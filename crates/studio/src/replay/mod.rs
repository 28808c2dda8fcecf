//! Replays of open traces: one child process for each, with which pages exchange lines of JSON.
//!
//! A replay needs a process of its own, because the recorded addresses must be free, and because a recorded kernel can
//! fail. The protocol is that of `tracesmith replay --step --format json`.

mod body;
mod child;
mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use body::LineBody;
pub(crate) use session::{Mode, Session, Status};

/// The program that replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayer {
    /// The program. It gets the arguments `replay FILE --step --format json`.
    pub program: PathBuf,
    /// A child that writes nothing for this long while it handles a request is ended.
    pub silence_limit: Duration,
    /// A child without requests for this long is ended: it keeps memory of the GPU.
    pub idle_limit: Duration,
}

impl Replayer {
    /// A program with the usual limits.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            silence_limit: Duration::from_secs(120),
            idle_limit: Duration::from_secs(15 * 60),
        }
    }
}

/// The children, by the numbers of their traces.
#[derive(Debug)]
pub(crate) struct Replays {
    replayer: Option<Replayer>,
    sessions: Mutex<BTreeMap<usize, Arc<Session>>>,
}

impl Replays {
    pub(crate) fn new(replayer: Option<Replayer>) -> Self {
        Self {
            replayer,
            sessions: Mutex::new(BTreeMap::new()),
        }
    }

    /// The program that replays, if there is one.
    pub(crate) fn replayer(&self) -> Option<&Replayer> {
        self.replayer.as_ref()
    }

    /// The session of a trace. It may have ended.
    pub(crate) fn get(&self, trace: usize) -> Option<Arc<Session>> {
        self.lock().get(&trace).cloned()
    }

    /// The session of a trace that runs and is wanted, or a new one in place of the other one, which ends. Pages that
    /// start at the same moment get the same one.
    pub(crate) fn get_or_start<E>(
        &self,
        trace: usize,
        is_wanted: impl FnOnce(&Session) -> bool,
        start: impl FnOnce() -> Result<Arc<Session>, E>,
    ) -> Result<Arc<Session>, E> {
        let mut sessions = self.lock();
        if let Some(other) = sessions.get(&trace) {
            if !matches!(other.status(), Status::Ended(_)) && is_wanted(other) {
                return Ok(Arc::clone(other));
            }
            // First, because both would need memory of the GPU.
            other.end("another replay of this trace was started");
        }
        let session = start()?;
        sessions.insert(trace, Arc::clone(&session));
        Ok(session)
    }

    /// Ends the children, with the server.
    pub(crate) fn end_all(&self) {
        for session in self.lock().values() {
            session.end("the server ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
