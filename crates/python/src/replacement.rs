//! Writes a file next to its final path, and renames it when it is complete: a failure leaves what was there.
//!
//! A pipe or a device is written directly. So is a file next to which no other one can be created, for example because its
//! folder is read-only.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::sentence;

/// As many links as Linux follows.
const MAX_LINKS: u32 = 40;

/// Calls `write` with the path of an empty file, which then takes the place of `path`.
pub(crate) fn replace<R>(path: &Path, write: impl FnOnce(&Path) -> Result<R, String>) -> Result<R, String> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return write(path);
    }
    let path = behind_links(path);
    let earlier = match File::options().write(true).open(&path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(sentence(&error)),
    };
    // It stays locked until it is replaced. Some file systems have no locks.
    if let Some(file) = &earlier
        && matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    {
        return Err("the file is being written by a recording".to_owned());
    }
    let Ok(partial) = create_partial(&path, earlier.as_ref()) else {
        File::create(&path).map_err(|error| sentence(&error))?;
        return write(&path);
    };
    let written = write(&partial).and_then(|written| {
        fs::rename(&partial, &path).map_err(|error| sentence(&error))?;
        Ok(written)
    });
    // The first error matters more than a file that remains.
    written.inspect_err(|_| drop(fs::remove_file(&partial)))
}

/// The path that symbolic links lead to. There may be no file.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = match path.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    path
}

/// Creates an empty file next to a path, with the permissions of the file that it will replace.
fn create_partial(path: &Path, earlier: Option<&File>) -> io::Result<PathBuf> {
    static CREATED: AtomicU32 = AtomicU32::new(0);
    let number = CREATED.fetch_add(1, Ordering::Relaxed);
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}-{number}", std::process::id()));
    let partial = path.with_file_name(name);
    let file = File::options().write(true).create_new(true).open(&partial)?;
    if let Some(earlier) = earlier {
        let permissions = earlier.metadata().map(|metadata| metadata.permissions());
        if let Err(error) = permissions.and_then(|permissions| file.set_permissions(permissions)) {
            // The error matters more than a file that remains.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
    }
    Ok(partial)
}
