//! A kernel that is held back until the variables of its code are read.
//!
//! Code that was loaded before anyone watched is told within the first launch of
//! one of its kernels. Calling the driver there can stop the program for ever (it
//! holds a lock: seen on an H200 with driver 580, for a kernel in a stream of the
//! program's). So all work is waited for, the kernel's stream is held back, and
//! what its code's variables hold is read when the launch has been made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tracesmith_cuda::driver::{FunctionHandle, Hold};

use super::State;
use crate::threads;

/// How long a kernel is held at most, should the driver want it to be done first.
const LIMIT: Duration = Duration::from_secs(2);

const UNREAD: &str = "a kernel of code that was loaded before, whose variables could not be read in time";

/// What holds kernels, and whether one is held.
#[derive(Default)]
pub(super) struct Held {
    hold: Option<Hold>,
    now: Option<Now>,
}

/// A kernel that is held.
struct Now {
    /// The thread that launches it.
    thread: u32,
    /// Set when the launch has been made, or the time is over.
    is_over: Arc<AtomicBool>,
}

impl Held {
    /// What reads memory while a kernel is held.
    pub(super) fn reader(&self) -> Option<&Hold> {
        self.hold.as_ref().filter(|_| self.now.is_some())
    }

    /// Whether another thread launches a kernel that is held: it must be let go
    /// before anything else is looked at.
    pub(super) fn is_others(&self) -> bool {
        let thread = threads::thread_id();
        self.now.as_ref().is_some_and(|now| now.thread != thread)
    }
}

impl State {
    /// A kernel is going to be launched whose code is not known: holds it back.
    pub(super) fn hold_back(&mut self, function: FunctionHandle, stream: usize) {
        // One that is not loaded yet is loaded now, which tells its code.
        self.peek.load(function);
        self.take_reports();
        if !self.memory.variables.is_awaited() {
            self.read_awaited();
            return;
        }
        self.synchronize();
        if self.held.hold.is_none() {
            self.held.hold = self.peek.hold();
        }
        let Some(hold) = self.held.hold.as_ref().filter(|hold| hold.stop(stream)) else {
            self.break_off(UNREAD);
            return;
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (seen, release) = (is_over.clone(), hold.release());
        let watch = move || {
            let began = Instant::now();
            while !seen.load(Ordering::Acquire) {
                if began.elapsed() > LIMIT && !seen.swap(true, Ordering::AcqRel) {
                    // SAFETY: it is given back only when the launch has been made.
                    unsafe { release.now() };
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        };
        if thread::Builder::new()
            .name("tracesmith".to_owned())
            .spawn(watch)
            .is_err()
        {
            hold.go();
            self.break_off(UNREAD);
            return;
        }
        self.held.now = Some(Now {
            thread: threads::thread_id(),
            is_over,
        });
    }

    /// The launch has been made: reads the variables of its code, and lets it go.
    pub(super) fn let_go(&mut self) {
        let Some(now) = &self.held.now else { return };
        if now.is_over.swap(true, Ordering::AcqRel) {
            self.break_off(UNREAD);
        } else {
            self.read_awaited();
        }
        if let Some(hold) = &self.held.hold {
            hold.go();
        }
        self.held.now = None;
    }

    /// Nothing will be held any more.
    pub(super) fn give_back_hold(&mut self) {
        if let Some(hold) = self.held.hold.take() {
            hold.give_back();
        }
    }
}
