//! The host's clock, and how another one relates to it.

use tracesmith_wire::record::ClockPair;

/// Tries for one pair; the closest readings win.
const TRIES: u32 = 20;

/// Now, in nanoseconds of `CLOCK_MONOTONIC`. No system call: the kernel maps
/// the clock into the process. The C library knows where, also in programs that
/// run under another one that hides it, as Valgrind does.
#[inline]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the two words. It cannot fail: every system has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Reads another clock between two readings of the host's, several times, and
/// keeps the pair with the smallest gap.
pub(crate) fn pair(other: impl Fn() -> u64) -> ClockPair {
    let mut best = ClockPair {
        uncertainty: u64::MAX,
        ..ClockPair::default()
    };
    for _ in 0..TRIES {
        let before = now();
        let device_clock = other();
        let after = now();
        let gap = after - before;
        if gap < best.uncertainty {
            best = ClockPair {
                device_clock,
                host_clock: before + gap / 2,
                uncertainty: gap,
            };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_lies_between_two_readings() {
        let before = now();
        let pair = pair(now);
        assert!(pair.host_clock >= before && pair.host_clock <= now());
        assert!(pair.device_clock.abs_diff(pair.host_clock) <= pair.uncertainty);
    }
}
