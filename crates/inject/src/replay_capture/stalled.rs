//! A kernel that is stalled until the globals of its module are read.
//!
//! CUPTI reports a module that was loaded before the capture within the first
//! launch of one of its kernels. A driver call there can block the program forever:
//! the driver holds a lock (seen on an H200 with driver 580, for a kernel in a
//! stream that the program created). So the capture waits for all work, stalls the
//! kernel's stream, and reads the module's globals after the launch.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use tracesmith_cuda::driver::{FunctionHandle, StreamStall};

use super::State;
use crate::{guard::lock, threads};

/// How long a kernel is held at most, should the driver want it to be done first.
const LIMIT: Duration = Duration::from_secs(2);

const UNREAD: &str = "a kernel of code that was loaded before, whose variables could not be read in time";

/// What holds kernels, and whether one is held.
#[derive(Default)]
pub(super) struct StalledKernel {
    stream_stall: Option<StreamStall>,
    now: Option<Now>,
}

/// A kernel that is held.
struct Now {
    /// The thread that launches it.
    thread: u32,
    /// Opens when the launch has been made, the time is over or the window ends.
    gate: Gate,
}

/// Opens once. The lock is held while it opens: who finds it open can rely on the
/// other thread being done, and free the word that it wrote.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<Mutex<bool>>);

impl Gate {
    fn is_open(&self) -> bool {
        *lock(&self.0)
    }

    /// Opens it by `release`; false when it is open already.
    fn open(&self, release: impl FnOnce()) -> bool {
        let mut is_open = lock(&self.0);
        if *is_open {
            return false;
        }
        release();
        *is_open = true;
        true
    }
}

impl StalledKernel {
    /// What reads memory while a kernel is held.
    pub(super) fn reader(&self) -> Option<&StreamStall> {
        self.stream_stall.as_ref().filter(|_| self.now.is_some())
    }

    /// Whether another thread launches a kernel that is held: it must be let go
    /// before anything else is looked at. It is let go in time, whether or not the
    /// end of that launch is seen.
    pub(super) fn is_others(&self) -> bool {
        let thread = threads::thread_id();
        let is_others = |now: &Now| now.thread != thread && !now.gate.is_open();
        self.now.as_ref().is_some_and(is_others)
    }

    /// Ends what is held now, if anything is. A window that ends within a launch
    /// never sees the end of that launch.
    fn end(&mut self) -> bool {
        self.now.take().is_some_and(|now| now.gate.open(|| {}))
    }
}

impl State {
    /// Stalls a kernel that is about to be launched and whose module is not known.
    pub(super) fn stall(&mut self, function: FunctionHandle, stream: usize) {
        // One that is not loaded yet is loaded now, which tells its code.
        self.driver.load(function);
        self.take_reports();
        if !self.memory.variables.is_awaited() {
            self.read_awaited();
            return;
        }
        self.synchronize();
        if self.stalled.stream_stall.is_none() {
            self.stalled.stream_stall = self.driver.stream_stall();
        }
        let Some(stall) = self
            .stalled
            .stream_stall
            .as_ref()
            .filter(|stall| stall.stop(stream))
        else {
            self.mark_incomplete(UNREAD);
            return;
        };
        let gate = Gate::default();
        let (watched, release) = (gate.clone(), stall.release());
        let watch = move || {
            let began = Instant::now();
            while !watched.is_open() {
                if began.elapsed() > LIMIT {
                    // SAFETY: the stall is freed only once the gate is open, and it opens after this.
                    watched.open(|| unsafe { release.now() });
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
            stall.go();
            self.mark_incomplete(UNREAD);
            return;
        }
        self.stalled.now = Some(Now {
            thread: threads::thread_id(),
            gate,
        });
    }

    /// The launch has been made: reads the variables of its code, and lets it go.
    pub(super) fn resume(&mut self) {
        let Some(now) = &self.stalled.now else { return };
        if now.gate.open(|| {}) {
            self.read_awaited();
        } else {
            self.mark_incomplete(UNREAD);
        }
        if let Some(stall) = &self.stalled.stream_stall {
            stall.go();
        }
        self.stalled.now = None;
    }

    /// Nothing will be held any more. A kernel that is stalled now is resumed first.
    pub(super) fn free_stall(&mut self) {
        if self.stalled.end() {
            self.mark_incomplete(UNREAD);
        }
        if let Some(stall) = self.stalled.stream_stall.take() {
            stall.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    fn held_by(thread: u32) -> (StalledKernel, Gate) {
        let gate = Gate::default();
        let now = Now {
            thread,
            gate: gate.clone(),
        };
        let held = StalledKernel {
            stream_stall: None,
            now: Some(now),
        };
        (held, gate)
    }

    #[test]
    fn who_finds_a_kernel_let_go_knows_that_it_was_done_issue_26() {
        let (gate, begun, done) = (Gate::default(), Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                gate.open(|| {
                    begun.wait();
                    thread::sleep(Duration::from_millis(50));
                    done.store(true, Ordering::Release);
                })
            });
            begun.wait();
            assert!(!gate.open(|| {}), "the other thread was first");
            assert!(done.load(Ordering::Acquire), "its word may be freed now");
        });
    }

    #[test]
    fn nobody_waits_for_a_launch_whose_end_is_not_seen_issue_26() {
        let other = threads::thread_id() + 1;
        let (mut held, gate) = held_by(other);
        assert!(held.is_others());
        assert!(held.end(), "the window ends within the launch");
        assert!(!held.is_others() && gate.is_open());
        let (held, gate) = held_by(other);
        assert!(gate.open(|| {}), "the time is over");
        assert!(!held.is_others());
        let (held, _) = held_by(threads::thread_id());
        assert!(!held.is_others(), "its own thread goes on");
    }
}
