//! Whether a recording repeats itself, and which call is the first that does not.
//!
//! Two runs whose [trails](crate::trail) agree repeated each other; else the first digest that differs names the call. To
//! find out why, memory that the window allocates is filled with another pattern in every second run, and the work of
//! each stream is held back in turn.

use std::collections::{BTreeMap, BTreeSet};

use tracesmith_cuda::kernels::Digester;
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::race::DelayedStream;
use crate::recording::Command;
use crate::run::{Fresh, Order, PATTERN, Replay};
use crate::trail::{self, Look, Trail, Wanted, addresses, first_difference};
use crate::verdict::Difference;

/// Tries to see a difference again, whose bytes are then told.
const TRIES: usize = 16;

/// How many runs are made again as they were, before what differs between two ways is put down to what they differ in.
const CONFIRMATIONS: usize = 16;

/// What memory that the window allocates is filled with. As numbers of any kind the first is nothing and the second is
/// large, so that a sum or a product shows it; as floating-point numbers the third is none.
const PATTERNS: [u8; 4] = [0x00, 0x7F, 0xFF, 0xA5];

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
    Differs(Box<FirstDivergence>),
}

/// The first call that does not repeat itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstDivergence {
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
            Self::Fails => {
                f.write_str("it reads memory that nobody wrote, and fails with other values in it")
            }
        }
    }
}

/// How a run is made.
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

    /// The same, to compare with runs in streams: filling memory when it is allocated would wait for all of them.
    pub(crate) const SERIAL_ONCE: Self = Self {
        fresh: Fresh::Once,
        ..Self::SERIAL
    };
}

impl Replay<'_> {
    /// Runs the recording several times and compares the memory after every call.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn check(&mut self, runs: u32) -> Result<Determinism, Error> {
        let order = self.order();
        // One alone has nothing to be compared with.
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

    /// Looks for a call that reads memory which nobody wrote: each run has another pattern there.
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
            // Runs that agreed may have done so by chance, and then this one differs by chance.
            let seen = [(Way::SERIAL, first), (other, &trail)];
            let found = match self.find_unstable_call(digester, looks, &seen)? {
                Some((place, buffer, way)) => self.divergence(place, buffer, Cause::Within, [way; 2]),
                None => self.divergence(place, buffer, Cause::Uninitialised, [Way::SERIAL, other]),
            };
            return found.map(Some);
        }
        Ok(None)
    }

    /// The first call that leaves something else when memory holds another pattern: its place and the buffer. Memory that
    /// the window allocates differs itself where nobody wrote, which is no result.
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
        // Each of these only once, when it was written for the last time before it was allocated again.
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

    /// Runs all calls in two ways and hands over what buffers hold after some of them, in each.
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

    /// The first call that comes out differently when runs are made again in the ways that they were, its buffer and the
    /// way.
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

    /// Makes runs in this way from now on.
    pub(crate) fn go(&mut self, way: Way) {
        self.set_order(way.order);
        (self.pattern, self.fresh, self.delayed) = (way.pattern, way.fresh, way.delayed);
    }

    /// Memory that the window allocates.
    fn fresh(&self) -> BTreeSet<u64> {
        let commands = self.recording.commands.iter();
        commands
            .filter(|command| command.kind == CommandKind::ALLOCATE)
            .map(|command| command.destination)
            .collect()
    }

    /// Tells of a call, and shows two values that two ways of running it gave, if they can be seen again.
    fn divergence(
        &mut self,
        place: usize,
        buffer: u64,
        cause: Cause,
        ways: [Way; 2],
    ) -> Result<Determinism, Error> {
        let commands = &self.recording.commands;
        // At the end: the last call that is told of the buffer.
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

    /// A call that ends with an error when fresh memory holds other values.
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
