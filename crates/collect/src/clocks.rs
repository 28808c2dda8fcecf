//! Readings of the host's other clocks, next to the clock of the trace.
//!
//! They align traces of several hosts on one timeline. All hosts share the time of day, as far as it is synchronized.
//! A PTP clock is more accurate, if there is one.
//!
//! Clocks are read at the start and end of a session, at the edges of windows, and every few seconds in between. A
//! line through two readings gives the drift of a clock. The longer the line, the more accurate the drift.

use std::{
    collections::VecDeque,
    fs,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    time::{DynamicClockId, clock_gettime_dynamic},
};
use tracesmith_format::{
    ClockId, HostId, Timestamp,
    tables::{Clock, ClockKind, ClockPair},
};
use tracesmith_wire::wall_clock;

use crate::{host::HOST, time, trace_file::TraceFile};

/// Attempts for one pair. The pair with the smallest gap is kept.
const TRIES: u32 = 10;

/// Time between two regular readings.
const PERIOD: Duration = Duration::from_secs(10);

/// Readings closer together than this do not show the drift.
const SPACING: Duration = Duration::from_secs(1);

/// Readings that are kept for dumps of a flight recorder: half a day.
const MAX_KEPT: usize = 4096;

/// Number of PTP devices to try.
const MAX_DEVICES: u32 = 16;

/// IDs of the host's clocks. The clocks of processes follow.
const MONOTONIC: ClockId = ClockId(1);
const REALTIME: ClockId = ClockId(2);
const BOOTTIME: ClockId = ClockId(3);
const UTC: ClockId = ClockId(4);
const PTP: ClockId = ClockId(5);
/// The last ID of a host clock.
pub(crate) const LAST: u32 = PTP.0;

/// The clocks and their readings.
#[derive(Debug, Default)]
pub(crate) struct HostClocks {
    ptp: Option<Ptp>,
    kept: VecDeque<Reading>,
    last: Option<u64>,
}

/// A PTP hardware clock.
#[derive(Debug)]
struct Ptp {
    device: OwnedFd,
    name: String,
}

/// The values of all clocks at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    realtime: Pair,
    /// The maximum error of the time of day, in nanoseconds.
    error: u64,
    boottime: Pair,
    ptp: Option<Pair>,
}

/// A reading of the host's clock and of another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    host: u64,
    other: u64,
    uncertainty: u64,
}

/// Why clocks are read. It decides whether a reading can be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Read if the last reading is several seconds old.
    Regular,
    /// A window opens or closes. Read unless there is a very recent reading.
    WindowEdge,
    /// The session starts or ends. Always read.
    Bounds,
}

impl HostClocks {
    pub(crate) fn open() -> Self {
        Self {
            ptp: (0..MAX_DEVICES).find_map(Ptp::open),
            ..Self::default()
        }
    }

    /// Reads the clocks, if `need` requires it, and stores the reading.
    pub(crate) fn read(&mut self, need: Need) -> Option<Reading> {
        let now = time::now();
        let since = Duration::from_nanos(self.last.map_or(u64::MAX, |last| now.saturating_sub(last)));
        let is_due = match need {
            Need::Regular => since >= PERIOD,
            Need::WindowEdge => since >= SPACING,
            Need::Bounds => true,
        };
        if !is_due {
            return None;
        }
        self.last = Some(now);
        let reading = Reading {
            realtime: pair(time::since_1970),
            error: u64::try_from(wall_clock::max_error().as_nanos()).unwrap_or(u64::MAX),
            boottime: pair(time::since_boot),
            ptp: self.ptp.as_ref().and_then(Ptp::pair),
        };
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(reading);
        Some(reading)
    }

    /// Writes the clocks and all readings so far to a new trace.
    pub(crate) fn begin(&self, file: &mut TraceFile) {
        let mut define = |id, kind, host, name: &str| {
            let name = file.string(name);
            file.define(&Clock {
                id,
                kind,
                host,
                name,
                resolution: 1,
                ..Clock::default()
            });
        };
        define(MONOTONIC, ClockKind::MONOTONIC, HOST, "host monotonic");
        define(REALTIME, ClockKind::REALTIME, HOST, "host realtime");
        define(BOOTTIME, ClockKind::BOOTTIME, HOST, "host boottime");
        define(UTC, ClockKind::UTC, HostId::NONE, "UTC");
        if let Some(ptp) = &self.ptp {
            define(PTP, ClockKind::PTP, HOST, &ptp.name);
        }
        for reading in &self.kept {
            reading.write(file);
        }
    }
}

impl Reading {
    pub(crate) fn write(&self, file: &mut TraceFile) {
        let realtime = self.realtime;
        let beside = [
            Some((REALTIME, realtime)),
            Some((BOOTTIME, self.boottime)),
            self.ptp.map(|ptp| (PTP, ptp)),
        ];
        for (clock, pair) in beside.into_iter().flatten() {
            file.define(&ClockPair {
                first: MONOTONIC,
                second: clock,
                first_time: Timestamp(pair.host),
                second_time: Timestamp(pair.other),
                uncertainty: pair.uncertainty,
            });
        }
        file.define(&ClockPair {
            first: REALTIME,
            second: UTC,
            first_time: Timestamp(realtime.other),
            second_time: Timestamp(realtime.other),
            uncertainty: self.error,
        });
    }
}

impl Ptp {
    /// Opens a PTP device. Most machines have none, and some allow only root to open it.
    fn open(number: u32) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let path = PathBuf::from(format!("/dev/ptp{number}"));
        let device = openat(CWD, &path, flags, Mode::empty()).ok()?;
        let name = fs::read_to_string(format!("/sys/class/ptp/ptp{number}/clock_name")).unwrap_or_default();
        let ptp = Self {
            device,
            name: format!("ptp{number} {}", name.trim()).trim_end().to_owned(),
        };
        ptp.now().is_some().then_some(ptp)
    }

    fn pair(&self) -> Option<Pair> {
        let pair = pair(|| self.now().unwrap_or(0));
        (pair.other != 0).then_some(pair)
    }

    fn now(&self) -> Option<u64> {
        let clock = DynamicClockId::Dynamic(self.device.as_fd());
        clock_gettime_dynamic(clock).ok().map(time::nanos)
    }
}

/// Reads another clock between two readings of the host's clock. Does this several times and returns the pair with
/// the smallest gap.
fn pair(other: impl Fn() -> u64) -> Pair {
    let read = || {
        let before = time::now();
        let other = other();
        let gap = time::now().saturating_sub(before);
        Pair {
            host: before + gap / 2,
            other,
            uncertainty: gap.max(1),
        }
    };
    let mut best = read();
    for _ in 1..TRIES {
        let again = read();
        if again.uncertainty < best.uncertainty {
            best = again;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_lies_between_two_readings() {
        let before = time::now();
        let read = pair(|| time::now() + 1_000_000_000);
        assert!(read.host >= before && read.host <= time::now());
        assert!((read.other - 1_000_000_000).abs_diff(read.host) <= read.uncertainty);
    }

    #[test]
    fn readings_keep_their_distance_but_for_the_first_and_the_last() {
        let mut clocks = HostClocks::default();
        assert!(clocks.read(Need::WindowEdge).is_some());
        assert!(clocks.read(Need::WindowEdge).is_none());
        assert!(clocks.read(Need::Regular).is_none());
        let reading = clocks.read(Need::Bounds).unwrap();
        // A month of 1970 is long over, and the machine has not run for as long.
        assert!(reading.realtime.other > 1 << 60 && reading.boottime.other < 1 << 60);
        assert!(reading.error > 0);
        assert_eq!(clocks.kept.len(), 2);
        for _ in 0..MAX_KEPT {
            clocks.read(Need::Bounds);
        }
        assert_eq!(clocks.kept.len(), MAX_KEPT);
    }
}
