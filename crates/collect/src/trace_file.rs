//! The trace file during recording.
//!
//! A full disk must not stop the target. After the first write error, rows are dropped, and the error is reported
//! once, at the end. The file has its final name from the start. If the collector is killed, the file contains
//! everything that was written.

use std::{
    fs::{File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tracesmith_format::{ClockId, FrameId, StackId, StringId, Writable, Writer, WriterOptions, tables};

use crate::{
    capture::{Destination, Existing},
    error::Error,
};

/// A trace that is being written.
pub(crate) struct TraceFile {
    path: PathBuf,
    shape: Shape,
    writer: Option<Writer<Sink>>,
    error: Option<tracesmith_format::Error>,
}

/// Whether the header can be rewritten at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A regular file.
    Plain,
    /// A pipe or a device, which cannot seek.
    Stream,
}

/// The output: whole blocks, without a buffer.
struct Sink {
    /// `None` if only the size is measured.
    file: Option<File>,
    position: u64,
    written: u64,
}

impl TraceFile {
    /// Creates the file, and locks it. An existing file is not changed, unless it may be replaced and no other process
    /// writes it.
    pub(crate) fn create(destination: &Destination) -> Result<Self, Error> {
        let path = destination.path.clone();
        let is_plain = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut options = File::options();
        options.write(true);
        match destination.existing {
            Existing::Refuse if is_plain => return Err(Error::Exists { path }),
            Existing::Refuse if !path.exists() => options.create_new(true),
            _ => options.create(true).truncate(false),
        };
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists { path }),
            Err(source) => return Err(Error::Create { path, source }),
        };
        let shape = if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            Shape::Plain
        } else {
            Shape::Stream
        };
        if shape == Shape::Plain {
            if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                return Err(Error::BeingWritten { path });
            }
            // Also without a lock: some file systems have none.
            if let Err(source) = file.set_len(0) {
                return Err(Error::Create { path, source });
            }
        }
        Ok(Self::new(path, Some(file), shape))
    }

    fn new(path: PathBuf, file: Option<File>, shape: Shape) -> Self {
        let sink = Sink {
            file,
            position: 0,
            written: 0,
        };
        let options = WriterOptions {
            id: random_id(),
            ..WriterOptions::default()
        };
        let mut file = Self {
            path,
            shape,
            writer: None,
            error: None,
        };
        file.writer = file.keep_error(Writer::new(sink, options));
        file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The ID of a string. `NONE` after a write error.
    pub(crate) fn string(&mut self, text: &str) -> StringId {
        self.write(|writer| writer.string(text)).unwrap_or_default()
    }

    /// The ID of a frame. `NONE` after a write error.
    pub(crate) fn frame(&mut self, frame: tables::Frame) -> FrameId {
        self.write(|writer| writer.frame(frame)).unwrap_or_default()
    }

    /// The ID of a stack. `NONE` after a write error.
    pub(crate) fn stack(&mut self, stack: tables::Stack) -> StackId {
        self.write(|writer| writer.stack(stack)).unwrap_or_default()
    }

    /// Adds a row with times of `clock`.
    #[inline]
    pub(crate) fn push<T: Writable>(&mut self, clock: ClockId, row: &T) {
        self.write(|writer| writer.push(clock, row));
    }

    /// Adds a row without times.
    pub(crate) fn define<T: Writable>(&mut self, row: &T) {
        self.push(ClockId::NONE, row);
    }

    /// Adds an entry to the metadata.
    pub(crate) fn metadata(&mut self, key: &str, value: &str) {
        let row = tables::Metadata {
            key: self.string(key),
            value: self.string(value),
        };
        self.define(&row);
    }

    /// Writes all rows so far.
    pub(crate) fn flush(&mut self) {
        self.write(Writer::flush);
    }

    /// Completes the file. Returns its size, or the first error.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        if let Some(writer) = self.writer.take() {
            let finished = complete(writer, self.shape);
            if let Some(bytes) = self.keep_error(finished) {
                return Ok(bytes);
            }
        }
        let source = self.error.expect("a writer is only let go with an error");
        Err(Error::Write {
            path: self.path,
            source,
        })
    }

    #[inline]
    fn write<R>(
        &mut self,
        action: impl FnOnce(&mut Writer<Sink>) -> Result<R, tracesmith_format::Error>,
    ) -> Option<R> {
        let result = action(self.writer.as_mut()?);
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.writer = None;
                self.error = Some(error);
                None
            }
        }
    }

    fn keep_error<R>(&mut self, result: Result<R, tracesmith_format::Error>) -> Option<R> {
        result.map_err(|error| self.error = Some(error)).ok()
    }
}

fn complete(writer: Writer<Sink>, shape: Shape) -> Result<u64, tracesmith_format::Error> {
    let sink = match shape {
        Shape::Plain => writer.seal()?,
        Shape::Stream => writer.finish()?,
    };
    Ok(sink.written)
}

/// A random ID of the trace.
fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    // If there is no randomness, the ID is zero. The trace matters more than a unique ID.
    let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
    id
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = match &mut self.file {
            Some(file) => file.write(bytes)?,
            None => bytes.len(),
        };
        self.position += taken as u64;
        self.written = self.written.max(self.position);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::Unsupported)?;
        self.position = file.seek(to)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_being_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination {
            path: folder.path().join("ranks.sbt"),
            existing: Existing::Replace,
        };
        let mut first = TraceFile::create(&destination).unwrap();
        first.metadata("writer", "first");
        first.flush();
        let before = std::fs::read(&destination.path).unwrap();
        assert!(!before.is_empty());
        let refused = TraceFile::create(&destination).err().unwrap();
        assert!(matches!(refused, Error::BeingWritten { .. }), "{refused}");
        assert_eq!(std::fs::read(&destination.path).unwrap(), before);
        first.finish().unwrap();
        let complete = std::fs::metadata(&destination.path).unwrap().len();
        // Nobody writes it any more: it is replaced.
        let _second = TraceFile::create(&destination).unwrap();
        assert!(std::fs::metadata(&destination.path).unwrap().len() < complete);
    }
}
