//! A socket on which nothing takes longer than its deadline.

use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{
        self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
        sockopt::{self, Timeout},
    },
};

use crate::error::Error;

/// The longest deadline: beyond it the clock could overflow.
const LONGEST: Duration = Duration::from_secs(86_400);

/// When the steps of one exchange must be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit.min(LONGEST))
    }

    /// What is left of it; an error that names `what` when nothing is.
    pub(crate) fn left(self, what: &'static str) -> Result<Duration, Error> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(Error::TimedOut { what })
        } else {
            // The kernel counts in microseconds, and zero is "for ever".
            Ok(left.max(Duration::from_micros(1)))
        }
    }
}

/// A socket that is not connected yet.
pub(crate) fn open(flags: SocketFlags) -> Result<OwnedFd, Error> {
    let flags = flags | SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(Error::system("creating the socket"))
}

/// One end of a connection.
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// A connection that was accepted.
    pub(crate) fn accepted(connection: OwnedFd) -> Self {
        Self(connection)
    }

    /// Connects, waiting for room in the listener's queue if need be.
    pub(crate) fn connect(address: &SocketAddrUnix, deadline: Deadline) -> Result<Self, Error> {
        let socket = open(SocketFlags::empty())?;
        step("connection", deadline, |left| {
            limit(&socket, Timeout::Send, left)?;
            net::connect(&socket, address)
        })?;
        Ok(Self(socket))
    }

    /// Sends one packet, with a descriptor if there is one.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.as_slice();
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // NOSIGNAL: a peer that is gone must not kill the target by SIGPIPE.
        let sent = step("room to send", deadline, |left| {
            limit(&self.0, Timeout::Send, left)?;
            let packet = [IoSlice::new(bytes)];
            net::sendmsg(&self.0, &packet, &mut control, SendFlags::NOSIGNAL)
        })?;
        debug_assert_eq!(sent, bytes.len(), "packets are sent whole");
        Ok(())
    }

    /// Receives one packet, and the first descriptor that came with it. Longer
    /// packets are cut, which their reader notices by the length; descriptors
    /// that we have no space for are closed by the kernel.
    pub(crate) fn receive<'b>(
        &self,
        bytes: &'b mut [u8],
        what: &'static str,
        deadline: Deadline,
    ) -> Result<(&'b [u8], Option<OwnedFd>), Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = step(what, deadline, |left| {
            limit(&self.0, Timeout::Recv, left)?;
            let mut packet = [IoSliceMut::new(bytes)];
            net::recvmsg(&self.0, &mut packet, &mut control, RecvFlags::CMSG_CLOEXEC)
        })?;
        let mut descriptor = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                descriptor = descriptors.last();
            }
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(Error::Malformed {
                message: what,
                what: "it is too long",
            });
        }
        Ok((&bytes[..received.bytes], descriptor))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn limit(socket: &OwnedFd, which: Timeout, left: Duration) -> Result<(), Errno> {
    sockopt::set_socket_timeout(socket, which, Some(left))
}

/// One system call within the deadline: again after a signal, an error that
/// names `what` when time is up.
fn step<T>(
    what: &'static str,
    deadline: Deadline,
    mut call: impl FnMut(Duration) -> Result<T, Errno>,
) -> Result<T, Error> {
    loop {
        match call(deadline.left(what)?) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::TIMEDOUT) => return Err(Error::TimedOut { what }),
            result => return result.map_err(Error::system("talking to the other side")),
        }
    }
}

/// Which file a descriptor stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity(Option<(u64, u64)>);

impl Identity {
    pub(crate) fn of(descriptor: impl AsFd) -> Self {
        // One that cannot be asked is none that can be recognised.
        let stat = rustix::fs::fstat(descriptor).ok();
        Self(stat.map(|stat| (stat.st_dev, stat.st_ino)))
    }

    /// Whether the descriptor stands for that file now.
    pub(crate) fn is_still(self, descriptor: impl AsFd) -> bool {
        self.0.is_some() && Self::of(descriptor).0 == self.0
    }
}
