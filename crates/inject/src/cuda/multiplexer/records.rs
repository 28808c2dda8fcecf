//! Buffers that CUPTI requests and returns, and the records in them.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::atomic::Ordering,
};

use tracesmith_cuda::cupti::{
    ContextHandle,
    activity::{self, Activities, Activity},
};

use super::{CuptiMultiplexer, current};
use crate::{
    agent,
    cuda::{buffers, in_process_client, translate::Translator},
    guard,
};

/// From this version on CUPTI accepts "no buffer" and drops records
/// instead of crashing.
const VERSION_WITHOUT_BUFFER: u32 = 27;

impl CuptiMultiplexer {
    /// Reads a filled buffer for us.
    fn read(&self, buffer: &mut [u8]) {
        let Some(agent) = agent::current() else {
            return;
        };
        agent.sink.with_activity(|activity, sink| {
            let mut translator = Translator {
                cupti: &self.cupti,
                sink,
                activity,
                stacks: &agent.stacks,
                replay_capture: &agent.replay_capture,
            };
            let version = self.cupti.version();
            let mut records = Activities::new(&self.cupti, buffer);
            while let Some(bytes) = records.next_bytes() {
                match Activity::new(bytes, version) {
                    Some(record) if self.is_ours(bytes) => translator.record(&record),
                    Some(_) => {}
                    None => translator.activity.losses.unknown += 1,
                }
            }
        });
    }

    #[inline]
    fn is_ours(&self, bytes: &[u8]) -> bool {
        let number = bytes.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
        let accepted = self
            .accepted
            .get(number as usize)
            .is_some_and(|accepted| accepted.load(Ordering::Relaxed));
        accepted && self.started_in_window(number, bytes)
    }

    #[inline]
    fn started_in_window(&self, number: u32, bytes: &[u8]) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        since == 0
            || match activity::time_offsets(number).first() {
                None => true,
                Some(offset) => {
                    let time = in_process_client::read_time(bytes, *offset);
                    time == 0 || time >= since
                }
            }
    }

    fn count_losses(&self, context: ContextHandle, stream: u32) {
        let dropped = self.cupti.dropped(context, stream) + buffers::missed();
        if dropped == 0 {
            return;
        }
        in_process_client::count_dropped(dropped);
        if let Some(agent) = agent::current() {
            agent
                .sink
                .with_activity(|activity, _| activity.losses.dropped += dropped);
        }
    }
}

/// CUPTI wants a buffer, on a thread of the program.
pub(super) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let taken = guard::run(None, buffers::take);
    let version = current().map_or(0, |multiplexer| multiplexer.cupti.version());
    let (address, bytes) = match taken {
        Some(buffer) => (buffer.as_ptr(), buffers::BUFFER_BYTES),
        None if version >= VERSION_WITHOUT_BUFFER => (ptr::null_mut(), 0),
        // An older CUPTI would crash: one buffer more than was agreed. It joins
        // the pool when it comes back.
        None => {
            // SAFETY: size and alignment are as calloc wants them.
            let memory = unsafe { libc::calloc(1, buffers::BUFFER_BYTES) };
            if let Some(buffer) = NonNull::new(memory.cast()) {
                guard::run((), || buffers::lend(buffer));
            }
            (
                memory.cast(),
                if memory.is_null() {
                    0
                } else {
                    buffers::BUFFER_BYTES
                },
            )
        }
    };
    // SAFETY: CUPTI's own words.
    unsafe { buffer.write(address) };
    // SAFETY: as above.
    unsafe { size.write(bytes) };
    // SAFETY: as above.
    unsafe { max_records.write(0) };
}

/// CUPTI hands a buffer back, on a thread of its own or on one that flushes.
pub(super) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) {
    let Some(address) = NonNull::new(buffer) else {
        return;
    };
    if !guard::run(false, || buffers::is_lent(address)) {
        guard::run((), || {
            if !in_process_client::hand_back_own(context, stream, address, size, valid) && valid > 0 {
                // How many records were in it, only its owner could tell.
                in_process_client::count_dropped(1);
            }
        });
        return;
    }
    guard::run((), || {
        if let Some(multiplexer) = current() {
            // SAFETY: one of our buffers, filled so far, and CUPTI's no more.
            let filled = unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), valid.min(size)) };
            multiplexer.read(filled);
            in_process_client::copy(multiplexer, context, stream, filled);
            multiplexer.count_losses(ContextHandle(context as usize), stream);
        }
    });
    guard::run((), || buffers::put_back(address, valid));
}
