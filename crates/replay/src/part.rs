//! Some of the calls of a recording, run with the memory that they had before them.
//!
//! A recording holds the memory at its two ends only. What comes before a part is run first, with the recorded kernels.
//! A part that reaches to the end is held against what was recorded there; any other against a run of all calls up to
//! the part's end, also with the recorded kernels. So a part differs when it does not repeat itself, when a kernel in it
//! was replaced by one that does something else, or when calls were left out that it needs (those of other streams).

use std::collections::BTreeSet;
use std::ops::Range;

use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Command;
use crate::run::{Replay, Run};

/// Which calls are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// By their places among all.
    pub places: Range<usize>,
    /// Only those of this stream, as the program knew it.
    pub stream: Option<u64>,
    /// Only those at these places, in this order.
    pub order: Option<Vec<usize>>,
}

/// What memory is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// What was recorded at the end of the window.
    Recorded,
    /// What a run of all calls up to the same place leaves.
    Replay,
}

impl Part {
    /// All calls.
    pub fn whole(count: usize) -> Self {
        Self {
            places: 0..count,
            stream: None,
            order: None,
        }
    }

    /// The calls at some places in an order of one's own.
    pub fn in_order(order: Vec<usize>) -> Self {
        let first = order.iter().min().copied().unwrap_or(0);
        let end = order.iter().max().map_or(0, |last| last + 1);
        Self {
            places: first..end,
            stream: None,
            order: Some(order),
        }
    }

    fn is_whole(&self, count: usize) -> bool {
        self.reaches_end(count) && self.places.start == 0
    }

    /// Whether it leaves what was recorded at the end, if it repeats itself.
    fn reaches_end(&self, count: usize) -> bool {
        self.places.end >= count && self.stream.is_none() && self.order.is_none()
    }

    fn chosen(&self, commands: &[Command]) -> Vec<Command> {
        if let Some(order) = &self.order {
            let chosen = order.iter().filter_map(|place| commands.get(*place));
            return chosen.cloned().collect();
        }
        let end = self.places.end.min(commands.len());
        let places = commands.get(self.places.start..end).unwrap_or_default().iter();
        let has = |command: &&Command| self.stream.is_none_or(|stream| stream == command.stream);
        places.filter(has).cloned().collect()
    }
}

impl Replay<'_> {
    /// Runs a part several times.
    ///
    /// # Errors
    ///
    /// What the driver says; also when the device has not room for all memory twice.
    pub fn run_part(&mut self, part: &Part, repeat: u32) -> Result<Vec<Run>, Error> {
        let count = self.recording.commands.len();
        let places = part.places.start.min(count)..part.places.end.min(count);
        if part.is_whole(count) {
            return (0..repeat).map(|_| self.run()).collect();
        }
        let chosen = part.chosen(&self.recording.commands);
        let against = if part.reaches_end(count) {
            Against::Recorded
        } else {
            Against::Replay
        };
        let replaced = std::mem::take(&mut self.replaced);
        let reference = match against {
            Against::Recorded => None,
            Against::Replay => {
                self.go_to(places.end)?;
                Some(self.copy_memory()?)
            }
        };
        let mut runs = Vec::new();
        for _ in 0..repeat {
            self.go_to(places.start)?;
            self.replaced.clone_from(&replaced);
            self.graphs.clear();
            self.start_clock();
            let timed = self.timed(|replay| replay.issue_each(&chosen));
            self.replaced.clear();
            self.graphs.clear();
            let (device_time, host_time) = timed?;
            let verdict = match &reference {
                None => self.compare()?,
                Some(reference) => self.compare_with(reference, &self.memory_of(&chosen))?,
            };
            runs.push(Run {
                device_time,
                host_time,
                against,
                commands: chosen.len(),
                verdict,
            });
        }
        self.replaced = replaced;
        Ok(runs)
    }

    /// All memory that the recording knows of, and that calls take: it is on the device, so it can be compared.
    pub(crate) fn memory_of(&self, chosen: &[Command]) -> Vec<(u64, u64)> {
        let known = self.recording.begin.iter().chain(&self.recording.end);
        let known = known.map(|buffer| (buffer.address, buffer.bytes));
        let taken = chosen
            .iter()
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| (command.destination, command.bytes));
        let all: BTreeSet<(u64, u64)> = known
            .chain(taken)
            .filter(|(address, bytes)| self.stage.holds(self.place(*address), *bytes))
            .collect();
        all.into_iter().collect()
    }
}
