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

/// Now, in nanoseconds since the machine started, sleep included.
pub(crate) fn since_boot() -> u64 {
    nanos(clock_gettime(ClockId::Boottime))
}

/// A moment counted in nanoseconds since the machine started, sleep included,
/// on the clock of [`now`].
pub(crate) fn from_since_boot(moment: u64) -> u64 {
    let asleep = since_boot().saturating_sub(now());
    moment.saturating_sub(asleep)
}

/// A time of the system's as a number.
pub(crate) fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
