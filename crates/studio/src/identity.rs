//! Whether a file is still the one that was opened.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What changes when a file is written to, or when another one takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Identity {
    /// The identity of what has this path now; `None` for what is no file, such as a pipe: it is read once, and whole.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let facts = std::fs::metadata(path)?;
        Ok(facts.is_file().then(|| Self::of_facts(&facts)))
    }

    pub(crate) fn of_facts(facts: &Metadata) -> Self {
        Identity {
            device: facts.dev(),
            inode: facts.ino(),
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        }
    }

    /// Text that is another one for another identity.
    pub(crate) fn text(&self) -> String {
        let (seconds, nanos) = self.modified;
        format!("{}-{}-{}-{seconds}-{nanos}", self.device, self.inode, self.bytes)
    }

    /// The size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
