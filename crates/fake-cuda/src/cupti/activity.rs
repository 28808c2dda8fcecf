//! Which kinds of records are wanted, and the writing of records.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::buffer::{Place, Stage};
use super::code::CuptiCode;
use super::delivery;
use super::filters::{self, Choice};
use super::record::{self, Record, kind};
use super::subscriber::Domain;
use crate::config::{CUPTI_13_0, config};

/// One bit for each kind.
static ENABLED: AtomicU64 = AtomicU64::new(0);
/// -1: as the version has it; otherwise as the client set it.
static PER_THREAD: AtomicU32 = AtomicU32::new(u32::MAX);
static HAS_LATENCY: AtomicBool = AtomicBool::new(false);
static HAS_EVENT_TIMES: AtomicBool = AtomicBool::new(false);
static THREAD_ID_TYPE: AtomicU32 = AtomicU32::new(0);

pub(crate) fn is_enabled(kind: u32) -> bool {
    kind < kind::END && ENABLED.load(Ordering::Relaxed) & (1 << kind) != 0
}

pub(crate) fn enable(kind: u32) -> Result<(), CuptiCode> {
    ENABLED.fetch_or(bit(kind)?, Ordering::AcqRel);
    choose_calls(kind, Choice::Keep);
    Ok(())
}

pub(crate) fn disable(kind: u32) -> Result<(), CuptiCode> {
    ENABLED.fetch_and(!bit(kind)?, Ordering::AcqRel);
    choose_calls(kind, Choice::Skip);
    Ok(())
}

pub(crate) fn disable_all() {
    ENABLED.store(0, Ordering::Release);
    choose_calls(kind::DRIVER, Choice::Skip);
    choose_calls(kind::RUNTIME, Choice::Skip);
}

fn choose_calls(kind: u32, choice: Choice) {
    match kind {
        kind::DRIVER => filters::choose_all(Domain::Driver, choice),
        kind::RUNTIME => filters::choose_all(Domain::Runtime, choice),
        _ => {}
    }
}

fn bit(kind: u32) -> Result<u64, CuptiCode> {
    if kind == 0 || kind >= kind::END {
        return Err(CuptiCode::INVALID_KIND);
    }
    Ok(1 << kind)
}

/// The kind under which kernels are recorded, if they are.
pub(crate) fn kernel_kind() -> Option<u32> {
    [kind::CONCURRENT_KERNEL, kind::KERNEL]
        .into_iter()
        .find(|&kind| is_enabled(kind))
}

/// Buffers per thread are the default since 13.0.
pub(crate) fn has_buffer_per_thread() -> bool {
    match PER_THREAD.load(Ordering::Relaxed) {
        u32::MAX => config().cupti_version >= CUPTI_13_0,
        set => set != 0,
    }
}

pub(crate) fn set_buffer_per_thread(value: u32) {
    PER_THREAD.store(value, Ordering::Relaxed);
}

pub(crate) fn has_latency_timestamps() -> bool {
    HAS_LATENCY.load(Ordering::Relaxed)
}

/// From C, where 0 is no.
pub(crate) fn set_latency_timestamps(enable: u8) {
    HAS_LATENCY.store(enable != 0, Ordering::Relaxed);
}

pub(crate) fn has_event_times() -> bool {
    HAS_EVENT_TIMES.load(Ordering::Relaxed)
}

/// From C, where 0 is no.
pub(crate) fn set_event_times(enable: u8) {
    HAS_EVENT_TIMES.store(enable != 0, Ordering::Relaxed);
}

/// 0: as the threads library has it; 1: as the kernel has it.
pub(crate) fn thread_id_type() -> u32 {
    THREAD_ID_TYPE.load(Ordering::Relaxed)
}

pub(crate) fn set_thread_id_type(value: u32) {
    THREAD_ID_TYPE.store(value, Ordering::Relaxed);
}

/// The calling thread, as records name it.
pub(crate) fn thread_id() -> u32 {
    match thread_id_type() {
        0 => crate::process::pthread_id(),
        _ => crate::process::thread_id(),
    }
}

/// A record whose work is still to be done.
pub(crate) struct Open<R> {
    record: R,
    kind: u32,
    place: Option<Place>,
}

impl<R: Record> Open<R> {
    /// Takes a place for the record.
    pub(crate) fn begin(record: R, kind: u32) -> Self {
        let place = if is_to_be_dropped() {
            delivery::count_dropped();
            None
        } else {
            delivery::write(&record, kind, Stage::Open)
        };
        Self { record, kind, place }
    }

    /// Fills in the times.
    pub(crate) fn finish(mut self, start: u64, end: u64) {
        if !is_to_be_zeroed() {
            self.record.set_times(start, end.max(start + 1));
        }
        let length = record::length(self.kind, config().cupti_version);
        if let (Some(place), Some(length)) = (self.place, length) {
            place.finish(&self.record, length);
        }
    }
}

/// Writes a record of something that is over.
pub(crate) fn emit<R: Record>(record: &R, kind: u32) {
    if !delivery::is_registered() {
        return;
    }
    if is_to_be_dropped() {
        delivery::count_dropped();
        return;
    }
    // A record without a place has been counted as dropped.
    let _ = delivery::write(record, kind, Stage::Whole);
}

fn is_to_be_dropped() -> bool {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    is_nth(&COUNT, config().drop_every)
}

fn is_to_be_zeroed() -> bool {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    is_nth(&COUNT, config().zero_every)
}

fn is_nth(count: &AtomicU64, every: u64) -> bool {
    every != 0 && (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
}
