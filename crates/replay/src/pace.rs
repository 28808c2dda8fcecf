//! When calls are made: at once, or with the gaps that the program left between them.

use std::time::{Duration, Instant};

use crate::recording::{Command, Recording};
use crate::run::Replay;

/// A wait that is shorter is spent looking at the clock: the system's timer comes later than that.
const SPUN: Duration = Duration::from_micros(200);

/// When calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// One right behind the other.
    #[default]
    Fast,
    /// When the program made them, counted from the first one; later where the host cannot keep up.
    AsRecorded,
}

/// When the first call is made, in the program's time and in ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    recorded: u64,
    now: Option<Instant>,
}

impl Recording {
    /// From the program's first call to its last.
    pub fn span(&self) -> Duration {
        let times = || self.commands.iter().map(|command| command.time);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        Duration::from_nanos(last - first)
    }
}

impl Replay<'_> {
    /// Makes calls at this pace from now on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.started = match pace {
            Pace::Fast => None,
            Pace::AsRecorded => Some(Start {
                recorded: 0,
                now: None,
            }),
        };
    }

    /// The clock begins with the next call.
    pub(crate) fn start_clock(&mut self) {
        if let Some(start) = &mut self.started {
            start.now = None;
        }
    }

    /// Waits until it is time for a call.
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
