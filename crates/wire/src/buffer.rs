//! Bytes on their way from the ring to the caller.
//!
//! A read takes as much as the buffer holds, so a record may be cut at its end;
//! the cut piece stays here and the next read completes it.

use crate::{
    config::Capacity,
    error::Error,
    frame::{FRAME_ALIGN, Fault, Parsed, parse},
    memory::Data,
};

/// Bytes copied by one read, if no record is larger. Half of a common L1 data
/// cache, so that a record is still there when the caller looks at it.
const BUFFER_BYTES: u64 = 16 << 10;

/// Bytes copied out of the ring and not yet handed to the caller.
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) unread: Unread,
}

/// What a read has put into a buffer: everything up to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    pub(crate) end: usize,
    pub(crate) remainder: Remainder,
}

/// What a piece at the end that is no whole record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// More is published: the next read completes it.
    Continues,
    /// Nothing is published behind it. The producer publishes whole records
    /// only, so this one is broken.
    IsAFault,
}

/// What of a buffer is unread, and where in the ring it came from.
pub(crate) struct Unread {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where in the ring `end` is: what the next read copies first.
    pub(crate) position: u64,
    pub(crate) capacity_bytes: u64,
    /// The first fault. Behind it nothing is known, so reading stops for good.
    fault: Option<(u64, Fault)>,
}

impl Buffer {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let capacity_bytes = capacity.bytes();
        Self {
            bytes: vec![0; capacity_bytes.min(BUFFER_BYTES) as usize],
            unread: Unread {
                start: 0,
                end: 0,
                position: 0,
                capacity_bytes,
                fault: None,
            },
        }
    }

    /// Moves what is unread to the front, makes sure that the record which
    /// begins there fits, and returns how many bytes are unread.
    #[inline]
    pub(crate) fn make_space(&mut self) -> Result<usize, Error> {
        self.unread.check()?;
        if self.unread.is_empty() {
            return Ok(0);
        }
        self.move_to_front()
    }

    /// Copies from the ring, behind the `unread` bytes at the front, as much as
    /// is published and as there is space for. The caller decides what of it to
    /// keep.
    #[inline(always)]
    pub(crate) fn copy_from(&mut self, data: Data<'_>, unread: usize, tail: u64) -> Result<usize, Error> {
        let position = self.unread.position;
        let published = match tail.checked_sub(position) {
            Some(bytes) if bytes <= self.unread.capacity_bytes && bytes % FRAME_ALIGN == 0 => bytes,
            _ => return Err(self.unread.fail(position, Fault::Position { found: tail })),
        };
        let space = &mut self.bytes[unread..];
        let length = space.len().min(published as usize);
        data.copy_out(position, &mut space[..length]);
        Ok(length)
    }

    /// Notes that the first `end` bytes are unread and end at `position` in the
    /// ring.
    #[inline]
    pub(crate) fn fill(&mut self, end: usize, position: u64, tail: u64) -> Filled {
        self.unread.start = 0;
        self.unread.end = end;
        self.unread.position = position;
        let remainder = if position == tail {
            Remainder::IsAFault
        } else {
            Remainder::Continues
        };
        Filled { end, remainder }
    }

    /// How many of the `unread` bytes at the front are whole records.
    pub(crate) fn whole_bytes(&self, unread: usize) -> usize {
        let mut whole = 0;
        while let Ok(Parsed::Record { frame_bytes, .. }) =
            parse(&self.bytes[whole..unread], self.unread.capacity_bytes)
        {
            whole += frame_bytes;
        }
        whole
    }

    #[cold]
    fn move_to_front(&mut self) -> Result<usize, Error> {
        let Unread {
            start,
            end,
            position,
            capacity_bytes,
            ..
        } = self.unread;
        let unread = end - start;
        self.bytes.copy_within(start..end, 0);
        (self.unread.start, self.unread.end) = (0, unread);
        match parse(&self.bytes[..unread], capacity_bytes) {
            Ok(Parsed::Partial {
                frame_bytes: Some(bytes),
            }) if bytes > self.bytes.len() => {
                self.bytes.resize(bytes, 0);
                Ok(unread)
            }
            Ok(_) => Ok(unread),
            Err(fault) => Err(self.unread.fail(position - unread as u64, fault)),
        }
    }
}

impl Unread {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The fault that was found before, if any.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.fault {
            None => Ok(()),
            Some((position, fault)) => Err(Error::Corrupt { position, fault }),
        }
    }

    /// Stops reading for good.
    #[cold]
    pub(crate) fn fail(&mut self, position: u64, fault: Fault) -> Error {
        self.fault = Some((position, fault));
        Error::Corrupt { position, fault }
    }
}
