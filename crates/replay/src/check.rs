//! Whether a recording repeats itself, and which call is the first that does not.
//!
//! After every call the memory that it can write is digested on the device. Two runs whose digests agree repeated each
//! other; else the first that differs names the call. To find out why, memory that is taken within the window is filled
//! with different patterns, and streams are run one after another.

use std::collections::BTreeSet;

use tracesmith_cuda::kernels::Digester;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::error::Error;
use crate::recording::{Buffer, Command};
use crate::run::{Order, Replay};
use crate::verdict::Difference;

/// Tries to see a difference again, whose bytes are then told.
const TRIES: usize = 16;

/// What fresh memory is filled with.
const PATTERNS: [u8; 2] = [0x00, 0xA5];

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Determinism {
    /// All runs came out the same after every call.
    Repeats {
        /// How many there were.
        runs: u32,
        /// Calls after which memory was looked at.
        calls: usize,
    },
    /// One does not repeat itself.
    Differs(Box<Culprit>),
}

/// The first call that does not repeat itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Its number; none when only several streams together do not repeat.
    pub command: Option<u64>,
    /// The kernel, or what it does.
    pub name: String,
    /// Why, as far as it could be found out.
    pub cause: Cause,
    /// The buffer, and two values that it had; the first run's is `expected`. None when it could not be seen again.
    pub difference: Option<Difference>,
    /// Where the buffer lies.
    pub buffer: u64,
}

/// Why a call does not repeat itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It reads memory that was taken in the window and that nobody wrote: the result follows what is in it.
    Uninitialised,
    /// With the same memory before it comes out differently: the order of atomic operations, or a race within the kernel.
    Within,
    /// Only when streams run beside each other: an event or a wait is missing between them.
    Streams,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uninitialised => "it reads memory that nobody wrote",
            Self::Within => "the order of its atomic operations, or a race within it",
            Self::Streams => "streams that do not wait for each other",
        })
    }
}

/// Digests of a run: those after each call.
type Trail = Vec<u64>;

/// What is digested after one call.
struct Look {
    place: usize,
    buffers: Vec<(u64, u64)>,
}

impl Replay<'_> {
    /// Runs the recording several times and compares the memory after every call.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn check(&mut self, runs: u32) -> Result<Determinism, Error> {
        let digester = Digester::load(&self.context).map_err(Error::device("loading the digest"))?;
        let looks = self.looks();
        let calls = looks.len();
        self.set_order(Order::Serial);
        self.pattern = Some(PATTERNS[0]);
        let first = self.trail(&digester, &looks)?;
        for _ in 1..runs.max(2) {
            let again = self.trail(&digester, &looks)?;
            if let Some((look, buffer)) = first_difference(&looks, &first, &again) {
                return self.culprit(look.place, buffer, Cause::Within);
            }
        }
        self.pattern = Some(PATTERNS[1]);
        let other = self.trail(&digester, &looks)?;
        // What is fresh itself differs of course: that something else does is the point.
        let fresh = self.fresh();
        let initialised: Vec<bool> = looks
            .iter()
            .flat_map(|look| &look.buffers)
            .map(|(address, _)| !fresh.contains(address))
            .collect();
        let masked = |trail: &Trail| -> Trail {
            let pairs = trail.iter().zip(&initialised);
            pairs
                .map(|(digest, counts)| if *counts { *digest } else { 0 })
                .collect()
        };
        if let Some((look, buffer)) = first_difference(&looks, &masked(&first), &masked(&other)) {
            return self.culprit(look.place, buffer, Cause::Uninitialised);
        }
        self.pattern = Some(PATTERNS[0]);
        self.set_order(Order::Streams);
        for _ in 0..runs.max(2) {
            if let Some(buffer) = self.free_run(&digester, &looks, &first)? {
                return self.culprit(usize::MAX, buffer, Cause::Streams);
            }
        }
        self.pattern = None;
        Ok(Determinism::Repeats { runs, calls })
    }

    /// The memory that each call can write: what it is told of. What it finds through memory shows in later calls, or at
    /// the end, where all is looked at.
    fn looks(&self) -> Vec<Look> {
        let device = |buffer: &&Buffer| !matches!(buffer.memory, MemoryKind::PINNED | MemoryKind::PAGEABLE);
        let mut all: Vec<(u64, u64)> = self
            .recording
            .begin
            .iter()
            .chain(&self.recording.end)
            .filter(device)
            .map(|buffer| (buffer.address, buffer.bytes))
            .collect();
        let allocations = self
            .recording
            .commands
            .iter()
            .filter(|command| is_device_memory(command));
        all.extend(allocations.map(|command| (command.destination, command.bytes)));
        all.sort_unstable();
        all.dedup();
        let commands = &self.recording.commands;
        let mut looks: Vec<Look> = commands
            .iter()
            .enumerate()
            .map(|(place, command)| Look {
                place,
                buffers: told(command)
                    .into_iter()
                    .flat_map(|address| {
                        all.iter()
                            .filter(move |(base, bytes)| address.wrapping_sub(*base) < *bytes)
                    })
                    .copied()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
            })
            .filter(|look| !look.buffers.is_empty())
            .collect();
        let end: Vec<(u64, u64)> = self
            .recording
            .end
            .iter()
            .filter(device)
            .map(|buffer| (buffer.address, buffer.bytes))
            .collect();
        looks.push(Look {
            place: commands.len(),
            buffers: end,
        });
        looks
    }

    /// Memory that is taken within the window.
    fn fresh(&self) -> BTreeSet<u64> {
        let commands = self.recording.commands.iter();
        commands
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| command.destination)
            .collect()
    }

    /// One run, with a digest of what each call can have written.
    fn trail(&mut self, digester: &Digester, looks: &[Look]) -> Result<Trail, Error> {
        self.restore()?;
        let failed = || Error::device("digesting memory");
        let count = looks.iter().map(|look| look.buffers.len()).sum::<usize>().max(1);
        let mut digests = digester.room(count, &self.marks).map_err(failed())?;
        let mut issued = 0;
        for look in looks {
            let end = (look.place + 1).min(self.recording.commands.len());
            self.issue_all(issued..end)?;
            issued = end;
            self.wait()?;
            for (address, bytes) in &look.buffers {
                digester
                    .begin(&self.stage, *address, *bytes, &mut digests, &self.marks)
                    .map_err(failed())?;
            }
            self.wait()?;
        }
        digests.read(&self.marks).map_err(failed())
    }

    /// A run with all its streams; gives back a buffer that came out otherwise at the end.
    fn free_run(&mut self, digester: &Digester, looks: &[Look], first: &Trail) -> Result<Option<u64>, Error> {
        let failed = || Error::device("digesting memory");
        self.run_until(usize::MAX)?;
        let Some(last) = looks.last() else {
            return Ok(None);
        };
        let mut digests = digester
            .room(last.buffers.len().max(1), &self.marks)
            .map_err(failed())?;
        for (address, bytes) in &last.buffers {
            digester
                .begin(&self.stage, *address, *bytes, &mut digests, &self.marks)
                .map_err(failed())?;
        }
        let found = digests.read(&self.marks).map_err(failed())?;
        let expected = &first[first.len() - found.len()..];
        let differs = found.iter().zip(expected).position(|(one, other)| one != other);
        Ok(differs.map(|at| last.buffers[at].0))
    }

    /// Tells of a call, and shows two values if they can be seen again.
    fn culprit(&mut self, place: usize, buffer: u64, cause: Cause) -> Result<Determinism, Error> {
        let commands = &self.recording.commands;
        // At the end: the last call that is told of the buffer.
        let command = commands.get(place).or_else(|| {
            let holds = |command: &&Command| told(command).contains(&buffer);
            commands.iter().rev().find(holds)
        });
        let (number, name) = command.map_or((None, String::new()), |command| {
            (Some(command.number), command.name())
        });
        let until = place.saturating_add(1).min(commands.len());
        let bytes = self.extent(buffer);
        let mut difference = None;
        let patterns = match cause {
            Cause::Uninitialised => PATTERNS,
            _ => [PATTERNS[0]; 2],
        };
        for _ in 0..TRIES {
            let mut contents = Vec::new();
            for pattern in patterns {
                self.pattern = Some(pattern);
                self.run_until(until)?;
                contents.push(self.read(buffer, bytes)?);
            }
            difference = compare(buffer, &contents[0], &contents[1]);
            if difference.is_some() {
                break;
            }
        }
        self.pattern = None;
        Ok(Determinism::Differs(Box::new(Culprit {
            command: number.filter(|_| cause != Cause::Streams),
            name,
            cause,
            difference,
            buffer,
        })))
    }

    fn extent(&self, buffer: u64) -> u64 {
        let known = self.recording.buffer(buffer).map(|buffer| buffer.bytes);
        let taken = || {
            let mut commands = self.recording.commands.iter();
            commands
                .find(|command| command.kind == CommandKind::ALLOCATE && command.destination == buffer)
                .map(|command| command.bytes)
        };
        known.or_else(taken).unwrap_or(0)
    }
}

fn is_device_memory(command: &Command) -> bool {
    let memory = MemoryKind(command.value as u8);
    command.kind == CommandKind::ALLOCATE && !matches!(memory, MemoryKind::PINNED | MemoryKind::PAGEABLE)
}

/// Addresses that a call was told and may write to.
fn told(command: &Command) -> Vec<u64> {
    match command.kind {
        CommandKind::LAUNCH => {
            let words = command.parameters.as_chunks::<8>().0.iter();
            words.map(|word| u64::from_le_bytes(*word)).collect()
        }
        CommandKind::COPY | CommandKind::SET => vec![command.destination],
        _ => Vec::new(),
    }
}

/// The first call after which two runs differ, and the buffer.
fn first_difference<'l>(looks: &'l [Look], one: &Trail, other: &Trail) -> Option<(&'l Look, u64)> {
    let all = looks
        .iter()
        .flat_map(|look| look.buffers.iter().map(move |(address, _)| (look, *address)));
    let mut pairs = all.zip(one.iter().zip(other));
    pairs
        .find(|(_, (one, other))| one != other)
        .map(|(place, _)| place)
}

fn compare(address: u64, one: &[u8], other: &[u8]) -> Option<Difference> {
    let pairs = one.iter().zip(other);
    let offset = pairs.clone().position(|(one, other)| one != other)?;
    let end = (offset + 8).min(one.len());
    Some(Difference {
        address,
        bytes: one.len() as u64,
        offset: offset as u64,
        expected: one[offset..end].to_vec(),
        found: other[offset..end].to_vec(),
        count: pairs.filter(|(one, other)| one != other).count() as u64,
    })
}
