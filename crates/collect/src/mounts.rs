//! The files of a process in a container.
//!
//! Frames are symbolized when a trace is finished. Most processes have exited by then. Two descriptors keep their
//! files reachable: the root directory, and the mount namespace. Without the namespace, all mounts below the root
//! disappear with the last process. The container's file systems stay mounted for as long.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, fstat, openat, stat},
    io::Errno,
};

/// The root directory and the mount namespace of a process.
#[derive(Debug)]
pub(crate) struct Mounts {
    root: OwnedFd,
    _namespace: OwnedFd,
}

impl Mounts {
    /// Opens them. Returns `None` if they are the collector's own, or cannot be opened.
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

    /// The path of the root as seen from the collector.
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
