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

/// Several files.
pub(super) struct Files<'a> {
    open: &'a mut OpenFile<'a>,
    current: Option<Box<dyn Write>>,
    limit: u64,
    sizes: Vec<u64>,
}

impl<'a> Files<'a> {
    pub(super) fn new(open: &'a mut OpenFile<'a>, limit: u64) -> Self {
        Files {
            open,
            current: None,
            limit,
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
}

impl Destination<'_, '_> {
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Destination::One(out) => out.put(bytes),
            Destination::Files(files) => files.put(bytes),
        }
    }

    /// The size that a file should not pass by much.
    pub(super) fn limit(&self) -> Option<u64> {
        match self {
            Destination::One(_) => None,
            Destination::Files(files) => Some(files.limit),
        }
    }

    /// Whether the current file is full.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Destination::One(_) => false,
            Destination::Files(files) => files.sizes.last().is_some_and(|size| *size >= files.limit),
        }
    }

    /// Ends the current file; the next bytes open another.
    pub(super) fn end_file(&mut self) -> Result<(), Error> {
        let Destination::Files(files) = self else {
            return Ok(());
        };
        if let Some(mut file) = files.current.take() {
            let written = files.sizes.last().copied().unwrap_or(0);
            file.flush().map_err(|source| Error::Write { written, source })?;
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
