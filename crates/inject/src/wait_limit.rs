//! Waiting for the program or the device, with a time limit.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{control, leaving};

/// The first pause between two checks. Pauses become longer.
const FIRST_PAUSE: Duration = Duration::from_micros(100);

/// How many pauses of the longest kind fit the limit.
const PAUSES: u32 = 50;

/// A time limit, by waiting thread.
pub(crate) struct WaitLimit {
    /// If the control thread waits.
    pub(crate) control_thread: Duration,
    /// If a thread of the program waits, or waits for the control thread.
    pub(crate) program_thread: Duration,
}

impl WaitLimit {
    /// Checks repeatedly until `is_so` returns true. Returns false after the limit.
    pub(crate) fn until(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let limit = if control::is_own_thread() && !leaving::is_awaited() {
            self.control_thread
        } else {
            self.program_thread
        };
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        while !is_so() {
            if begun.elapsed() + pause > limit {
                return false;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(limit / PAUSES);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_until_it_is_so() {
        let wait_limit = WaitLimit {
            control_thread: Duration::MAX,
            program_thread: Duration::from_secs(60),
        };
        let mut looks = 0;
        let is_so = wait_limit.until(|| {
            looks += 1;
            looks == 5
        });
        assert!(is_so && looks == 5, "{looks}");
    }

    #[test]
    fn it_gives_up_in_time() {
        let wait_limit = WaitLimit {
            control_thread: Duration::MAX,
            program_thread: Duration::from_millis(20),
        };
        let (begun, mut looks) = (Instant::now(), 0);
        assert!(!wait_limit.until(|| {
            looks += 1;
            false
        }));
        assert!(looks > 2 && begun.elapsed() < Duration::from_secs(10));
    }
}
