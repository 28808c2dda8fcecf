//! Which process this is. CUDA does not survive `fork`: the child has the memory but none of the threads, and every
//! call in it fails with "initialization error". The flag also keeps the child's exit handlers away from locks that
//! another thread of the parent held at the moment of the fork.

#![allow(unsafe_code, reason = "registers a fork handler with the C library")]

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a fork of one that had initialised the fake.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Watches for forks from now on.
pub(crate) fn watch_for_fork() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to an atomic; the library is never unloaded (see build.rs).
        unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
    });
}

extern "C" fn note_fork() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// The thread's number as the kernel has it.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: gettid has no preconditions.
    let id = unsafe { libc::gettid() };
    id as u32
}

/// The low half of `pthread_self`: what CUPTI calls a thread unless told otherwise.
pub(crate) fn pthread_id() -> u32 {
    // SAFETY: pthread_self has no preconditions.
    let id = unsafe { libc::pthread_self() };
    id as u32
}
