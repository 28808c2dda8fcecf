//! The event loop of the collector. It runs on one thread.
//!
//! One turn waits for the first of these: a connection, a message, the exit of a process, a file descriptor of the
//! caller, or a timer. Then it reads a bounded amount from every ring. A turn waits for a target only as long as
//! sending a message takes.

mod connections;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tracesmith_format::{ProcessId, tables::HealthCause};
use tracesmith_wire::{
    control::{CaptureRange, Kinds, Message, Settings},
    handshake::{Listener, PeerId},
};

use crate::{
    capture::{Capture, Destination},
    clocks::{HostClocks, Need},
    counters::{DeviceFacts, Sampler},
    end::End,
    error::Error,
    flight::FlightStore,
    health::Notice,
    identity::ProcessKey,
    report::{NO_PROCESS, Report},
    ring::Progress,
    rows::TraceRows,
    target::{Order, ProcessStatus, Target, TargetKey},
    time,
    trace_file::TraceFile,
    uncaptured_processes::Watch,
};

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

    /// Whether the collector starts and ends capture ranges.
    pub(crate) fn controls_ranges(&self) -> bool {
        self.settings.range == CaptureRange::Order
    }

    /// Starts a capture range in all targets, or ends the current one.
    pub(crate) fn toggle_range(&mut self) {
        let message = match self.in_range {
            RangeState::Begun => Message::End,
            RangeState::Ended => Message::Begin,
        };
        self.in_range = match self.in_range {
            RangeState::Begun => RangeState::Ended,
            RangeState::Ended => RangeState::Begun,
        };
        for target in &mut self.targets {
            // If the target has exited, the end of its connection shows it.
            let _ = target.send(&message);
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

    /// Writes the contents of the flight recorder to a trace.
    pub(crate) fn dump(&mut self) -> Result<PathBuf, String> {
        let Store::Flight(flight) = &mut self.store else {
            return Err("this collector runs no flight recorder".to_owned());
        };
        let destination = flight.next_destination();
        let file = TraceFile::create(&destination).map_err(|error| in_words(&error))?;
        self.clocks.read(Need::Bounds);
        let mut trace = TraceRows::begin(file, self.devices.clone(), &self.metadata, &self.clocks);
        trace.has_kernels = self.settings.kinds.contains(Kinds::KERNELS);
        for sample in flight.take_samples() {
            trace.sample(&sample);
        }
        for target in &mut self.targets {
            target.dump(&mut trace);
        }
        self.absence.note(self.report.processes, &mut trace);
        // The trace now contains the exited processes, so their memory can be freed.
        self.targets.retain(|target| target.end().is_none());
        let finished = trace.finish();
        self.report.add(&finished);
        match finished.written {
            Ok(bytes) => {
                self.report.files.push((destination.path.clone(), bytes));
                Ok(destination.path)
            }
            Err(error) => {
                let words = in_words(&error);
                self.report.failure.get_or_insert(error);
                Err(words)
            }
        }
    }

    /// Whether records stay in memory until a dump.
    pub(crate) fn is_flight_recorder(&self) -> bool {
        matches!(self.store, Store::Flight(_))
    }

    /// Drops the session and deletes the unfinished trace.
    pub(crate) fn abandon(self, path: &Path) {
        if let Store::Stream(trace) = self.store {
            drop(trace);
            if path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                // A remaining file must not hide the original error.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Shortens the next pause, because somebody waits for the result.
    pub(crate) fn shorten_pause(&mut self) {
        self.pause = self.pause.min(BUSY_PAUSE);
    }

    /// Reads all remaining records, writes how each process ended, and completes the trace.
    pub(crate) fn finish(mut self) -> Report {
        self.take_samples();
        self.reap_exited();
        if let Some(watch) = self.watch.take() {
            self.absence.uncaptured_processes = watch.uncaptured_processes(&self.known);
            self.report.uncaptured_processes = self.absence.uncaptured_processes.len();
        }
        if let Store::Flight(_) = &self.store {
            // No target is left if a crash has just been dumped.
            if !self.targets.is_empty() || self.report.files.is_empty() {
                // The error is in the report already.
                let _ = self.dump();
            }
            return self.report;
        }
        self.read_clocks(Need::Bounds);
        let lost_samples = self.sampler.take().map_or(0, |sampler| sampler.lost());
        let known: Vec<Option<End>> = (0..self.targets.len())
            .map(|position| self.known_end(position))
            .collect();
        let Store::Stream(mut trace) = self.store else {
            return self.report;
        };
        self.absence.note(self.report.processes, &mut trace);
        if lost_samples > 0 {
            let words = "counter samples were dropped: the collector did not read them in time";
            let notice = Notice::new(HealthCause::RING_FULL, ProcessId::NONE, words);
            trace.note(notice.with_count(lost_samples));
        }
        for (mut target, known) in self.targets.into_iter().zip(known) {
            let end = match target.status(known) {
                ProcessStatus::Ended(end) => end,
                ProcessStatus::Running => End::Running,
            };
            if end == End::Running && target.is_busy() {
                let pid = target.identity.pid;
                let words = format!("process {pid} did not respond in time; its last records are missing");
                trace.note(Notice::new(HealthCause::UNAVAILABLE, ProcessId::NONE, &words));
            }
            target.finish(end, &mut trace);
        }
        let path = trace.file.path().to_owned();
        let finished = trace.finish();
        self.report.add(&finished);
        match finished.written {
            Ok(bytes) => self.report.files.push((path, bytes)),
            Err(error) => self.report.failure = Some(error),
        }
        self.report
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

    /// Finishes exited processes. A dump removes other targets from the list, so this finds them by key.
    fn reap_exited(&mut self) {
        let keys: Vec<TargetKey> = self.targets.iter().map(|target| target.key).collect();
        for key in keys {
            let Some(position) = self.position(key) else {
                continue;
            };
            if self.targets[position].end().is_some() {
                continue;
            }
            let known = self.known_end(position);
            if let ProcessStatus::Ended(end) = self.targets[position].status(known) {
                self.end_target(key, end);
            }
        }
    }

    /// Finishes a streamed target. A target of the flight recorder is dumped if it crashed. Otherwise it waits for
    /// the next dump.
    fn end_target(&mut self, key: TargetKey, end: End) {
        let Some(position) = self.position(key) else {
            return;
        };
        match &mut self.store {
            Store::Stream(trace) => self.targets.remove(position).finish(end, trace),
            Store::Flight(_) => {
                self.targets[position].set_end(end);
                let ended = self.targets.iter().filter(|target| target.end().is_some());
                let too_many = ended.count() > MAX_ENDED;
                if self.targets[position].died() || too_many {
                    // The error is in the report already.
                    let _ = self.dump();
                }
            }
        }
    }

    /// Opens and closes the window, and flushes the trace, when it is time.
    fn keep_time(&mut self, now: Instant) {
        match self.window {
            WindowState::Ahead { opens, duration } if now >= opens => {
                self.window = WindowState::Opening {
                    limit: now + OPENING_LIMIT,
                    duration,
                };
                self.read_clocks(Need::WindowEdge);
                let open = self.open_message();
                for target in &mut self.targets {
                    target.order(Order::Open, &open);
                }
            }
            WindowState::Opening { limit, duration } if now >= limit || !self.is_busy() => {
                self.window = WindowState::Open {
                    closes: duration.map(|duration| now + duration),
                };
            }
            WindowState::Open { closes: Some(closes) } if now >= closes => self.close_window(),
            _ => {}
        }
        self.read_clocks(Need::Regular);
        if now >= self.next_flush {
            self.next_flush = now + FLUSH_PERIOD;
            if let Store::Stream(trace) = &mut self.store {
                for target in &mut self.targets {
                    target.report_losses(trace);
                }
                trace.file.flush();
            }
        }
    }

    /// Reads the host's clocks if `need` requires it, or if a target's window opened or closed.
    fn read_clocks(&mut self, need: Need) {
        let saw_window = match &mut self.store {
            Store::Stream(trace) => std::mem::take(&mut trace.saw_window),
            Store::Flight(_) => false,
        };
        let need = if saw_window && need == Need::Regular {
            Need::WindowEdge
        } else {
            need
        };
        if let (Some(reading), Store::Stream(trace)) = (self.clocks.read(need), &mut self.store) {
            reading.write(&mut trace.file);
        }
    }

    fn take_samples(&mut self) {
        let Some(sampler) = &self.sampler else { return };
        for sample in sampler.take() {
            match &mut self.store {
                Store::Stream(trace) => trace.sample(&sample),
                Store::Flight(flight) => flight.keep(sample),
            }
        }
    }

    fn set_pause(&mut self, progress: Progress) {
        let has_rings = self.targets.iter().any(Target::has_rings);
        self.pause = if progress.more {
            Duration::ZERO
        } else if !has_rings {
            LONG_PAUSE
        } else if progress.records > 0 {
            BUSY_PAUSE
        } else {
            (self.pause + BUSY_PAUSE).min(IDLE_PAUSE)
        };
    }

    /// The pause, shortened to the next timer.
    fn pause_until_next(&self) -> Duration {
        let due = match self.window {
            WindowState::Ahead { opens, .. } => Some(opens),
            WindowState::Opening { limit, .. } => Some(limit),
            WindowState::Open { closes } => closes,
            WindowState::Over => None,
        };
        let now = Instant::now();
        let until = |moment: Instant| moment.saturating_duration_since(now);
        due.map_or(self.pause, |due| self.pause.min(until(due)))
            .min(until(self.next_flush))
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

/// Reasons why processes are missing in the trace.
#[derive(Debug, Default)]
struct Absence {
    /// Why the driver did not load the library into any process.
    conflict: Option<String>,
    /// Descriptions of processes that used CUDA and did not connect.
    uncaptured_processes: Vec<String>,
}

impl Absence {
    fn note(&self, processes: u32, trace: &mut TraceRows) {
        let mut note = |cause, words: &str| trace.note(Notice::new(cause, ProcessId::NONE, words));
        if let Some(words) = &self.conflict {
            return note(HealthCause::CONFLICT, words);
        }
        for words in &self.uncaptured_processes {
            note(HealthCause::UNAVAILABLE, words);
        }
        if processes == 0 && self.uncaptured_processes.is_empty() {
            note(HealthCause::UNAVAILABLE, NO_PROCESS);
        }
    }
}

/// An error and its causes in one line.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
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
