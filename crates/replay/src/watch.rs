//! How far a replay has come, for whoever watches it from outside: a kernel that does not end keeps the thread that waits
//! for it, so someone else has to notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Error;
use crate::recording::Command;
use crate::run::Replay;

/// What a replay is at. Copies share it, also with other threads.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Rises with every sign of life.
    beats: AtomicU64,
    /// The number of the call that was made last.
    call: AtomicU64,
    is_working: AtomicBool,
}

/// What a replay was at, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Another number means that it has come further.
    pub beats: u64,
    /// The number of the call that was made last.
    pub call: u64,
    /// Whether the device has work to do. If not, the host may take its time.
    pub is_working: bool,
}

impl Watch {
    /// What it is at.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            beats: self.shared.beats.load(Ordering::Relaxed),
            call: self.shared.call.load(Ordering::Relaxed),
            is_working: self.shared.is_working.load(Ordering::Relaxed),
        }
    }

    /// A call is about to be made.
    pub(crate) fn makes(&self, command: &Command) {
        self.shared.call.store(command.number, Ordering::Relaxed);
        self.shared.is_working.store(true, Ordering::Relaxed);
        self.beat();
    }

    /// All work is done.
    pub(crate) fn rests(&self) {
        self.shared.is_working.store(false, Ordering::Relaxed);
        self.beat();
    }

    fn beat(&self) {
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
    }
}

impl Replay<'_> {
    /// For whoever wants to look on.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Makes one call after another and waits for each: an error then is of the call that was made last, and so is a
    /// wait that does not end. Compares nothing.
    ///
    /// # Errors
    ///
    /// What the driver says, with the call that it says it of.
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

    /// What an error of the device means, in the driver's words; empty when it is none or has no words.
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
