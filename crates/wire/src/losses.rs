//! What did not reach the consumer, counted where it cannot get lost.
//!
//! The producer counts in the ring's header, not in its own memory: the
//! consumer reads the counters at any time, also after the producer was killed.
//! A kill between two of the stores below leaves the last event half counted;
//! every event before it is exact.

use crate::{layout::Header, sync::Ordering};

/// Counters of one ring since its beginning. Bytes are those of whole frames
/// (see [`frame_bytes`](crate::frame::frame_bytes)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records that found no room, or were larger than the ring.
    pub dropped_records: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Records that made room for newer ones, whether read before or not. Not a
    /// fault, but to be stated.
    pub overwritten_records: u64,
    /// Bytes of those.
    pub overwritten_bytes: u64,
}

impl Losses {
    /// What the header says now.
    pub(crate) fn from_header(header: &Header) -> Self {
        Self {
            dropped_records: header.losses.dropped_records.load(Ordering::Relaxed),
            dropped_bytes: header.losses.dropped_bytes.load(Ordering::Relaxed),
            overwritten_records: header.losses.overwritten_records.load(Ordering::Relaxed),
            overwritten_bytes: header.producer.oldest.load(Ordering::Relaxed),
        }
    }

    /// Counts records that found no room. The producer is the only writer, so
    /// plain stores of its own sums will do.
    pub(crate) fn count_dropped(&mut self, header: &Header, records: u64, bytes: u64) {
        self.dropped_records = self.dropped_records.saturating_add(records);
        self.dropped_bytes = self.dropped_bytes.saturating_add(bytes);
        header
            .losses
            .dropped_bytes
            .store(self.dropped_bytes, Ordering::Relaxed);
        header
            .losses
            .dropped_records
            .store(self.dropped_records, Ordering::Relaxed);
    }

    /// Counts records that are about to be overwritten.
    pub(crate) fn count_overwritten(&mut self, header: &Header, records: u64) {
        self.overwritten_records += records;
        header
            .losses
            .overwritten_records
            .store(self.overwritten_records, Ordering::Relaxed);
    }
}
