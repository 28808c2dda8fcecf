//! The host's clock, as traces count it.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Now, in nanoseconds since 1970.
pub(crate) fn since_1970() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// A moment counted in nanoseconds since the machine started, sleep included,
/// on the clock of [`now`].
pub(crate) fn from_since_boot(since_boot: u64) -> u64 {
    let asleep = nanos(clock_gettime(ClockId::Boottime)).saturating_sub(now());
    since_boot.saturating_sub(asleep)
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
