//! Several records that become visible by one store.
//!
//! A batch reserves its room once and publishes once, so the shared words are
//! touched per batch and not per record. Nothing of it is visible before
//! [`Batch::commit`]; dropped without it, a batch leaves no trace.

use crate::{
    cursor::Cursor,
    frame::{Tag, frame_bytes, header_word},
    memory::{Data, Region},
    producer::Pushed,
};

/// How much a batch will hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSize {
    records: u64,
    bytes: u64,
}

impl BatchSize {
    /// No record.
    pub const EMPTY: Self = Self { records: 0, bytes: 0 };

    /// `count` records with payloads of `payload_bytes` each.
    #[inline]
    pub const fn of(count: usize, payload_bytes: usize) -> Self {
        let records = count as u64;
        Self {
            records,
            bytes: records.saturating_mul(frame_bytes(payload_bytes)),
        }
    }

    /// One record more, with a payload of `payload_bytes`.
    #[inline]
    pub const fn and(self, payload_bytes: usize) -> Self {
        let bytes = self.bytes.saturating_add(frame_bytes(payload_bytes));
        Self {
            records: self.records + 1,
            bytes,
        }
    }

    /// Number of records.
    pub const fn records(self) -> u64 {
        self.records
    }

    /// Bytes of their frames.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

/// Reserved room in a ring.
#[must_use = "a batch that is not committed publishes nothing"]
pub struct Batch<'p> {
    region: &'p Region,
    cursor: &'p mut Cursor,
    data: Data<'p>,
    next: u64,
    end: u64,
}

impl<'p> Batch<'p> {
    /// The caller has claimed `size.bytes()`.
    #[inline]
    pub(crate) fn new(region: &'p Region, cursor: &'p mut Cursor, size: BatchSize) -> Self {
        let data = region.data(cursor.access());
        let next = cursor.tail();
        Self {
            region,
            cursor,
            data,
            next,
            end: next + size.bytes(),
        }
    }

    /// Adds a record, to be visible with the commit. One that exceeds what was
    /// reserved is dropped and counted.
    #[inline]
    pub fn push(&mut self, tag: Tag, payload: &[u8]) -> Pushed {
        let frame = frame_bytes(payload.len());
        if frame > self.end - self.next {
            self.cursor.count_dropped(self.region.header(), 1, frame);
            return Pushed::Dropped;
        }
        // A frame that fits a ring has a length that fits 32 bits.
        let header = header_word(tag, payload.len() as u32);
        self.data.write_frame(self.next, header, payload);
        self.next += frame;
        Pushed::Written
    }

    /// Makes all records of the batch visible at once. Room that was reserved
    /// and not used is given back.
    #[inline]
    pub fn commit(self) {
        self.cursor.publish(self.region.header(), self.next);
    }
}
