//! How far the wall clock of this machine can be off.
//!
//! It has nothing to do with rings. It is here because a collector must call C for it, and this is the crate of its side
//! that may.
#![allow(unsafe_code, reason = "one adjtimex call of the C library")]

use std::{
    ffi::{c_int, c_long},
    time::Duration,
};

/// What the kernel assumes at most (`NTP_PHASE_LIMIT`), and of a clock that nothing synchronises.
pub const UNSYNCHRONISED: Duration = Duration::from_secs(16);

/// `STA_UNSYNC`: nothing synchronises the clock.
const UNSYNC: c_int = 0x40;

/// `struct timex` of adjtimex(2), as far as it is read. The rest is room for what the kernel writes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Timex {
    /// 0: nothing is changed.
    modes: u32,
    offset: c_long,
    frequency: c_long,
    /// Microseconds.
    max_error: c_long,
    estimated_error: c_long,
    status: c_int,
    rest: [c_long; 24],
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(std::mem::offset_of!(Timex, max_error) == 24);
    assert!(std::mem::offset_of!(Timex, status) == 40);
    // 208 bytes in the kernel's header.
    assert!(size_of::<Timex>() >= 208);
};

unsafe extern "C" {
    // https://man7.org/linux/man-pages/man2/adjtimex.2.html
    fn adjtimex(buffer: *mut Timex) -> c_int;
}

/// The largest error of `CLOCK_REALTIME` against UTC that the kernel states, from what synchronises it (NTP, PTP).
pub fn max_error() -> Duration {
    let mut state = Timex {
        modes: 0,
        offset: 0,
        frequency: 0,
        max_error: 0,
        estimated_error: 0,
        status: 0,
        rest: [0; 24],
    };
    // SAFETY: a structure that lives through the call and is at least as large as the kernel's.
    let result = unsafe { adjtimex(&raw mut state) };
    if result < 0 || state.status & UNSYNC != 0 {
        return UNSYNCHRONISED;
    }
    Duration::from_micros(u64::try_from(state.max_error).unwrap_or(u64::MAX)).min(UNSYNCHRONISED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no such call")]
    fn an_error_is_stated_and_bounded() {
        let error = max_error();
        assert!(error > Duration::ZERO && error <= UNSYNCHRONISED, "{error:?}");
    }
}
