//! Measures the GPU time of each call.

use std::ops::Range;
use std::time::Duration;

use tracesmith_cuda::driver::Event;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Command;
use crate::run::Replay;

/// Time for the host to enqueue a call.
const HEAD_START: Duration = Duration::from_micros(60);

/// The times of one call.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The number of the call.
    pub command: u64,
    /// The name of the kernel, or the kind of call.
    pub name: String,
    /// Bytes of a memcpy or memset.
    pub bytes: u64,
    /// The recorded time. `None` if the trace does not contain it.
    pub recorded: Option<Duration>,
    /// The time in each run.
    pub runs: Vec<Duration>,
}

impl Timing {
    /// A call without runs.
    fn of(command: &Command) -> Self {
        Self {
            command: command.number,
            name: command.name(),
            bytes: command.bytes,
            recorded: command.recorded,
            runs: Vec::new(),
        }
    }

    /// The median.
    pub fn median(&self) -> Duration {
        let mut sorted = self.runs.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The minimum and the maximum.
    pub fn spread(&self) -> (Duration, Duration) {
        let shortest = self.runs.iter().min().copied().unwrap_or_default();
        (shortest, self.runs.iter().max().copied().unwrap_or_default())
    }
}

impl Replay<'_> {
    /// Measures the calls with GPU work at these positions, one after another, `repeat` times each. Memory is
    /// restored before each run. Earlier calls run once.
    ///
    /// # Errors
    ///
    /// If the driver reports an error, or if the device does not have enough memory for two copies.
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

    /// Measures each call in one run of all calls, with events around it. The times are some microseconds too long.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
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
        // Keep the device busy until the host has enqueued all three, so that host time is not measured.
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

/// Whether a call does GPU work.
pub(crate) fn works(command: &Command) -> bool {
    matches!(
        command.kind,
        CommandKind::LAUNCH | CommandKind::COPY | CommandKind::COPY_PLANES | CommandKind::SET
    )
}
