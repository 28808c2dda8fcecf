//! Clocks: those of a machine become clocks of the trace; those of a packet sequence are brought to the clock that they
//! were read beside.
//!
//! A file may hold packets of several machines, whose clocks have the same numbers and different times. So a clock is known
//! by its machine and number. Machines are joined by the clock readings that their recorders exchanged, else by their
//! wall clocks.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ClockKind, ClockPair, HealthCause};
use tracesmith_format::{ClockId, HostId, Timestamp};

use crate::error::Error;
use crate::import::Builder;
use crate::perfetto::schema::{clock, clock_snapshot, remote_clock_sync};
use crate::perfetto::wire::Fields;

/// A time on a clock of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) clock: ClockId,
    pub(super) time: Timestamp,
}

/// What a snapshot says of one clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    id: u64,
    time: u64,
    is_incremental: bool,
    multiplier: u64,
}

impl Reading {
    /// All readings of a snapshot.
    pub(super) fn all(snapshot: &[u8]) -> Vec<Self> {
        let fields = Fields::new(snapshot).flatten();
        let clocks = fields.filter(|(field, _)| *field == clock_snapshot::CLOCKS);
        clocks.map(|(_, value)| Reading::new(value.bytes())).collect()
    }

    fn new(bytes: &[u8]) -> Self {
        let mut reading = Reading {
            multiplier: 1,
            ..Reading::default()
        };
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                clock_snapshot::ID => reading.id = value.number(),
                clock_snapshot::TIMESTAMP => reading.time = value.number(),
                clock_snapshot::IS_INCREMENTAL => reading.is_incremental = value.number() != 0,
                clock_snapshot::UNIT_MULTIPLIER => reading.multiplier = value.number().max(1),
                _ => {}
            }
        }
        reading
    }

    fn is_of_sequence(&self) -> bool {
        (clock::OF_SEQUENCE..clock::GLOBAL).contains(&self.id)
    }

    fn nanos(&self) -> Option<u64> {
        self.time.checked_mul(self.multiplier)
    }
}

/// A clock of a sequence, as it was read last.
#[derive(Clone, Copy, Debug)]
struct SequenceClock {
    is_incremental: bool,
    multiplier: u64,
    /// The latest time of an incremental clock.
    last: u64,
    /// What it showed when another clock showed something.
    here: u64,
    there: (u64, u64),
}

/// A packet sequence of a machine.
pub(super) type SequenceKey = (HostId, u64);

/// All clocks of a file.
#[derive(Default)]
pub(super) struct Clocks {
    of_sequences: FxHashMap<(SequenceKey, u64), SequenceClock>,
    of_trace: FxHashMap<(HostId, u64), ClockId>,
    last_pairs: FxHashMap<HostId, (u64, u64, u64, u64)>,
    machines: BTreeMap<HostId, Machine>,
}

/// What joins a machine to others.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    /// A time of its wall clock.
    wall_time: Option<u64>,
    /// Whether its recorder compared clocks with that of the first machine.
    is_joined: bool,
}

/// How far wall clocks of two machines are taken to be apart: what NTP keeps in most networks.
const WALL_CLOCKS_APART: u64 = 10_000_000;

impl Clocks {
    /// Notes what clocks showed at one moment.
    pub(super) fn read_together(
        &mut self,
        sequence: SequenceKey,
        readings: &[Reading],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (host, _) = sequence;
        self.note_machine(host, readings);
        let mut machine = readings
            .iter()
            .filter(|reading| !reading.is_of_sequence() && reading.nanos().is_some());
        let anchor = machine.next();
        for reading in readings.iter().filter(|reading| reading.is_of_sequence()) {
            let (Some(anchor), Some(here)) = (anchor, reading.nanos()) else {
                continue;
            };
            let state = SequenceClock {
                is_incremental: reading.is_incremental,
                multiplier: reading.multiplier,
                last: here,
                here,
                there: (anchor.id, anchor.nanos().unwrap_or(0)),
            };
            self.of_sequences.insert((sequence, reading.id), state);
        }
        let Some(anchor) = anchor else { return Ok(()) };
        for other in machine {
            self.link(host, anchor, other, builder)?;
        }
        Ok(())
    }

    fn note_machine(&mut self, host: HostId, readings: &[Reading]) {
        let wall = readings.iter().find(|reading| reading.id == clock::REALTIME);
        let wall_time = wall.and_then(Reading::nanos).filter(|time| *time != 0);
        let machine = self.machines.entry(host).or_default();
        machine.wall_time = machine.wall_time.or(wall_time);
    }

    /// Joins a machine to the one that recorded, by readings that the two exchanged: for each round the time of both.
    pub(super) fn join(
        &mut self,
        (client, host): (HostId, HostId),
        content: &[u8],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let mut rounds: Vec<(u64, u64)> = Vec::new();
        for (_, round) in Fields::new(content)
            .flatten()
            .filter(|(field, _)| *field == remote_clock_sync::ROUNDS)
        {
            let (mut here, mut there) = (None, None);
            for (field, value) in Fields::new(round.bytes()).flatten() {
                let boottime = || {
                    let readings = Reading::all(value.bytes());
                    let boottime = readings.iter().find(|reading| reading.id == clock::BOOTTIME);
                    boottime.and_then(Reading::nanos).filter(|time| *time != 0)
                };
                match field {
                    remote_clock_sync::CLIENT_CLOCKS => here = boottime(),
                    remote_clock_sync::HOST_CLOCKS => there = boottime(),
                    _ => {}
                }
            }
            rounds.extend(here.zip(there));
        }
        let apart = |(here, there): &(u64, u64)| i128::from(*here) - i128::from(*there);
        let (Some(least), Some(most)) = (rounds.iter().map(apart).min(), rounds.iter().map(apart).max())
        else {
            return Ok(());
        };
        let mean = |times: &mut dyn Iterator<Item = u64>| {
            let sum: u128 = times.map(u128::from).sum();
            Timestamp((sum / rounds.len() as u128) as u64)
        };
        let pair = ClockPair {
            first: self.clock(client, clock::BOOTTIME, builder)?,
            second: self.clock(host, clock::BOOTTIME, builder)?,
            first_time: mean(&mut rounds.iter().map(|(here, _)| *here)),
            second_time: mean(&mut rounds.iter().map(|(_, there)| *there)),
            uncertainty: u64::try_from((most - least) / 2).unwrap_or(u64::MAX),
        };
        self.machines.entry(client).or_default().is_joined = true;
        self.machines.entry(host).or_default().is_joined = true;
        builder.define(&pair)
    }

    /// Joins machines whose recorders exchanged no readings by their wall clocks.
    pub(super) fn finish(&mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let machines: Vec<(HostId, Machine)> = self
            .machines
            .iter()
            .map(|(host, machine)| (*host, *machine))
            .collect();
        let with_wall = machines
            .iter()
            .filter_map(|(host, machine)| Some((*host, machine.is_joined, machine.wall_time?)));
        let with_wall: Vec<(HostId, bool, u64)> = with_wall.collect();
        // Those that are joined already count as one.
        let Some((first, ..)) = with_wall
            .iter()
            .find(|(_, is_joined, _)| *is_joined)
            .or(with_wall.first())
            .copied()
        else {
            return Ok(());
        };
        for (host, is_joined, time) in with_wall {
            if is_joined || host == first {
                continue;
            }
            let pair = ClockPair {
                first: self.clock(host, clock::REALTIME, builder)?,
                second: self.clock(first, clock::REALTIME, builder)?,
                first_time: Timestamp(time),
                second_time: Timestamp(time),
                uncertainty: WALL_CLOCKS_APART,
            };
            builder.define(&pair)?;
            let what = "machines whose times are joined by their wall clocks";
            builder.doubt(HealthCause::OTHER, what, 1);
        }
        Ok(())
    }

    fn link(
        &mut self,
        host: HostId,
        first: &Reading,
        second: &Reading,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (Some(first_time), Some(second_time)) = (first.nanos(), second.nanos()) else {
            return Ok(());
        };
        let pair = (first.id, first_time, second.id, second_time);
        // 0 would mean that the time is not known, and a reading that is repeated says nothing new.
        if first_time == 0
            || second_time == 0
            || first.id == second.id
            || self.last_pairs.get(&host) == Some(&pair)
        {
            return Ok(());
        }
        self.last_pairs.insert(host, pair);
        let pair = ClockPair {
            first: self.clock(host, first.id, builder)?,
            second: self.clock(host, second.id, builder)?,
            first_time: Timestamp(first_time),
            second_time: Timestamp(second_time),
            uncertainty: 0,
        };
        builder.define(&pair)
    }

    /// A packet's time on a clock of the trace; `None` for one that cannot be known.
    pub(super) fn moment(
        &mut self,
        sequence: SequenceKey,
        id: Option<u64>,
        time: u64,
        builder: &mut Builder<'_, '_>,
    ) -> Result<Option<Moment>, Error> {
        let id = id.unwrap_or(clock::BOOTTIME);
        if !(clock::OF_SEQUENCE..clock::GLOBAL).contains(&id) {
            let clock = self.clock(sequence.0, id, builder)?;
            return Ok(known(clock, time));
        }
        let Some(state) = self.of_sequences.get_mut(&(sequence, id)) else {
            return Ok(None);
        };
        let Some(nanos) = time.checked_mul(state.multiplier) else {
            return Ok(None);
        };
        let nanos = if state.is_incremental {
            // A delta may be negative: it is added as two's complement.
            state.last = state.last.wrapping_add(nanos);
            state.last
        } else {
            nanos
        };
        let (there, shown) = state.there;
        let time = i128::from(shown) + i128::from(nanos) - i128::from(state.here);
        let clock = self.clock(sequence.0, there, builder)?;
        Ok(u64::try_from(time).ok().and_then(|time| known(clock, time))) // a time before the clock's zero is none
    }

    fn clock(&mut self, host: HostId, id: u64, builder: &mut Builder<'_, '_>) -> Result<ClockId, Error> {
        if let Some(clock) = self.of_trace.get(&(host, id)) {
            return Ok(*clock);
        }
        let (kind, what) = match id {
            clock::REALTIME | 2 => (ClockKind::REALTIME, ", realtime"),
            clock::MONOTONIC | 4 | 5 => (ClockKind::MONOTONIC, ", monotonic"),
            // It counts from the same moment as the monotonic clock, and goes on while the machine sleeps.
            clock::BOOTTIME => (ClockKind::MONOTONIC, ", boottime"),
            _ => (ClockKind::UNKNOWN, ""),
        };
        let name = format!("Perfetto clock {id}{what}");
        let clock = builder.clock_of(host, kind, &name)?;
        self.of_trace.insert((host, id), clock);
        Ok(clock)
    }
}

/// 0 means that a time is not known, and beyond 2^63 Perfetto cannot count.
fn known(clock: ClockId, time: u64) -> Option<Moment> {
    (1..=i64::MAX as u64).contains(&time).then_some(Moment {
        clock,
        time: Timestamp(time),
    })
}
