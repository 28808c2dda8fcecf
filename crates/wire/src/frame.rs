//! How one record lies in the ring: an eight-byte header, then the payload,
//! padded to eight.
//!
//! ```text
//!  0         4      6       8
//! ┌─────────┬──────┬───────┬──────────────────┬─────────┐
//! │ payload │ kind │ flags │ payload          │ to      │
//! │ bytes   │      │       │                  │ 8 bytes │
//! └─────────┴──────┴───────┴──────────────────┴─────────┘
//! ```
//!
//! Frames begin at multiples of eight, so a header is one aligned word and
//! never wraps; a payload may. Nothing here touches shared memory: [`parse`]
//! reads bytes that the consumer has copied to its own, and is the one function
//! that decides whether bytes are a record.

use std::num::NonZeroU16;

/// Bytes of a frame before its payload.
pub const FRAME_HEADER_BYTES: u64 = 8;

/// Frames begin at multiples of this.
pub(crate) const FRAME_ALIGN: u64 = 8;

/// What a record is. The ring carries it and gives it no meaning.
///
/// Zero is no kind: fresh memory is all zeros, so a frame that was never
/// written is told from one that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(NonZeroU16);

impl Kind {
    /// The kind with this number.
    pub const fn new(number: NonZeroU16) -> Self {
        Self(number)
    }

    /// The kind's number.
    pub const fn number(self) -> u16 {
        self.0.get()
    }
}

/// A record's kind and the sixteen bits that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// What the record is.
    pub kind: Kind,
    /// Bits whose meaning depends on the kind.
    pub flags: u16,
}

impl From<Kind> for Tag {
    fn from(kind: Kind) -> Self {
        Self { kind, flags: 0 }
    }
}

/// One record, as the producer pushed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'b> {
    /// Kind and flags.
    pub tag: Tag,
    /// What the producer passed, to the byte.
    pub payload: &'b [u8],
}

/// Why published bytes are not records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A frame of kind zero.
    #[error("a record has the reserved kind 0")]
    ReservedKind,
    /// A frame longer than the ring.
    #[error("a record claims {payload_bytes} bytes, more than the ring holds")]
    TooLong {
        /// The payload's length, as the frame states it.
        payload_bytes: u32,
    },
    /// A frame that goes on behind the last published byte.
    #[error("a record goes on behind the published end")]
    PastEnd,
    /// A published position that no honest producer could have reached.
    #[error("position {found} cannot be reached from here")]
    Position {
        /// The position found in shared memory.
        found: u64,
    },
}

/// Bytes that a record with this payload takes in the ring.
#[inline]
pub const fn frame_bytes(payload_bytes: usize) -> u64 {
    // A length near the top of u64 would wrap to a small frame; it saturates
    // instead and then fits no ring.
    let rounded = (payload_bytes as u64).saturating_add(FRAME_HEADER_BYTES + FRAME_ALIGN - 1);
    rounded & !(FRAME_ALIGN - 1)
}

/// A frame's header as the word that lies in the ring.
#[inline]
pub(crate) fn header_word(tag: Tag, payload_bytes: u32) -> u64 {
    let word = u64::from(payload_bytes) | u64::from(tag.kind.number()) << 32 | u64::from(tag.flags) << 48;
    word.to_le()
}

/// Bytes of the frame that this header word begins.
#[inline]
pub(crate) fn frame_bytes_of_word(word: u64) -> u64 {
    // The low half is the length: taking it is what the cast is for.
    frame_bytes(u64::from_le(word) as u32 as usize)
}

/// What stands at the beginning of some published bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'b> {
    /// A whole record.
    Record {
        /// The record.
        record: Record<'b>,
        /// Bytes of its frame: the next one begins behind them.
        frame_bytes: usize,
    },
    /// The beginning of a frame.
    Partial {
        /// Bytes of the whole frame, if its header is there.
        frame_bytes: Option<usize>,
    },
}

/// Reads the frame at the beginning of `bytes`, from a ring of
/// `capacity_bytes`.
///
/// Total over all inputs: bytes from a broken or hostile producer give a
/// [`Fault`], never a panic and never a slice out of `bytes`.
///
/// # Errors
///
/// A [`Fault`] when no honest producer could have written these bytes.
#[inline]
pub fn parse(bytes: &[u8], capacity_bytes: u64) -> Result<Parsed<'_>, Fault> {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else {
        return Ok(Parsed::Partial { frame_bytes: None });
    };
    let word = u64::from_le_bytes(*head);
    let payload_bytes = word as u32;
    let Some(kind) = NonZeroU16::new((word >> 32) as u16) else {
        return Err(Fault::ReservedKind);
    };
    let frame = frame_bytes(payload_bytes as usize);
    if frame > capacity_bytes {
        return Err(Fault::TooLong { payload_bytes });
    }
    let frame_bytes = frame as usize;
    if frame_bytes > bytes.len() {
        return Ok(Parsed::Partial {
            frame_bytes: Some(frame_bytes),
        });
    }
    let Some(payload) = rest.get(..payload_bytes as usize) else {
        return Ok(Parsed::Partial {
            frame_bytes: Some(frame_bytes),
        });
    };
    let tag = Tag {
        kind: Kind(kind),
        flags: (word >> 48) as u16,
    };
    Ok(Parsed::Record {
        record: Record { tag, payload },
        frame_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag {
        kind: Kind(NonZeroU16::MIN),
        flags: 0xbeef,
    };

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut bytes = header_word(TAG, payload.len() as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes.resize(frame_bytes(payload.len()) as usize, 0);
        bytes
    }

    #[test]
    fn a_frame_is_its_payload_rounded_up_behind_eight_bytes() {
        for (payload, expected) in [(0, 8), (1, 16), (8, 16), (9, 24), (64, 72)] {
            assert_eq!(frame_bytes(payload), expected);
        }
        assert!(frame_bytes(usize::MAX) > 1 << 60);
    }

    #[test]
    fn a_frame_gives_back_its_record() {
        for payload in [&b""[..], b"x", b"12345678", b"123456789"] {
            let bytes = frame(payload);
            let parsed = parse(&bytes, 64).unwrap();
            let record = Record { tag: TAG, payload };
            assert_eq!(
                parsed,
                Parsed::Record {
                    record,
                    frame_bytes: bytes.len()
                }
            );
            let word = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(frame_bytes_of_word(word), bytes.len() as u64);
        }
    }

    #[test]
    fn every_cut_of_a_frame_is_partial() {
        let bytes = frame(b"123456789");
        for cut in 0..bytes.len() {
            let frame_bytes = (cut >= 8).then_some(bytes.len());
            assert_eq!(parse(&bytes[..cut], 64), Ok(Parsed::Partial { frame_bytes }));
        }
    }

    #[test]
    fn zeros_and_absurd_lengths_are_faults() {
        assert_eq!(parse(&[0; 64], 64), Err(Fault::ReservedKind));
        let mut bytes = frame(b"");
        bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            parse(&bytes, 64),
            Err(Fault::TooLong {
                payload_bytes: u32::MAX
            })
        );
    }
}
