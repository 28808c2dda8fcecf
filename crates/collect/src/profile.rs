//! Records a program from its start to its exit.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal as NixSignal;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, getpid, kill_current_process_group, kill_process, pidfd_open,
};

use crate::{
    capture::{Capture, Destination},
    end::End,
    error::Error,
    identity::joined,
    launch::{Child, Forwarding, Injection, Launch, Wait},
    report::Report,
    session::Session,
    signals::{Arrived, Sender, Signals},
};

/// How long processes that outlive the program may take to flush their records.
pub(crate) const CLOSING_LIMIT: Duration = Duration::from_secs(5);

/// Starts a program, records it and all its child processes, and writes the trace. Returns how the program ended and
/// what was recorded.
///
/// The collector forwards signals that another process sends to it ([`Forwarding`]). The program receives signals of the
/// terminal directly.
///
/// # Errors
///
/// If the trace cannot be created or the program cannot be started. After that, problems are part of the report.
pub fn profile(
    launch: Launch,
    mut capture: Capture,
    destination: Destination,
) -> Result<(End, Report), Error> {
    launch.check()?;
    let command = joined(launch.command.iter().map(|argument| argument.as_os_str()));
    capture.metadata.insert(0, ("command".to_owned(), command));
    let signals = Signals::block()?;
    let mut session = Session::new(capture, destination)?;
    match &launch.injection {
        Injection::Withheld(why) => session.set_injection_conflict(why),
        Injection::ByDriver => session.watch_children(),
    }
    let mut child = match launch.start(session.socket(), signals.before()) {
        Ok(child) => child,
        Err(error) => {
            session.abandon();
            return Err(error);
        }
    };
    session.start_file();
    match follow(&mut child, &launch, &signals, &mut session) {
        Ok(end) => Ok((end, session.finish())),
        // The program continues, and the records so far are saved.
        Err(error) => {
            let mut report = session.finish();
            report.failure.get_or_insert(error);
            Ok((child.wait()?, report))
        }
    }
}

/// Records until the program has exited, and the processes that outlive it have flushed their records.
fn follow(
    child: &mut Child,
    launch: &Launch,
    signals: &Signals,
    session: &mut Session,
) -> Result<End, Error> {
    let end = run(child, launch.forwarding, signals, session)?;
    if launch.wait == Wait::All {
        outlast(signals, session)?;
    }
    close(signals, session)?;
    Ok(end)
}

/// Runs turns until the program exits.
fn run(
    child: &mut Child,
    forwarding: Forwarding,
    signals: &Signals,
    session: &mut Session,
) -> Result<End, Error> {
    let pid = child.pid();
    // Without pidfds, every turn checks whether the child has exited.
    let process = pidfd_open(pid, PidfdFlags::empty()).ok();
    loop {
        let watched = process.as_ref().map_or(signals.as_fd(), AsFd::as_fd);
        let [signalled, ended] = session.turn([signals.as_fd(), watched])?;
        if signalled {
            while let Some(arrived) = signals.next()? {
                pass_on(arrived, forwarding, pid, session);
            }
        }
        if (ended || process.is_none())
            && let Some(end) = child.try_wait()?
        {
            session.note_end(pid.as_raw_nonzero().get().unsigned_abs(), end);
            return Ok(end);
        }
    }
}

fn pass_on(arrived: Arrived, forwarding: Forwarding, program: Pid, session: &mut Session) {
    if arrived.signal == NixSignal::SIGUSR2 && session.is_flight_recorder() {
        // The error is in the report already.
        let _ = session.dump();
        return;
    }
    if arrived.signal == NixSignal::SIGUSR2 && session.controls_ranges() {
        session.toggle_range();
        return;
    }
    if arrived.sender == Sender::Terminal {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(arrived.signal as i32) {
        // The program may have exited already.
        let _ = match forwarding {
            Forwarding::Group if is_of_terminal(arrived.signal) && getpgrp() == getpid() => {
                kill_current_process_group(signal)
            }
            Forwarding::Program | Forwarding::Group => kill_process(program, signal),
        };
    }
}

/// Whether a terminal sends this signal, which then reaches all processes of a group.
fn is_of_terminal(signal: NixSignal) -> bool {
    matches!(signal, NixSignal::SIGINT | NixSignal::SIGQUIT | NixSignal::SIGHUP)
}

/// Runs turns until the last process exits, or until a signal arrives.
fn outlast(signals: &Signals, session: &mut Session) -> Result<(), Error> {
    while !session.have_all_exited() {
        let [signalled] = session.turn([signals.as_fd()])?;
        if signalled && is_stop(signals, session)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Closes the window and waits until all targets have flushed, at most [`CLOSING_LIMIT`].
pub(crate) fn close(signals: &Signals, session: &mut Session) -> Result<(), Error> {
    session.close_window();
    let deadline = Instant::now() + CLOSING_LIMIT;
    while session.is_busy() && Instant::now() < deadline {
        session.shorten_pause();
        let [signalled] = session.turn([signals.as_fd()])?;
        if signalled && is_stop(signals, session)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether a signal arrived that stops recording.
pub(crate) fn is_stop(signals: &Signals, session: &mut Session) -> Result<bool, Error> {
    let mut stop = false;
    while let Some(arrived) = signals.next()? {
        match arrived.signal {
            NixSignal::SIGUSR2 if session.is_flight_recorder() => drop(session.dump()),
            NixSignal::SIGUSR2 if session.controls_ranges() => session.toggle_range(),
            NixSignal::SIGUSR1 | NixSignal::SIGUSR2 => {}
            _ => stop = true,
        }
    }
    Ok(stop)
}
