//! How a session ends: exited processes, dumps of the flight recorder, and the completed trace.

use std::{os::fd::AsFd, path::PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracesmith_format::{ProcessId, tables::HealthCause};
use tracesmith_wire::control::Kinds;

use super::{MAX_ENDED, Session, Store};
use crate::{
    clocks::Need,
    end::End,
    health::Notice,
    report::{NO_PROCESS, Report},
    rows::TraceRows,
    target::{ProcessStatus, TargetKey},
    trace_file::TraceFile,
};

/// More messages than a process sends before it exits.
const LAST_MESSAGES: u32 = 16;

impl Session {
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

    /// From now on the new trace replaces an existing one.
    pub(crate) fn start_file(&mut self) {
        if let Store::Stream(trace) = &mut self.store {
            trace.file.start();
        }
    }

    /// Whether the new trace would replace one, and has not done so yet.
    pub(crate) fn keeps_earlier_trace(&mut self) -> bool {
        match &mut self.store {
            Store::Stream(trace) => trace.file.keeps_earlier_content(),
            Store::Flight(_) => false,
        }
    }

    /// Drops the session and deletes the unfinished trace. A trace that would have been replaced stays.
    pub(crate) fn abandon(self) {
        if let Store::Stream(trace) = self.store {
            trace.file.discard();
        }
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

    /// Finishes exited processes. A dump removes other targets from the list, so this finds them by key.
    pub(super) fn reap_exited(&mut self) {
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
                self.handle_last_messages(key);
                self.end_target(key, end);
            }
        }
    }

    /// Handles what an exited process sent after this turn had looked at the connections, such as why it was not recorded.
    fn handle_last_messages(&mut self, key: TargetKey) {
        for _ in 0..LAST_MESSAGES {
            let target = self.position(key).map(|position| &self.targets[position]);
            let Some(control) = target.and_then(|target| target.control()) else {
                return;
            };
            let mut watched = [PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN)];
            if !matches!(poll(&mut watched, Some(&Timespec::default())), Ok(ready) if ready > 0) {
                return;
            }
            self.handle_message(key);
        }
    }

    /// Finishes a streamed target. A target of the flight recorder is dumped if it crashed. Otherwise it waits for
    /// the next dump.
    pub(super) fn end_target(&mut self, key: TargetKey, end: End) {
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
}

/// Reasons why processes are missing in the trace.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// Why the driver did not load the library into any process.
    pub(super) conflict: Option<String>,
    /// Descriptions of processes that used CUDA and did not connect.
    pub(super) uncaptured_processes: Vec<String>,
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
