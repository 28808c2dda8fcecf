//! What each call takes on the device.

use std::ops::Range;
use std::time::Duration;

use tracesmith_cuda::driver::Event;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Command;
use crate::run::Replay;

/// What the host has to put a call into the queue.
const HEAD_START: Duration = Duration::from_micros(60);

/// The times of one call.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The call's number.
    pub command: u64,
    /// The kernel, or what the call does.
    pub name: String,
    /// Bytes that are copied or set.
    pub bytes: u64,
    /// What it took in the recorded program; none when the trace does not tell.
    pub recorded: Option<Duration>,
    /// What it took in each run.
    pub runs: Vec<Duration>,
}

impl Timing {
    /// Without a run yet.
    fn of(command: &Command) -> Self {
        Self {
            command: command.number,
            name: command.name(),
            bytes: command.bytes,
            recorded: command.recorded,
            runs: Vec::new(),
        }
    }

    /// The one in the middle.
    pub fn median(&self) -> Duration {
        let mut sorted = self.runs.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The shortest and the longest.
    pub fn spread(&self) -> (Duration, Duration) {
        let shortest = self.runs.iter().min().copied().unwrap_or_default();
        (shortest, self.runs.iter().max().copied().unwrap_or_default())
    }
}

impl Replay<'_> {
    /// Times the calls at some places that do work on the device, one after another, `repeat` times each with the same
    /// memory before it. What comes before them is run once.
    ///
    /// # Errors
    ///
    /// What the driver says; also when the device has not room for all memory twice.
    pub fn time(&mut self, places: Range<usize>, repeat: u32) -> Result<Vec<Timing>, Error> {
        self.serially(|replay| replay.time_calls(places, repeat))
    }

    fn time_calls(&mut self, places: Range<usize>, repeat: u32) -> Result<Vec<Timing>, Error> {
        self.run_until(places.start)?;
        let mut timings = Vec::new();
        for place in places {
            let Some(command) = self.recording.commands.get(place) else {
                break;
            };
            if !works(command) {
                self.issue_all(place..place + 1)?;
                continue;
            }
            let mut timing = Timing::of(command);
            let snapshot = self.copy_memory()?;
            for _ in 0..repeat {
                self.put_back(&snapshot)?;
                timing.runs.push(self.time_one(place)?);
            }
            timings.push(timing);
        }
        Ok(timings)
    }

    /// What each call takes by itself in one run of all, by events around it: some microseconds more than the call.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn time_each(&mut self) -> Result<Vec<Timing>, Error> {
        self.serially(Self::time_all)
    }

    fn time_all(&mut self) -> Result<Vec<Timing>, Error> {
        self.run_until(0)?;
        let mut timings = Vec::new();
        for place in 0..self.recording.commands.len() {
            let command = &self.recording.commands[place];
            if !works(command) {
                self.issue_all(place..place + 1)?;
                continue;
            }
            let mut timing = Timing::of(command);
            timing.runs.push(self.time_one(place)?);
            timings.push(timing);
        }
        Ok(timings)
    }

    pub(crate) fn time_one(&mut self, place: usize) -> Result<Duration, Error> {
        let failed = || Error::device("reading the elapsed time");
        self.wait()?;
        let pair =
            || Ok::<(Event, Event), tracesmith_cuda::Error>((self.context.event()?, self.context.event()?));
        let (begin, end) = pair().map_err(failed())?;
        // The device is kept busy until the host has put all three into the queue: what the host takes is not measured.
        self.load_delay()?;
        if let Some(delayer) = &self.delayer {
            delayer.delay(HEAD_START, None).map_err(failed())?;
        }
        begin.record_everywhere().map_err(failed())?;
        self.issue_all(place..place + 1)?;
        end.record_everywhere().map_err(failed())?;
        self.wait()?;
        end.since(&begin).map_err(failed())
    }
}

/// Whether a call does something on the device.
pub(crate) fn works(command: &Command) -> bool {
    matches!(
        command.kind,
        CommandKind::LAUNCH | CommandKind::COPY | CommandKind::COPY_PLANES | CommandKind::SET
    )
}
