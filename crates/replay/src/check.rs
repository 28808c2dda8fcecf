//! Checks whether a recording is deterministic, and finds the first call that is not.
//!
//! Two runs with equal [trails](crate::trail) had the same results. Otherwise the first different hash shows the
//! call. To find the cause, further runs fill memory that the window allocates with other patterns, and delay one
//! stream after another.

use std::collections::{BTreeMap, BTreeSet};

use tracesmith_cuda::kernels::Digester;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::race::DelayedStream;
use crate::recording::Command;
use crate::run::{Fresh, Order, PATTERN, Replay};
use crate::trail::{self, Look, Trail, Wanted, addresses, first_difference};
use crate::verdict::Difference;

/// Attempts to reproduce a difference, to show its bytes.
const TRIES: usize = 16;

/// Repetitions of unchanged runs before a difference between two ways to run is attributed to the change.
const CONFIRMATIONS: usize = 16;

/// Fill patterns for memory that the window allocates. As a number, 0x00 is zero and 0x7F is large, so a sum or
/// product shows it. As floating-point numbers, 0xFF is NaN.
const PATTERNS: [u8; 4] = [0x00, 0x7F, 0xFF, 0xA5];

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Determinism {
    /// All runs had the same results after every call.
    Repeats {
        /// Number of runs.
        runs: u32,
        /// Number of calls after which memory was compared.
        calls: usize,
    },
    /// A call is nondeterministic.
    Differs(Box<FirstDivergence>),
}

/// The first nondeterministic call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstDivergence {
    /// The number of the call. `None` if no call has this buffer as an argument.
    pub command: Option<u64>,
    /// The name of the kernel, or the kind of call.
    pub name: String,
    /// The cause, as far as it was found.
    pub cause: Cause,
    /// The buffer, and two different values. `expected` is the value of the first run. `None` if the difference could
    /// not be reproduced.
    pub difference: Option<Difference>,
    /// The address of the buffer. `None` if the call failed.
    pub buffer: Option<u64>,
}

/// Why a call is nondeterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It reads memory that was allocated in the window and never written. The result depends on its contents.
    Uninitialised,
    /// It has different results with the same inputs: the order of atomic operations, or a race inside the kernel.
    Within,
    /// It has different results if another stream is slower: an event or a wait is missing between the two streams.
    Stream {
        /// The stream of the call.
        own: u64,
        /// The stream that it should wait for.
        other: u64,
    },
    /// It sometimes has different results when streams run concurrently. Delaying a single stream does not show why.
    Overlap,
    /// It fails when uninitialized memory has other contents.
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
            Self::Fails => {
                f.write_str("it reads memory that nobody wrote, and fails with other values in it")
            }
        }
    }
}

/// How calls are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) order: Order,
    pub(crate) pattern: u8,
    pub(crate) fresh: Fresh,
    pub(crate) delayed: Option<DelayedStream>,
}

impl Way {
    /// One call after another.
    pub(crate) const SERIAL: Self = Self {
        order: Order::Serial,
        pattern: PATTERNS[0],
        fresh: Fresh::EachTime,
        delayed: None,
    };

    /// Like `SERIAL`, for a comparison with concurrent streams. Filling memory at each allocation would synchronize
    /// all streams.
    pub(crate) const SERIAL_ONCE: Self = Self {
        fresh: Fresh::Once,
        ..Self::SERIAL
    };
}

impl Replay<'_> {
    /// Runs the recording several times and compares memory after every call.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn check(&mut self, runs: u32) -> Result<Determinism, Error> {
        let order = self.order();
        // A single run cannot be compared.
        let found = self.find_divergence(runs.max(2));
        self.set_order(order);
        (self.pattern, self.fresh, self.delayed) = (PATTERN, Fresh::Once, None);
        found
    }

    fn find_divergence(&mut self, runs: u32) -> Result<Determinism, Error> {
        let digester = Digester::load(&self.context).map_err(Error::device("loading the hash kernel"))?;
        let looks = self.looks();
        let calls = looks.len();
        self.go(Way::SERIAL);
        let first = self.trail(&digester, &looks)?;
        for _ in 1..runs {
            let again = self.trail(&digester, &looks)?;
            if let Some((look, buffer)) = first_difference(&looks, &first, &again) {
                return self.divergence(look.place, buffer, Cause::Within, [Way::SERIAL; 2]);
            }
        }
        if let Some(found) = self.find_uninitialized_read(&digester, &looks, &first, runs)? {
            return Ok(found);
        }
        if let Some(race) = self.race(&digester, &looks)? {
            return match self.find_unstable_call(&digester, &looks, &[(Way::SERIAL, &first)])? {
                Some((place, buffer, way)) => self.divergence(place, buffer, Cause::Within, [way; 2]),
                None => self.divergence(race.place, race.buffer, race.cause, [Way::SERIAL_ONCE, race.way]),
            };
        }
        Ok(Determinism::Repeats { runs, calls })
    }

    /// Finds a call that reads uninitialized memory. Each run fills it with another pattern.
    fn find_uninitialized_read(
        &mut self,
        digester: &Digester,
        looks: &[Look],
        first: &Trail,
        runs: u32,
    ) -> Result<Option<Determinism>, Error> {
        let fresh = self.fresh();
        if fresh.is_empty() {
            return Ok(None);
        }
        for pattern in PATTERNS.into_iter().skip(1).take(runs as usize - 1) {
            let other = Way {
                pattern,
                ..Way::SERIAL
            };
            self.go(other);
            let trail = match self.trail(digester, looks) {
                Ok(trail) => trail,
                Err(Error::Device {
                    call: Some(number), ..
                }) => return Ok(Some(self.failing(number))),
                Err(error) => return Err(error),
            };
            let Some((place, buffer)) = self.first_dependent(looks, &fresh, [first, &trail], other)? else {
                continue;
            };
            // Equal runs can be equal by chance. Then this run differs by chance, too.
            let seen = [(Way::SERIAL, first), (other, &trail)];
            let found = match self.find_unstable_call(digester, looks, &seen)? {
                Some((place, buffer, way)) => self.divergence(place, buffer, Cause::Within, [way; 2]),
                None => self.divergence(place, buffer, Cause::Uninitialised, [Way::SERIAL, other]),
            };
            return found.map(Some);
        }
        Ok(None)
    }

    /// The first call whose results depend on the fill pattern: its position and the buffer. Bytes that were never
    /// written differ themselves, and do not count.
    fn first_dependent(
        &mut self,
        looks: &[Look],
        fresh: &BTreeSet<u64>,
        trails: [&Trail; 2],
        other: Way,
    ) -> Result<Option<(usize, u64)>, Error> {
        let all = looks
            .iter()
            .flat_map(|look| look.buffers.iter().map(move |buffer| (look.place, *buffer)));
        let digests = trails[0].iter().zip(trails[1]);
        let differing = all
            .zip(digests)
            .filter(|(_, (one, other))| one != other)
            .map(|(at, _)| at);
        let (unwritten, written): (Vec<_>, Vec<_>) =
            differing.partition(|(_, (address, _))| fresh.contains(address));
        let certain = written.first().map(|(place, (address, _))| (*place, *address));
        let until = certain.map_or(usize::MAX, |(place, _)| place);
        // Each allocation once, at the last write before it is allocated again.
        let mut last: BTreeMap<(u64, u64, usize), usize> = BTreeMap::new();
        for (place, (address, bytes)) in unwritten.into_iter().filter(|(place, _)| *place <= until) {
            let before = &self.recording.commands[..place.min(self.recording.commands.len())];
            let is_own =
                |command: &&Command| command.kind == CommandKind::ALLOCATE && command.destination == address;
            let generation = before.iter().filter(is_own).count();
            last.insert((address, bytes, generation), place);
        }
        let mut wanted: Vec<Wanted> = last
            .into_iter()
            .map(|((address, bytes, _), place)| Wanted {
                place,
                address,
                bytes,
            })
            .collect();
        wanted.sort_by_key(|wanted| wanted.place);
        let mut found = None;
        self.compare_contents(&wanted, Way::SERIAL, other, |wanted, one, two| {
            let is_result =
                |(one, two): (&u8, &u8)| one != two && (*one, *two) != (Way::SERIAL.pattern, other.pattern);
            if found.is_none() && one.iter().zip(two).any(is_result) {
                found = Some((wanted.place, wanted.address));
            }
        })?;
        Ok(found.or(certain))
    }

    /// Runs all calls in two ways, and passes the contents of buffers after some of the calls to `compare`.
    fn compare_contents(
        &mut self,
        wanted: &[Wanted],
        one: Way,
        two: Way,
        mut compare: impl FnMut(&Wanted, &[u8], &[u8]),
    ) -> Result<(), Error> {
        for batch in trail::batches(wanted) {
            let mut contents = Vec::new();
            for way in [one, two] {
                self.go(way);
                self.restore()?;
                let commands = std::mem::take(&mut self.recording.commands);
                let read = self.contents_after(&commands, batch);
                self.recording.commands = commands;
                contents.push(read?);
            }
            for ((wanted, one), two) in batch.iter().zip(&contents[0]).zip(&contents[1]) {
                compare(wanted, one, two);
            }
        }
        Ok(())
    }

    /// Repeats runs without a change, and returns the first call with different results, its buffer and the way to
    /// run.
    fn find_unstable_call(
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

    /// Sets how the next runs are made.
    pub(crate) fn go(&mut self, way: Way) {
        self.set_order(way.order);
        (self.pattern, self.fresh, self.delayed) = (way.pattern, way.fresh, way.delayed);
    }

    /// Addresses that the window allocates.
    fn fresh(&self) -> BTreeSet<u64> {
        let commands = self.recording.commands.iter();
        commands
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| command.destination)
            .collect()
    }

    /// Describes a nondeterministic call, with two values from two runs if the difference can be reproduced.
    fn divergence(
        &mut self,
        place: usize,
        buffer: u64,
        cause: Cause,
        ways: [Way; 2],
    ) -> Result<Determinism, Error> {
        let commands = &self.recording.commands;
        // For a difference at the end: the last call with this buffer as an argument.
        let command = commands.get(place).or_else(|| {
            let holds = |command: &&Command| addresses(command).contains(&buffer);
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
        Ok(Determinism::Differs(Box::new(FirstDivergence {
            command: number,
            name,
            cause,
            difference,
            buffer: Some(buffer),
        })))
    }

    /// A call that fails when uninitialized memory has other contents.
    fn failing(&self, number: u64) -> Determinism {
        let mut commands = self.recording.commands.iter();
        let command = commands.find(|command| command.number == number);
        Determinism::Differs(Box::new(FirstDivergence {
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
        call: None,
    })
}
