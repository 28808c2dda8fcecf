//! Clocks: those of the machine become clocks of the trace; those of a packet sequence are brought to the clock that they
//! were read beside.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{ClockKind, ClockPair};
use tracesmith_format::{ClockId, HostId, Timestamp};

use crate::error::Error;
use crate::import::Builder;
use crate::perfetto::schema::{clock, clock_snapshot};
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
    pub(super) fn new(bytes: &[u8]) -> Self {
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
    of_trace: FxHashMap<u64, ClockId>,
    last_pair: Option<(u64, u64, u64, u64)>,
}

impl Clocks {
    /// Notes what clocks showed at one moment.
    pub(super) fn read_together(
        &mut self,
        sequence: SequenceKey,
        readings: &[Reading],
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
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
            self.link(anchor, other, builder)?;
        }
        Ok(())
    }

    fn link(
        &mut self,
        first: &Reading,
        second: &Reading,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (Some(first_time), Some(second_time)) = (first.nanos(), second.nanos()) else {
            return Ok(());
        };
        let pair = (first.id, first_time, second.id, second_time);
        // 0 would mean that the time is not known, and a reading that is repeated says nothing new.
        if first_time == 0 || second_time == 0 || first.id == second.id || self.last_pair == Some(pair) {
            return Ok(());
        }
        self.last_pair = Some(pair);
        let pair = ClockPair {
            first: self.clock(first.id, builder)?,
            second: self.clock(second.id, builder)?,
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
            let clock = self.clock(id, builder)?;
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
        let clock = self.clock(there, builder)?;
        Ok(u64::try_from(time).ok().and_then(|time| known(clock, time))) // a time before the clock's zero is none
    }

    fn clock(&mut self, id: u64, builder: &mut Builder<'_, '_>) -> Result<ClockId, Error> {
        if let Some(clock) = self.of_trace.get(&id) {
            return Ok(*clock);
        }
        let (kind, name) = match id {
            clock::REALTIME | 2 => (ClockKind::REALTIME, format!("Perfetto clock {id}, realtime")),
            clock::MONOTONIC | 4 | 5 => (ClockKind::MONOTONIC, format!("Perfetto clock {id}, monotonic")),
            // It counts from the same moment as the monotonic clock, and goes on while the machine sleeps.
            clock::BOOTTIME => (ClockKind::MONOTONIC, format!("Perfetto clock {id}, boottime")),
            _ => (ClockKind::UNKNOWN, format!("Perfetto clock {id}")),
        };
        let clock = builder.clock(kind, &name)?;
        self.of_trace.insert(id, clock);
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
