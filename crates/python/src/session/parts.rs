//! The files of a session that several processes share.
//!
//! The first process writes the session's file, and holds a lock on it. Every other process writes a part in the folder
//! `<file>.parts`, with a lock of its own. The process that stops the session merges the parts that are complete, or whose process died, into
//! the file, unless the first process still writes it: then that one does.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracesmith_format::{Writer, WriterOptions};
use tracesmith_trace::{HostLink, Trace, merge};

use crate::error::sentence;

/// A file can be replaced, and a part can lose its folder, by a merge that ends at the same moment.
const TRIES: u32 = 16;

/// A file that a process writes, and its lock.
pub(super) struct Claimed {
    pub(super) path: PathBuf,
    /// Another handle of the same open file. The lock belongs to both, and goes with [`File::unlock`].
    pub(super) lock: File,
    pub(super) file: File,
    pub(super) role: Role,
}

/// Which file of the session a process writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The session's file.
    First,
    /// A part beside it.
    Part,
}

/// Claims the session's file, or a part if another process has it. A file with content that nobody writes is refused,
/// unless `overwrite`. Without locks, only a file that is new is known to be nobody's.
pub(super) fn claim(path: &Path, overwrite: bool) -> io::Result<Claimed> {
    for _ in 0..TRIES {
        let (file, is_new) = open_or_create(path)?;
        let is_locked = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => return claim_part(path),
            Err(TryLockError::Error(_)) => false,
        };
        let facts = file.metadata()?;
        if !facts.is_file() {
            return claimed(path.to_owned(), file, Role::First);
        }
        if !is_file_of(path, &facts) {
            // A merge has put another file there since.
            continue;
        }
        let is_free = is_new || (is_locked && (overwrite || facts.len() == 0));
        if !is_free {
            return Err(exists());
        }
        file.set_len(0)?;
        remove_leftovers(path);
        return claimed(path.to_owned(), file, Role::First);
    }
    Err(io::Error::other("other processes replace it all the time"))
}

/// Opens the file. Whether it is new is certain.
fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options.create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether an open file is still the one at the path.
fn is_file_of(path: &Path, facts: &fs::Metadata) -> bool {
    fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (facts.dev(), facts.ino()))
}

/// The error of the operating system for a file that exists: Python has a class for it.
fn exists() -> io::Error {
    io::Error::from_raw_os_error(libc::EEXIST)
}

/// Claims a part.
pub(super) fn claim_part(path: &Path) -> io::Result<Claimed> {
    let folder = folder(path);
    for number in 0.. {
        let part = folder.join(format!("{}-{number}.sbt", std::process::id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&part)
        {
            Ok(file) => {
                // A new file: nobody else can hold its lock.
                let _ = file.try_lock();
                return claimed(part, file, Role::Part);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && number < TRIES => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("numbers do not end")
}

fn claimed(path: PathBuf, file: File, role: Role) -> io::Result<Claimed> {
    let lock = file.try_clone()?;
    Ok(Claimed {
        path,
        lock,
        file,
        role,
    })
}

fn folder(path: &Path) -> PathBuf {
    beside(path, ".parts")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Parts of an earlier session of this file, whose processes have ended.
fn remove_leftovers(path: &Path) {
    for part in ended_parts(&folder(path)) {
        // What cannot be removed is merged, which is better than to fail.
        let _ = fs::remove_file(part);
    }
    let _ = fs::remove_dir(folder(path));
}

/// The parts that nobody writes any more, in the order of their names.
fn ended_parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_part = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sbt");
    let mut parts: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_part)
        .filter(|part| File::open(part).is_ok_and(|file| file.try_lock().is_ok()))
        .collect();
    parts.sort();
    parts
}

/// Merges the parts that are complete into the session's file.
pub(super) fn merge_ended(path: &Path) -> Result<(), String> {
    let folder = folder(path);
    if !folder.exists() {
        return Ok(());
    }
    let failed = |error: &dyn std::error::Error| {
        format!("merging the parts of {}: {}", path.display(), sentence(error))
    };
    let turn = match OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("lock"))
    {
        Ok(turn) => turn,
        // Another process has just merged everything.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    turn.lock().map_err(|error| failed(&error))?;
    let first = File::open(path).map_err(|error| failed(&error))?;
    if matches!(first.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(());
    }
    let parts = ended_parts(&folder);
    if !parts.is_empty() {
        merge_files(path, &parts)?;
        for part in parts {
            fs::remove_file(&part).map_err(|error| failed(&error))?;
        }
    }
    let is_last = fs::read_dir(&folder).is_ok_and(|entries| entries.count() == 1);
    if is_last {
        // A process that starts a part now creates the folder again.
        let _ = fs::remove_file(folder.join("lock"));
        let _ = fs::remove_dir(&folder);
    }
    Ok(())
}

fn merge_files(path: &Path, parts: &[PathBuf]) -> Result<(), String> {
    let failed = |error: &dyn std::error::Error| {
        format!("merging the parts of {}: {}", path.display(), sentence(error))
    };
    let new = beside(path, &format!(".merging-{}", std::process::id()));
    let files = std::iter::once(path).chain(parts.iter().map(PathBuf::as_path));
    let written = (|| {
        // A process that was killed at its start left an empty file.
        let has_content = |file: &&Path| fs::metadata(file).is_ok_and(|facts| facts.len() > 0);
        let traces = files
            .filter(has_content)
            .map(|file| Trace::open(file).map_err(|error| failed(&error)))
            .collect::<Result<Vec<_>, _>>()?;
        let file = File::create(&new).map_err(|error| failed(&error))?;
        let mut writer = Writer::new(file, WriterOptions::default()).map_err(|error| failed(&error))?;
        merge(&traces, HostLink::Utc, &mut writer, &mut |_| {}).map_err(|error| failed(&error))?;
        writer.seal().map_err(|error| failed(&error))?;
        fs::rename(&new, path).map_err(|error| failed(&error))
    })();
    if written.is_err() {
        // The parts are still there, and whole.
        let _ = fs::remove_file(&new);
    }
    written
}
