//! Leaving a program as it was before the window.
//!
//! With all kinds disabled CUPTI still costs a launch a microsecond (H200, CUPTI
//! 13.0); only after `cuptiFinalize` it does not. That may be called when a call
//! of the program is left, and frees what other threads within a call may still
//! use: done at the next call that was left, a training loop's heap was found
//! destroyed behind its sixth window. So every call is watched for a while, and
//! CUPTI is taken out when one is left and no other is under way, on a thread
//! that was the only one to make calls for some time. Where that never comes to
//! pass, CUPTI stays.

use std::{
    cell::Cell,
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tracesmith_cuda::cupti::Switch;

use super::hub::Hub;
use crate::{guard::lock, threads};

/// Calls that began before we watched are not known. After this they have ended.
const WATCHED: Duration = Duration::from_secs(2);

/// A program whose threads make calls at the same time for so long keeps CUPTI.
const LIMIT: Duration = Duration::from_secs(10);

/// Calls in a row by one thread.
const ALONE: u32 = 64;

/// Between two looks of our own thread.
pub(super) const LOOK_PERIOD: Duration = Duration::from_millis(100);

static STAGE: AtomicU32 = AtomicU32::new(IDLE);
const IDLE: u32 = 0;
const WATCHING: u32 = 1;
/// Older calls have ended.
const READY: u32 = 2;
const LEAVING: u32 = 3;

static SINCE: Mutex<Option<Instant>> = Mutex::new(None);
/// Numbers the times that we watched: what threads counted before is void.
static ROUND: AtomicU32 = AtomicU32::new(0);
/// Threads within a call that began since.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Calls that were left.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// The thread that left the last one, above, and how many in a row, below.
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The round, and how many calls within one another this thread is in.
    static PLACE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The window is closed, and nobody else uses CUPTI: watches the program's calls
/// until it can be taken out.
pub(super) fn prepare(hub: &Hub) {
    *lock(&SINCE) = Some(Instant::now());
    ROUND.fetch_add(1, Ordering::Relaxed);
    INSIDE.store(0, Ordering::Relaxed);
    LEFT.store(0, Ordering::Relaxed);
    LAST.store(0, Ordering::Relaxed);
    STAGE.store(WATCHING, Ordering::Release);
    hub.watch_every_call(Switch::On);
}

/// A window opens again, or someone else comes: CUPTI stays. Waits while it is
/// being taken out.
pub(super) fn cancel(hub: &Hub) {
    loop {
        match STAGE.load(Ordering::Acquire) {
            IDLE => return,
            LEAVING => std::thread::yield_now(),
            stage => {
                if swap(stage, IDLE) {
                    hub.watch_every_call(Switch::Off);
                    return;
                }
            }
        }
    }
}

/// In the child of a fork there is nothing to leave.
pub(super) fn forget() {
    STAGE.store(IDLE, Ordering::Release);
}

/// Whether calls are watched.
#[inline]
pub(super) fn is_pending() -> bool {
    STAGE.load(Ordering::Relaxed) != IDLE
}

/// Our own thread looks how it stands.
pub(super) fn look(hub: &Hub) {
    let waited = lock(&SINCE).map_or(Duration::ZERO, |since| since.elapsed());
    match STAGE.load(Ordering::Acquire) {
        WATCHING if waited >= WATCHED => {
            // Or someone has cancelled it.
            swap(WATCHING, READY);
        }
        // A program that makes no calls at all may take its time.
        READY if waited >= LIMIT && LEFT.load(Ordering::Relaxed) > 0 && swap(READY, IDLE) => {
            hub.watch_every_call(Switch::Off);
            hub.release();
        }
        _ => {}
    }
}

/// The calling thread begins a call.
#[inline]
pub(super) fn entered() {
    let round = ROUND.load(Ordering::Relaxed);
    // A thread that is being torn down counts for nothing.
    let _ = PLACE.try_with(|place| {
        let depth = depth_in(round, place.get());
        place.set((round, depth + 1));
        if depth == 0 {
            INSIDE.fetch_add(1, Ordering::AcqRel);
        }
    });
}

/// The calling thread leaves a call.
#[inline]
pub(super) fn left(hub: &Hub) {
    let round = ROUND.load(Ordering::Relaxed);
    let is_outermost = PLACE.try_with(|place| {
        let depth = depth_in(round, place.get());
        place.set((round, depth.saturating_sub(1)));
        // One that began before we watched is at no depth.
        depth == 1
    });
    if is_outermost != Ok(true) {
        return;
    }
    let in_a_row = count_for(threads::thread_id());
    let nobody_else = INSIDE.fetch_sub(1, Ordering::AcqRel) == 1;
    if nobody_else && in_a_row >= ALONE && swap(READY, LEAVING) {
        hub.finalize();
        STAGE.store(IDLE, Ordering::Release);
    }
}

fn depth_in(round: u32, (of_round, depth): (u32, u32)) -> u32 {
    if of_round == round { depth } else { 0 }
}

/// How many calls in a row this thread has left.
fn count_for(thread: u32) -> u32 {
    LEFT.fetch_add(1, Ordering::Relaxed);
    let last = LAST.load(Ordering::Relaxed);
    let count = if (last >> 32) as u32 == thread {
        (last as u32).saturating_add(1)
    } else {
        1
    };
    LAST.store(u64::from(thread) << 32 | u64::from(count), Ordering::Relaxed);
    count
}

fn swap(from: u32, to: u32) -> bool {
    STAGE
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}
