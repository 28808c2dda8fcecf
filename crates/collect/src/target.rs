//! A recorded process, as the collector sees it.

use std::{
    collections::VecDeque,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use tracesmith_format::{ProcessId, tables::HealthCause};
use tracesmith_wire::{
    Record,
    control::{Control, Message},
    handshake::{Life, Peer, PeerId},
};

use crate::{
    end::End,
    flight::RecordLog,
    health::Notice,
    identity::{Identity, Rings},
    ring::{Progress, Ring},
    rows::{Definitions, ProcessRows, RecordOutcome, TraceRows},
};

/// How long to wait until a target accepts a message. Messages are small, so a target that needs longer is stopped or
/// broken.
const SEND_LIMIT: Duration = Duration::from_millis(100);

/// Time between the end of the connection and the exit of the process.
const GRACE: Duration = Duration::from_millis(100);

/// Identifies a target within a session. Its position in the list changes when other targets are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetKey(pub(crate) u64);

/// A recorded process.
pub(crate) struct Target {
    pub(crate) key: TargetKey,
    pub(crate) identity: Identity,
    link: Link,
    connection: Connection,
    /// Rings for definitions, to which other records refer. They are read first.
    definitions: Vec<Ring>,
    rings: Vec<Ring>,
    pub(crate) store: TargetStore,
    orders: VecDeque<Order>,
    /// Descriptions of failures, for traces that are written later.
    failures: Vec<String>,
    end: Option<End>,
}

/// Where a target's records go.
pub(crate) enum TargetStore {
    /// Records become rows immediately.
    Stream(Box<ProcessRows>),
    /// Definitions are kept in memory. All other records stay in the rings.
    Flight(Box<RecordLog>),
}

/// How the collector knows the process: by its control connection, or only by a ring.
enum Link {
    Control(Control),
    Process(Peer),
}

/// Whether the target can receive requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Open,
    /// The connection has ended. The reason is not known yet.
    Lost(Instant),
    /// The connection has ended, and the process continues.
    Closed,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Open,
    Close,
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStatus {
    Running,
    Ended(End),
}

/// Which side opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    ByTarget,
    ByCollector,
}

impl Target {
    pub(crate) fn with_control(
        key: TargetKey,
        identity: Identity,
        control: Control,
        store: TargetStore,
    ) -> Self {
        Self::new(key, identity, Link::Control(control), Connection::Open, store)
    }

    /// A target that requested a ring before it opened a control connection.
    pub(crate) fn with_peer(key: TargetKey, identity: Identity, peer: Peer, store: TargetStore) -> Self {
        Self::new(key, identity, Link::Process(peer), Connection::Closed, store)
    }

    fn new(
        key: TargetKey,
        identity: Identity,
        link: Link,
        connection: Connection,
        store: TargetStore,
    ) -> Self {
        Self {
            key,
            identity,
            link,
            connection,
            definitions: Vec::new(),
            rings: Vec::new(),
            store,
            orders: VecDeque::new(),
            failures: Vec::new(),
            end: None,
        }
    }

    fn peer(&self) -> &Peer {
        match &self.link {
            Link::Control(control) => control.peer(),
            Link::Process(peer) => peer,
        }
    }

    /// Identifies the process.
    pub(crate) fn id(&self) -> PeerId {
        self.peer().id(self.identity.own_pid)
    }

    /// The control connection, while it is open.
    pub(crate) fn control(&self) -> Option<&Control> {
        match &self.link {
            Link::Control(control) if self.connection == Connection::Open => Some(control),
            _ => None,
        }
    }

    /// A descriptor that is readable when the process exits. `None` after the exit.
    pub(crate) fn process(&self) -> Option<BorrowedFd<'_>> {
        self.peer().process().filter(|_| self.end.is_none())
    }

    /// Sends a request. The answer arrives later.
    pub(crate) fn order(&mut self, order: Order, message: &Message) {
        if self.send(message) {
            self.orders.push_back(order);
        }
    }

    /// Sends a message, and returns whether that worked. A target that accepts no message counts as disconnected.
    pub(crate) fn send(&mut self, message: &Message) -> bool {
        let Some(control) = self.control() else {
            return false;
        };
        match control.send(message, SEND_LIMIT) {
            Ok(()) => true,
            Err(error) => {
                // A process that refuses the connection sends the reason and closes it.
                if !matches!(error, tracesmith_wire::Error::TimedOut { .. })
                    && let Err(reason) = self.receive()
                {
                    self.failures.push(reason);
                }
                self.connection = Connection::Lost(Instant::now());
                false
            }
        }
    }

    /// The next message. Notes the end of the connection.
    ///
    /// # Errors
    ///
    /// The reason, if the process refused the connection.
    pub(crate) fn receive(&mut self) -> Result<Option<Message>, String> {
        let Some(control) = self.control() else {
            return Ok(None);
        };
        let refused = match control.receive(SEND_LIMIT) {
            Ok(Some(message)) => return Ok(Some(message)),
            Err(tracesmith_wire::Error::TimedOut { .. }) => return Ok(None),
            Err(tracesmith_wire::Error::Version { ours, theirs, .. }) => Some(format!(
                "the process was started with another version of TraceSmith (protocol {theirs}, this one uses \
                 {ours}); restart it with the variables of this version"
            )),
            Err(tracesmith_wire::Error::Refused { reason }) => Some(reason),
            Ok(None) | Err(_) => None,
        };
        self.connection = Connection::Lost(Instant::now());
        self.orders.clear();
        refused.map_or(Ok(None), Err)
    }

    /// Removes and returns the request that an answer belongs to.
    pub(crate) fn answered(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Whether requests are not answered yet.
    pub(crate) fn is_busy(&self) -> bool {
        !self.orders.is_empty() && self.connection == Connection::Open && self.end.is_none()
    }

    /// Stores a failure and writes it to the trace, if there is one.
    pub(crate) fn failed(&mut self, reason: String, trace: Option<&mut TraceRows>) {
        match (&self.store, trace) {
            (TargetStore::Stream(rows), Some(trace)) => note_failure(&reason, rows.id(), trace),
            _ => self.failures.push(reason),
        }
    }

    pub(crate) fn add_definitions(&mut self, ring: Ring) {
        self.definitions.push(ring);
    }

    pub(crate) fn add_ring(&mut self, ring: Ring) {
        self.rings.push(ring);
    }

    /// Whether no more records can arrive.
    pub(crate) fn is_gone(&self) -> bool {
        let is_out_of_reach = self.connection == Connection::Closed && !self.has_rings();
        self.end.is_some() || is_out_of_reach
    }

    /// Whether the connection has ended, or the process: either is seen first.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.connection != Connection::Open || self.end.is_some()
    }

    pub(crate) fn has_rings(&self) -> bool {
        !self.rings.is_empty() || !self.definitions.is_empty()
    }

    /// The size of all rings.
    pub(crate) fn ring_bytes(&self) -> u64 {
        let rings = self.rings.iter().chain(&self.definitions);
        rings.map(Ring::capacity_bytes).sum()
    }

    /// Reads a bounded amount from the rings into the trace.
    pub(crate) fn read(&mut self, trace: &mut TraceRows) -> Progress {
        let TargetStore::Stream(rows) = &mut self.store else {
            return Progress::default();
        };
        let mut progress = read_definitions(&mut self.definitions, rows, trace);
        for ring in &mut self.rings {
            progress += ring.read(|record| take(record, &mut self.definitions, rows, trace));
        }
        for rings in [&mut self.rings, &mut self.definitions] {
            rings.retain_mut(|ring| {
                let is_finished = ring.is_finished();
                if is_finished {
                    ring.report_losses(rows.id(), trace);
                }
                !is_finished
            });
        }
        progress
    }

    /// Reads definitions into memory.
    pub(crate) fn read_log(&mut self) -> Progress {
        let TargetStore::Flight(log) = &mut self.store else {
            return Progress::default();
        };
        let mut progress = Progress::default();
        for ring in &mut self.definitions {
            progress += ring.read(|record| log.push(record));
        }
        progress
    }

    /// Writes the losses so far to the trace.
    pub(crate) fn report_losses(&mut self, trace: &mut TraceRows) {
        if let TargetStore::Stream(rows) = &self.store {
            for ring in self.rings.iter_mut().chain(&mut self.definitions) {
                ring.report_losses(rows.id(), trace);
            }
        }
    }

    /// Reads all remaining records and writes how the process ended.
    pub(crate) fn finish(mut self, end: End, trace: &mut TraceRows) {
        let TargetStore::Stream(mut rows) = self.store else {
            return;
        };
        drain(&mut self.rings, &mut self.definitions, &mut rows, trace);
        for ring in self.rings.iter_mut().chain(&mut self.definitions) {
            ring.report_losses(rows.id(), trace);
        }
        for reason in &self.failures {
            note_failure(reason, rows.id(), trace);
        }
        rows.end(end, trace);
    }

    /// Writes the records in the flight recorder to a trace.
    pub(crate) fn dump(&mut self, trace: &mut TraceRows) {
        let end = self.end.unwrap_or(End::Running);
        let TargetStore::Flight(log) = &mut self.store else {
            return;
        };
        let mut rows = trace.begin_process(&self.identity);
        log_definitions(&mut self.definitions, log);
        log.replay(|record| complete(record, &mut rows, trace));
        for ring in &mut self.rings {
            ring.drain(|record| {
                if rows.take(record, Definitions::MayCome, trace) == RecordOutcome::NeedsDefinitions {
                    for ring in &mut self.definitions {
                        ring.drain(|definition| {
                            log.push(definition);
                            complete(definition, &mut rows, trace);
                        });
                    }
                    complete(record, &mut rows, trace);
                }
            });
        }
        for reason in &self.failures {
            note_failure(reason, rows.id(), trace);
        }
        if log.refused() > 0 {
            let words = "definitions were dropped: the memory for them is full";
            let notice = Notice::new(HealthCause::RING_FULL, rows.id(), words);
            trace.note(notice.with_count(log.refused()));
        }
        if log.overwritten() > 0 {
            let words = "definitions of old objects were dropped to make room for newer ones";
            let notice = Notice::new(HealthCause::OVERWRITTEN, rows.id(), words);
            trace.note(notice.with_count(log.overwritten()));
        }
        for ring in self.rings.iter_mut().chain(&mut self.definitions) {
            ring.report_losses(rows.id(), trace);
        }
        self.rings.retain(|ring| !ring.is_finished());
        rows.end(end, trace);
    }

    /// Whether a process exited while it was recorded. Its last records are then of interest.
    pub(crate) fn died(&mut self) -> bool {
        match &mut self.store {
            TargetStore::Stream(_) => false,
            TargetStore::Flight(log) => {
                log_definitions(&mut self.definitions, log);
                log.in_window()
            }
        }
    }

    /// Whether the process still runs the same program.
    pub(crate) fn is_same_program(&self) -> bool {
        self.identity.has_execed(self.rings()) == Some(false)
    }

    fn rings(&self) -> Rings {
        if self.has_rings() {
            Rings::Mapped
        } else {
            Rings::Closed
        }
    }

    /// Replaces the connection of a process. A target reconnects only after it lost the old connection. A forked
    /// child may still have the old one open.
    pub(crate) fn reconnect(&mut self, control: Control, opened: Opened) -> bool {
        let is_open = self.control().is_some_and(|control| !control.is_hung_up());
        if is_open && opened == Opened::ByCollector {
            return false;
        }
        self.link = Link::Control(control);
        self.connection = Connection::Open;
        self.orders.clear();
        true
    }

    /// Closes the connection. The process is still watched, and its rings can be read.
    pub(crate) fn disconnect(&mut self) {
        if let Some(control) = self.control() {
            control.hang_up();
        }
        self.connection = Connection::Closed;
    }

    /// Stores how the process ended, for a trace that is written later.
    pub(crate) fn set_end(&mut self, end: End) {
        self.end = Some(end);
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the process still runs. `known` is the exit status, if the process is a child of the collector.
    pub(crate) fn status(&mut self, known: Option<End>) -> ProcessStatus {
        match self.peer().life() {
            Life::Ended => return ProcessStatus::Ended(self.how_it_ended(known)),
            Life::Unknown if known.is_some() => return ProcessStatus::Ended(known.unwrap_or(End::Unknown)),
            Life::Running | Life::Unknown => {}
        }
        let Connection::Lost(since) = self.connection else {
            return ProcessStatus::Running;
        };
        if since.elapsed() < GRACE {
            // An exiting process closes its connection shortly before it ends.
            return ProcessStatus::Running;
        }
        match self.identity.has_execed(self.rings()) {
            Some(true) => ProcessStatus::Ended(End::Replaced),
            Some(false) => {
                self.connection = Connection::Closed;
                ProcessStatus::Running
            }
            None if self.peer().life() == Life::Unknown => ProcessStatus::Ended(End::Unknown),
            None => ProcessStatus::Running,
        }
    }

    fn how_it_ended(&self, known: Option<End>) -> End {
        known
            .or_else(|| self.identity.end_of_zombie())
            .or_else(|| self.peer().exit_status().map(End::from_raw_status))
            .unwrap_or(End::Unknown)
    }
}

fn note_failure(reason: &str, process: ProcessId, trace: &mut TraceRows) {
    trace.note(Notice::new(HealthCause::UNAVAILABLE, process, reason));
}

/// Converts a record to a row. If it refers to an unknown definition, the rings for definitions are read first.
#[inline]
fn take(record: &Record<'_>, definitions: &mut [Ring], rows: &mut ProcessRows, trace: &mut TraceRows) {
    if rows.take(record, Definitions::MayCome, trace) == RecordOutcome::NeedsDefinitions {
        for ring in definitions {
            ring.drain(|definition| complete(definition, rows, trace));
        }
        complete(record, rows, trace);
    }
}

/// Converts a record to a row, even if definitions are missing.
fn complete(record: &Record<'_>, rows: &mut ProcessRows, trace: &mut TraceRows) {
    let taken = rows.take(record, Definitions::Complete, trace);
    debug_assert_eq!(taken, RecordOutcome::Done, "nothing is awaited any more");
}

fn read_definitions(rings: &mut [Ring], rows: &mut ProcessRows, trace: &mut TraceRows) -> Progress {
    let mut progress = Progress::default();
    for ring in rings {
        progress += ring.read(|record| complete(record, rows, trace));
    }
    progress
}

fn drain(rings: &mut [Ring], definitions: &mut [Ring], rows: &mut ProcessRows, trace: &mut TraceRows) {
    for ring in &mut *definitions {
        ring.drain(|record| complete(record, rows, trace));
    }
    for ring in rings {
        ring.drain(|record| take(record, definitions, rows, trace));
    }
}

fn log_definitions(rings: &mut [Ring], log: &mut RecordLog) {
    for ring in rings {
        ring.drain(|record| log.push(record));
    }
}
