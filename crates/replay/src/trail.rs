//! Hashes of the results of each call.
//!
//! Calls run one by one. After each call, the memory that it can have written is hashed on the device, before another
//! call changes it. Two runs with the same hashes had the same results.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tracesmith_cuda::kernels::{Digester, Digests};
use tracesmith_format::tables::CommandKind;

use crate::copies::planes;
use crate::error::Error;
use crate::recording::{Buffer, Command};
use crate::run::Replay;

/// The hashes of a run, in the order of its checkpoints and their buffers.
pub(crate) type Trail = Vec<u64>;

/// The memory to hash after one call.
pub(crate) struct Look {
    /// The position of the call among the calls that run.
    pub(crate) place: usize,
    /// Addresses and sizes.
    pub(crate) buffers: Vec<(u64, u64)>,
}

/// A buffer to read after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The position of the call among the calls that run.
    pub(crate) place: usize,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// Bytes of contents to keep in host memory at a time.
const BATCH: u64 = 1 << 30;

/// Splits the wanted buffers, by position, into batches that fit into memory.
pub(crate) fn batches(wanted: &[Wanted]) -> impl Iterator<Item = &[Wanted]> {
    let mut bytes = 0;
    wanted.chunk_by(move |one, next| {
        bytes += one.bytes;
        let fits = bytes + next.bytes <= BATCH;
        if !fits {
            bytes = 0;
        }
        fits
    })
}

/// Finds the memory that a call can have written: what its arguments point to, and the globals of its module.
struct Reach {
    /// All memory by address. Ranges can overlap, because an address can be allocated again after a free.
    all: Overlapping,
    /// Module globals by the handle of the module.
    variables: FxHashMap<u64, BTreeSet<(u64, u64)>>,
    /// Arrays. Kernels write them through surface handles, which are not addresses.
    arrays: Vec<(u64, u64)>,
}

impl Reach {
    fn of(&self, command: &Command) -> Vec<(u64, u64)> {
        let mut written: BTreeSet<(u64, u64)> = addresses(command)
            .into_iter()
            .flat_map(|address| self.all.holding(address))
            .collect();
        if command.kind == CommandKind::LAUNCH {
            written.extend(&self.arrays);
            written.extend(self.variables.get(&command.module).into_iter().flatten());
        }
        written.into_iter().collect()
    }
}

impl Replay<'_> {
    /// All device memory of the recording, including memory that the window allocates.
    pub(crate) fn memory(&self) -> Vec<(u64, u64)> {
        let recording = &*self.recording;
        let known = recording.begin.iter().chain(&recording.end).map(extent);
        let allocated = recording
            .commands
            .iter()
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| (command.destination, command.bytes));
        let all: BTreeSet<(u64, u64)> = known
            .chain(allocated)
            .filter(|memory| self.is_here(memory))
            .collect();
        all.into_iter().collect()
    }

    /// Whether memory of the recording exists in this replay.
    pub(crate) fn is_here(&self, (address, bytes): &(u64, u64)) -> bool {
        self.stage.holds(self.place(*address), *bytes)
    }

    fn reach(&self) -> Reach {
        let recording = &*self.recording;
        let mut variables: FxHashMap<u64, BTreeSet<(u64, u64)>> = FxHashMap::default();
        let known = recording.begin.iter().chain(&recording.end);
        for buffer in known.filter(|buffer| !buffer.variable.is_empty()) {
            if self.is_here(&extent(buffer)) {
                variables.entry(buffer.module).or_default().insert(extent(buffer));
            }
        }
        Reach {
            all: Overlapping::new(self.memory()),
            variables,
            arrays: self.textures.arrays().collect(),
        }
    }

    /// The memory that each of these calls can have written. Writes through pointers in memory show in later calls,
    /// when the memory is freed, or at the end.
    pub(crate) fn looks_at(&self, commands: &[Command]) -> Vec<Look> {
        let reach = self.reach();
        let looks = commands.iter().enumerate().map(|(place, command)| Look {
            place,
            buffers: reach.of(command),
        });
        looks.filter(|look| !look.buffers.is_empty()).collect()
    }

    /// Checkpoints for all calls, and for all memory at the end.
    pub(crate) fn looks(&self) -> Vec<Look> {
        let recording = &*self.recording;
        let mut looks = self.looks_at(&recording.commands);
        let end = recording.end.iter().map(extent);
        looks.push(Look {
            place: recording.commands.len(),
            buffers: end.filter(|memory| self.is_here(memory)).collect(),
        });
        looks
    }

    /// One run of all calls, from the initial memory.
    pub(crate) fn trail(&mut self, digester: &Digester, looks: &[Look]) -> Result<Trail, Error> {
        self.restore()?;
        let commands = std::mem::take(&mut self.recording.commands);
        let trail = self.trail_of(&commands, digester, looks);
        self.recording.commands = commands;
        trail
    }

    /// Runs calls, and hashes the memory that each can have written.
    pub(crate) fn trail_of(
        &mut self,
        commands: &[Command],
        digester: &Digester,
        looks: &[Look],
    ) -> Result<Trail, Error> {
        let count = looks.iter().map(|look| look.buffers.len()).sum::<usize>().max(1);
        let mut digests = digester
            .room(count, &self.marks)
            .map_err(Error::device("hashing memory"))?;
        let mut issued = 0;
        for look in looks {
            let end = (look.place + 1).min(commands.len());
            self.issue_each(&commands[issued.min(end)..end])?;
            issued = end;
            self.wait().map_err(|error| match commands.get(look.place) {
                Some(command) => error.of_call(command),
                None => error,
            })?;
            self.digest(digester, &look.buffers, &mut digests)?;
            self.wait()?;
        }
        self.issue_each(&commands[issued..])?;
        self.wait()?;
        digests.read(&self.marks).map_err(Error::device("hashing memory"))
    }

    /// Runs calls as far as needed, and reads buffers after them.
    pub(crate) fn contents_after(
        &mut self,
        commands: &[Command],
        wanted: &[Wanted],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut contents = Vec::with_capacity(wanted.len());
        let mut issued = 0;
        for wanted in wanted {
            let end = (wanted.place + 1).min(commands.len());
            if end > issued {
                self.issue_each(&commands[issued..end])?;
                issued = end;
            }
            contents.push(self.read(wanted.address, wanted.bytes)?);
        }
        Ok(contents)
    }

    pub(crate) fn digest(
        &self,
        digester: &Digester,
        buffers: &[(u64, u64)],
        digests: &mut Digests,
    ) -> Result<(), Error> {
        if buffers
            .iter()
            .any(|(address, _)| self.textures.place(*address).is_some())
        {
            self.get_arrays()?;
        }
        for (address, bytes) in buffers {
            digester
                .begin(&self.stage, self.place(*address), *bytes, digests, &self.marks)
                .map_err(Error::device("hashing memory"))?;
        }
        Ok(())
    }
}

fn extent(buffer: &Buffer) -> (u64, u64) {
    (buffer.address, buffer.bytes)
}

/// Finds memory by an address inside it.
struct Overlapping {
    /// Sorted.
    all: Vec<(u64, u64)>,
    /// For each position, the largest end address up to there.
    ends: Vec<u64>,
}

impl Overlapping {
    fn new(all: Vec<(u64, u64)>) -> Self {
        let mut last = 0;
        let ends = all.iter().map(|(base, bytes)| {
            last = u64::max(last, base.saturating_add(*bytes));
            last
        });
        Self {
            ends: ends.collect(),
            all,
        }
    }

    fn holding(&self, address: u64) -> impl Iterator<Item = (u64, u64)> {
        let after = self.all.partition_point(|(base, _)| *base <= address);
        let before = (0..after)
            .rev()
            .take_while(move |place| self.ends[*place] > address);
        before
            .map(|place| self.all[place])
            .filter(move |(base, bytes)| address - base < *bytes)
    }
}

/// Addresses in a call's arguments that it can write to. Memory is hashed once more before it is freed.
pub(crate) fn addresses(command: &Command) -> Vec<u64> {
    match command.kind {
        CommandKind::LAUNCH => {
            let words = command.parameters.as_chunks::<8>().0.iter();
            words.map(|word| u64::from_le_bytes(*word)).collect()
        }
        CommandKind::COPY | CommandKind::SET | CommandKind::FREE => vec![command.destination],
        CommandKind::COPY_PLANES => planes(&command.parameters)
            .map(|planes| planes.destination.device)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// The first call after which two runs differ, and the buffer.
pub(crate) fn first_difference<'l>(looks: &'l [Look], one: &Trail, other: &Trail) -> Option<(&'l Look, u64)> {
    let all = looks
        .iter()
        .flat_map(|look| look.buffers.iter().map(move |(address, _)| (look, *address)));
    let mut pairs = all.zip(one.iter().zip(other));
    pairs
        .find(|(_, (one, other))| one != other)
        .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_by_any_address_within_it() {
        let all = Overlapping::new(vec![
            (0x1000, 16),
            (0x2000, 8),
            (0x2000, 64),
            (0x2010, 4),
            (0x3000, 4),
        ]);
        let holding = |address| all.holding(address).collect::<Vec<_>>();
        assert_eq!(holding(0x100F), [(0x1000, 16)]);
        assert_eq!(holding(0x1010), []);
        assert_eq!(holding(0x0FFF), []);
        // Memory that was allocated again at these addresses counts each time.
        assert_eq!(holding(0x2004), [(0x2000, 64), (0x2000, 8)]);
        assert_eq!(holding(0x2020), [(0x2000, 64)]);
        assert_eq!(holding(0x3003), [(0x3000, 4)]);
    }
}
