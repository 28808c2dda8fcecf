//! The target's side of the handshake.

use std::{path::Path, process, time::Duration};

use super::{
    credentials::Credentials,
    listener::address,
    message::{ANSWER_BYTES, Answer, Hello},
    socket::{Deadline, Socket},
};
use crate::{config::Capacity, error::Error, producer::Producer};

/// Asks the collector that listens at `path` for a ring of about `capacity`,
/// and joins it. Takes at most `limit`.
///
/// No descriptor stays open.
///
/// # Errors
///
/// [`Error::Refused`] with the collector's words, [`Error::TimedOut`] when it
/// does not answer, or whatever is wrong with the answer or the memory.
pub fn connect(path: &Path, capacity: Capacity, limit: Duration) -> Result<Producer, Error> {
    let deadline = Deadline::after(limit);
    let socket = Socket::connect(&address(path)?, deadline)?;
    Credentials::of_own_user(&socket)?;
    let hello = Hello {
        process_id: process::id(),
        thread_id: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
        capacity,
    };
    socket.send(&hello.encode(), None, deadline)?;
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
