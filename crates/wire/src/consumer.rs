//! The reading side, which lives in the collector.
//!
//! A read copies what is published into a buffer of its own, gives the room
//! back at once, and only then looks at the bytes. So the producer waits for a
//! copy and never for what the collector does with the records, and a producer
//! that breaks the protocol cannot change a record that is being looked at.
//!
//! Nothing in shared memory is believed: sizes and policy are those that the
//! consumer itself chose, its own position is a word of its own, and what the
//! producer claims is checked against both.

#[cfg(not(loom))]
use std::os::fd::OwnedFd;

#[cfg(not(loom))]
use crate::memory::memfd;
use crate::{
    buffer::{Buffer, Filled},
    config::{Config, Policy},
    error::Error,
    frame::{FRAME_ALIGN, Fault, Record},
    layout::{CONSUMER_GONE, PRODUCER_CLOSED},
    losses::Losses,
    memory::{Access, Region},
    records::Records,
    sync::{Arc, Ordering, fence},
};

/// The one reader of a ring. Dropping it tells the producer that nobody will
/// make room any more.
pub struct Consumer {
    region: Arc<Region>,
    config: Config,
    buffer: Buffer,
    overtaken_bytes: u64,
}

impl Consumer {
    /// A new ring in shared memory: its reader, and the memory to be handed to
    /// the one that will write ([`Producer::attach`](crate::Producer::attach)).
    ///
    /// # Errors
    ///
    /// [`Error::System`] when the memory cannot be had.
    #[cfg(not(loom))]
    pub fn create(config: Config) -> Result<(Self, OwnedFd), Error> {
        let (memory, region) = memfd::create(config)?;
        Ok((Self::new(Arc::new(region), config), memory))
    }

    /// The consumer of a fresh ring.
    pub(crate) fn new(region: Arc<Region>, config: Config) -> Self {
        Self {
            region,
            config,
            buffer: Buffer::new(config.capacity),
            overtaken_bytes: 0,
        }
    }

    /// What is published and not yet read, up to a buffer full.
    ///
    /// Empty means that nothing is published now. Under
    /// [`Policy::OverwriteOldest`] reading leaves the ring as it is: records go
    /// when newer ones take their place, and those that went before they were
    /// read are in [`Consumer::overtaken_bytes`].
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the producer published what is no record; from
    /// then on every read says so again.
    #[inline(always)]
    pub fn read(&mut self) -> Result<Records<'_>, Error> {
        let filled = match self.config.policy {
            Policy::DropNewest | Policy::Block { .. } => self.take()?,
            Policy::OverwriteOldest => self.snapshot()?,
        };
        Ok(Records::new(&mut self.buffer, filled))
    }

    /// Hands over everything that is published now: what a flight recorder is
    /// asked for, and what is left of a producer that died.
    ///
    /// # Errors
    ///
    /// As [`Consumer::read`]. Records before the fault have been handed over.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) -> Result<(), Error> {
        let words = &self.region.header().producer;
        let tail = words.tail.load(Ordering::Acquire);
        let position = self.buffer.unread.position;
        let begin = match self.config.policy {
            Policy::DropNewest | Policy::Block { .. } => position,
            // What was overwritten lies between, and is jumped over.
            Policy::OverwriteOldest => position.max(words.oldest.load(Ordering::Relaxed)),
        };
        // A producer that runs on cannot keep us here: what it publishes from
        // now on is not waited for, and a tail out of range not believed.
        let until = tail.min(begin.saturating_add(self.config.capacity.bytes()));
        loop {
            let before = self.buffer.unread.position;
            let mut handed_over = 0;
            for record in self.read()? {
                each(record?);
                handed_over += 1;
            }
            let stuck = self.buffer.unread.position == before && handed_over == 0;
            if self.buffer.unread.position >= until || stuck {
                return Ok(());
            }
        }
    }

    /// What the producer has counted as lost. Readable at any time, also after
    /// its death.
    pub fn losses(&self) -> Losses {
        Losses::from_header(self.region.header())
    }

    /// Bytes that were overwritten before they were read. Only under
    /// [`Policy::OverwriteOldest`].
    pub fn overtaken_bytes(&self) -> u64 {
        self.overtaken_bytes
    }

    /// Whether the producer has said goodbye and everything is read. One that
    /// was killed says nothing: see
    /// `Peer::life` in `handshake`.
    pub fn is_closed(&self) -> bool {
        let header = self.region.header();
        // The goodbye first: seen after the tail, a record could lie between.
        let closed = header.lifecycle.producer_state.load(Ordering::Acquire) == PRODUCER_CLOSED;
        let tail = header.producer.tail.load(Ordering::Acquire);
        closed && self.buffer.unread.is_empty() && tail == self.buffer.unread.position
    }

    /// The process that attached as the producer, by the number it knows
    /// itself by, if one has.
    pub fn producer_process(&self) -> Option<u32> {
        match self
            .region
            .header()
            .lifecycle
            .producer_pid
            .load(Ordering::Relaxed)
        {
            0 => None,
            pid => Some(pid),
        }
    }

    /// Copies out what is published and gives its room back.
    ///
    /// Words of the consumer are loaded before the copy and stored after it:
    /// the compiler cannot know that the ring's bytes are not among them.
    #[inline(always)]
    fn take(&mut self) -> Result<Filled, Error> {
        let header = self.region.header();
        let data = self.region.data(Access::Apart);
        let unread = self.buffer.make_space()?;
        // Acquire: the records before this tail are whole.
        let tail = header.producer.tail.load(Ordering::Acquire);
        let position = self.buffer.unread.position;
        let length = self.buffer.copy_from(data, unread, tail)?;
        let head = position + length as u64;
        let filled = self.buffer.fill(unread + length, head, tail);
        if length == 0 {
            return Ok(filled);
        }
        // Release: our copy is done before the producer writes there.
        header.consumer.head.store(head, Ordering::Release);
        if let Policy::Block { .. } = self.config.policy {
            // The other half of the sleeper's fence: see `sleep`.
            fence(Ordering::SeqCst);
            if header.producer_sleep.is_announced() {
                header.producer_sleep.wake();
            }
        }
        Ok(filled)
    }

    /// Copies out what stands now and keeps what still stood after the copy.
    #[inline(never)]
    fn snapshot(&mut self) -> Result<Filled, Error> {
        let region = Arc::clone(&self.region);
        let words = &region.header().producer;
        let unread = self.buffer.make_space()?;
        // In this order the oldest is at most a capacity behind the tail: the
        // producer stores it first, and we acquire what it stored. It can be
        // ahead, if the producer has gone around since; then there is nothing
        // that we know the end of, and the next read will know more.
        let tail = words.tail.load(Ordering::Acquire);
        let oldest = words.oldest.load(Ordering::Relaxed);
        let unread = self.skip_to(oldest, unread)?;
        if oldest > tail {
            return Ok(self.buffer.fill(unread, oldest, tail));
        }
        let position = self.buffer.unread.position;
        let length = self
            .buffer
            .copy_from(region.data(Access::Contended), unread, tail)?;
        // The producer stores `oldest` before the words that replace a record:
        // if we copied any of those, this load sees that store.
        fence(Ordering::Acquire);
        let overtaken = words.oldest.load(Ordering::Relaxed);
        let lost = overtaken.saturating_sub(position).min(length as u64) as usize;
        let copied = unread + lost..unread + length;
        let unread = self.skip_to(overtaken, unread)?;
        let kept = copied.len();
        self.buffer.bytes.copy_within(copied, unread);
        let position = self.buffer.unread.position + kept as u64;
        Ok(self.buffer.fill(unread + kept, position, tail))
    }

    /// Goes forward to where the oldest record begins, if it has overtaken us.
    /// Returns how many of the `unread` bytes are left.
    fn skip_to(&mut self, oldest: u64, unread: usize) -> Result<usize, Error> {
        let position = self.buffer.unread.position;
        if oldest <= position {
            return Ok(unread);
        }
        if !oldest.is_multiple_of(FRAME_ALIGN) {
            let fault = Fault::Position { found: oldest };
            return Err(self.buffer.unread.fail(position, fault));
        }
        // A record that we hold the beginning of has lost its end.
        let whole = self.buffer.whole_bytes(unread);
        let overtaken = (oldest - position).saturating_add((unread - whole) as u64);
        self.overtaken_bytes = self.overtaken_bytes.saturating_add(overtaken);
        self.buffer.unread.position = oldest;
        Ok(whole)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let header = self.region.header();
        header
            .lifecycle
            .consumer_state
            .store(CONSUMER_GONE, Ordering::Release);
        fence(Ordering::SeqCst);
        if header.producer_sleep.is_announced() {
            header.producer_sleep.wake();
        }
    }
}
