//! Where an export goes: one stream, or several files of a limited size.

use std::io::Write;

use crate::error::Error;
use crate::export::Out;

/// Opens the file with this number, counted from 1.
pub type OpenFile<'a> = dyn FnMut(usize) -> std::io::Result<Box<dyn Write>> + 'a;

/// Where packets are written to.
pub(super) enum Destination<'a, 'o> {
    /// All into one.
    One(&'a mut Out<'o>),
    /// Into a new file when one is full.
    Files(Files<'a>),
}

/// What the export has ready to be written. It is made on all cores, and written by the thread that the destination is of.
pub(super) enum Output {
    Bytes(Vec<u8>),
    /// The file is complete; more bytes belong to another.
    EndOfFile,
}

/// Several files.
pub(super) struct Files<'a> {
    open: &'a mut OpenFile<'a>,
    current: Option<Box<dyn Write>>,
    sizes: Vec<u64>,
}

impl<'a> Files<'a> {
    pub(super) fn new(open: &'a mut OpenFile<'a>) -> Self {
        Files {
            open,
            current: None,
            sizes: Vec::new(),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.sizes.last().copied().unwrap_or(0);
        let failed = |source| Error::Write { written, source };
        let file = match &mut self.current {
            Some(file) => file,
            None => {
                let file = (self.open)(self.sizes.len() + 1).map_err(failed)?;
                self.sizes.push(0);
                self.current.insert(file)
            }
        };
        file.write_all(bytes).map_err(failed)?;
        if let Some(size) = self.sizes.last_mut() {
            *size += bytes.len() as u64;
        }
        Ok(())
    }

    /// Ends the current file; the next bytes open another.
    fn end_current(&mut self) -> Result<(), Error> {
        if let Some(mut file) = self.current.take() {
            let written = self.sizes.last().copied().unwrap_or(0);
            file.flush().map_err(|source| Error::Write { written, source })?;
        }
        Ok(())
    }
}

impl Destination<'_, '_> {
    /// Writes what is ready.
    pub(super) fn take(&mut self, ready: &mut Vec<Output>) -> Result<(), Error> {
        for output in ready.drain(..) {
            match (output, &mut *self) {
                (Output::Bytes(bytes), Destination::One(out)) => out.put(&bytes)?,
                (Output::Bytes(bytes), Destination::Files(files)) => files.put(&bytes)?,
                (Output::EndOfFile, Destination::One(_)) => {}
                (Output::EndOfFile, Destination::Files(files)) => files.end_current()?,
            }
        }
        Ok(())
    }

    /// The sizes of all files so far.
    pub(super) fn sizes(self) -> Vec<u64> {
        match self {
            Destination::One(_) => Vec::new(),
            Destination::Files(files) => files.sizes,
        }
    }
}
