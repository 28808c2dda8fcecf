//! Ctrl-C in the prompt: it ends the query that runs, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal, raise};

/// What SIGINT does.
enum Effect {
    /// It ends the program.
    Program,
    /// It ends the query that runs.
    Query(Box<dyn Fn() + Send>),
}

/// SIGINT, which a thread waits for.
pub(super) struct Interrupts {
    effect: Arc<Mutex<Effect>>,
    /// How often it ended queries.
    count: Arc<AtomicU64>,
}

impl Interrupts {
    /// Catches SIGINT from now on. It still ends the program, until there is a query to end.
    ///
    /// Must be called before there are other threads: they inherit which signals are blocked.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let caught = SigSet::from(Signal::SIGINT);
        caught.thread_block().context("blocking a signal")?;
        let effect = Arc::new(Mutex::new(Effect::Program));
        let known = Arc::clone(&effect);
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        thread::spawn(move || {
            while let Ok(signal) = caught.wait() {
                match &*lock(&known) {
                    Effect::Query(interrupt) => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        interrupt();
                    }
                    Effect::Program => {
                        // Nothing more can be done if these fail. The program then goes on.
                        let _ = caught.thread_unblock();
                        let _ = raise(signal);
                    }
                }
            }
        });
        Ok(Interrupts { effect, count })
    }

    /// How many SIGINTs there were for queries. A query that starts compares this with the count from before its line was
    /// read, so that a Ctrl-C between the two is not lost.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Lets SIGINT end queries from now on.
    pub(super) fn end_queries(&self, interrupt: impl Fn() + Send + 'static) {
        *lock(&self.effect) = Effect::Query(Box::new(interrupt));
    }
}

fn lock(effect: &Mutex<Effect>) -> MutexGuard<'_, Effect> {
    effect.lock().unwrap_or_else(PoisonError::into_inner)
}
