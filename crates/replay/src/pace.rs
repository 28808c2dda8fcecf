//! When calls are made: immediately, or with the recorded pauses.

use std::time::{Duration, Instant};

use crate::recording::{Command, Recording};
use crate::run::Replay;

/// Shorter waits spin, because the system's timer is not accurate enough.
const SPUN: Duration = Duration::from_micros(200);

/// When calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// One immediately after another.
    #[default]
    Fast,
    /// At the recorded times, relative to the first call. Later if the host is slower.
    AsRecorded,
}

/// The time of the first call, recorded and now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    recorded: u64,
    now: Option<Instant>,
}

impl Recording {
    /// The recorded time from the first call to the last.
    pub fn span(&self) -> Duration {
        let times = || self.commands.iter().map(|command| command.time);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        Duration::from_nanos(last - first)
    }
}

impl Replay<'_> {
    /// Sets the pace of the next runs.
    pub fn set_pace(&mut self, pace: Pace) {
        self.started = match pace {
            Pace::Fast => None,
            Pace::AsRecorded => Some(Start {
                recorded: 0,
                now: None,
            }),
        };
    }

    /// Starts the clock with the next call.
    pub(crate) fn start_clock(&mut self) {
        if let Some(start) = &mut self.started {
            start.now = None;
        }
    }

    /// Waits until the time of a call.
    pub(crate) fn keep_pace(&mut self, command: &Command) {
        let Some(start) = &mut self.started else { return };
        let Some(begun) = start.now else {
            *start = Start {
                recorded: command.time,
                now: Some(Instant::now()),
            };
            return;
        };
        let due = Duration::from_nanos(command.time.saturating_sub(start.recorded));
        while let Some(left) = due.checked_sub(begun.elapsed()) {
            match left.checked_sub(SPUN) {
                Some(long) => std::thread::sleep(long),
                None => std::hint::spin_loop(),
            }
        }
    }
}
