//! What a ring is made of: how large it is and what happens when it is full.
//!
//! The collector decides both and states them twice: in the ring's header and
//! in its answer to the handshake. A producer that finds them different refuses
//! the ring.

use std::time::Duration;

use crate::{error::Error, memory::Access};

/// Size and behaviour of one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the data area.
    pub capacity: Capacity,
    /// What the producer does when a record does not fit.
    pub policy: Policy,
}

/// Bytes of a ring's data area: a power of two, so that a position becomes an
/// offset by one `and`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity(u32);

impl Capacity {
    /// Of the ring for definitions. A target fills it in bursts only.
    pub const DEFINITIONS: Self = Self::at_least(1 << 20);
    /// Of the ring for memory contents of a replay capture. A target waits for room in it.
    pub const REPLAY_CAPTURE: Self = Self::at_least(16 << 20);

    /// The smallest data area.
    pub const MIN: Self = Self(32);
    /// The largest data area: 1 GiB.
    pub const MAX: Self = Self(1 << 30);

    /// A capacity of exactly `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Capacity`] when `bytes` is no power of two or outside
    /// [`Capacity::MIN`] to [`Capacity::MAX`].
    pub const fn exactly(bytes: u64) -> Result<Self, Error> {
        if bytes.is_power_of_two() && bytes >= Self::MIN.bytes() && bytes <= Self::MAX.bytes() {
            Ok(Self(bytes as u32))
        } else {
            Err(Error::Capacity { bytes })
        }
    }

    /// The smallest capacity that holds `bytes`, or [`Capacity::MAX`].
    pub const fn at_least(bytes: u64) -> Self {
        if bytes <= Self::MIN.bytes() {
            return Self::MIN;
        }
        if bytes >= Self::MAX.bytes() {
            return Self::MAX;
        }
        Self(bytes.next_power_of_two() as u32)
    }

    /// This capacity in bytes.
    pub const fn bytes(self) -> u64 {
        self.0 as u64
    }
}

/// What the producer does when a record does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// The new record is dropped and counted. The target never waits.
    #[default]
    DropNewest,
    /// The producer waits for room, at most `limit`; then the record is dropped
    /// and counted. Once a wait has run out, no push waits again until the
    /// consumer has moved: a dead collector costs the target one limit in all.
    Block {
        /// The longest wait of one push. [`Duration::MAX`] waits for ever.
        limit: Duration,
    },
    /// The oldest records make room: the ring always holds the last of them, as
    /// a flight recorder does. Overwritten records are counted apart from
    /// dropped ones.
    OverwriteOldest,
}

/// A limit too long for 64 bits of nanoseconds is stored as this: no limit.
const NO_LIMIT: u64 = u64::MAX;

impl Policy {
    /// How a ring with this policy touches its data area.
    #[inline]
    pub(crate) fn access(self) -> Access {
        match self {
            Self::DropNewest | Self::Block { .. } => Access::Apart,
            Self::OverwriteOldest => Access::Contended,
        }
    }

    /// The policy as the header and the handshake carry it.
    pub(crate) fn to_raw(self) -> (u32, u64) {
        match self {
            Self::DropNewest => (0, 0),
            Self::Block { limit } => (1, u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT)),
            Self::OverwriteOldest => (2, 0),
        }
    }

    /// The policy from what the header or the handshake carried.
    pub(crate) fn from_raw(code: u32, limit_nanos: u64) -> Result<Self, Error> {
        match (code, limit_nanos) {
            (0, _) => Ok(Self::DropNewest),
            (1, NO_LIMIT) => Ok(Self::Block { limit: Duration::MAX }),
            (1, nanos) => Ok(Self::Block {
                limit: Duration::from_nanos(nanos),
            }),
            (2, _) => Ok(Self::OverwriteOldest),
            (code, _) => Err(Error::PolicyCode { code }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_power_of_two_within_bounds() {
        assert_eq!(Capacity::exactly(4096).unwrap().bytes(), 4096);
        for bytes in [0, 16, 4095, 1 << 31, u64::MAX] {
            assert!(
                matches!(Capacity::exactly(bytes), Err(Error::Capacity { .. })),
                "{bytes}"
            );
        }
        assert_eq!(Capacity::at_least(5000).bytes(), 8192);
        assert_eq!(Capacity::at_least(u64::MAX), Capacity::MAX);
        assert_eq!(Capacity::at_least(0), Capacity::MIN);
    }

    #[test]
    fn a_policy_survives_its_encoding() {
        for policy in [
            Policy::DropNewest,
            Policy::Block {
                limit: Duration::from_millis(5),
            },
            Policy::Block { limit: Duration::MAX },
            Policy::OverwriteOldest,
        ] {
            let (code, nanos) = policy.to_raw();
            assert_eq!(Policy::from_raw(code, nanos).unwrap(), policy);
        }
        assert!(matches!(
            Policy::from_raw(9, 0),
            Err(Error::PolicyCode { code: 9 })
        ));
    }
}
