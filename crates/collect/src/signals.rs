//! Signals as a file descriptor to poll.
//!
//! The collector blocks signals and reads them from a descriptor. New threads inherit the mask. Started programs must
//! not.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};

use crate::error::Error;

/// The signals that the collector handles.
const HEARD: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// `si_code` of a signal from the kernel, for example after Ctrl-C in a terminal.
const SI_KERNEL: i32 = 0x80;

/// The signals of this process. Dropping it restores their normal effect.
pub(crate) struct Signals {
    descriptor: SignalFd,
    blocked: SigSet,
    before: SigSet,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) signal: Signal,
    pub(crate) sender: Sender,
}

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The terminal. It sent the signal to the program, too.
    Terminal,
    /// Another process. It sent the signal only to the collector.
    Process,
}

impl Signals {
    pub(crate) fn block() -> Result<Self, Error> {
        let heard: SigSet = HEARD.into_iter().collect();
        let before = SigSet::thread_get_mask().map_err(Error::system("reading the signal mask"))?;
        let blocked = HEARD
            .into_iter()
            .filter(|signal| !before.contains(*signal))
            .collect();
        heard.thread_block().map_err(Error::system("blocking signals"))?;
        // SIGXFSZ means that a file reached its size limit. That is like a full disk and must not end the collector.
        // It stays blocked, because a pending signal would take effect later.
        SigSet::from(Signal::SIGXFSZ)
            .thread_block()
            .map_err(Error::system("blocking signals"))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor =
            SignalFd::with_flags(&heard, flags).map_err(Error::system("making a descriptor for signals"))?;
        Ok(Self {
            descriptor,
            blocked,
            before,
        })
    }

    /// The signal mask from before, for started programs.
    pub(crate) fn before(&self) -> &SigSet {
        &self.before
    }

    /// The next received signal, apart from those that the collector sends to its process group.
    pub(crate) fn next(&self) -> Result<Option<Arrived>, Error> {
        let info = loop {
            let read = self.descriptor.read_signal();
            match read.map_err(Error::system("reading a signal"))? {
                None => return Ok(None),
                Some(info) if info.ssi_code != SI_KERNEL && info.ssi_pid == std::process::id() => {}
                Some(info) => break info,
            }
        };
        let number = i32::try_from(info.ssi_signo).unwrap_or(0);
        let signal = Signal::try_from(number)
            .map_err(|_| Error::system("reading a signal")(io::Error::from(io::ErrorKind::InvalidData)))?;
        let sender = if info.ssi_code == SI_KERNEL {
            Sender::Terminal
        } else {
            Sender::Process
        };
        Ok(Some(Arrived { signal, sender }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Read pending signals, because they would take effect now. There is nothing left to stop.
        while let Ok(Some(_)) = self.next() {}
        // If the mask cannot be restored, the process only ignores signals, and it is about to exit.
        let _ = self.blocked.thread_unblock();
    }
}
