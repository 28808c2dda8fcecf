//! Handing over before the program ends without exit handlers, or becomes another.
//!
//! Records wait in CUPTI for a tenth of a second. `_exit`, `abort` and `exec*` run no
//! exit handlers, so those records would be lost. Preloaded, our functions of these
//! names are called instead ([`functions`]): they have the control thread hand over
//! what there is, wait for that, and go on.
//!
//! The caller may be anything: a signal handler that has interrupted `malloc`, a
//! thread with a broken heap, the child of a `vfork` that runs in its parent's
//! memory. So it only reads and writes atomics and makes system calls. It takes no
//! lock, allocates nothing and waits no longer than a bound: where the control
//! thread is stuck, because the caller has locked what it needs, the program ends a
//! little later and as it would have ended alone.

mod functions;
mod wake;

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

pub(crate) use functions::find as find_functions;
pub(crate) use wake::Wake;

use crate::{agent, clock, control};

/// How the program leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Leaving {
    /// By `abort`. A handler of the program's may bring it back.
    Abort = 1,
    /// It becomes another program, unless that fails.
    Exec = 2,
    /// By `_exit`: nothing comes after it.
    Exit = 4,
}

impl Leaving {
    /// How long the program is kept waiting at most.
    const fn limit(self) -> Duration {
        match self {
            Self::Abort => Duration::from_millis(100),
            Self::Exec | Self::Exit => Duration::from_millis(200),
        }
    }
}

/// Whether anything is recorded that could be handed over.
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// What threads of the program wait for: a set of [`Leaving`].
static WANTED: AtomicU32 = AtomicU32::new(0);

/// How many handovers were requested.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Up to which of these it was done. Threads sleep here.
static DONE: AtomicU32 = AtomicU32::new(0);

/// Whether a thread of the program waits for the control thread.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// Records begin, or end.
pub(crate) fn set_recording(is_recording: bool) {
    IS_RECORDING.store(is_recording, Ordering::Release);
}

/// In the child of a fork nothing is recorded.
pub(crate) fn forked() {
    set_recording(false);
    WANTED.store(0, Ordering::Relaxed);
    IS_AWAITED.store(false, Ordering::Relaxed);
    wake::forked();
}

/// Has the control thread hand over, and waits for it, but not for long.
fn flush_and_wait(leaving: Leaving) {
    if !IS_RECORDING.load(Ordering::Acquire) {
        return;
    }
    // Nothing is written before this: the child of a vfork runs in its parent's memory, and this must not be its end.
    if !agent::current().is_some_and(agent::Agent::is_of_this_process) || !control::can_be_awaited() {
        return;
    }
    let ticket = ASKED.fetch_add(1, Ordering::AcqRel) + 1;
    WANTED.fetch_or(leaving as u32, Ordering::AcqRel);
    wake::wake();
    let until = clock::now() + nanos(leaving.limit());
    loop {
        let done = DONE.load(Ordering::Acquire);
        let now = clock::now();
        if ticket.wrapping_sub(done).cast_signed() <= 0 || now >= until {
            return;
        }
        sleep_while(done, until - now);
    }
}

/// On the control thread: carries out a pending request of `flush_and_wait`.
pub(crate) fn answer(flush: impl FnOnce(Leaving)) {
    // In this order: who asks adds to the first before setting the second, so everyone who is answered has a ticket here.
    let wanted = WANTED.swap(0, Ordering::AcqRel);
    let ticket = ASKED.load(Ordering::Acquire);
    let leaving = [Leaving::Exit, Leaving::Exec, Leaving::Abort]
        .into_iter()
        .find(|leaving| wanted & *leaving as u32 != 0);
    let Some(leaving) = leaving else {
        return;
    };
    IS_AWAITED.store(true, Ordering::Relaxed);
    flush(leaving);
    IS_AWAITED.store(false, Ordering::Relaxed);
    DONE.store(ticket, Ordering::Release);
    wake_sleepers();
}

/// Whether a thread of the program waits for the control thread, which must hurry.
pub(crate) fn is_awaited() -> bool {
    IS_AWAITED.load(Ordering::Relaxed)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps while [`DONE`] is `value`, so many nanoseconds at most.
fn sleep_while(value: u32, limit: u64) {
    let limit = libc::timespec {
        tv_sec: (limit / 1_000_000_000).cast_signed(),
        tv_nsec: (limit % 1_000_000_000).cast_signed(),
    };
    // SAFETY: waits on a word of ours. `errno` may change: a function that fails afterwards sets it anew.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            DONE.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            &raw const limit,
        )
    };
}

fn wake_sleepers() {
    // SAFETY: wakes who waits on a word of ours.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            DONE.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_final_way_to_leave_is_answered_and_all_who_wait_go_on() {
        for leaving in [Leaving::Abort, Leaving::Exit, Leaving::Exec] {
            ASKED.fetch_add(1, Ordering::Relaxed);
            WANTED.fetch_or(leaving as u32, Ordering::Relaxed);
        }
        let mut answered = Vec::new();
        answer(|leaving| {
            assert!(is_awaited());
            answered.push(leaving);
        });
        answer(|_| unreachable!("nobody asks any more"));
        assert_eq!(answered, [Leaving::Exit]);
        assert_eq!(DONE.load(Ordering::Relaxed), ASKED.load(Ordering::Relaxed));
        assert!(!is_awaited());
    }
}
