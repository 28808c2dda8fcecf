//! Whether a collector is writing a trace file now.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// A file on a system without locks is taken to be written for this long after it last grew.
const QUIET: Duration = Duration::from_secs(5);

/// How long a file has been still, and whether anybody holds its lock.
#[derive(Debug)]
pub(crate) struct Writer {
    last_growth: Option<Instant>,
    /// The lock was held before: it tells when the writer is gone.
    has_lock: bool,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Writer {
            last_growth: None,
            has_lock: false,
        }
    }

    /// The file is longer than before.
    pub(crate) fn note_growth(&mut self) {
        self.last_growth = Some(Instant::now());
    }

    /// Whether somebody is writing the file.
    pub(crate) fn is_there(&mut self, path: &Path) -> bool {
        if is_locked(path) {
            self.has_lock = true;
            return true;
        }
        let is_quiet = self.last_growth.is_none_or(|last| last.elapsed() > QUIET);
        !self.has_lock && !is_quiet
    }
}

/// Whether a process holds the lock that a collector takes. It is tried for a moment only, and shared with other
/// readers.
pub(crate) fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_tells_when_a_writer_comes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.sbt");
        let file = File::create(&path).unwrap();
        let mut writer = Writer::new();
        assert!(!writer.is_there(&path), "nobody has written since it is known");
        writer.note_growth();
        assert!(writer.is_there(&path), "there may be no locks");
        file.lock().unwrap();
        assert!(writer.is_there(&path) && is_locked(&path));
        writer.note_growth();
        drop(file);
        assert!(!writer.is_there(&path));
    }
}
