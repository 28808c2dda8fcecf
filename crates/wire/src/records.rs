//! The records of one read, in the order they were pushed.

use crate::{
    buffer::{Buffer, Filled, Remainder, Unread},
    error::Error,
    frame::{Fault, Parsed, Record, parse},
};

/// The records of one read. Those that the caller leaves are in the next one.
pub struct Records<'c> {
    bytes: &'c [u8],
    unread: &'c mut Unread,
    remainder: Remainder,
}

impl<'c> Records<'c> {
    #[inline]
    pub(crate) fn new(buffer: &'c mut Buffer, filled: Filled) -> Self {
        let Buffer { bytes, unread } = buffer;
        let Filled { end, remainder } = filled;
        Self {
            bytes: &bytes[..end],
            unread,
            remainder,
        }
    }

    #[cold]
    fn fail(&mut self, fault: Fault) -> Error {
        let position = self.unread.position - self.bytes.len() as u64;
        self.bytes = &[];
        self.unread.fail(position, fault)
    }
}

impl<'c> Iterator for Records<'c> {
    type Item = Result<Record<'c>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        match parse(self.bytes, self.unread.capacity_bytes) {
            Ok(Parsed::Record { record, frame_bytes }) => {
                self.bytes = &self.bytes[frame_bytes..];
                self.unread.start += frame_bytes;
                Some(Ok(record))
            }
            Ok(Parsed::Partial { .. }) if self.remainder == Remainder::Continues => None,
            Ok(Parsed::Partial { .. }) => Some(Err(self.fail(Fault::PastEnd))),
            Err(fault) => Some(Err(self.fail(fault))),
        }
    }
}
