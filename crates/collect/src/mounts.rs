//! The files that a process sees, where they are not ours: those of a container.
//!
//! Frames are named when a trace is finished, and most processes have ended by then. Two descriptors keep their files
//! within reach: of the root, which paths are looked up below, and of the mount namespace, without which everything that is
//! mounted below that root goes with the last process. A container's file systems stay mounted that long.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, fstat, openat, stat},
    io::Errno,
};

/// The root directory of a process, and all that is mounted there.
#[derive(Debug)]
pub(crate) struct Mounts {
    root: OwnedFd,
    _namespace: OwnedFd,
}

impl Mounts {
    /// Those of a process; none when they are ours, or cannot be had.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let folder = OFlags::PATH | OFlags::DIRECTORY;
        let root = open(&process.join("root"), folder).ok()?;
        let namespace = open(&process.join("ns/mnt"), OFlags::RDONLY).ok()?;
        let is_ours = is_same(&root, Path::new("/")) && is_same(&namespace, Path::new("/proc/self/ns/mnt"));
        (!is_ours).then_some(Self {
            root,
            _namespace: namespace,
        })
    }

    /// Where its root is seen from here.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}

fn is_same(descriptor: impl AsFd, path: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fstat(descriptor), stat(path)) else {
        return false;
    };
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_beside_us_has_our_files() {
        assert!(Mounts::of(std::process::id()).is_none());
    }
}
