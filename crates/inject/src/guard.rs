//! Keeps panics away from the program.
//!
//! Every function that C calls runs inside [`run`]. A panic is a bug in
//! TraceSmith. It ends capture in this process for good and is reported to the
//! collector. The program continues.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{agent, sink::Cause};

static BROKEN: AtomicBool = AtomicBool::new(false);
static PANIC_OUTPUT_SUPPRESSED: Once = Once::new();

/// Runs `body`; `otherwise` is what the caller gets when it panics, or when
/// something panicked before.
pub(crate) fn run<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    if is_broken() {
        return otherwise;
    }
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            BROKEN.store(true, Ordering::Relaxed);
            // Its drop could panic again.
            std::mem::forget(payload);
            report();
            otherwise
        }
    }
}

/// Reports the panic to the collector. Locks that the panicking code held are free
/// by now. If this panics too, the collector sees that the goodbye is missing.
fn report() {
    let told = panic::catch_unwind(|| {
        if let Some(agent) = agent::current() {
            agent
                .sink
                .note(Cause::Other, "capture ended in this process by a fault of ours");
        }
    });
    if let Err(payload) = told {
        std::mem::forget(payload);
    }
}

/// Whether something panicked.
pub(crate) fn is_broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

/// Keeps our panics off the program's standard error. The hook belongs to this
/// library's copy of the standard library: a Rust program keeps its own.
pub(crate) fn suppress_panic_output() {
    PANIC_OUTPUT_SUPPRESSED.call_once(|| panic::set_hook(Box::new(|_| {})));
}

/// Locks; a lock whose holder panicked is as good as any, for `run` has noted
/// the panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_within_and_ends_capture() {
        suppress_panic_output();
        assert_eq!(run(1, || 2), 2);
        assert_eq!(run(1, || panic!("a fault")), 1);
        assert!(is_broken());
        assert_eq!(run(1, || 2), 1, "nothing runs any more");
    }
}
