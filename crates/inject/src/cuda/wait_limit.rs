//! Waiting a little for what the program or the device is at.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{control, leaving};

/// The first pause between two looks. They become longer.
const FIRST_PAUSE: Duration = Duration::from_micros(100);

/// How many of the longest there are.
const PAUSES: u32 = 50;

/// How long something is waited for.
pub(super) struct WaitLimit {
    /// By our own thread.
    pub(super) control_thread: Duration,
    /// By a thread of the program, which is kept waiting, or by ours while one waits for it.
    pub(super) program_thread: Duration,
}

impl WaitLimit {
    /// Looks again and again until it is so; false when that took too long.
    pub(super) fn until(&self, mut is_so: impl FnMut() -> bool) -> bool {
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
