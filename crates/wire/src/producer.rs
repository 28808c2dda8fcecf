//! The writing side, which lives in the target.
//!
//! A push compares two words, copies the record and stores the new tail: no
//! system call, no lock, no read-modify-write, no allocation, no panic. The
//! exceptions are named: a consumer that sleeps is woken by one futex call, and
//! [`Policy::Block`](crate::Policy::Block) waits when the ring is full.

#[cfg(not(loom))]
use std::os::fd::AsFd;

use crate::{
    config::Config,
    cursor::Cursor,
    fork::ForkGuard,
    frame::{Tag, frame_bytes, header_word},
    layout::{CONSUMER_GONE, PRODUCER_CLOSED},
    losses::Losses,
    memory::Region,
    sync::{Arc, Ordering},
};
#[cfg(not(loom))]
use crate::{
    error::Error,
    layout::{PRODUCER_ATTACHED, PRODUCER_AWAITED},
    memory::memfd,
};

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a dropped record is counted, but the caller may want to know"]
pub enum Pushed {
    /// It is in the ring.
    Written,
    /// It found no room and is counted as lost.
    Dropped,
}

/// The one writer of a ring. Dropping it tells the consumer that nothing will
/// follow.
///
/// In the child of a `fork` it does nothing: its records are
/// [`Pushed::Dropped`], and, the counters being the parent's, not counted.
pub struct Producer {
    region: Arc<Region>,
    cursor: Cursor,
    fork: ForkGuard,
}

impl Producer {
    /// Joins the ring in `memory`, which the collector has announced as
    /// `announced`. The descriptor may be closed afterwards: a target that
    /// closes all its descriptors does not hurt the ring.
    ///
    /// # Errors
    ///
    /// When the memory is no ring of this build's version, is not as
    /// announced, could be cut while mapped, or has had a producer already.
    #[cfg(not(loom))]
    pub fn attach(memory: impl AsFd, announced: Config) -> Result<Self, Error> {
        let region = memfd::open(memory, announced)?;
        let fork = ForkGuard::new()?;
        let lifecycle = &region.header().lifecycle;
        lifecycle
            .producer_state
            .compare_exchange(
                PRODUCER_AWAITED,
                PRODUCER_ATTACHED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .map_err(|_| Error::AlreadyAttached)?;
        lifecycle
            .producer_pid
            .store(std::process::id(), Ordering::Relaxed);
        Ok(Self::new(Arc::new(region), announced, fork))
    }

    /// The producer of a ring that has none yet.
    pub(crate) fn new(region: Arc<Region>, config: Config, fork: ForkGuard) -> Self {
        Self {
            region,
            cursor: Cursor::new(config),
            fork,
        }
    }

    /// Writes one record, visible to the consumer when this returns.
    #[inline]
    pub fn push(&mut self, tag: Tag, payload: &[u8]) -> Pushed {
        let frame = frame_bytes(payload.len());
        if !self.fork.is_original() {
            return Pushed::Dropped;
        }
        if !self.cursor.claim(&self.region, frame) {
            self.cursor.count_dropped(self.region.header(), 1, frame);
            return Pushed::Dropped;
        }
        let tail = self.cursor.tail();
        let header = self.region.header();
        let data = self.region.data(self.cursor.access());
        // A frame that fits a ring has a length that fits 32 bits.
        data.write_frame(tail, header_word(tag, payload.len() as u32), payload);
        self.cursor.publish(header, tail + frame);
        data.expect(tail + frame);
        Pushed::Written
    }

    /// What was lost so far.
    pub fn losses(&self) -> Losses {
        self.cursor.losses()
    }

    /// Whether the consumer has gone, so that pushing is of no more use. A
    /// consumer that was killed could not say so.
    pub fn is_abandoned(&self) -> bool {
        let state = &self.region.header().lifecycle.consumer_state;
        state.load(Ordering::Relaxed) == CONSUMER_GONE
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if !self.fork.is_original() {
            return;
        }
        let lifecycle = &self.region.header().lifecycle;
        // Release: a consumer that sees the goodbye sees the last tail.
        lifecycle.producer_state.store(PRODUCER_CLOSED, Ordering::Release);
    }
}
