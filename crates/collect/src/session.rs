//! The event loop: one thread that listens, orders, reads and writes.
//!
//! A turn waits for whatever happens first (a visitor, a message, the end of a
//! process, a descriptor of the caller's, a moment that was set) and then gives
//! every ring its share. Nothing in a turn waits for a target longer than a
//! message takes.

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

/// Between two looks at rings while records come: a thread's ring of 256 KiB
/// fills in three of these at a million markers a second.
const BUSY_PAUSE: Duration = Duration::from_millis(1);
const IDLE_PAUSE: Duration = Duration::from_millis(5);
/// Where only descriptors and set moments matter.
const LONG_PAUSE: Duration = Duration::from_millis(100);

/// How much a collector that is killed may lose.
const FLUSH_PERIOD: Duration = Duration::from_secs(1);

/// A window lasts from when the programs that are there are recorded. This is how
/// long it may take them: CUPTI's coming up takes tenths of a second.
const OPENING_LIMIT: Duration = Duration::from_secs(5);

/// Processes whose end waits for the next dump.
const MAX_ENDED: usize = 8;

/// A recording that goes on.
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
    /// How children of ours ended.
    known_ends: BTreeMap<u32, End>,
    window: WindowState,
    in_range: RangeState,
    clocks: HostClocks,
    sampler: Option<Sampler>,
    next_flush: Instant,
    pause: Duration,
    report: Report,
}

/// What becomes of records.
enum Store {
    Stream(Box<TraceRows>),
    Flight(FlightStore),
}

/// Whether a range was begun that we say the ends of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    Begun,
    Ended,
}

/// Where we stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowState {
    Ahead {
        opens: Instant,
        duration: Option<Duration>,
    },
    /// Programs that are there begin to be recorded; one that is stuck is waited for until the limit.
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
    /// Creates the trace, unless a flight recorder waits to be asked, and
    /// listens. Whoever calls it hears signals: see [`OpenCounters`].
    ///
    /// [`OpenCounters`]: crate::OpenCounters
    pub(crate) fn new(capture: Capture, destination: Destination) -> Result<Self, Error> {
        let mut counters = capture.counters.and_then(|open| open());
        let devices = counters.as_mut().map(|source| source.devices());
        let devices = devices.unwrap_or_default();
        let metadata = metadata(&capture);
        let mut clocks = HostClocks::open();
        clocks.read(Need::Bounds);
        // First, so that a failure leaves no file behind.
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

    /// Where targets find us.
    pub(crate) fn socket(&self) -> &Path {
        self.listener.path()
    }

    /// Whether the window was open and is not any more.
    pub(crate) fn is_over(&self) -> bool {
        self.window == WindowState::Over
    }

    /// Whether a target is being recorded or waits to be.
    pub(crate) fn has_target(&self, key: TargetKey) -> bool {
        let target = self.position(key).map(|position| &self.targets[position]);
        target.is_some_and(|target| target.end().is_none())
    }

    /// Whether all processes have exited.
    pub(crate) fn have_all_exited(&self) -> bool {
        self.targets.iter().all(Target::is_gone)
    }

    /// Whether a target has yet to carry out an order.
    pub(crate) fn is_busy(&self) -> bool {
        self.targets.iter().any(Target::is_busy)
    }

    /// Keeps how a child of ours ended: nobody else can be told after us.
    pub(crate) fn note_end(&mut self, pid: u32, end: End) {
        self.known_ends.insert(pid, end);
    }

    /// Waits for something to happen and deals with it. `others` are the
    /// caller's descriptors; it is told which of them are ready.
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

    /// Ends the window now, whatever was planned.
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

    /// Whether ranges begin and end when we say so.
    pub(crate) fn controls_ranges(&self) -> bool {
        self.settings.range == CaptureRange::Order
    }

    /// Begins a range in all targets, or ends the one that was begun.
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
            // One that is gone is noticed by the end of its connection.
            let _ = target.send(&message);
        }
    }

    /// The driver is not told of our library: traces say why.
    pub(crate) fn set_injection_conflict(&mut self, why: &str) {
        self.absence.conflict = Some(why.to_owned());
    }

    /// Looks from now on for processes below this one that use CUDA and do not come to us.
    pub(crate) fn watch_children(&mut self) {
        self.watch = Watch::start();
    }

    /// Writes out what the flight recorder holds.
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
        // What ended is told now and needs no room any more.
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

    /// Whether records wait for a dump.
    pub(crate) fn is_flight_recorder(&self) -> bool {
        matches!(self.store, Store::Flight(_))
    }

    /// Lets go of everything, the trace that was begun included.
    pub(crate) fn abandon(self, path: &Path) {
        if let Store::Stream(trace) = self.store {
            drop(trace);
            if path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                // A few bytes that stay behind are no reason to hide the error.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Makes the next turn short: someone waits.
    pub(crate) fn shorten_pause(&mut self) {
        self.pause = self.pause.min(BUSY_PAUSE);
    }

    /// Reads what is left, writes how everything ended and completes the trace.
    pub(crate) fn finish(mut self) -> Report {
        self.take_samples();
        self.reap_exited();
        if let Some(watch) = self.watch.take() {
            self.absence.uncaptured_processes = watch.uncaptured_processes(&self.known);
            self.report.uncaptured_processes = self.absence.uncaptured_processes.len();
        }
        if let Store::Flight(_) = &self.store {
            // Nothing is left when a death has just been written out.
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

    /// Gives every ring its share.
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

    /// Finishes with processes that have ended. A dump on the way lets go of others, so they are found by their keys.
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

    /// One that is streamed is over. One that the flight recorder holds is
    /// written out if it died, and else waits for the next dump.
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

    /// Opens and closes the window, and hands rows to the system, when it is time.
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

    /// Reads the host's clocks, if there is need or a target's window opened or closed.
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

    /// The pause, or less when something is due.
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

    /// A process that has not ended.
    fn key_of(&self, id: PeerId) -> Option<TargetKey> {
        let mut targets = self.targets.iter();
        let found = targets.find(|target| target.id() == id && target.end().is_none());
        found.map(|target| target.key)
    }

    /// How a child of ours ended. The number of a process that is not visible from here is none of ours.
    fn known_end(&self, position: usize) -> Option<End> {
        let identity = &self.targets[position].identity;
        let known = self.known_ends.get(&identity.pid).copied();
        known.filter(|_| identity.is_visible())
    }

    /// Where a target is now; none once it was let go.
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

/// What a wait found.
struct Ready<const N: usize> {
    listener: bool,
    others: [bool; N],
    /// Targets that said something.
    controls: Vec<TargetKey>,
}

/// Why there may be nothing of a process.
#[derive(Debug, Default)]
struct Absence {
    /// Of any: the driver was not told of our library.
    conflict: Option<String>,
    /// Processes that used CUDA and did not come, in words.
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

/// What the trace says of itself.
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
