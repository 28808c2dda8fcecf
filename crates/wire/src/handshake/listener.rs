//! The collector's side of the handshake.

use std::{
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{self, SocketAddrUnix, SocketFlags},
};

use super::{
    credentials::Credentials,
    directory,
    message::{ANSWER_BYTES, Answer, HELLO_BYTES, Hello},
    peer::Peer,
    socket::{self, Deadline, Identity, Socket},
};
use crate::{config::Config, consumer::Consumer, control::Control, error::Error};

/// Targets that may wait to be accepted; more wait in `connect`.
const BACKLOG: i32 = 128;

/// What accepts targets. Dropping it removes the socket.
pub struct Listener {
    socket: OwnedFd,
    identity: Identity,
    path: PathBuf,
    /// The directory, if it is ours to remove.
    own_directory: Option<PathBuf>,
}

impl Listener {
    /// Listens in a new directory of its own.
    ///
    /// # Errors
    ///
    /// When the directory or the socket cannot be made.
    pub fn in_runtime_directory() -> Result<Self, Error> {
        let directory = directory::create()?;
        match Self::bind(&directory) {
            Ok(mut listener) => {
                listener.own_directory = Some(directory);
                Ok(listener)
            }
            Err(error) => {
                // The first error is the one to report.
                let _ = fs::remove_dir(&directory);
                Err(error)
            }
        }
    }

    /// Listens in `directory`.
    ///
    /// # Errors
    ///
    /// [`Error::RuntimeDirectory`] when others could enter it or its name is
    /// too long for a socket's; [`Error::System`] when a collector listens
    /// there already.
    pub fn bind(directory: &Path) -> Result<Self, Error> {
        Self::bind_as(directory, "collector.sock")
    }

    /// As [`Listener::bind`], with a name of its own for the socket.
    pub(crate) fn bind_as(directory: &Path, name: &str) -> Result<Self, Error> {
        directory::check(directory)?;
        let path = directory.join(name);
        let address = address(&path)?;
        let socket = socket::open(SocketFlags::NONBLOCK)?;
        net::bind(&socket, &address).map_err(Error::system("binding the socket"))?;
        let listener = Self {
            identity: Identity::of(&socket),
            socket,
            path,
            own_directory: None,
        };
        net::listen(&listener.socket, BACKLOG).map_err(Error::system("listening"))?;
        Ok(listener)
    }

    /// The socket has another name from now on, which it goes by and which is removed in the end.
    pub(crate) fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Whether the descriptor is still the one that was opened here: see
    /// [`Control::is_intact`].
    pub fn is_intact(&self) -> bool {
        self.identity.is_still(&self.socket)
    }

    /// Lets go of the descriptor without closing it, and of the socket's name.
    pub fn forget(self) {
        // Someone may have tidied up before us; nothing depends on it.
        let _ = fs::remove_file(&self.path);
        std::mem::forget(self);
    }

    /// What the target must be told.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for a target and for its hello, at most `limit` for both.
    ///
    /// A target of another version is told so before this returns the error.
    /// After any error but [`Error::System`] the listener is as good as before.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when none came or it said nothing;
    /// [`Error::ForeignUser`], [`Error::Version`], [`Error::Malformed`] when
    /// one came that we do not talk to.
    pub fn accept(&self, limit: Duration) -> Result<PendingConnection, Error> {
        let deadline = Deadline::after(limit);
        let socket = Socket::accepted(self.accept_connection(deadline)?);
        let credentials = Credentials::of_own_user(&socket)?;
        // One byte more than a hello, so that a longer one is seen as such and
        // not cut to one that looks right.
        let mut bytes = [0; HELLO_BYTES + 1];
        let (bytes, _) = socket.receive(&mut bytes, "hello", deadline)?;
        match Hello::decode(bytes) {
            Ok(hello) => Ok(PendingConnection {
                peer: Peer::new(credentials, &socket),
                socket,
                hello,
            }),
            Err(error) => {
                let refusal = Answer::Refused(error.to_string()).encode();
                // The error that we return is the one that matters.
                let _ = socket.send(&refusal, None, deadline);
                Err(error)
            }
        }
    }

    fn accept_connection(&self, deadline: Deadline) -> Result<OwnedFd, Error> {
        loop {
            let left = deadline.left("target")?;
            let left = Timespec::try_from(left).map_err(|_| Error::TimedOut { what: "target" })?;
            let mut watched = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut watched, Some(&left)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(Error::system("waiting for a target")(error)),
            }
            match net::accept_with(&self.socket, SocketFlags::CLOEXEC) {
                // The target was there and went away again.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                accepted => return accepted.map_err(Error::system("accepting a target")),
            }
        }
    }
}

/// For an event loop: readable when a target waits.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Someone may have tidied up before us; nothing depends on it.
        let _ = fs::remove_file(&self.path);
        if let Some(directory) = &self.own_directory {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A target that waits for its answer. Dropped without one, it sees the
/// connection close.
pub struct PendingConnection {
    socket: Socket,
    hello: Hello,
    peer: Peer,
}

/// What a granted ring leaves in the collector's hands.
pub struct Granted {
    /// The reading side of the ring.
    pub consumer: Consumer,
    /// The process that writes.
    pub peer: Peer,
}

impl PendingConnection {
    /// What it says of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The process that connected.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Makes a ring and hands it over.
    ///
    /// # Errors
    ///
    /// When the memory cannot be had or the target went away.
    pub fn grant(self, config: Config, limit: Duration) -> Result<Granted, Error> {
        let (consumer, memory) = Consumer::create(config)?;
        let answer: [u8; ANSWER_BYTES] = Answer::Granted(config).encode();
        let deadline = Deadline::after(limit);
        self.socket.send(&answer, Some(memory.as_fd()), deadline)?;
        Ok(Granted {
            consumer,
            peer: self.peer,
        })
    }

    /// Keeps the connection, for orders and answers.
    pub fn into_control(self) -> Control {
        Control::new(self.socket, self.peer)
    }

    /// Sends the target on its way, with a reason for its user.
    ///
    /// # Errors
    ///
    /// When the target went away.
    pub fn refuse(self, reason: &str, limit: Duration) -> Result<(), Error> {
        let answer = Answer::Refused(reason.to_owned()).encode();
        self.socket.send(&answer, None, Deadline::after(limit))
    }
}

/// The socket's address; its name has 107 bytes at most.
pub(super) fn address(path: &Path) -> Result<SocketAddrUnix, Error> {
    SocketAddrUnix::new(path).map_err(|_| Error::RuntimeDirectory {
        what: "the name is too long for a socket",
        path: path.to_owned(),
    })
}
