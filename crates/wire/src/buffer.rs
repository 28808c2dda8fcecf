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

    /// Moves what is unread to the front and makes sure that the record which
    /// begins there fits.
    #[inline]
    pub(crate) fn make_space(&mut self) -> Result<(), Error> {
        if self.unread.is_empty() {
            self.unread.start = 0;
            self.unread.end = 0;
            return Ok(());
        }
        self.move_to_front()
    }

    /// Copies from the ring, behind `end`, as much as is published and as there
    /// is space for. The caller decides what of it to keep.
    #[inline(always)]
    pub(crate) fn copy_from(&mut self, data: Data<'_>, tail: u64) -> Result<usize, Error> {
        let position = self.unread.position;
        let published = match tail.checked_sub(position) {
            Some(bytes) if bytes <= self.unread.capacity_bytes && bytes % FRAME_ALIGN == 0 => bytes,
            _ => return Err(self.unread.fail(position, Fault::Position { found: tail })),
        };
        let space = &mut self.bytes[self.unread.end..];
        let length = space.len().min(published as usize);
        data.copy_out(position, &mut space[..length]);
        Ok(length)
    }

    /// Forgets the cut piece at the end and returns its length.
    pub(crate) fn forget_partial(&mut self) -> u64 {
        let mut whole = self.unread.start;
        while let Ok(Parsed::Record { frame_bytes, .. }) = parse(
            &self.bytes[whole..self.unread.end],
            self.unread.capacity_bytes,
        ) {
            whole += frame_bytes;
        }
        let partial = self.unread.end - whole;
        self.unread.end = whole;
        partial as u64
    }

    #[cold]
    fn move_to_front(&mut self) -> Result<(), Error> {
        let Unread {
            start,
            end,
            position,
            capacity_bytes,
            ..
        } = self.unread;
        self.bytes.copy_within(start..end, 0);
        (self.unread.start, self.unread.end) = (0, end - start);
        match parse(&self.bytes[..end - start], capacity_bytes) {
            Ok(Parsed::Partial {
                frame_bytes: Some(bytes),
            }) if bytes > self.bytes.len() => {
                self.bytes.resize(bytes, 0);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(fault) => Err(self.unread.fail(position - (end - start) as u64, fault)),
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
