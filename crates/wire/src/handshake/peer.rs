//! The target, as the collector knows it after the handshake.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{fstat, fstatfs},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    credentials::{self, Credentials},
    exit_status,
};

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It has ended: what is in its ring is all there will be.
    Ended,
    /// The kernel cannot tell us: it is too old (before 5.3), or the process
    /// is not visible from here.
    Unknown,
}

/// The process at the other end of a ring.
///
/// Held by a descriptor of the process (pidfd) and not by the connection: the
/// target may close what it finds open without having ended.
#[derive(Debug)]
pub struct Peer {
    process_id: Option<u32>,
    process: Option<OwnedFd>,
}

/// Tells a process from all others, as far as the kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerId {
    /// By a number that no other process has or gets (Linux 6.9).
    Unique(u64),
    /// By the number that it has here while it lives.
    Process(u32),
    /// By the number that it says it has: it is not visible from here.
    Claimed(u32),
}

impl Peer {
    pub(crate) fn new(credentials: Credentials, socket: impl AsFd) -> Self {
        let process_id = credentials.process_id();
        // Without a descriptor its life is unknown, which is a state of its own.
        let process = credentials::process_of(&socket).or_else(|| open(process_id?, &socket));
        Self { process_id, process }
    }

    /// Which process it is; `claimed` is the number that it says it has.
    pub fn id(&self, claimed: u32) -> PeerId {
        let unique = self.process.as_ref().and_then(unique_number);
        match (unique, self.process_id) {
            (Some(number), _) => PeerId::Unique(number),
            (None, Some(process)) => PeerId::Process(process),
            (None, None) => PeerId::Claimed(claimed),
        }
    }

    /// The process, by the number that the collector knows it by. None when it
    /// is not visible from here.
    pub fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    /// A descriptor that becomes readable when the process ends, for an event
    /// loop.
    pub fn process(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process still runs.
    pub fn life(&self) -> Life {
        let Some(process) = &self.process else {
            return Life::Unknown;
        };
        let mut watched = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut watched, Some(&Timespec::default())) {
            Ok(0) => Life::Running,
            Ok(_) => Life::Ended,
            Err(_) => Life::Unknown,
        }
    }

    /// The wait status of a process that has ended, by anyone's child. None
    /// before its parent asked for it, and on kernels before 6.15.
    pub fn exit_status(&self) -> Option<i32> {
        self.process().and_then(exit_status::of)
    }
}

/// A descriptor of the process with this number, on kernels that have no better
/// way. The number may belong to another process by now: the one that connected
/// still lives if its end of the socket is open, and then it has kept its number.
fn open(process_id: u32, socket: impl AsFd) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(process_id).ok()?)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let mut watched = [PollFd::new(&socket, PollFlags::empty())];
    let hung_up = poll(&mut watched, Some(&Timespec::default())) != Ok(0);
    (!hung_up).then_some(process)
}

/// The number of a process's own file system (pidfs), which is never given out
/// again. Before Linux 6.9 all these descriptors share one number of another.
fn unique_number(process: &OwnedFd) -> Option<u64> {
    /// `PID_FS_MAGIC` of `linux/magic.h`.
    const PID_FS: i64 = 0x5049_4446;
    let system = fstatfs(process).ok()?;
    #[allow(clippy::useless_conversion, reason = "its type differs between machines")]
    let is_own = i64::try_from(system.f_type).is_ok_and(|kind| kind == PID_FS);
    is_own.then(|| fstat(process).ok().map(|stat| stat.st_ino))?
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixStream, process::Command};

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_number_is_not_believed_once_its_process_has_hung_up() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(open(child.id(), &ours).is_some());
        // The process that was at the other end is gone, and another one has its number.
        drop(theirs);
        assert!(open(child.id(), &ours).is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
