//! The trace file during recording.
//!
//! A full disk must not stop the target. After the first write error, rows are dropped, and the error is reported
//! once, at the end. The file has its final name from the start. If the collector is killed, the file contains
//! everything that was written.
//!
//! An existing trace that may be replaced keeps its content until the recording starts ([`TraceFile::start`]): a
//! recording that is refused must not cost the trace of an earlier one. Until then the new content is in memory. It is
//! small, because nothing is recorded yet. A temporary file that is renamed would serve as well, but it would lose a
//! symbolic link, the permissions, and the lock that other collectors look at.

use std::{
    fs::{File, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tracesmith_format::{ClockId, FrameId, StackId, StringId, Writable, Writer, WriterOptions, tables};

use crate::{
    capture::{Destination, Existing},
    error::Error,
};

/// Content that is held in memory at most, until the recording starts. A program may record before the collector knows
/// that all programs do.
const MAX_HELD: usize = 1 << 20;

/// Attempts to open a file that other recordings remove at the same moment.
const OPEN_ATTEMPTS: u32 = 4;

/// Attempts to get a lock, and the time between them.
const LOCK_ATTEMPTS: u32 = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A trace that is being written.
pub(crate) struct TraceFile {
    path: PathBuf,
    shape: Shape,
    writer: Option<Writer<Sink>>,
    error: Option<tracesmith_format::Error>,
    /// Whether the file had lost the content that it had before, when the writer was dropped.
    was_replaced: bool,
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
    file: File,
    /// What is written once the file may lose the content that it has.
    held: Option<Vec<u8>>,
    /// Whether the file has nothing that it had before.
    is_replaced: bool,
    position: u64,
    written: u64,
}

impl TraceFile {
    /// Creates the file, and locks it. An existing file is refused, unless it may be replaced and no other process
    /// writes it. It keeps its content until [`start`](Self::start).
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
        let (file, shape) = open_and_lock(&path, || options.open(&path))?;
        // After locking: another recording may have completed the file meanwhile.
        let has_content = shape == Shape::Plain && file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        Ok(Self::new(path, file, shape, has_content.then(Vec::new)))
    }

    fn new(path: PathBuf, file: File, shape: Shape, held: Option<Vec<u8>>) -> Self {
        let is_replaced = held.is_none();
        let sink = Sink {
            file,
            held,
            is_replaced,
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
            was_replaced: is_replaced,
        };
        file.writer = file.keep_error(Writer::new(sink, options));
        file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The recording has started: the file loses the content that it had before.
    pub(crate) fn start(&mut self) {
        self.write(|writer| {
            let replaced = writer.sink_mut().replace_content();
            replaced.map_err(|source| tracesmith_format::Error::Write { written: 0, source })
        });
    }

    /// Whether the file still has the content that it had before.
    pub(crate) fn keeps_earlier_content(&mut self) -> bool {
        !self.is_replaced()
    }

    /// Ends without a trace. Removes the file, unless it still has the content that it had before.
    pub(crate) fn discard(mut self) {
        if self.shape == Shape::Plain && self.is_replaced() {
            // A remaining file must not hide the error because of which there is no trace.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn is_replaced(&mut self) -> bool {
        match &mut self.writer {
            Some(writer) => writer.sink_mut().is_replaced,
            None => self.was_replaced,
        }
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
        let writer = self.writer.as_mut()?;
        match action(writer) {
            Ok(value) => Some(value),
            Err(error) => {
                self.was_replaced = writer.sink_mut().is_replaced;
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

/// Opens a file and locks it. Opens it again if it was removed in between: a recording that ends without a trace removes
/// its file.
fn open_and_lock(path: &Path, mut open: impl FnMut() -> io::Result<File>) -> Result<(File, Shape), Error> {
    for attempt in 1.. {
        let path = path.to_owned();
        let file = match open() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists { path }),
            Err(source) => return Err(Error::Create { path, source }),
        };
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok((file, Shape::Stream));
        }
        if is_locked(&file) {
            return Err(Error::BeingWritten { path });
        }
        if !is_removed(&file, &path) || attempt == OPEN_ATTEMPTS {
            return Ok((file, Shape::Plain));
        }
    }
    unreachable!("the last attempt returns")
}

/// Takes the lock of a file, or tells that another process has it. A viewer holds it for a moment to see whether the
/// file is being written. Some file systems have no locks.
fn is_locked(file: &File) -> bool {
    for attempt in 0..LOCK_ATTEMPTS {
        if attempt > 0 {
            thread::sleep(LOCK_PAUSE);
        }
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return false;
        }
    }
    true
}

/// Whether a path does not lead to an open file any more. Some file systems number a file differently by its path and by its
/// descriptor, so the file must also have lost its last name.
fn is_removed(file: &File, path: &Path) -> bool {
    let number = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(file), Ok(path)) => number(&file) != number(&path) && file.nlink() == 0,
        (_, Err(error)) => error.kind() == io::ErrorKind::NotFound,
        (Err(_), _) => false,
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

impl Sink {
    /// Writes what is held, in place of what the file has.
    fn replace_content(&mut self) -> io::Result<()> {
        if self.held.is_none() {
            return Ok(());
        }
        self.file.set_len(0)?;
        self.is_replaced = true;
        let held = self.held.take().unwrap_or_default();
        self.file.write_all(&held)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.len() + bytes.len() > MAX_HELD)
        {
            self.replace_content()?;
        }
        let taken = match &mut self.held {
            Some(held) => held.write(bytes)?,
            None => self.file.write(bytes)?,
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
        // The header is written at the end: the trace is complete.
        self.replace_content()?;
        self.position = self.file.seek(to)?;
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
        first.start();
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
        let mut second = TraceFile::create(&destination).unwrap();
        second.start();
        assert!(std::fs::metadata(&destination.path).unwrap().len() < complete);
    }

    #[test]
    fn a_trace_is_replaced_when_the_recording_starts_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sbt");
        let destination = Destination {
            path: path.clone(),
            existing: Existing::Replace,
        };
        std::fs::write(&path, "an earlier trace").unwrap();
        let mut refused = TraceFile::create(&destination).unwrap();
        refused.metadata("writer", "refused");
        refused.flush();
        refused.discard();
        assert_eq!(std::fs::read(&path).unwrap(), b"an earlier trace");
        let mut killed = TraceFile::create(&destination).unwrap();
        killed.metadata("writer", "killed");
        killed.start();
        killed.metadata("writer", "killed later");
        killed.flush();
        drop(killed);
        let left = std::fs::read(&path).unwrap();
        let reader = tracesmith_format::Reader::open(tracesmith_format::Memory(left)).unwrap();
        assert!(reader.blocks().len() > 1);
        let mut discarded = TraceFile::create(&destination).unwrap();
        discarded.start();
        discarded.discard();
        assert!(!path.exists(), "its content was replaced, and it is no trace");
    }

    #[test]
    fn a_trace_that_cannot_be_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sbt");
        std::fs::write(&path, "an earlier trace").unwrap();
        // It cannot be truncated.
        let read_only = File::open(&path).unwrap();
        let mut file = TraceFile::new(path.clone(), read_only, Shape::Plain, Some(Vec::new()));
        file.metadata("writer", "new");
        file.start();
        assert!(file.error.is_some());
        assert!(file.keeps_earlier_content());
        file.discard();
        assert_eq!(std::fs::read(&path).unwrap(), b"an earlier trace");
    }

    #[test]
    fn a_viewer_that_looks_at_the_lock_does_not_refuse_a_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sbt");
        std::fs::write(&path, "an earlier trace").unwrap();
        let viewer = File::open(&path).unwrap();
        viewer.try_lock_shared().unwrap();
        let leaving = thread::spawn(move || {
            thread::sleep(LOCK_PAUSE);
            drop(viewer);
        });
        let destination = Destination {
            path,
            existing: Existing::Replace,
        };
        let file = TraceFile::create(&destination).unwrap();
        leaving.join().unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn a_file_that_is_removed_before_it_is_locked_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.sbt");
        let mut opened = 0;
        let (file, _) = open_and_lock(&path, || {
            let file = File::create(&path);
            opened += 1;
            if opened == 1 {
                std::fs::remove_file(&path)?;
            }
            file
        })
        .unwrap();
        assert_eq!(opened, 2);
        assert!(!is_removed(&file, &path));
        std::fs::write(folder.path().join("other"), "").unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(is_removed(&file, &path));
    }

    #[test]
    fn much_content_is_written_before_the_recording_starts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sbt");
        std::fs::write(&path, "an earlier trace").unwrap();
        let mut file = TraceFile::create(&Destination {
            path: path.clone(),
            existing: Existing::Replace,
        })
        .unwrap();
        for number in 0..100_000_u32 {
            file.metadata(&number.to_string(), &number.wrapping_mul(0x9E37_79B9).to_string());
            file.flush();
        }
        assert!(std::fs::metadata(&path).unwrap().len() > MAX_HELD as u64);
    }
}
