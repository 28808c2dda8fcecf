//! The control thread.
//!
//! It sleeps until a collector sends a message or, while a window is open, until
//! the next flush is due. It blocks all signals except those that it would cause
//! itself, so no signal handler of the program interrupts it. Before each use it
//! checks that its descriptors are still its own: a program that closes all
//! descriptors closes these too. They are opened again.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    io::Errno,
};
use tracesmith_wire::{
    Error,
    control::{BUSY, Control, DUMP_LIMIT, Message},
    handshake::{self, Listener, Purpose},
};

use crate::{
    agent::{Agent, Mode},
    guard,
    leaving::{self, Leaving, Wake},
    range::RangeEdge,
};

/// Time limit of one exchange with the other side.
const LIMIT: Duration = Duration::from_secs(2);

/// How long the thread sleeps when it cannot wait for descriptors.
const BLIND: Duration = Duration::from_millis(50);

/// A stack for a thread that calls into CUPTI: as large as that of any thread of
/// a program, for nobody has said how deep CUPTI goes. Only what is used of it
/// takes memory.
const STACK_BYTES: usize = 8 << 20;

/// Whether windows can still be requested.
static ACCEPTS_REQUESTS: AtomicBool = AtomicBool::new(false);
static THREAD: AtomicU32 = AtomicU32::new(0);

/// How often the collector is tried again after the program has closed the connection, once in a turn.
const ATTEMPTS: u32 = 5;

/// Where this process waits for collectors.
static SOCKET: Mutex<Option<(u32, PathBuf)>> = Mutex::new(None);

/// Handles the first request and starts the thread that handles the others.
pub(crate) fn start(agent: &'static Agent, mode: Mode) {
    // Of the process that this one is a fork of.
    ACCEPTS_REQUESTS.store(false, Ordering::Release);
    let (home, collector) = match mode {
        Mode::Collector(path) => {
            let collector = greet(agent, &path);
            if collector.is_none() {
                // Nobody is there, so nobody is to be told.
                return;
            }
            (Some(path), collector)
        }
        Mode::Armed | Mode::Ready => (None, None),
    };
    // Without a socket of its own a process can still be recorded by the
    // collector that it has, and not by another one.
    let listener = agent.listen().ok();
    if collector.is_none() && listener.is_none() {
        return;
    }
    let mut control = ControlThread {
        agent,
        home,
        collector,
        listener: None,
        wake: Wake::open(),
        attempts_left: 0,
        last_flush: Instant::now(),
    };
    control.listen_at(listener);
    ACCEPTS_REQUESTS.store(true, Ordering::Release);
    let signals = block_signals();
    let thread = std::thread::Builder::new()
        .name("tracesmith".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            THREAD.store(crate::threads::thread_id(), Ordering::Relaxed);
            guard::run((), || control.run());
            // Nobody waits for it any more.
            THREAD.store(0, Ordering::Relaxed);
        });
    restore_signals(&signals);
    // No thread to be had: the window that is open stays so until the exit.
    drop(thread);
}

/// Whether a window can be requested.
pub(crate) fn accepts_requests() -> bool {
    ACCEPTS_REQUESTS.load(Ordering::Acquire)
}

/// Whether there is such a thread and the caller is another one. For signal handlers
/// too: it uses nothing that belongs to the calling thread.
pub(crate) fn can_be_awaited() -> bool {
    let thread = i64::from(THREAD.load(Ordering::Relaxed));
    // SAFETY: asks the system.
    thread != 0 && thread != unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Whether the caller is the control thread.
pub(crate) fn is_own_thread() -> bool {
    THREAD.load(Ordering::Relaxed) == crate::threads::thread_id()
}

/// In the child of a fork there is no such thread.
pub(crate) fn forked() {
    THREAD.store(0, Ordering::Relaxed);
    ACCEPTS_REQUESTS.store(false, Ordering::Release);
}

/// The process ends: accepts no more requests.
pub(crate) fn stop() {
    ACCEPTS_REQUESTS.store(false, Ordering::Release);
    // The child of a fork has its parent's until it listens itself.
    if let Some((process, path)) = guard::lock(&SOCKET).take()
        && process == std::process::id()
    {
        // Someone may have tidied up before us; nothing depends on it.
        let _ = std::fs::remove_file(path);
    }
}

/// Connects to the collector and handles its first message, so that recording has
/// begun before the program continues.
fn greet(agent: &Agent, path: &Path) -> Option<Control> {
    let control = handshake::connect_control(path, LIMIT).ok()?;
    match control.receive(LIMIT) {
        Ok(Some(message)) => {
            handle_message(agent, &control, message);
            Some(control)
        }
        // A collector that says nothing is none.
        Ok(None) | Err(_) => None,
    }
}

fn handle_message(agent: &Agent, control: &Control, message: Message) {
    let answer = match message {
        Message::Open(settings) => match agent.open(*settings) {
            Ok(()) => Message::Done,
            Err(reason) => Message::Failed(reason),
        },
        Message::Close => {
            agent.close();
            Message::Done
        }
        Message::Begin => return agent.ordered_edge(RangeEdge::Begin),
        Message::End => return agent.ordered_edge(RangeEdge::End),
        Message::Done | Message::Failed(_) | Message::Dump | Message::Dumped(_) => return,
    };
    // A collector that went away is noticed by the end of the connection.
    let _ = control.send(&answer, LIMIT);
}

struct ControlThread {
    agent: &'static Agent,
    /// The collector that this process was started under.
    home: Option<PathBuf>,
    collector: Option<Control>,
    listener: Option<Listener>,
    wake: Option<Wake>,
    /// How often a connection that the program has closed may still be tried again.
    attempts_left: u32,
    last_flush: Instant,
}

impl ControlThread {
    fn run(mut self) {
        while accepts_requests() && !guard::is_broken() {
            let period = self.agent.period();
            let (from_collector, at_listener) = self.wait(period);
            leaving::answer(|leaving| match leaving {
                Leaving::Exit => self.agent.exit(),
                Leaving::Abort | Leaving::Exec => self.agent.flush_before_exit(),
            });
            if !accepts_requests() {
                break;
            }
            if from_collector {
                self.listen_to_collector();
            }
            if at_listener {
                self.accept();
            }
            if self.collector.is_none() && self.agent.is_abandoned() {
                self.agent.close();
            }
            let is_out_of_reach = self.collector.is_none() && self.listener.is_none();
            if is_out_of_reach && self.agent.collector().is_none() {
                break;
            }
            if period.is_some_and(|period| self.last_flush.elapsed() >= period) {
                self.agent.flush_periodically();
                // Restart the period after the flush, so that threads that wait for the
                // agent get it even if the flush was slow.
                self.last_flush = Instant::now();
            }
        }
        if guard::is_broken() {
            return;
        }
        // The exit handler closes the window itself.
        if accepts_requests() {
            self.agent.close();
        }
    }

    /// Waits for a message. Returns whether the collector and the listener have one.
    fn wait(&mut self, period: Option<Duration>) -> (bool, bool) {
        let limit = period.map(|period| period.saturating_sub(self.last_flush.elapsed()));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut watched = Vec::with_capacity(3);
        if let Some(collector) = &self.collector {
            watched.push(PollFd::from_borrowed_fd(collector.as_fd(), PollFlags::IN));
        }
        if let Some(listener) = &self.listener {
            watched.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        }
        if let Some(wake) = &self.wake {
            watched.push(PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN));
        }
        match poll(&mut watched, limit.as_ref()) {
            Ok(_) => {}
            // No signal reaches this thread, so it is a debugger.
            Err(Errno::INTR) => return (false, false),
            // The program has set its limit of descriptors below the few that are watched here, and may raise it again.
            // Recording goes on; orders wait.
            Err(_) => {
                std::thread::sleep(BLIND);
                return (false, false);
            }
        }
        let mut ready = watched.iter().map(|watched| !watched.revents().is_empty());
        let from_collector = self.collector.is_some() && ready.next().unwrap_or(false);
        let at_listener = self.listener.is_some() && ready.next().unwrap_or(false);
        drop(ready);
        (
            self.has_collector() && from_collector,
            self.has_listener() && at_listener,
        )
    }

    /// Whether the collector's descriptor is what it was. One that the program has
    /// closed is opened again, for the next turn.
    fn has_collector(&mut self) -> bool {
        self.mend_wake();
        if let Some(lost) = self.collector.take_if(|collector| !collector.is_intact()) {
            lost.forget();
            self.attempts_left = ATTEMPTS;
        } else if self.collector.is_some() {
            return true;
        }
        // The collector of the window, or the one that may open another. It may be busy, or there may be no descriptors
        // left just now.
        if let Some(attempts) = self.attempts_left.checked_sub(1)
            && let Some(path) = self.agent.collector().or_else(|| self.home.clone())
        {
            self.attempts_left = attempts;
            // Without it recording goes on until the rings are left, or the program ends.
            self.collector = handshake::connect_control(&path, LIMIT).ok();
        }
        false
    }

    /// The same of the socket that collectors find.
    fn has_listener(&mut self) -> bool {
        let Some(lost) = self.listener.take_if(|listener| !listener.is_intact()) else {
            return self.listener.is_some();
        };
        lost.forget();
        self.listen_at(self.agent.listen().ok());
        false
    }

    fn mend_wake(&mut self) {
        match self.wake.take_if(|wake| !wake.is_intact()) {
            Some(lost) => {
                lost.forget();
                self.wake = Wake::open();
            }
            None => self.wake.iter().for_each(Wake::clear),
        }
    }

    fn listen_at(&mut self, listener: Option<Listener>) {
        let path = listener.as_ref().map(|listener| listener.path().to_owned());
        *guard::lock(&SOCKET) = path.map(|path| (std::process::id(), path));
        self.listener = listener;
    }

    fn listen_to_collector(&mut self) {
        let Some(collector) = &self.collector else {
            return;
        };
        match collector.receive(LIMIT) {
            Ok(Some(message)) => handle_message(self.agent, collector, message),
            Err(Error::TimedOut { .. }) => {}
            // It has gone, or speaks nonsense: nobody reads what we record.
            Ok(None) | Err(_) => {
                self.collector = None;
                self.agent.close();
            }
        }
    }

    /// A collector, or a request for a dump, connects to this process.
    fn accept(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        let Ok(connection) = listener.accept(LIMIT) else {
            return;
        };
        if connection.hello().purpose != Purpose::Control {
            return;
        }
        let control = connection.into_control();
        let Ok(Some(message)) = control.receive(LIMIT) else {
            return;
        };
        if message == Message::Dump {
            self.pass_dump_on(&control);
            return;
        }
        if self.collector.is_some() {
            let busy = Message::Failed(BUSY.to_owned());
            // Who asked may have gone.
            let _ = control.send(&busy, LIMIT);
            return;
        }
        handle_message(self.agent, &control, message);
        self.collector = Some(control);
    }

    fn pass_dump_on(&mut self, asker: &Control) {
        let dumped = match &self.collector {
            None => Err("no flight recorder runs for this process".to_owned()),
            Some(collector) => dump(collector, |order| handle_message(self.agent, collector, order)),
        };
        // Who asked may have gone.
        let _ = asker.send(&Message::Dumped(dumped), LIMIT);
    }
}

/// Has the collector write out what it holds, and waits for that. Requests that the
/// collector sends meanwhile are carried out: it waits for their answers.
fn dump(collector: &Control, mut handle_message: impl FnMut(Message)) -> Result<String, String> {
    collector
        .send(&Message::Dump, LIMIT)
        .map_err(|error| error.to_string())?;
    let until = Instant::now() + DUMP_LIMIT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match collector.receive(left) {
            Ok(Some(Message::Dumped(dumped))) => return dumped,
            Ok(Some(order)) => handle_message(order),
            Ok(None) => return Err("the collector gave no answer".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Signals that the thread itself causes: who handles them in the program is to
/// see where.
const CAUSED: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
];

/// The program's signals are handled by its own threads.
fn block_signals() -> libc::sigset_t {
    // SAFETY: plain data, filled by the next call.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes the set.
    unsafe { libc::sigfillset(&raw mut all) };
    for signal in CAUSED {
        // SAFETY: writes the set.
        unsafe { libc::sigdelset(&raw mut all, signal) };
    }
    // SAFETY: plain data, filled by the next call.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: reads one set and writes the other.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    before
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: reads the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_comes_while_a_dump_is_awaited_is_carried_out_issue_26() {
        let folder = std::env::temp_dir().join(format!("tracesmith-dump-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, mode).unwrap();
        let listener = Listener::bind(&folder).unwrap();
        let path = listener.path().to_owned();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let target = listener.accept(LIMIT).unwrap().into_control();
                assert_eq!(target.receive(LIMIT).unwrap(), Some(Message::Dump));
                target.send(&Message::Close, LIMIT).unwrap();
                let written = Message::Dumped(Ok("a.sbt".to_owned()));
                target.send(&written, LIMIT).unwrap();
                // The connection stays until the other side has read.
                assert_eq!(target.receive(LIMIT).unwrap(), None);
            });
            let collector = handshake::connect_control(&path, LIMIT).unwrap();
            let mut control = Vec::new();
            let dumped = dump(&collector, |order| control.push(order));
            assert_eq!(dumped, Ok("a.sbt".to_owned()));
            assert_eq!(control, [Message::Close]);
        });
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
