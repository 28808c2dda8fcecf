//! Opens files that other users may have created.
//!
//! A path from a process can lead to a pipe, a device or another user's file when it is read. Opening a pipe waits
//! for its writer, possibly forever, and the trace would not be finished.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file.
///
/// # Errors
///
/// If it cannot be opened, or is not a regular file.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    open(path, OFlags::empty())
}

/// Opens a regular file in a folder that all users can write to. It must belong to this user or root, and must not be
/// a link.
///
/// # Errors
///
/// As [`open_plain`], or if another user owns it.
pub(crate) fn open_trusted(path: &Path) -> io::Result<File> {
    let file = open(path, OFlags::NOFOLLOW)?;
    let owner = file.metadata()?.uid();
    let ours = rustix::process::geteuid().as_raw();
    if owner == ours || owner == 0 {
        Ok(file)
    } else {
        Err(io::Error::other("it belongs to another user"))
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    // No flag uses the sign bit.
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    // Check the opened file, because the path can lead elsewhere by now.
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}
