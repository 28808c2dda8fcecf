//! Whether a file is still the one that was opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use tracesmith_format::{FILE_HEADER_BYTES, FileHeader};

/// Reads of a header until it is taken to be damaged.
const HEADER_TRIES: u32 = 3;
const HEADER_PAUSE: Duration = Duration::from_millis(1);

/// What changes when a file is written to, or when another one takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// What is known of a file that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is no file, such as a pipe: it was read once, and whole.
    Stream,
    /// It stays as it is.
    Whole(Identity),
    /// Its writer has not finished it: it may grow. The number is that of the trace.
    Growing(Identity, [u8; 16]),
    /// What was read before is not in it any longer.
    Changed,
}

impl Identity {
    /// The identity of what has this path now; `None` for what is no file, such as a pipe.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let facts = std::fs::metadata(path)?;
        Ok(facts.is_file().then(|| Self::of_facts(&facts)))
    }

    fn of_facts(facts: &Metadata) -> Self {
        Identity {
            device: facts.dev(),
            inode: facts.ino(),
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        }
    }

    /// The size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the same file has lost nothing from the end.
    fn may_become(&self, now: &Self) -> bool {
        (self.device, self.inode) == (now.device, now.inode) && now.bytes >= self.bytes
    }
}

impl Known {
    /// Whether what has this path now is something else than what is known.
    pub(crate) fn differs_from(&self, path: &Path) -> bool {
        let now = || Identity::of(path).ok().flatten();
        match self {
            Known::Stream => false,
            Known::Whole(known) => now().as_ref() != Some(known),
            Known::Growing(known, trace) => {
                !now().is_some_and(|now| known.may_become(&now)) || trace_number(path) != Some(*trace)
            }
            Known::Changed => true,
        }
    }

    /// The size of the file when it was read.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Known::Whole(identity) | Known::Growing(identity, _) => identity.bytes,
            Known::Stream | Known::Changed => 0,
        }
    }
}

/// The random number in the header of a trace file. The header is written again when the file is finished; one that
/// is half written is read again.
fn trace_number(path: &Path) -> Option<[u8; 16]> {
    let file = File::open(path).ok()?;
    for _ in 0..HEADER_TRIES {
        let mut bytes = [0; FILE_HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).ok()?;
        if let Some(header) = FileHeader::from_bytes(&bytes).ok()? {
            return Some(header.id);
        }
        std::thread::sleep(HEADER_PAUSE);
    }
    None
}
