//! Opening files that someone else may have put there.
//!
//! A path that a process names can lead to a pipe, a device or another user's file by the time that it is read. Opening a
//! pipe waits for its writer, for ever if need be, and the trace is not sealed meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a plain file.
///
/// # Errors
///
/// When it cannot be opened, or is something else.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    open(path, OFlags::empty())
}

/// Opens a plain file in a folder that all users write to: it must be this user's or root's, and no link.
///
/// # Errors
///
/// As [`open_plain`], or when another user owns it.
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
    // Flags of the system have the sign bit nowhere.
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    // Of what was opened: the name may lead elsewhere by now.
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}
