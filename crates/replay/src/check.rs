//! Whether a recording repeats itself, and which call is the first that does not.
//!
//! After every call the memory that it can write is digested on the device. Two runs whose digests agree repeated each
//! other; else the first that differs names the call. To find out why, memory that is taken within the window is filled
//! with different patterns, and the work of each stream is held back in turn.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tracesmith_cuda::kernels::{Digester, Digests};
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::race::Held;
use crate::recording::{Buffer, Command};
use crate::run::{Order, Replay, planes};
use crate::verdict::Difference;

/// Tries to see a difference again, whose bytes are then told.
const TRIES: usize = 16;

/// How many runs are made again as they were, before what differs between two ways is put down to what they differ in.
const CONFIRMATIONS: usize = 16;

/// What fresh memory is filled with: as numbers of any kind one is nothing and the other is large, so that a sum or a
/// product shows it.
const PATTERNS: [u8; 2] = [0x00, 0x7F];

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
    /// Its number; none when no call is told of the buffer.
    pub command: Option<u64>,
    /// The kernel, or what it does.
    pub name: String,
    /// Why, as far as it could be found out.
    pub cause: Cause,
    /// The buffer, and two values that it had; the first run's is `expected`. None when it could not be seen again.
    pub difference: Option<Difference>,
    /// Where the buffer lies; none when the call did not come to its end.
    pub buffer: Option<u64>,
}

/// Why a call does not repeat itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It reads memory that was taken in the window and that nobody wrote: the result follows what is in it.
    Uninitialised,
    /// With the same memory before it comes out differently: the order of atomic operations, or a race within the kernel.
    Within,
    /// Only when another stream is slower: an event or a wait is missing between the two.
    Stream {
        /// Where it runs itself.
        own: u64,
        /// The stream that it does not wait for.
        other: u64,
    },
    /// It comes out differently by chance when streams run beside each other, and no one of them being slower shows why.
    Overlap,
    /// It does not come to its end when memory that nobody wrote holds other values.
    Fails,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uninitialised => f.write_str("it reads memory that nobody wrote"),
            Self::Within => f.write_str("the order of its atomic operations, or a race within it"),
            Self::Stream { own, other } => {
                write!(f, "in stream {own:#x} it does not wait for stream {other:#x}")
            }
            Self::Overlap => f.write_str("it depends on how the work of several streams overlaps"),
            Self::Fails => f.write_str("it reads memory that nobody wrote, and fails of what it finds there"),
        }
    }
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) order: Order,
    pub(crate) pattern: u8,
    pub(crate) held: Option<Held>,
}

impl Way {
    /// One call after another.
    pub(crate) const SERIAL: Self = Self {
        order: Order::Serial,
        pattern: PATTERNS[0],
        held: None,
    };
}

/// Digests of a run: those after each call.
pub(crate) type Trail = Vec<u64>;

/// What is digested after one call.
pub(crate) struct Look {
    pub(crate) place: usize,
    pub(crate) buffers: Vec<(u64, u64)>,
}

impl Replay<'_> {
    /// Runs the recording several times and compares the memory after every call.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn check(&mut self, runs: u32) -> Result<Determinism, Error> {
        // One alone has nothing to be compared with.
        let found = self.look_for_culprit(runs.max(2));
        self.go(Way::SERIAL);
        self.pattern = None;
        found
    }

    fn look_for_culprit(&mut self, runs: u32) -> Result<Determinism, Error> {
        let digester = Digester::load(&self.context).map_err(Error::device("loading the digest"))?;
        let looks = self.looks();
        let calls = looks.len();
        self.go(Way::SERIAL);
        let first = self.trail(&digester, &looks)?;
        for _ in 1..runs {
            let again = self.trail(&digester, &looks)?;
            if let Some((look, buffer)) = first_difference(&looks, &first, &again) {
                return self.culprit(look.place, buffer, Cause::Within, [Way::SERIAL; 2]);
            }
        }
        let fresh = self.fresh();
        if !fresh.is_empty() {
            let other = Way {
                pattern: PATTERNS[1],
                ..Way::SERIAL
            };
            self.go(other);
            let trail = match self.trail(&digester, &looks) {
                Ok(trail) => trail,
                Err(Error::Device {
                    call: Some(number), ..
                }) => return Ok(self.failing(number)),
                Err(error) => return Err(error),
            };
            // What is fresh itself differs of course: that something else does is the point.
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
            if let Some((look, buffer)) = first_difference(&looks, &masked(&first), &masked(&trail)) {
                // Runs that agreed may have done so by chance, and then this one differs by chance.
                let seen = [(Way::SERIAL, &first), (other, &trail)];
                return match self.unlike_itself(&digester, &looks, &seen)? {
                    Some((place, buffer, way)) => self.culprit(place, buffer, Cause::Within, [way; 2]),
                    None => self.culprit(look.place, buffer, Cause::Uninitialised, [Way::SERIAL, other]),
                };
            }
        }
        if let Some(race) = self.race(&digester, &looks, &first)? {
            return match self.unlike_itself(&digester, &looks, &[(Way::SERIAL, &first)])? {
                Some((place, buffer, way)) => self.culprit(place, buffer, Cause::Within, [way; 2]),
                None => self.culprit(race.place, race.buffer, race.cause, [Way::SERIAL, race.way]),
            };
        }
        Ok(Determinism::Repeats { runs, calls })
    }

    /// The first call that comes out differently when runs are made again in the ways that they were, its buffer and the
    /// way.
    fn unlike_itself(
        &mut self,
        digester: &Digester,
        looks: &[Look],
        seen: &[(Way, &Trail)],
    ) -> Result<Option<(usize, u64, Way)>, Error> {
        for (way, trail) in seen.iter().cycle().take(CONFIRMATIONS) {
            self.go(*way);
            let again = self.trail(digester, looks)?;
            if let Some((look, buffer)) = first_difference(looks, trail, &again) {
                return Ok(Some((look.place, buffer, *way)));
            }
        }
        Ok(None)
    }

    /// Makes runs in this way from now on.
    pub(crate) fn go(&mut self, way: Way) {
        self.set_order(way.order);
        self.pattern = Some(way.pattern);
        self.held = way.held;
    }

    /// The memory that each call can write: what it is told of. What it finds through memory shows in later calls, or at
    /// the end, where all is looked at.
    fn looks(&self) -> Vec<Look> {
        let here = |(address, bytes): &(u64, u64)| self.stage.holds(self.place(*address), *bytes);
        let extent = |buffer: &Buffer| (buffer.address, buffer.bytes);
        let recording = &*self.recording;
        let commands = &recording.commands;
        let taken = commands
            .iter()
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| (command.destination, command.bytes));
        let known = recording.begin.iter().chain(&recording.end);
        let mut all: Vec<(u64, u64)> = known.clone().map(extent).chain(taken).filter(here).collect();
        all.sort_unstable();
        all.dedup();
        // A kernel knows the variables of its own code without being told.
        let mut variables: FxHashMap<u64, BTreeSet<(u64, u64)>> = FxHashMap::default();
        for buffer in known.filter(|buffer| !buffer.variable.is_empty()) {
            variables.entry(buffer.module).or_default().insert(extent(buffer));
        }
        let written = |command: &Command| -> Vec<(u64, u64)> {
            let mut written: BTreeSet<(u64, u64)> = told(command)
                .into_iter()
                .filter_map(|address| holder(&all, address))
                .collect();
            if command.kind == CommandKind::LAUNCH {
                // What it writes through a surface it is told by a handle only.
                written.extend(self.textures.arrays());
                let own = variables.get(&command.module).into_iter().flatten();
                written.extend(own.copied().filter(here));
            }
            written.into_iter().collect()
        };
        let mut looks: Vec<Look> = commands
            .iter()
            .enumerate()
            .map(|(place, command)| Look {
                place,
                buffers: written(command),
            })
            .filter(|look| !look.buffers.is_empty())
            .collect();
        looks.push(Look {
            place: commands.len(),
            buffers: recording.end.iter().map(extent).filter(here).collect(),
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
        let count = looks.iter().map(|look| look.buffers.len()).sum::<usize>().max(1);
        let mut digests = digester
            .room(count, &self.marks)
            .map_err(Error::device("digesting memory"))?;
        let mut issued = 0;
        for look in looks {
            let end = (look.place + 1).min(self.recording.commands.len());
            self.issue_all(issued..end)?;
            issued = end;
            self.wait()
                .map_err(|error| match self.recording.commands.get(look.place) {
                    Some(command) => error.of_call(command),
                    None => error,
                })?;
            self.digest(digester, &look.buffers, &mut digests)?;
            self.wait()?;
        }
        digests
            .read(&self.marks)
            .map_err(Error::device("digesting memory"))
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
                .map_err(Error::device("digesting memory"))?;
        }
        Ok(())
    }

    /// Tells of a call, and shows two values that two ways of running it gave, if they can be seen again.
    fn culprit(
        &mut self,
        place: usize,
        buffer: u64,
        cause: Cause,
        ways: [Way; 2],
    ) -> Result<Determinism, Error> {
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
        for _ in 0..TRIES {
            let mut contents = Vec::new();
            for way in ways {
                self.go(way);
                self.run_until(until)?;
                contents.push(self.read(buffer, bytes)?);
            }
            difference = compare(buffer, &contents[0], &contents[1]);
            if difference.is_some() {
                break;
            }
        }
        Ok(Determinism::Differs(Box::new(Culprit {
            command: number,
            name,
            cause,
            difference,
            buffer: Some(buffer),
        })))
    }

    /// A call that ends with an error when fresh memory holds other values.
    fn failing(&self, number: u64) -> Determinism {
        let mut commands = self.recording.commands.iter();
        let command = commands.find(|command| command.number == number);
        Determinism::Differs(Box::new(Culprit {
            command: Some(number),
            name: command.map(Command::name).unwrap_or_default(),
            cause: Cause::Fails,
            difference: None,
            buffer: None,
        }))
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

/// The memory among sorted ones that an address lies in.
fn holder(all: &[(u64, u64)], address: u64) -> Option<(u64, u64)> {
    let behind = all.partition_point(|(base, _)| *base <= address);
    let (base, bytes) = *all.get(behind.checked_sub(1)?)?;
    (address - base < bytes).then_some((base, bytes))
}

/// Addresses that a call was told and may write to.
fn told(command: &Command) -> Vec<u64> {
    match command.kind {
        CommandKind::LAUNCH => {
            let words = command.parameters.as_chunks::<8>().0.iter();
            words.map(|word| u64::from_le_bytes(*word)).collect()
        }
        CommandKind::COPY | CommandKind::SET => vec![command.destination],
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
