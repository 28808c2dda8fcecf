//! Opening a window in programs that run already.

use std::{
    collections::BTreeSet,
    os::fd::AsFd,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use tracesmith_wire::{control::armed, handshake::connect_control};

use crate::{
    capture::{Capture, Destination},
    error::Error,
    identity::has_ended,
    profile::{close, is_stop},
    report::Report,
    session::Session,
    signals::Signals,
};

/// Between two looks for programs that started meanwhile.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// A target's queue takes a connection at once; one that does not is stuck.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);

/// A target that has a socket listens there before long.
const LISTEN_LIMIT: Duration = Duration::from_secs(1);

/// Between two looks whether it does.
const LISTEN_PAUSE: Duration = Duration::from_millis(10);

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every armed program of this user, also those that start meanwhile.
    Everyone,
    /// These processes.
    Processes(BTreeSet<u32>),
}

/// Records armed programs until the window closes, a signal comes, or the
/// selected processes have all ended. `opened` is called once those that are armed
/// now are being recorded.
///
/// # Errors
///
/// When the trace cannot be created, or a selected process is not armed.
pub fn record(
    selection: &Selection,
    capture: Capture,
    destination: Destination,
    opened: impl FnOnce(),
) -> Result<Report, Error> {
    let signals = Signals::block()?;
    let path = destination.path.clone();
    let mut session = Session::new(capture, destination)?;
    if let Err(error) = connect_selected(selection, &mut session) {
        session.abandon(&path);
        return Err(error);
    }
    let (mut next_look, mut opened) = (Instant::now(), Some(opened));
    while !session.is_over() {
        if *selection == Selection::Everyone && Instant::now() >= next_look {
            next_look = Instant::now() + LOOK_PERIOD;
            connect_new(&mut session);
        }
        if let Some(opened) = opened.take_if(|_| !session.is_busy()) {
            opened();
        }
        let [signalled] = session.turn([signals.as_fd()])?;
        if signalled && is_stop(&signals, &mut session)? {
            break;
        }
        if *selection != Selection::Everyone && session.is_deserted() {
            break;
        }
    }
    close(&signals, &mut session)?;
    Ok(session.finish())
}

fn connect_selected(selection: &Selection, session: &mut Session) -> Result<(), Error> {
    let Selection::Processes(wanted) = selection else {
        return Ok(());
    };
    let waiting = armed::waiting();
    for process in wanted {
        let (_, socket) = waiting
            .iter()
            .find(|(waiting, _)| waiting == process)
            .ok_or(Error::NotArmed { process: *process })?;
        connect_soon(*process, socket, session)?;
    }
    Ok(())
}

/// A socket is there a moment before its listener, and for a while after a process
/// that was killed.
fn connect_soon(process: u32, socket: &Path, session: &mut Session) -> Result<(), Error> {
    let deadline = Instant::now() + LISTEN_LIMIT;
    loop {
        match connect(process, socket, session) {
            Err(_) if has_ended(process) => return Err(Error::NotArmed { process }),
            Err(_) if Instant::now() < deadline => thread::sleep(LISTEN_PAUSE),
            connected => return connected,
        }
    }
}

/// Programs that cannot be reached are tried again at the next look: a socket
/// is there before its listener, and after a process that was killed.
fn connect_new(session: &mut Session) {
    for (process, socket) in armed::waiting() {
        if !session.has_process(process) {
            let _ = connect(process, &socket, session);
        }
    }
}

fn connect(process: u32, socket: &Path, session: &mut Session) -> Result<(), Error> {
    let control = connect_control(socket, CONNECT_LIMIT)?;
    session.adopt(control, Some(process));
    Ok(())
}
