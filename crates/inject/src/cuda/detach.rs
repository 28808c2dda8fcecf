//! Leaving a program as it was before the window.
//!
//! With all kinds disabled CUPTI still costs a launch something; after
//! `cuptiFinalize` it does not. That may only be called when a call of the
//! program is left, so the next one that is left does it.

use std::sync::atomic::{AtomicBool, Ordering};

use tracesmith_cuda::cupti::Switch;

use super::hub::{self, Hub};

static PENDING: AtomicBool = AtomicBool::new(false);

/// Detaches CUPTI at the next call, if nobody else uses it.
pub(super) fn prepare(hub: &Hub) {
    if hub.is_ours_alone() {
        PENDING.store(true, Ordering::Release);
        hub.watch_every_call(Switch::On);
    }
}

/// A window opens again, or someone else comes.
pub(super) fn cancel() {
    if PENDING.swap(false, Ordering::AcqRel)
        && let Some(hub) = hub::current()
    {
        hub.watch_every_call(Switch::Off);
    }
}

#[inline]
pub(super) fn is_pending() -> bool {
    PENDING.load(Ordering::Relaxed)
}

/// A call is being left.
pub(super) fn now(hub: &Hub) {
    if PENDING.swap(false, Ordering::AcqRel) {
        hub.finalize();
    }
}
