//! The clocks of a session: CLOCK_MONOTONIC for events, and CLOCK_REALTIME beside it, which other hosts know, too.

use rustix::time::{ClockId, clock_gettime};

/// Attempts for one pair. The pair with the smallest gap is kept.
const TRIES: u32 = 10;

/// Readings of both clocks at the same moment, in nanoseconds.
pub(super) struct Pair {
    pub(super) monotonic: u64,
    pub(super) realtime: u64,
    pub(super) uncertainty: u64,
}

/// Nanoseconds of CLOCK_MONOTONIC, as Python's `time.monotonic_ns` counts them.
pub(super) fn now() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Reads both clocks. Does this several times and returns the pair with the smallest gap.
pub(super) fn pair() -> Pair {
    let read = || {
        let before = now();
        let realtime = nanos(ClockId::Realtime);
        let gap = now().saturating_sub(before);
        Pair {
            monotonic: before + gap / 2,
            realtime,
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
