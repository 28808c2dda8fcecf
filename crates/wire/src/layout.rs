//! What lies where in the shared memory: one page of header, then the data.
//!
//! `docs/reference/wire.md` states the same for people, and a change here is a change of
//! [`LAYOUT_VERSION`]. Every word that one side writes while the other runs has
//! 128 bytes to itself or shares them with words of the same writer: two cache
//! lines, because the prefetcher of current processors fetches them in pairs.
//!
//! All words are atomics although some are written once: the other side is
//! another process and may write anything at any time.

use std::ops::Deref;

use crate::{
    config::{Capacity, Config, Policy},
    error::Error,
    sleep::SleepWord,
    sync::{AtomicU32, AtomicU64, Ordering},
};

/// The version of the layout that this build reads and writes.
pub const LAYOUT_VERSION: u32 = 1;

/// The first eight bytes of every ring: `TSWIRE` and two zeros.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TSWIRE\0\0");

/// The data area begins here.
pub(crate) const HEADER_BYTES: usize = 4096;

/// No producer has come yet.
pub(crate) const PRODUCER_AWAITED: u32 = 0;
/// A producer has attached and has not said goodbye.
pub(crate) const PRODUCER_ATTACHED: u32 = 1;
/// The producer has said goodbye: nothing will follow.
pub(crate) const PRODUCER_CLOSED: u32 = 2;

/// The consumer has gone: nobody will make room. Zero before.
pub(crate) const CONSUMER_GONE: u32 = 1;

/// The header of a ring. Zeros are a valid header without a description.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Header {
    pub(crate) identity: Lines<Identity>,
    pub(crate) producer: Lines<ProducerWords>,
    pub(crate) losses: Lines<LossWords>,
    pub(crate) consumer: Lines<ConsumerWords>,
    /// The consumer's futex in earlier builds. Nothing uses it.
    _reserved: Lines<u32>,
    pub(crate) producer_sleep: Lines<SleepWord>,
    pub(crate) lifecycle: Lines<LifecycleWords>,
}

/// A pair of cache lines of its own.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct Lines<T>(T);

impl<T> Deref for Lines<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Written by the creator before anyone else sees the memory.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Identity {
    magic: AtomicU64,
    version: AtomicU32,
    policy: AtomicU32,
    capacity: AtomicU64,
    limit_nanos: AtomicU64,
}

/// Written by the producer with every publication.
#[repr(C)]
#[derive(Default)]
pub(crate) struct ProducerWords {
    /// Bytes published since the beginning. All before it are whole records.
    pub(crate) tail: AtomicU64,
    /// Overwriting only: where the oldest record that still stands begins,
    /// which is also how many bytes have been overwritten.
    pub(crate) oldest: AtomicU64,
}

/// Written by the producer when something is lost.
#[repr(C)]
#[derive(Default)]
pub(crate) struct LossWords {
    pub(crate) dropped_records: AtomicU64,
    pub(crate) dropped_bytes: AtomicU64,
    pub(crate) overwritten_records: AtomicU64,
}

/// Written by the consumer with every read.
#[repr(C)]
#[derive(Default)]
pub(crate) struct ConsumerWords {
    /// Bytes that the consumer has copied out: their room is free.
    pub(crate) head: AtomicU64,
}

/// Written when a side comes or goes.
#[repr(C)]
#[derive(Default)]
pub(crate) struct LifecycleWords {
    pub(crate) producer_pid: AtomicU32,
    pub(crate) producer_state: AtomicU32,
    pub(crate) consumer_state: AtomicU32,
}

impl Header {
    /// Writes the description into fresh memory.
    pub(crate) fn describe(&self, config: Config) {
        let (policy, limit_nanos) = config.policy.to_raw();
        self.identity.version.store(LAYOUT_VERSION, Ordering::Relaxed);
        self.identity.policy.store(policy, Ordering::Relaxed);
        self.identity
            .capacity
            .store(config.capacity.bytes(), Ordering::Relaxed);
        self.identity.limit_nanos.store(limit_nanos, Ordering::Relaxed);
        self.identity.magic.store(MAGIC, Ordering::Release);
    }

    /// Reads the description and checks that this build can use it.
    pub(crate) fn description(&self) -> Result<Config, Error> {
        let found = self.identity.magic.load(Ordering::Acquire);
        if found != MAGIC {
            return Err(Error::NotARing { found });
        }
        let theirs = self.identity.version.load(Ordering::Relaxed);
        if theirs != LAYOUT_VERSION {
            return Err(Error::Version {
                what: "layout",
                ours: LAYOUT_VERSION,
                theirs,
            });
        }
        let policy = self.identity.policy.load(Ordering::Relaxed);
        let limit_nanos = self.identity.limit_nanos.load(Ordering::Relaxed);
        Ok(Config {
            capacity: Capacity::exactly(self.identity.capacity.load(Ordering::Relaxed))?,
            policy: Policy::from_raw(policy, limit_nanos)?,
        })
    }
}

#[cfg(not(loom))]
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(
        cfg!(target_endian = "little"),
        "docs/reference/wire.md fixes little-endian words"
    );
    assert!(size_of::<Header>() <= HEADER_BYTES);
    assert!(offset_of!(Header, identity) == 0);
    assert!(offset_of!(Header, producer) == 128);
    assert!(offset_of!(Header, losses) == 256);
    assert!(offset_of!(Header, consumer) == 384);
    assert!(offset_of!(Header, _reserved) == 512);
    assert!(offset_of!(Header, producer_sleep) == 640);
    assert!(offset_of!(Header, lifecycle) == 768);
    assert!(offset_of!(Identity, version) == 8);
    assert!(offset_of!(Identity, policy) == 12);
    assert!(offset_of!(Identity, capacity) == 16);
    assert!(offset_of!(Identity, limit_nanos) == 24);
    assert!(offset_of!(ProducerWords, oldest) == 8);
    assert!(offset_of!(LossWords, dropped_bytes) == 8);
    assert!(offset_of!(LossWords, overwritten_records) == 16);
    assert!(offset_of!(LifecycleWords, producer_state) == 4);
    assert!(offset_of!(LifecycleWords, consumer_state) == 8);
};
