//! Progress of a replay, for a monitor in another thread or process. A kernel that never ends blocks the thread that
//! waits for it, so another thread must notice it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Error;
use crate::recording::Command;
use crate::run::Replay;

/// The progress of a replay. Clones share it, also across threads.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Increases with all progress.
    beats: AtomicU64,
    /// The number of the last call.
    call: AtomicU64,
    is_working: AtomicBool,
}

/// The progress at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// If this number changes, there was progress.
    pub beats: u64,
    /// The number of the last call.
    pub call: u64,
    /// Whether the GPU has work. Otherwise the host may be slow.
    pub is_working: bool,
}

impl Watch {
    /// The current progress.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            beats: self.shared.beats.load(Ordering::Relaxed),
            call: self.shared.call.load(Ordering::Relaxed),
            is_working: self.shared.is_working.load(Ordering::Relaxed),
        }
    }

    /// A call is about to be issued.
    pub(crate) fn makes(&self, command: &Command) {
        self.shared.call.store(command.number, Ordering::Relaxed);
        self.shared.is_working.store(true, Ordering::Relaxed);
        self.beat();
    }

    /// All work has finished.
    pub(crate) fn rests(&self) {
        self.shared.is_working.store(false, Ordering::Relaxed);
        self.beat();
    }

    fn beat(&self) {
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
    }
}

impl Replay<'_> {
    /// The progress of this replay.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Runs calls one after another and waits for each. An error or an endless wait then belongs to the last call.
    /// Compares nothing.
    ///
    /// # Errors
    ///
    /// If the driver reports an error. The error contains the call.
    pub fn run_one_by_one(&mut self) -> Result<(), Error> {
        self.serially(|replay| {
            replay.restore()?;
            for place in 0..replay.recording.commands.len() {
                replay.issue_all(place..place + 1)?;
                let waited = replay.wait();
                waited.map_err(|error| error.of_call(&replay.recording.commands[place]))?;
            }
            Ok(())
        })
    }

    /// The driver's description of a device error. Empty if there is none.
    pub fn words(&self, error: &Error) -> String {
        match error {
            Error::Device { words, .. } => words
                .code()
                .map(|code| self.context.device().driver().words(code))
                .unwrap_or_default(),
            _ => String::new(),
        }
    }
}
