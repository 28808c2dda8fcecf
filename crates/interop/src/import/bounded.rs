//! A reader that stops where one record takes more than any real one.
//!
//! Parsers collect a record before they give it out. In a damaged file a record may never end, and would take the rest
//! of the file into memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The most that one record may take.
const MAX_RECORD: u64 = 16 << 20;

/// Reads, until one record takes too much.
pub(super) struct Bounded<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

/// Says that a record is complete.
pub(super) struct Allowance(Rc<Cell<u64>>);

impl<R: Read> Bounded<R> {
    pub(super) fn new(inner: R) -> (Self, Allowance) {
        let taken = Rc::new(Cell::new(0));
        let allowance = Allowance(Rc::clone(&taken));
        (Bounded { inner, taken }, allowance)
    }
}

impl Allowance {
    /// A record is complete: the next may take as much again.
    pub(super) fn renew(&self) {
        self.0.set(0);
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        if self.taken.get() > MAX_RECORD {
            return Err(io::Error::other("a record of more than 16 MiB: it is not closed"));
        }
        Ok(count)
    }
}
