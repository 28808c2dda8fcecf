//! Where a streamed export goes: counts, gathers small writes, and says how far it came when it fails.

use std::fmt;
use std::io::{self, Write};

use crate::error::Error;

/// Small writes are gathered to this size.
const BUFFER_BYTES: usize = 256 << 10;

/// A stream that an exporter writes to.
pub struct Out<'a> {
    sink: &'a mut dyn Write,
    buffer: Vec<u8>,
    written: u64,
}

impl<'a> Out<'a> {
    /// Writes into `sink`.
    pub fn new(sink: &'a mut dyn Write) -> Self {
        Out {
            sink,
            buffer: Vec::with_capacity(BUFFER_BYTES * 2),
            written: 0,
        }
    }

    /// Writes bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() >= BUFFER_BYTES {
            self.pass_on()?;
            return self.pass(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.settle()
    }

    /// The gathered bytes, to be added to directly; [`Out::settle`] must follow.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Passes the gathered bytes on when there are enough of them.
    #[inline]
    pub fn settle(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Bytes so far, gathered ones included.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Passes everything on. Without this call the last bytes are lost.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.pass_on()?;
        let written = self.written;
        self.sink
            .flush()
            .map_err(|source| Error::Write { written, source })?;
        Ok(written)
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.pass(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        result
    }

    fn pass(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let written = self.written;
            let failed = |source| Error::Write { written, source };
            match self.sink.write(bytes) {
                Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.written += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }
}

/// For `write!` and for libraries that want a writer. Errors lose their place: prefer [`Out::put`].
impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)
            .map(|()| bytes.len())
            .map_err(|error| match error {
                Error::Write { source, .. } => source,
                other => io::Error::other(other),
            })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Out<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `room` bytes, a thousand at a time.
    struct Full {
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(1000).min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_says_how_far_it_came() {
        let mut full = Full { room: 300_500 };
        let mut out = Out::new(&mut full);
        let error = loop {
            if let Err(error) = out.put(&[7; 9_000]) {
                break error;
            }
        };
        assert!(
            matches!(error, Error::Write { written: 300_500, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn everything_arrives_in_order() {
        let mut sink = Vec::new();
        let mut out = Out::new(&mut sink);
        let mut expected = Vec::new();
        for length in [1, 300_000, 5, 262_144, 0, 70_000] {
            let piece = vec![length as u8; length];
            out.put(&piece).unwrap_or_else(|error| panic!("{error}"));
            expected.extend_from_slice(&piece);
        }
        assert_eq!(out.bytes(), expected.len() as u64);
        assert!(matches!(out.finish(), Ok(count) if count == expected.len() as u64));
        assert_eq!(sink, expected);
    }
}
