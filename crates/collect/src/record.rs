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
    error::{Error, Refusal},
    identity::has_ended,
    operator::{Event, Instruction, Operator},
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

/// Records attachable programs until the window closes, a signal or an order arrives, or the selected processes have
/// exited. Calls `notify` when something happens, first once all programs that are attachable now are being recorded.
///
/// # Errors
///
/// If the trace cannot be created, or a selected process is not attachable. With an operator also if a process refuses
/// to be recorded. Without one, the trace and the report contain the reason. If no process is recorded, and the trace would
/// replace an earlier one, that one stays and the reason is an error.
pub fn record(
    selection: &Selection,
    capture: Capture,
    destination: Destination,
    mut operator: Option<Operator>,
    mut notify: impl FnMut(Event),
) -> Result<Report, Error> {
    let signals = Signals::block()?;
    let mut session = Session::new(capture, destination)?;
    if let Err(error) = connect_selected(selection, &mut session) {
        session.abandon();
        return Err(error);
    }
    let (mut next_look, mut is_opening, mut has_begun) = (Instant::now(), true, false);
    let mut connected = Connected::new();
    while !session.is_over() {
        if *selection == Selection::Everyone && Instant::now() >= next_look {
            next_look = Instant::now() + LOOK_PERIOD;
            connect_new(&mut connected, &mut session);
        }
        // A process can die while its window opens. Then there is no window, and the error below says so.
        if is_opening && session.is_open() && !has_lost_all(selection, &session) {
            is_opening = false;
            // Other programs may still come if all are wanted.
            let is_refused = *selection != Selection::Everyone && has_nothing_to_write(&mut session);
            if (operator.is_some() || is_refused)
                && let Some(refused) = session.refusal()
            {
                session.abandon();
                return Err(refused);
            }
            notify(Event::Open);
        }
        if !has_begun && session.is_open() && session.has_recorded() {
            has_begun = true;
            session.start_file();
        }
        let orders = operator.as_ref().map_or(signals.as_fd(), AsFd::as_fd);
        let [signalled, ordered] = session.turn([signals.as_fd(), orders])?;
        if signalled && is_stop(&signals, &mut session)? {
            break;
        }
        if ordered
            && let Some(operator) = &mut operator
            && follow(operator.read(), &mut session, &mut notify) == Course::Stop
        {
            break;
        }
        if *selection != Selection::Everyone && session.have_all_exited() {
            break;
        }
    }
    let was_open = session.is_open();
    close(&signals, &mut session)?;
    has_begun |= was_open && session.has_recorded() || session.has_rows();
    if !has_begun && (operator.is_some() || session.keeps_earlier_trace()) {
        let refused = session.refusal().unwrap_or_else(|| Error::Refused {
            reason: Refusal::Other,
            words: if is_opening {
                "the recording ended before its window was open".to_owned()
            } else {
                "no process was recorded".to_owned()
            },
        });
        session.abandon();
        return Err(refused);
    }
    // Names of functions take longer than all of the rest. Meanwhile the programs can be recorded again.
    session.release_targets();
    notify(Event::Closed {
        missing: session.missing(),
    });
    Ok(session.finish())
}

/// Whether all selected processes have ended their connections, and none was recorded.
fn has_lost_all(selection: &Selection, session: &Session) -> bool {
    *selection != Selection::Everyone && session.have_all_hung_up() && !session.has_recorded()
}

/// Whether no process is recorded, and the earlier trace is worth more than the reason.
fn has_nothing_to_write(session: &mut Session) -> bool {
    !session.has_recorded() && session.keeps_earlier_trace()
}

/// Whether a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Continue,
    Stop,
}

/// Carries out the orders of a tool.
fn follow(instructions: Vec<Instruction>, session: &mut Session, notify: &mut impl FnMut(Event)) -> Course {
    for instruction in instructions {
        match instruction {
            Instruction::Stop => return Course::Stop,
            Instruction::Dump => notify(Event::Dumped(session.dump())),
            Instruction::Begin if session.controls_ranges() => session.begin_range(),
            Instruction::End if session.controls_ranges() => session.end_range(),
            Instruction::Begin | Instruction::End => notify(Event::Rejected {
                order: if instruction == Instruction::Begin {
                    "begin"
                } else {
                    "end"
                }
                .to_owned(),
                why: "it needs --capture-range signal",
            }),
            Instruction::Unknown(order) => notify(Event::Rejected {
                order,
                why: "the orders are stop, dump, begin and end",
            }),
        }
    }
    Course::Continue
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
