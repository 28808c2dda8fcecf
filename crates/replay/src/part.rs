//! Runs a part of the calls of a recording, with the memory that they had.
//!
//! A recording contains memory only at its start and end. So the calls before a part run first, with the recorded
//! kernels. A part that reaches the end is compared with the recorded memory. Any other part is compared with a run
//! of all calls up to its end, with the recorded kernels.
//!
//! A part differs for three reasons: it is nondeterministic, a kernel was replaced by one with other results, or it
//! needs calls that were left out (of other streams).

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tracesmith_cuda::kernels::Digester;

use crate::compare::{Findings, Left};
use crate::error::Error;
use crate::recording::Command;
use crate::run::{Fresh, Replaced, Replay, Run};
use crate::trail::{self, Look, Trail, Wanted};
use crate::verdict::Verdict;

/// The calls to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Their positions in the recording.
    pub places: Range<usize>,
    /// Only calls of this stream, by its recorded handle.
    pub stream: Option<u64>,
    /// Only calls at these positions, in this order.
    pub order: Option<Vec<usize>>,
}

/// What memory is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The recorded memory at the end of the window.
    Recorded,
    /// The memory after a run of all calls up to the same position.
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

    /// The calls at these positions, in this order.
    pub fn in_order(order: Vec<usize>) -> Self {
        let first = order.iter().min().copied().unwrap_or(0);
        let end = order.iter().max().map_or(0, |last| last + 1);
        Self {
            places: first..end,
            stream: None,
            order: Some(order),
        }
    }

    /// Whether the part is the whole recording, which has `count` calls.
    pub fn is_whole(&self, count: usize) -> bool {
        self.reaches_end(count) && self.places.start == 0
    }

    /// Whether the part should end with the recorded memory.
    fn reaches_end(&self, count: usize) -> bool {
        self.places.end >= count && self.stream.is_none() && self.order.is_none()
    }

    /// The calls of the part, in the order in which they run.
    pub fn chosen(&self, commands: &[Command]) -> Vec<Command> {
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

/// The results of a run of all calls.
struct Reference {
    /// Hashes of the buffers that each call can have written, by call number.
    left: FxHashMap<u64, Vec<u64>>,
    /// The memory at the end of the part. `None` if it was recorded.
    end: Option<Left>,
}

impl Replay<'_> {
    /// Runs a part several times.
    ///
    /// Memory is compared at the end. In a part, or with other kernels, it is also compared after each call, because
    /// memory can be freed or overwritten before the end.
    ///
    /// # Errors
    ///
    /// If the driver reports an error, or if the device does not have enough memory for two copies.
    pub fn run_part(&mut self, part: &Part, repeat: u32) -> Result<Vec<Run>, Error> {
        let count = self.recording.commands.len();
        if part.is_whole(count) && self.replaced.is_empty() {
            return (0..repeat).map(|_| self.run()).collect();
        }
        let places = part.places.start.min(count)..part.places.end.min(count);
        let chosen = part.chosen(&self.recording.commands);
        if chosen.is_empty() {
            return Err(Error::Obstacle("the selection contains no call".to_owned()));
        }
        let against = if part.reaches_end(count) {
            Against::Recorded
        } else {
            Against::Replay
        };
        let replaced = std::mem::take(&mut self.replaced);
        let runs = self.run_chosen(&places, &chosen, &replaced, against, repeat);
        self.replaced = replaced;
        self.graphs.clear();
        runs
    }

    fn run_chosen(
        &mut self,
        places: &Range<usize>,
        chosen: &[Command],
        replaced: &Replaced,
        against: Against,
        repeat: u32,
    ) -> Result<Vec<Run>, Error> {
        let digester = Digester::load(&self.context).map_err(Error::device("loading the hash kernel"))?;
        let reference = self.reference(places, chosen, against, &digester)?;
        // Uninitialized memory must have the same contents in both runs.
        let fresh = match against {
            Against::Recorded => Fresh::Once,
            Against::Replay => Fresh::EachTime,
        };
        let mut runs = Vec::new();
        for _ in 0..repeat {
            let (device_time, host_time) = self.with_fresh(fresh, |replay| {
                replay.go_to(places.start)?;
                replay.start_clock();
                replay.with_kernels(replaced, |replay| {
                    replay.timed(|replay| replay.issue_each(chosen))
                })
            })?;
            let mut verdict = match &reference.end {
                None => self.compare()?,
                Some(end) => self.compare_with(end, &self.memory())?,
            };
            if verdict.is_good() {
                let left = self.compare_calls(places, chosen, replaced, &reference, &digester)?;
                verdict = verdict.and(left);
            }
            runs.push(Run {
                device_time,
                host_time,
                against,
                commands: chosen.len(),
                verdict,
            });
        }
        Ok(runs)
    }

    /// Uses other kernels while `body` runs.
    fn with_kernels<T>(&mut self, replaced: &Replaced, body: impl FnOnce(&mut Self) -> T) -> T {
        self.replaced.clone_from(replaced);
        // Instantiated graphs contain the old kernels.
        self.graphs.clear();
        let result = body(self);
        self.replaced.clear();
        self.graphs.clear();
        result
    }

    /// One run of all calls in a range, with the recorded kernels.
    fn reference(
        &mut self,
        places: &Range<usize>,
        chosen: &[Command],
        against: Against,
        digester: &Digester,
    ) -> Result<Reference, Error> {
        let all = self.recording.commands[places.clone()].to_vec();
        let numbers: BTreeSet<u64> = chosen.iter().map(|command| command.number).collect();
        let mut looks = self.looks_at(&all);
        looks.retain(|look| numbers.contains(&all[look.place].number));
        let trail = self.digested(places.start, &all, &Replaced::default(), &looks, digester)?;
        let end = match against {
            Against::Recorded => None,
            Against::Replay => Some(self.left()?),
        };
        let left = by_look(&looks, &trail).map(|(look, digests)| (all[look.place].number, digests.to_vec()));
        Ok(Reference {
            left: left.collect(),
            end,
        })
    }

    /// Runs calls one by one from a position, and hashes the results of each. Earlier calls run first, with the
    /// recorded kernels.
    fn digested(
        &mut self,
        start: usize,
        commands: &[Command],
        replaced: &Replaced,
        looks: &[Look],
        digester: &Digester,
    ) -> Result<Trail, Error> {
        self.freshly(|replay| {
            replay.go_to(start)?;
            replay.with_kernels(replaced, |replay| replay.trail_of(commands, digester, looks))
        })
    }

    /// Runs calls one after another, and fills memory at each allocation, while `body` runs.
    pub(crate) fn freshly<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.with_fresh(Fresh::EachTime, |replay| replay.serially(body))
    }

    fn with_fresh<T>(&mut self, fresh: Fresh, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.fresh, fresh);
        let result = body(self);
        self.fresh = before;
        result
    }

    /// Compares the results of each call with those of the reference.
    fn compare_calls(
        &mut self,
        places: &Range<usize>,
        chosen: &[Command],
        replaced: &Replaced,
        reference: &Reference,
        digester: &Digester,
    ) -> Result<Verdict, Error> {
        let looks = self.looks_at(chosen);
        let trail = self.digested(places.start, chosen, replaced, &looks, digester)?;
        let mut differing: Vec<Wanted> = Vec::new();
        for (look, digests) in by_look(&looks, &trail) {
            let expected = reference.left.get(&chosen[look.place].number);
            let expected = expected.map(Vec::as_slice).unwrap_or_default();
            for (index, (address, bytes)) in look.buffers.iter().copied().enumerate() {
                if expected.get(index) != digests.get(index) {
                    differing.push(Wanted {
                        place: look.place,
                        address,
                        bytes,
                    });
                }
            }
        }
        if self.tolerances.is_empty() {
            // The first call with different results is enough. Others follow from it.
            let first = differing.first().map(|wanted| wanted.place);
            differing.retain(|wanted| Some(wanted.place) == first);
        }
        let buffers = looks.iter().map(|look| look.buffers.len()).sum();
        self.examine(places, chosen, replaced, &differing, buffers)
    }

    /// Reads memory that differs, in the reference and in the part.
    fn examine(
        &mut self,
        places: &Range<usize>,
        chosen: &[Command],
        replaced: &Replaced,
        differing: &[Wanted],
        buffers: usize,
    ) -> Result<Verdict, Error> {
        let all = self.recording.commands[places.clone()].to_vec();
        let place_of: FxHashMap<u64, usize> = all
            .iter()
            .enumerate()
            .map(|(place, command)| (command.number, place))
            .collect();
        let mut findings = Findings::of_calls(buffers);
        for batch in trail::batches(differing) {
            let mut expected_at: Vec<Wanted> = batch.to_vec();
            for wanted in &mut expected_at {
                wanted.place = place_of[&chosen[wanted.place].number];
            }
            // The calls of a part can have their own order.
            let mut order: Vec<usize> = (0..batch.len()).collect();
            order.sort_by_key(|index| expected_at[*index].place);
            let sorted: Vec<Wanted> = order.iter().map(|index| expected_at[*index]).collect();
            let read = self.freshly(|replay| {
                replay.go_to(places.start)?;
                replay.contents_after(&all, &sorted)
            })?;
            let mut expected = vec![Vec::new(); batch.len()];
            for (index, content) in order.into_iter().zip(read) {
                expected[index] = content;
            }
            let found = self.freshly(|replay| {
                replay.go_to(places.start)?;
                replay.with_kernels(replaced, |replay| replay.contents_after(chosen, batch))
            })?;
            for ((wanted, expected), found) in batch.iter().zip(&expected).zip(&found) {
                let call = chosen[wanted.place].number;
                findings.add_call(call, wanted.address, expected, found, &self.tolerances);
            }
        }
        Ok(findings.verdict())
    }
}

/// Each checkpoint with its hashes.
fn by_look<'l>(looks: &'l [Look], trail: &'l [u64]) -> impl Iterator<Item = (&'l Look, &'l [u64])> {
    let mut at = 0;
    looks.iter().map(move |look| {
        let digests = &trail[at..at + look.buffers.len()];
        at += look.buffers.len();
        (look, digests)
    })
}
