//! Attaches to running programs and records a window.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsFd,
    path::{Path, PathBuf},
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
    target::{Opened, TargetKey},
};

/// Time between two searches for new programs.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// How long a connection attempt may take. A target that needs longer is stuck.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);

/// How long a target may take to listen, after its socket exists.
const LISTEN_LIMIT: Duration = Duration::from_secs(1);

/// Time between two connection attempts.
const LISTEN_PAUSE: Duration = Duration::from_millis(10);

/// The processes to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every attachable program of this user, including programs that start later.
    Everyone,
    /// These processes.
    Processes(BTreeSet<u32>),
}

/// Records attachable programs until the window closes, a signal arrives, or the selected processes have exited.
/// Calls `opened` once all programs that are attachable now are being recorded.
///
/// # Errors
///
/// If the trace cannot be created, or a selected process is not attachable.
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
    let mut connected = Connected::new();
    while !session.is_over() {
        if *selection == Selection::Everyone && Instant::now() >= next_look {
            next_look = Instant::now() + LOOK_PERIOD;
            connect_new(&mut connected, &mut session);
        }
        if let Some(opened) = opened.take_if(|_| !session.is_busy()) {
            opened();
        }
        let [signalled] = session.turn([signals.as_fd()])?;
        if signalled && is_stop(&signals, &mut session)? {
            break;
        }
        if *selection != Selection::Everyone && session.have_all_exited() {
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

/// Tries for a short time. A socket exists shortly before its process listens, and remains for a while after the
/// process was killed.
fn connect_soon(process: u32, socket: &Path, session: &mut Session) -> Result<(), Error> {
    let deadline = Instant::now() + LISTEN_LIMIT;
    loop {
        match connect(socket, session) {
            Err(_) if has_ended(process) => return Err(Error::NotArmed { process }),
            Err(_) if Instant::now() < deadline => thread::sleep(LISTEN_PAUSE),
            connected => return connected.map(drop),
        }
    }
}

/// Connected targets by socket. A pid is not enough: in a container it differs from the pid in the socket's name.
type Connected = BTreeMap<PathBuf, TargetKey>;

/// Connects to new programs. A failed connection is tried again later: a socket remains after its process was killed.
fn connect_new(connected: &mut Connected, session: &mut Session) {
    for socket in armed::sockets() {
        let is_known = connected.get(&socket).is_some_and(|key| session.has_target(*key));
        if !is_known && let Ok(Some(key)) = connect(&socket, session) {
            connected.insert(socket, key);
        }
    }
}

/// Returns `None` if this session already records the process.
fn connect(socket: &Path, session: &mut Session) -> Result<Option<TargetKey>, Error> {
    let control = connect_control(socket, CONNECT_LIMIT)?;
    Ok(session.add_target(control, armed::named_process(socket), Opened::ByCollector))
}
