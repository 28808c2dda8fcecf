//! Where the producer stands, and how it gets room.
//!
//! Positions are bytes since the ring's beginning and never wrap. The producer
//! may write up to `limit` without asking anyone; `limit` is the consumer's
//! head (or, overwriting, the oldest record) plus the capacity, as last seen.
//! So the fast path is the same under every policy: compare two words of our
//! own. What differs is what happens at the limit, and that is all in here.

use std::{
    hint,
    time::{Duration, Instant},
};

use crate::{
    config::{Config, Policy},
    frame::frame_bytes_of_word,
    layout::{CONSUMER_GONE, Header},
    losses::Losses,
    memory::{Access, Region},
    sync::{Ordering, fence},
};

/// Looks at the consumer's head before a blocking producer goes to sleep: about
/// a microsecond, in which a consumer that is running frees some room.
const SPINS: u32 = if cfg!(loom) { 0 } else { 64 };

pub(crate) struct Cursor {
    tail: u64,
    limit: u64,
    capacity: u64,
    policy: Policy,
    losses: Losses,
    /// The head at which the last wait ran out: no second wait for it.
    stalled_at: Option<u64>,
}

impl Cursor {
    /// The beginning of a ring that nobody has written to.
    pub(crate) fn new(config: Config) -> Self {
        let capacity = config.capacity.bytes();
        let losses = Losses::default();
        Self {
            tail: 0,
            limit: capacity,
            capacity,
            policy: config.policy,
            losses,
            stalled_at: None,
        }
    }

    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    #[inline]
    pub(crate) fn access(&self) -> Access {
        self.policy.access()
    }

    pub(crate) fn losses(&self) -> Losses {
        Losses {
            overwritten_bytes: self.oldest(),
            ..self.losses
        }
    }

    /// Whether `bytes` behind the tail may be written, if need be after making
    /// room as the policy says.
    #[inline]
    pub(crate) fn claim(&mut self, region: &Region, bytes: u64) -> bool {
        self.room() >= bytes || self.make_room(region, bytes)
    }

    /// Publishes everything before `tail`.
    #[inline]
    pub(crate) fn publish(&mut self, header: &Header, tail: u64) {
        self.tail = tail;
        // Release: a consumer that sees this tail sees the records before it.
        // This store is the only thing that makes records visible; a producer
        // killed before it has published nothing, after it everything.
        header.producer.tail.store(tail, Ordering::Release);
    }

    #[cold]
    pub(crate) fn count_dropped(&mut self, header: &Header, records: u64, bytes: u64) {
        self.losses.count_dropped(header, records, bytes);
    }

    #[inline]
    fn room(&self) -> u64 {
        self.limit - self.tail
    }

    #[cold]
    fn make_room(&mut self, region: &Region, bytes: u64) -> bool {
        if bytes > self.capacity {
            return false;
        }
        match self.policy {
            Policy::DropNewest => self.look_for_room(region, bytes),
            Policy::Block { limit } => {
                self.look_for_room(region, bytes) || self.wait_for_room(region, bytes, limit)
            }
            Policy::OverwriteOldest => {
                self.overwrite(region, bytes);
                true
            }
        }
    }

    fn look_for_room(&mut self, region: &Region, bytes: u64) -> bool {
        // Acquire: what the consumer copied out before moving its head was read
        // before we write there.
        let head = region.header().consumer.head.load(Ordering::Acquire);
        // The head is the other process's word. One that is ahead of the tail
        // or a ring behind it is nonsense and gives no room.
        if self
            .tail
            .checked_sub(head)
            .is_some_and(|unread| unread <= self.capacity)
        {
            self.limit = head + self.capacity;
        }
        self.room() >= bytes
    }

    /// The head that `limit` was computed from.
    fn seen_head(&self) -> u64 {
        self.limit - self.capacity
    }

    fn wait_for_room(&mut self, region: &Region, bytes: u64, limit: Duration) -> bool {
        if self.stalled_at == Some(self.seen_head()) {
            return false;
        }
        for _ in 0..SPINS {
            hint::spin_loop();
            if self.look_for_room(region, bytes) {
                return true;
            }
        }
        let header = region.header();
        // A limit beyond the clock's range is no limit.
        let deadline = Instant::now().checked_add(limit);
        let found = loop {
            header.producer_sleep.announce();
            if self.look_for_room(region, bytes) {
                break true;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let gone = header.lifecycle.consumer_state.load(Ordering::Relaxed) == CONSUMER_GONE;
            if gone || left.is_some_and(|left| left.is_zero()) {
                self.stalled_at = Some(self.seen_head());
                break false;
            }
            header.producer_sleep.sleep(left);
        };
        header.producer_sleep.withdraw();
        found
    }

    /// Overwriting only: where the oldest record that still stands begins.
    fn oldest(&self) -> u64 {
        match self.policy {
            Policy::OverwriteOldest => self.limit - self.capacity,
            Policy::DropNewest | Policy::Block { .. } => 0,
        }
    }

    /// Gives up whole records, oldest first, until `bytes` fit.
    fn overwrite(&mut self, region: &Region, bytes: u64) {
        let data = region.data(Access::Contended);
        let mut oldest = self.oldest();
        let mut records = 0;
        while oldest + self.capacity - self.tail < bytes {
            let frame = frame_bytes_of_word(data.load_word(oldest));
            if frame > self.tail - oldest {
                // We never wrote this length: the other process did. Start anew
                // behind everything.
                oldest = self.tail;
                break;
            }
            oldest += frame;
            records += 1;
        }
        let header = region.header();
        self.losses.count_overwritten(header, records);
        // Release: a consumer that sees this position also sees a tail that is
        // not behind it.
        header.producer.oldest.store(oldest, Ordering::Release);
        // A consumer that reads a word written after this fence and then makes
        // its own fence sees the new `oldest`, and discards the word.
        fence(Ordering::Release);
        self.limit = oldest + self.capacity;
    }
}
