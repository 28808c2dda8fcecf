//! The event loop of the collector. It runs on one thread.
//!
//! One turn waits for the first of these: a connection, a message, the exit of a process, a file descriptor of the
//! caller, or a timer. Then it reads a bounded amount from every ring. A turn waits for a target only as long as
//! sending a message takes.

mod connections;
mod finish;
mod timers;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tracesmith_wire::{
    control::{BUSY, CaptureRange, Kinds, Message, Settings},
    handshake::{Listener, PeerId},
};

use crate::{
    capture::{Capture, Destination},
    clocks::{HostClocks, Need},
    counters::{DeviceFacts, Sampler},
    end::End,
    error::{Error, Refusal},
    flight::FlightStore,
    identity::ProcessKey,
    report::Report,
    ring::Progress,
    rows::TraceRows,
    target::{Order, Target, TargetKey},
    time,
    trace_file::TraceFile,
    uncaptured_processes::Watch,
};
use finish::Absence;

/// Time between two reads of the rings while records arrive. At a million markers per second, a thread's ring of 256
/// KiB fills in three of these pauses.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
const IDLE_PAUSE: Duration = Duration::from_millis(5);
/// The pause if no target has rings. Only file descriptors and timers matter then.
const LONG_PAUSE: Duration = Duration::from_millis(100);

/// Time between two flushes: a collector that is killed loses at most this much.
const FLUSH_PERIOD: Duration = Duration::from_secs(1);

/// The window's duration starts when all connected programs are recorded. This is the longest time to wait for them.
/// CUPTI needs some tenths of a second to initialize.
const OPENING_LIMIT: Duration = Duration::from_secs(5);

/// Exited processes that the flight recorder keeps for the next dump.
const MAX_ENDED: usize = 8;

/// A capture session: the listener, the targets and the trace that is being written.
pub(crate) struct Session {
    listener: Listener,
    settings: Settings,
    metadata: Vec<(String, String)>,
    absence: Absence,
    /// Every process that connected.
    known: BTreeSet<ProcessKey>,
    watch: Option<Watch>,
    devices: Vec<DeviceFacts>,
    store: Store,
    targets: Vec<Target>,
    /// The key of the next target.
    next_key: u64,
    /// Exit statuses of the collector's own child processes, by pid.
    known_ends: BTreeMap<u32, End>,
    window: WindowState,
    in_range: RangeState,
    /// Why the first target that refused to be recorded did so.
    refused: Option<String>,
    /// How many targets have opened their windows.
    opened: usize,
    clocks: HostClocks,
    sampler: Option<Sampler>,
    next_flush: Instant,
    pause: Duration,
    report: Report,
}

/// Where records go: directly into a trace, or into the flight recorder.
enum Store {
    Stream(Box<TraceRows>),
    Flight(FlightStore),
}

/// The state of a capture range whose start and end the collector controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    Begun,
    Ended,
}

/// The state of the capture window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowState {
    Ahead {
        opens: Instant,
        duration: Option<Duration>,
    },
    /// Connected programs are starting to record. The collector waits for a stuck program until the limit.
    Opening {
        limit: Instant,
        duration: Option<Duration>,
    },
    Open {
        closes: Option<Instant>,
    },
    Over,
}

impl Session {
    /// Creates the trace, unless this is a flight recorder, and starts to listen. The caller handles signals: see
    /// [`OpenCounters`].
    ///
    /// [`OpenCounters`]: crate::OpenCounters
    pub(crate) fn new(capture: Capture, destination: Destination) -> Result<Self, Error> {
        let mut counters = capture.counters.and_then(|open| open());
        let devices = counters.as_mut().map(|source| source.devices());
        let devices = devices.unwrap_or_default();
        let metadata = metadata(&capture);
        let mut clocks = HostClocks::open();
        clocks.read(Need::Bounds);
        // Listen first, so that a failure leaves no file.
        let listener = Listener::in_runtime_directory()?;
        let store = match capture.flight_recorder {
            Some(_) => Store::Flight(FlightStore::new(destination)),
            None => {
                let file = TraceFile::create(&destination)?;
                let mut trace = TraceRows::begin(file, devices.clone(), &metadata, &clocks);
                trace.announce = capture.announce;
                trace.has_kernels = capture.kinds.contains(Kinds::KERNELS);
                Store::Stream(Box::new(trace))
            }
        };
        let settings = capture.settings(listener.path().to_owned());
        let now = Instant::now();
        let mut session = Self {
            listener,
            settings,
            metadata,
            absence: Absence::default(),
            known: BTreeSet::new(),
            watch: None,
            devices,
            store,
            targets: Vec::new(),
            next_key: 0,
            known_ends: BTreeMap::new(),
            window: WindowState::Ahead {
                opens: now + capture.window.delay,
                duration: capture.window.duration,
            },
            in_range: RangeState::Ended,
            refused: None,
            opened: 0,
            clocks,
            sampler: None,
            next_flush: now + FLUSH_PERIOD,
            pause: LONG_PAUSE,
            report: Report::default(),
        };
        let period = capture.counter_period;
        session.sampler = counters.and_then(|source| Sampler::start(source, period));
        session.keep_time(now);
        Ok(session)
    }

    /// The socket to which targets connect.
    pub(crate) fn socket(&self) -> &Path {
        self.listener.path()
    }

    /// Whether the window has closed.
    pub(crate) fn is_over(&self) -> bool {
        self.window == WindowState::Over
    }

    /// Whether a target is being recorded, or waits for the window to open.
    pub(crate) fn has_target(&self, key: TargetKey) -> bool {
        let target = self.position(key).map(|position| &self.targets[position]);
        target.is_some_and(|target| target.end().is_none())
    }

    /// Whether all processes have exited.
    pub(crate) fn have_all_exited(&self) -> bool {
        self.targets.iter().all(Target::is_gone)
    }

    /// Whether the connections to all targets have ended, or the targets themselves.
    pub(crate) fn have_all_hung_up(&self) -> bool {
        self.targets.iter().all(Target::has_hung_up)
    }

    /// Whether a target has not answered a request yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.targets.iter().any(Target::is_busy)
    }

    /// Stores the exit status of a child process. The kernel reports it only once.
    pub(crate) fn note_end(&mut self, pid: u32, end: End) {
        self.known_ends.insert(pid, end);
    }

    /// Runs one turn. `others` are file descriptors of the caller. The result states which of them are ready.
    pub(crate) fn turn<const N: usize>(&mut self, others: [BorrowedFd<'_>; N]) -> Result<[bool; N], Error> {
        let ready = self.wait(others)?;
        if ready.listener {
            self.accept_connection();
        }
        for key in ready.controls {
            self.handle_message(key);
        }
        let progress = self.read();
        self.reap_exited();
        self.keep_time(Instant::now());
        self.take_samples();
        self.set_pause(progress);
        Ok(ready.others)
    }

    /// Closes the window now, even if its duration has not passed.
    pub(crate) fn close_window(&mut self) {
        if self.window == WindowState::Over {
            return;
        }
        self.window = WindowState::Over;
        self.read_clocks(Need::WindowEdge);
        for target in &mut self.targets {
            target.order(Order::Close, &Message::Close);
        }
    }

    /// Whether all targets that were connected when the window opened are being recorded, or cannot be.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.window, WindowState::Open { .. })
    }

    /// Why a target is not recorded, or not its GPU work, if one has said so.
    pub(crate) fn refusal(&self) -> Option<Error> {
        if let Some(words) = &self.refused {
            let reason = if words == BUSY {
                Refusal::Busy
            } else {
                Refusal::Other
            };
            let words = words.clone();
            return Some(Error::Refused { reason, words });
        }
        let Store::Stream(trace) = &self.store else {
            return None;
        };
        trace.conflict().map(|words| Error::Refused {
            reason: Refusal::Conflict,
            words: words.to_owned(),
        })
    }

    /// Whether a target is being recorded, or was. One whose GPU work another profiler keeps does not count.
    pub(crate) fn has_recorded(&self) -> bool {
        let conflicts = match &self.store {
            Store::Stream(trace) => trace.conflicts(),
            Store::Flight(_) => 0,
        };
        self.opened > conflicts
    }

    /// Whether there are rows of targets, or traces of the flight recorder.
    pub(crate) fn has_rows(&self) -> bool {
        match &self.store {
            Store::Stream(trace) => trace.has_process_rows(),
            Store::Flight(_) => !self.report.files.is_empty(),
        }
    }

    /// Why data are missing in the trace, as far as that is known.
    pub(crate) fn missing(&self) -> Vec<String> {
        match &self.store {
            Store::Stream(trace) => trace.missing(),
            Store::Flight(_) => Vec::new(),
        }
    }

    /// Ends the connections to targets that have closed their window, so that another collector can record them. Their
    /// rings can still be read.
    pub(crate) fn release_targets(&mut self) {
        for target in self.targets.iter_mut().filter(|target| !target.is_busy()) {
            target.disconnect();
        }
    }

    /// Whether the collector starts and ends capture ranges.
    pub(crate) fn controls_ranges(&self) -> bool {
        self.settings.range == CaptureRange::Order
    }

    /// Starts a capture range in all targets, or ends the current one.
    pub(crate) fn toggle_range(&mut self) {
        match self.in_range {
            RangeState::Begun => self.end_range(),
            RangeState::Ended => self.begin_range(),
        }
    }

    /// Starts a capture range in all targets, unless one has started.
    pub(crate) fn begin_range(&mut self) {
        if self.in_range == RangeState::Ended {
            self.in_range = RangeState::Begun;
            self.send_all(&Message::Begin);
        }
    }

    /// Ends the capture range in all targets, if there is one.
    pub(crate) fn end_range(&mut self) {
        if self.in_range == RangeState::Begun {
            self.in_range = RangeState::Ended;
            self.send_all(&Message::End);
        }
    }

    fn send_all(&mut self, message: &Message) {
        for target in &mut self.targets {
            // If the target has exited, the end of its connection shows it.
            let _ = target.send(message);
        }
    }

    /// Sets why the driver does not load the library. The trace contains this reason.
    pub(crate) fn set_injection_conflict(&mut self, why: &str) {
        self.absence.conflict = Some(why.to_owned());
    }

    /// Starts to look for descendants of this process that use CUDA and do not connect.
    pub(crate) fn watch_children(&mut self) {
        self.watch = Watch::start();
    }

    /// Whether records stay in memory until a dump.
    pub(crate) fn is_flight_recorder(&self) -> bool {
        matches!(self.store, Store::Flight(_))
    }

    /// Shortens the next pause, because somebody waits for the result.
    pub(crate) fn shorten_pause(&mut self) {
        self.pause = self.pause.min(BUSY_PAUSE);
    }

    fn wait<const N: usize>(&self, others: [BorrowedFd<'_>; N]) -> Result<Ready<N>, Error> {
        let mut watched = vec![PollFd::new(&self.listener, PollFlags::IN)];
        watched.extend(others.iter().map(|other| PollFd::new(other, PollFlags::IN)));
        let mut controls = Vec::new();
        for target in &self.targets {
            if let Some(control) = target.control() {
                controls.push((watched.len(), target.key));
                watched.push(PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN));
            }
            if let Some(process) = target.process() {
                watched.push(PollFd::from_borrowed_fd(process, PollFlags::IN));
            }
        }
        let pause = Timespec::try_from(self.pause_until_next()).unwrap_or_default();
        match poll(&mut watched, Some(&pause)) {
            Ok(_) => {}
            Err(Errno::INTR) => watched.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(Error::system("waiting for targets")(error)),
        }
        let is_ready = |at: usize| !watched[at].revents().is_empty();
        Ok(Ready {
            listener: is_ready(0),
            others: std::array::from_fn(|other| is_ready(1 + other)),
            controls: controls
                .into_iter()
                .filter(|(at, _)| is_ready(*at))
                .map(|(_, key)| key)
                .collect(),
        })
    }

    /// Reads a bounded amount from every ring.
    fn read(&mut self) -> Progress {
        let mut progress = Progress::default();
        for target in &mut self.targets {
            progress += match &mut self.store {
                Store::Stream(trace) => target.read(trace),
                Store::Flight(_) => target.read_log(),
            };
        }
        progress
    }

    /// The key of a process that has not exited.
    fn key_of(&self, id: PeerId) -> Option<TargetKey> {
        let mut targets = self.targets.iter();
        let found = targets.find(|target| target.id() == id && target.end().is_none());
        found.map(|target| target.key)
    }

    /// How a child of the collector ended. The pid of a process in another pid namespace is not comparable.
    fn known_end(&self, position: usize) -> Option<End> {
        let identity = &self.targets[position].identity;
        let known = self.known_ends.get(&identity.pid).copied();
        known.filter(|_| identity.is_visible())
    }

    /// The index of a target. `None` if it was removed.
    fn position(&self, key: TargetKey) -> Option<usize> {
        self.targets.iter().position(|target| target.key == key)
    }

    fn new_key(&mut self) -> TargetKey {
        self.next_key += 1;
        TargetKey(self.next_key)
    }

    fn open_message(&self) -> Message {
        Message::Open(Box::new(self.settings.clone()))
    }
}

/// The result of waiting.
struct Ready<const N: usize> {
    listener: bool,
    others: [bool; N],
    /// Targets that sent a message.
    controls: Vec<TargetKey>,
}

/// The metadata of the trace.
fn metadata(capture: &Capture) -> Vec<(String, String)> {
    let mut facts = vec![
        ("created".to_owned(), time::since_1970().to_string()),
        ("capture.level".to_owned(), capture.level.clone()),
        (
            "capture.memory_bound".to_owned(),
            capture.memory_bound().to_string(),
        ),
    ];
    facts.extend(capture.metadata.iter().cloned());
    facts
}
