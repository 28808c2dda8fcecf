//! The host's clock.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The current time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The current time since 1970, in nanoseconds.
pub(crate) fn since_1970() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// The time since boot in nanoseconds, including suspend.
pub(crate) fn since_boot() -> u64 {
    nanos(clock_gettime(ClockId::Boottime))
}

/// Converts a time since boot (including suspend) to the clock of [`now`].
pub(crate) fn from_since_boot(moment: u64) -> u64 {
    let asleep = since_boot().saturating_sub(now());
    moment.saturating_sub(asleep)
}

/// A time in nanoseconds.
pub(crate) fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
