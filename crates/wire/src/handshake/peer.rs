//! The target, as the collector knows it after the handshake.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{credentials::Credentials, exit_status};

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

impl Peer {
    pub(crate) fn new(credentials: Credentials) -> Self {
        let pid = Pid::from_raw(credentials.process_id);
        // Without a descriptor its life is unknown, which is a state of its own.
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let process_id = u32::try_from(credentials.process_id).ok();
        Self {
            process_id: process_id.filter(|id| *id != 0),
            process,
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
