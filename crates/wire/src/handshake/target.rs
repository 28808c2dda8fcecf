//! The target's side of the handshake.

use std::{path::Path, process, time::Duration};

use super::{
    credentials::Credentials,
    listener::address,
    message::{ANSWER_BYTES, Answer, Hello, Purpose},
    peer::Peer,
    socket::{Deadline, Socket},
};
use crate::{config::Capacity, control::Control, error::Error, producer::Producer};

/// Asks the collector that listens at `path` for a ring of about `capacity`,
/// and joins it. Takes at most `limit`.
///
/// No descriptor stays open.
///
/// # Errors
///
/// [`Error::Refused`] with the collector's words, [`Error::TimedOut`] when it
/// does not answer, or whatever is wrong with the answer or the memory.
pub fn connect(
    path: &Path,
    purpose: Purpose,
    capacity: Capacity,
    limit: Duration,
) -> Result<Producer, Error> {
    let deadline = Deadline::after(limit);
    let (socket, _) = greet(path, purpose, capacity, deadline)?;
    // One byte more, so that a longer answer is seen as such.
    let mut bytes = [0; ANSWER_BYTES + 1];
    let (bytes, memory) = socket.receive(&mut bytes, "answer", deadline)?;
    if bytes.is_empty() {
        return Err(Error::Refused {
            reason: "it closed the connection".to_owned(),
        });
    }
    match (Answer::decode(bytes)?, memory) {
        (Answer::Granted(config), Some(memory)) => Producer::attach(memory, config),
        (Answer::Granted(_), None) => Err(Error::Malformed {
            message: "answer",
            what: "it brings no memory",
        }),
        (Answer::Refused(reason), _) => Err(Error::Refused { reason }),
    }
}

/// Connects to whoever listens at `path`, for orders and answers: a target to
/// its collector, or a collector to a target that was armed.
///
/// # Errors
///
/// When nobody listens there, or another user does.
pub fn connect_control(path: &Path, limit: Duration) -> Result<Control, Error> {
    let deadline = Deadline::after(limit);
    let (socket, credentials) = greet(path, Purpose::Control, Capacity::MIN, deadline)?;
    let peer = Peer::new(credentials, &socket);
    Ok(Control::new(socket, peer))
}

fn greet(
    path: &Path,
    purpose: Purpose,
    capacity: Capacity,
    deadline: Deadline,
) -> Result<(Socket, Credentials), Error> {
    let socket = Socket::connect(&address(path)?, deadline)?;
    let credentials = Credentials::of_own_user(&socket)?;
    let hello = Hello {
        process_id: process::id(),
        thread_id: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
        capacity,
        purpose,
    };
    socket.send(&hello.encode(), None, deadline)?;
    Ok((socket, credentials))
}
