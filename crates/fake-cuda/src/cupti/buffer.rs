//! Buffers that the client lends, and the places of records in them.
//!
//! As in the real library, a record of device work gets its place when the work is asked for and its times when the
//! work has ended. A buffer with such open records leaves only by force, and then they keep zero times.

#![allow(unsafe_code, reason = "writes records into memory that the client lent")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::delivery;
use super::record::{self, Record};
use crate::config::config;

/// A buffer shared by the thread that fills it, the streams that finish records, and flushes.
#[derive(Clone)]
pub(crate) struct Buffer(Arc<Mutex<Content>>);

pub(crate) struct Content {
    base: u64,
    size: usize,
    used: usize,
    records: usize,
    max_records: usize,
    /// Records whose work has not ended.
    open_records: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Filling,
    /// Full; leaves when its last open record is finished.
    Full,
    /// The client has it back.
    Returned,
}

/// What goes back to the client.
pub(crate) struct Parcel {
    pub(crate) base: u64,
    pub(crate) size: usize,
    pub(crate) valid: usize,
}

/// A record that waits in a buffer for its times.
pub(crate) struct Place {
    buffer: Buffer,
    offset: usize,
}

/// Whether a record is written whole or gets its times later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Whole,
    Open,
}

/// How a flush treats buffers with open records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    LeaveOpen,
    TakeAll,
}

impl Buffer {
    /// A buffer as the client's request function gave it; `max_records` of 0 means no limit.
    pub(crate) fn new(base: u64, size: usize, max_records: usize) -> Self {
        if size > 0 && base != 0 {
            // SAFETY: the client lent `size` bytes at `base`.
            unsafe { std::ptr::write_bytes(base as *mut u8, 0, size) };
        }
        Self(Arc::new(Mutex::new(Content {
            base,
            size,
            used: 0,
            records: 0,
            max_records,
            open_records: 0,
            state: State::Filling,
        })))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Writes a record; None when it does not fit, and then the buffer takes no more.
    pub(crate) fn write<R: Record>(&self, record: &R, length: usize, stage: Stage) -> Option<Place> {
        let mut content = self.lock();
        if content.state != State::Filling {
            return None;
        }
        let is_counted_out = content.max_records != 0 && content.records >= content.max_records;
        if is_counted_out || content.used + length > content.size {
            content.state = State::Full;
            deliver_if_done(&mut content);
            return None;
        }
        let offset = content.used;
        content.put(record, offset, length);
        content.used += length;
        content.records += 1;
        content.open_records += usize::from(stage == Stage::Open);
        Some(Place {
            buffer: self.clone(),
            offset,
        })
    }

    /// Gives the buffer back if it may go; true when it went, now or before.
    pub(crate) fn give_back(&self, force: Force) -> bool {
        let mut content = self.lock();
        if content.state == State::Returned {
            return true;
        }
        if content.open_records > 0 && force == Force::LeaveOpen {
            return false;
        }
        content.state = State::Full;
        content.open_records = 0;
        deliver_if_done(&mut content);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Writes the record again, now whole; nothing happens when the buffer has gone.
    pub(crate) fn finish<R: Record>(self, record: &R, length: usize) {
        let mut content = self.buffer.lock();
        if content.state == State::Returned {
            return;
        }
        content.put(record, self.offset, length);
        content.open_records -= 1;
        deliver_if_done(&mut content);
    }
}

impl Content {
    fn put<R: Record>(&mut self, record: &R, offset: usize, length: usize) {
        assert!(length <= size_of::<R>() && offset + length <= self.size);
        let target = (self.base as usize + offset) as *mut u8;
        // SAFETY: the range lies in the lent buffer, and a Record has at least `length` initialised bytes.
        unsafe { std::ptr::copy_nonoverlapping((&raw const *record).cast::<u8>(), target, length) };
    }
}

fn deliver_if_done(content: &mut Content) {
    if content.state == State::Full && content.open_records == 0 {
        content.state = State::Returned;
        delivery::send(Parcel {
            base: content.base,
            size: content.size,
            valid: content.used,
        });
    }
}

impl Parcel {
    /// Records at the front of the buffer trade places with those behind them: the real library promises no order.
    pub(crate) fn shuffle(&mut self) {
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut offset = 0;
        while let Some(length) = self.length_at(offset) {
            // SAFETY: `length_at` found a whole record here.
            let bytes =
                unsafe { std::slice::from_raw_parts((self.base as usize + offset) as *const u8, length) };
            records.push(bytes.to_vec());
            offset += length;
        }
        for group in records.chunks_mut(5) {
            group.reverse();
        }
        let all = records.concat();
        // SAFETY: as many bytes as were read above go back to where they came from.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), self.base as *mut u8, all.len()) };
    }

    /// Bytes of the record at an offset; None behind the last.
    pub(crate) fn length_at(&self, offset: usize) -> Option<usize> {
        if offset + 4 > self.valid {
            return None;
        }
        let kind = (self.base as usize + offset) as *const u32;
        // SAFETY: four bytes were written here: every record starts with its kind.
        let kind = unsafe { kind.read_unaligned() };
        let length = record::length(kind, config().cupti_version)?;
        (offset + length <= self.valid).then_some(length)
    }
}
