//! Orders to a target, and its answers.
//!
//! Two ways to the same conversation: a target that was started under a
//! collector connects to it ([`handshake::connect_control`]), and a collector
//! connects to a target that was armed and waits at a socket of its own
//! ([`armed`]). Then the collector says when to record and what, and the target
//! says what became of it. Records never go this way: they have their rings.
//!
//! [`handshake::connect_control`]: crate::handshake::connect_control

pub mod armed;
mod codec;
mod message;
mod settings;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{Shutdown, shutdown},
};

pub use message::Message;
pub use settings::{CaptureRange, Kinds, Settings, Steps};

use crate::{
    error::Error,
    handshake::{Deadline, Identity, Peer, Socket, refusal},
};

/// How long a collector may take to write a dump: hundreds of megabytes take a while.
pub const DUMP_LIMIT: Duration = Duration::from_secs(60);

/// What a target answers that another collector records.
pub const BUSY: &str = "this process is being recorded already";

/// Longest message in bytes.
const MESSAGE_MAX: usize = 8192;

/// One end of the conversation.
pub struct Control {
    socket: Socket,
    peer: Peer,
    identity: Identity,
}

impl Control {
    pub(crate) fn new(socket: Socket, peer: Peer) -> Self {
        let identity = Identity::of(&socket);
        Self {
            socket,
            peer,
            identity,
        }
    }

    /// The process at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ends the conversation. The other side sees the end of the connection.
    pub fn hang_up(&self) {
        // It fails only if the other side has gone.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Whether the descriptor is still the one that was opened here. A program
    /// that closes all descriptors closes ours too, and the number may then
    /// belong to a file of its own, which we must not touch.
    pub fn is_intact(&self) -> bool {
        self.identity.is_still(&self.socket)
    }

    /// Whether the other side has closed its end.
    pub fn is_hung_up(&self) -> bool {
        let mut watched = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        // One that cannot be asked is of no use either.
        poll(&mut watched, Some(&Timespec::default())).is_err() || !watched[0].revents().is_empty()
    }

    /// Sends one message.
    ///
    /// # Errors
    ///
    /// When the other side has gone, or takes no message within `limit`.
    pub fn send(&self, message: &Message, limit: Duration) -> Result<(), Error> {
        self.socket.send(&message.encode(), None, Deadline::after(limit))
    }

    /// Waits for the next message; none when the other side has gone.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when there is none within `limit`, [`Error::Version`] or
    /// [`Error::Refused`] when the other side refused the connection, and
    /// [`Error::Malformed`] when it makes no sense.
    pub fn receive(&self, limit: Duration) -> Result<Option<Message>, Error> {
        let mut bytes = vec![0; MESSAGE_MAX];
        let deadline = Deadline::after(limit);
        let (bytes, _) = match self.socket.receive(&mut bytes, "order", deadline) {
            // The other side closed the connection without reading our message. Linux reports this first. What the
            // other side sent before is still there.
            Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::ConnectionReset => {
                let mut bytes = vec![0; MESSAGE_MAX];
                let (received, _) = self.socket.receive(&mut bytes, "order", deadline)?;
                return match refusal(received) {
                    Some(refusal) => Err(refusal),
                    None => Ok(None),
                };
            }
            received => received?,
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        if let Some(refusal) = refusal(bytes) {
            return Err(refusal);
        }
        Message::decode(bytes).map(Some)
    }

    /// Lets go of the descriptors without closing them, that of the other process
    /// too: for those that are no longer ours to close.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
