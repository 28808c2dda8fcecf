//! Requests the contents of a flight recorder.

use std::{path::PathBuf, time::Duration};

use tracesmith_wire::{
    control::{DUMP_LIMIT, Message, armed},
    handshake::connect_control,
};

use crate::error::Error;

const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Makes the collector of `process` write the contents of its flight recorder. Returns the path of the trace.
///
/// # Errors
///
/// If the process cannot be reached, or if nothing was written.
pub fn dump(process: u32) -> Result<PathBuf, Error> {
    let (_, socket) = armed::waiting()
        .into_iter()
        .find(|(waiting, _)| *waiting == process)
        .ok_or(Error::NotArmed { process })?;
    let control = connect_control(&socket, CONNECT_LIMIT)?;
    if let Err(error) = control.send(&Message::Dump, CONNECT_LIMIT) {
        // A process that refuses the connection sends the reason and closes it.
        control.receive(CONNECT_LIMIT)?;
        return Err(error.into());
    }
    loop {
        match control.receive(DUMP_LIMIT)? {
            Some(Message::Dumped(Ok(path))) => return Ok(path.into()),
            Some(Message::Dumped(Err(reason)) | Message::Failed(reason)) => {
                return Err(Error::NotDumped { process, reason });
            }
            Some(_) => {}
            None => {
                let reason = "the process closed the connection".to_owned();
                return Err(Error::NotDumped { process, reason });
            }
        }
    }
}
