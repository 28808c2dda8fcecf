//! A process that records, as the collector knows it.

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

/// A message is small and its reader waits for it; one that takes none for this
/// long is stopped or mad.
const SEND_LIMIT: Duration = Duration::from_millis(100);

/// Between the end of the connection and the end of the process.
const GRACE: Duration = Duration::from_millis(100);

/// Tells a target from all others of a session. Its place among them changes when others are let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetKey(pub(crate) u64);

/// A process that records.
pub(crate) struct Target {
    pub(crate) key: TargetKey,
    pub(crate) identity: Identity,
    link: Link,
    connection: Connection,
    /// Rings for what other records refer to: read first.
    definitions: Vec<Ring>,
    rings: Vec<Ring>,
    pub(crate) store: TargetStore,
    orders: VecDeque<Order>,
    /// What could not be done, in words, for traces that are written later.
    failures: Vec<String>,
    end: Option<End>,
}

/// What becomes of a target's records.
pub(crate) enum TargetStore {
    /// Rows at once.
    Stream(Box<ProcessRows>),
    /// Definitions are kept, the rest stays in the rings.
    Flight(Box<RecordLog>),
}

/// How the process is held.
enum Link {
    Control(Control),
    Process(Peer),
}

/// Whether orders reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Open,
    /// It has ended, and it is not known why.
    Lost(Instant),
    /// The process lives on without it.
    Closed,
}

/// An order that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Open,
    Close,
}

/// What has become of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStatus {
    Running,
    Ended(End),
}

/// Who opened a connection.
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

    /// A target that came for a ring without a word before.
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

    /// Which process it is.
    pub(crate) fn id(&self) -> PeerId {
        self.peer().id(self.identity.own_pid)
    }

    /// The connection, while it is open.
    pub(crate) fn control(&self) -> Option<&Control> {
        match &self.link {
            Link::Control(control) if self.connection == Connection::Open => Some(control),
            _ => None,
        }
    }

    /// Readable when the process ends; none once it has.
    pub(crate) fn process(&self) -> Option<BorrowedFd<'_>> {
        self.peer().process().filter(|_| self.end.is_none())
    }

    /// Gives an order, which is answered later.
    pub(crate) fn order(&mut self, order: Order, message: &Message) {
        if self.send(message) {
            self.orders.push_back(order);
        }
    }

    /// Whether the message could be sent. One that cannot be told anything is
    /// not connected any more.
    pub(crate) fn send(&mut self, message: &Message) -> bool {
        let Some(control) = self.control() else {
            return false;
        };
        let sent = control.send(message, SEND_LIMIT).is_ok();
        if !sent {
            self.connection = Connection::Lost(Instant::now());
        }
        sent
    }

    /// The next message; the end of the connection is noted.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        let control = self.control()?;
        match control.receive(SEND_LIMIT) {
            Ok(Some(message)) => Some(message),
            Err(tracesmith_wire::Error::TimedOut { .. }) => None,
            Ok(None) | Err(_) => {
                self.connection = Connection::Lost(Instant::now());
                self.orders.clear();
                None
            }
        }
    }

    /// The order that an answer is to.
    pub(crate) fn answered(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Whether orders are still to be answered.
    pub(crate) fn is_busy(&self) -> bool {
        !self.orders.is_empty() && self.connection == Connection::Open && self.end.is_none()
    }

    /// Keeps in mind what could not be done.
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

    /// Whether nothing can come of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        let is_out_of_reach = self.connection == Connection::Closed && !self.has_rings();
        self.end.is_some() || is_out_of_reach
    }

    pub(crate) fn has_rings(&self) -> bool {
        !self.rings.is_empty() || !self.definitions.is_empty()
    }

    /// Bytes of all its rings.
    pub(crate) fn ring_bytes(&self) -> u64 {
        let rings = self.rings.iter().chain(&self.definitions);
        rings.map(Ring::capacity_bytes).sum()
    }

    /// Reads a turn's worth of its rings into the trace.
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

    /// Keeps its definitions for later.
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

    /// Writes down what was lost so far.
    pub(crate) fn report_losses(&mut self, trace: &mut TraceRows) {
        if let TargetStore::Stream(rows) = &self.store {
            for ring in self.rings.iter_mut().chain(&mut self.definitions) {
                ring.report_losses(rows.id(), trace);
            }
        }
    }

    /// Reads all that is left and writes the process's end.
    pub(crate) fn finish(mut self, end: End, trace: &mut TraceRows) {
        let TargetStore::Stream(mut rows) = self.store else {
            return;
        };
        drain(&mut self.rings, &mut self.definitions, &mut rows, trace);
        for ring in self.rings.iter_mut().chain(&mut self.definitions) {
            ring.report_losses(rows.id(), trace);
        }
        rows.end(end, trace);
    }

    /// Writes what the flight recorder holds of it.
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

    /// Whether a process that ended did so in the middle of its work, so that
    /// what it was doing is of interest.
    pub(crate) fn died(&mut self) -> bool {
        match &mut self.store {
            TargetStore::Stream(_) => false,
            TargetStore::Flight(log) => {
                log_definitions(&mut self.definitions, log);
                log.in_window()
            }
        }
    }

    /// Whether the process is the one that is known, and was not replaced by
    /// another program.
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

    /// Takes another connection of the same process. A target connects again only
    /// when it has lost the old connection, which a forked child may still hold open.
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

    /// Keeps how it ended for a trace that is written later.
    pub(crate) fn set_end(&mut self, end: End) {
        self.end = Some(end);
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// What has become of the process. `known` is what a parent was told.
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
            // A process that ends closes its connection a little before.
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

/// Takes a record; one that refers to what is not known yet after what the
/// definitions' rings hold.
#[inline]
fn take(record: &Record<'_>, definitions: &mut [Ring], rows: &mut ProcessRows, trace: &mut TraceRows) {
    if rows.take(record, Definitions::MayCome, trace) == RecordOutcome::NeedsDefinitions {
        for ring in definitions {
            ring.drain(|definition| complete(definition, rows, trace));
        }
        complete(record, rows, trace);
    }
}

/// Takes a record as it is.
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
