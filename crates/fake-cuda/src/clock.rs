//! The time in records: nanoseconds since the epoch, or what a registered timestamp callback says.

#![allow(unsafe_code, reason = "calls the timestamp function that a client registered")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) type TimestampCallback = extern "C" fn() -> u64;

static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// Takes all times from `callback` from now on.
pub(crate) fn set_callback(callback: Option<TimestampCallback>) {
    CALLBACK.store(
        callback.map_or(0, |function| function as usize),
        Ordering::Release,
    );
}

/// What records carry.
pub(crate) fn now() -> u64 {
    match CALLBACK.load(Ordering::Acquire) {
        0 => epoch_nanos(),
        address => {
            // SAFETY: only `set_callback` stores here, and it stores functions of this type.
            let function = unsafe { std::mem::transmute::<usize, TimestampCallback>(address) };
            function()
        }
    }
}

/// What `cuptiGetTimestamp` says when no callback is registered.
pub(crate) fn epoch_nanos() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_nanos() as u64
}

/// Lets `duration` pass: sleeping when it is long, spinning for the rest.
pub(crate) fn pass(duration: Duration) {
    let start = Instant::now();
    if duration > Duration::from_millis(1) {
        std::thread::sleep(duration - Duration::from_micros(500));
    }
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}
