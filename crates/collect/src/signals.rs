//! Signals as something to poll.
//!
//! They are blocked and read from a descriptor. Threads that are started later
//! inherit that; a program that is started must not.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};

use crate::error::Error;

/// What a collector must hear of.
const HEARD: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// `si_code` of a signal that the kernel sent, as it does for the keys of a
/// terminal.
const SI_KERNEL: i32 = 0x80;

/// Signals to this process. Dropping it lets them act again.
pub(crate) struct Signals {
    descriptor: SignalFd,
    blocked: SigSet,
    before: SigSet,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) signal: Signal,
    pub(crate) sender: Sender,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The terminal, which sent it to the program as well.
    Terminal,
    /// Another process, which sent it to us alone.
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
        // A file that may not grow further is a full disk, and no reason to
        // die. It stays blocked: one that came would act when we let go.
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

    /// The mask from before, for programs that are started.
    pub(crate) fn before(&self) -> &SigSet {
        &self.before
    }

    /// The next signal that came.
    pub(crate) fn next(&self) -> Result<Option<Arrived>, Error> {
        let Some(info) = self
            .descriptor
            .read_signal()
            .map_err(Error::system("reading a signal"))?
        else {
            return Ok(None);
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
        // What came and was not read would act now, and there is nothing left
        // for it to stop.
        while let Ok(Some(_)) = self.next() {}
        // A mask that cannot be restored only makes us deaf, at the end.
        let _ = self.blocked.thread_unblock();
    }
}
