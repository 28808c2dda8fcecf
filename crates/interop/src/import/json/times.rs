//! From the times of a file to those of the trace.
//!
//! A file counts from 1970, from a base that it names before or behind its events, or from nowhere in particular. Which of
//! these it is must be known at the first event, since rows are written at once; a base that comes later is told by a clock
//! pair.

use tracesmith_format::tables::{ClockKind, ClockPair};
use tracesmith_format::{ClockId, Timestamp};

use crate::error::Error;
use crate::import::json::number::nanoseconds;
use crate::import::{Builder, TimeUnit};

/// Years 2000 to 2100: a time in here counts from 1970.
const ABSOLUTE: std::ops::Range<i128> = 946_684_800_000_000_000..4_102_444_800_000_000_000;
/// Times from nowhere in particular are so much later in the trace, where 0 means "no time" and nothing is negative.
pub(super) const SHIFT: i128 = 1_000_000_000;

/// How a file counts its times.
pub(super) struct Times {
    unit: TimeUnit,
    base: Option<i128>,
    line: Option<Line>,
}

/// What the times of a file become.
#[derive(Clone, Copy)]
struct Line {
    clock: ClockId,
    offset: i128,
    kind: LineKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Absolute,
    Shifted,
}

impl Times {
    pub(super) fn new(unit: Option<TimeUnit>) -> Self {
        Times {
            unit: unit.unwrap_or(TimeUnit::Microseconds),
            base: None,
            line: None,
        }
    }

    /// Notes what the file says its times count from, in nanoseconds since 1970.
    pub(super) fn set_base(&mut self, base: i128) {
        self.base = Some(base);
    }

    /// Decides how the file counts, by the first time that it shows.
    #[inline]
    pub(super) fn see(
        &mut self,
        builder: &mut Builder<'_, '_>,
        name: &str,
        time: &[u8],
    ) -> Result<(), Error> {
        if self.line.is_some() {
            return Ok(());
        }
        let Some(time) = nanoseconds(time, self.unit) else {
            return Ok(());
        };
        self.decide(builder, name, time)
    }

    fn decide(&mut self, builder: &mut Builder<'_, '_>, name: &str, time: i128) -> Result<(), Error> {
        let absolute = match self.base {
            Some(base) => Some(base),
            None if ABSOLUTE.contains(&time) => Some(0),
            None => None,
        };
        self.line = Some(match absolute {
            Some(offset) => Line {
                clock: builder.clock(ClockKind::REALTIME, "since 1970")?,
                offset,
                kind: LineKind::Absolute,
            },
            None => Line {
                clock: builder.clock(ClockKind::UNKNOWN, &format!("times of {name}"))?,
                offset: SHIFT,
                kind: LineKind::Shifted,
            },
        });
        Ok(())
    }

    /// The clock of the file's events.
    #[inline]
    pub(super) fn clock(&self) -> ClockId {
        self.line.map_or(ClockId::NONE, |line| line.clock)
    }

    /// A moment; `None` for what is no time, or lies outside what the trace can tell.
    #[inline]
    pub(super) fn moment(&self, time: &[u8]) -> Option<Timestamp> {
        let offset = self.line?.offset;
        let time = u64::try_from(nanoseconds(time, self.unit)? + offset).ok()?;
        (time != 0).then_some(Timestamp(time))
    }

    /// When something that began at `start` was over; `None` for what is no duration, or a negative one.
    #[inline]
    pub(super) fn end(&self, start: Timestamp, duration: &[u8]) -> Option<Timestamp> {
        let duration = u64::try_from(nanoseconds(duration, self.unit)?).ok()?;
        start.0.checked_add(duration).map(Timestamp)
    }

    /// Says what the times of the trace are worth, once the whole file is known.
    pub(super) fn finish(&self, builder: &mut Builder<'_, '_>, prefix: &str) -> Result<(), Error> {
        if let Some(base) = self.base {
            builder.metadata(&format!("{prefix}base_time_ns"), &base.to_string())?;
        }
        let Some(line) = self.line.filter(|line| line.kind == LineKind::Shifted) else {
            return Ok(());
        };
        builder.metadata(&format!("{prefix}time_shift_ns"), &SHIFT.to_string())?;
        // The trace's own time of the base: a moment that both clocks know.
        if let Some(second_time) = self.base.and_then(|base| u64::try_from(base).ok()) {
            let second = builder.clock(ClockKind::REALTIME, "since 1970")?;
            builder.define(&ClockPair {
                first: line.clock,
                second,
                first_time: Timestamp(SHIFT as u64),
                second_time: Timestamp(second_time),
                uncertainty: 0,
            })?;
        }
        Ok(())
    }
}
