//! How a producer sleeps until there is room, and how the consumer wakes it.
//!
//! A producer that finds no room sets its flag, checks once more, and sleeps on
//! the flag with a futex (shared, not private: the consumer is another process).
//! The consumer checks the flag after it has made room. It makes a system call
//! only if the flag is set. The consumer itself never sleeps here: the collector
//! polls all its rings.
//!
//! A futex and not an eventfd: the waker would have to keep a descriptor open
//! in the target, and a target that closes all descriptors and opens its own
//! would then have our eight bytes written into its file.
//!
//! # The race
//!
//! "Make room, then check the flag" against "set the flag, then check for room"
//! needs a full fence on both sides. Otherwise both may check too early: the
//! consumer sees no flag, the producer sees no room, and the wake-up is lost.
//! The producer's fence is in [`SleepWord::announce`]. The consumer has one for
//! each part of the ring that it releases, only under
//! [`Policy::Block`](crate::Policy::Block). `tests/loom.rs` shows that a
//! producer without a time limit is always woken.

use std::time::Duration;

use crate::sync::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The flag of one sleeper, and what it sleeps on.
#[repr(C)]
#[derive(Default)]
pub(crate) struct SleepWord {
    word: AtomicU32,
    #[cfg(loom)]
    queue: model::Queue,
}

impl SleepWord {
    /// Raises the flag. What the caller looks at next is looked at after it.
    pub(crate) fn announce(&self) {
        self.word.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Lowers the flag.
    pub(crate) fn withdraw(&self) {
        self.word.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether the sleeper should be woken.
    #[inline]
    pub(crate) fn is_announced(&self) -> bool {
        self.word.load(Ordering::Relaxed) == ASLEEP
    }

    /// Ends the other side's sleep, by one system call for each announcement.
    #[cold]
    pub(crate) fn wake(&self) {
        if self.word.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
            self.futex_wake();
        }
    }

    /// Sleeps until woken or until `limit` has passed; `None` is no limit. May
    /// return early: the caller looks again in any case.
    #[cfg(not(loom))]
    pub(crate) fn sleep(&self, limit: Option<Duration>) {
        use rustix::thread::futex;

        // A limit beyond the clock's range is no limit.
        let limit = limit.and_then(|limit| futex::Timespec::try_from(limit).ok());
        // Every outcome (woken, no longer announced, timed out, a signal) means
        // the same to the caller: look again.
        let _ = futex::wait(&self.word, futex::Flags::empty(), ASLEEP, limit.as_ref());
    }

    #[cfg(not(loom))]
    fn futex_wake(&self) {
        use rustix::thread::futex;

        // Waking fails only for an address that is not mapped, and ours is.
        let _ = futex::wake(&self.word, futex::Flags::empty(), 1);
    }

    #[cfg(loom)]
    pub(crate) fn sleep(&self, limit: Option<Duration>) {
        if limit.is_some() && model::time_limits_end() {
            loom::thread::yield_now();
            return;
        }
        self.queue
            .wait_while(|| self.word.load(Ordering::Relaxed) == ASLEEP);
    }

    #[cfg(loom)]
    fn futex_wake(&self) {
        self.queue.wake();
    }
}

/// What the kernel does for a futex, in loom's terms.
#[cfg(loom)]
pub mod model {
    use std::cell::Cell;

    use loom::sync::{Condvar, Mutex};

    thread_local! {
        // Loom runs all threads of a model on the thread of its test.
        static TIME_LIMITS_END: Cell<bool> = const { Cell::new(true) };
    }

    /// Makes every sleep of this test's models end by a wake-up only.
    pub fn never_end_sleep_by_time() {
        TIME_LIMITS_END.set(false);
    }

    pub(super) fn time_limits_end() -> bool {
        TIME_LIMITS_END.get()
    }

    #[derive(Default)]
    pub(super) struct Queue {
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Queue {
        /// The kernel compares the word and queues the sleeper in one step.
        pub(super) fn wait_while(&self, asleep: impl FnOnce() -> bool) {
            let guard = self.lock.lock().expect("no model panics with the lock");
            if asleep() {
                drop(self.woken.wait(guard));
            }
        }

        pub(super) fn wake(&self) {
            let guard = self.lock.lock().expect("no model panics with the lock");
            self.woken.notify_one();
            drop(guard);
        }
    }
}
