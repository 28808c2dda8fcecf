//! The collector's side of one ring: reading and loss accounting.

use std::time::Duration;

use tracesmith_format::{ProcessId, tables::HealthCause};
use tracesmith_wire::{
    Capacity, Config, Consumer, Losses, Policy, Record, control::Settings, handshake::Purpose,
};

use crate::{health::Notice, rows::TraceRows};

/// Reads from one ring before the next ring is read. One read is 16 KiB.
const READS_PER_TURN: usize = 64;

/// How long a target may wait for space in a ring, by the kind of records.
const DEFINITIONS_LIMIT: Duration = Duration::from_millis(100);
const ACTIVITY_LIMIT: Duration = Duration::from_millis(250);
/// A replay capture is useless if memory contents are missing, so targets wait long.
const REPLAY_CAPTURE_LIMIT: Duration = Duration::from_secs(60);

/// Which records a ring keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All records. The collector reads them continuously.
    Everything,
    /// The latest records. The collector reads them for a dump.
    LastPart,
}

/// Size and behavior of a ring for this purpose. `None` for control connections.
pub(crate) fn config(purpose: Purpose, settings: &Settings, keep: Keep) -> Option<Config> {
    let (capacity, policy) = match (purpose, keep) {
        (Purpose::Definitions, _) => (Capacity::DEFINITIONS, block(DEFINITIONS_LIMIT)),
        (Purpose::Activity, Keep::Everything) => (settings.activity_ring, block(ACTIVITY_LIMIT)),
        (Purpose::Activity, Keep::LastPart) => (settings.activity_ring, Policy::OverwriteOldest),
        (Purpose::Thread, Keep::Everything) => (settings.thread_ring, Policy::DropNewest),
        (Purpose::Thread, Keep::LastPart) => (settings.thread_ring, Policy::OverwriteOldest),
        (Purpose::ReplayCapture, Keep::Everything) => (Capacity::REPLAY_CAPTURE, block(REPLAY_CAPTURE_LIMIT)),
        (Purpose::Control, _) | (Purpose::ReplayCapture, Keep::LastPart) => return None,
    };
    Some(Config { capacity, policy })
}

/// The rings for GPU activity of all processes should not use more memory than this. A process has 32 MiB by default,
/// so a job of 128 ranks on one machine would use 4 GiB.
const SHARED_BYTES: u64 = 1 << 30;

/// Each new process gets a share of what is left. By default the first 16 processes get the full size, the next
/// 16 half of it, and so on.
const SHARES: u64 = 16;

/// The smallest size. 1 MiB holds the launches of several milliseconds, and rings are read every millisecond.
const LEAST: Capacity = Capacity::at_least(1 << 20);

/// Reduces the size of a ring if the rings of all processes already use `taken` bytes. Only rings for GPU activity
/// that are read continuously shrink. The user sets the size of a flight recorder's ring, and other rings are small.
pub(crate) fn shared(config: Config, purpose: Purpose, keep: Keep, taken: u64) -> Config {
    if (purpose, keep) != (Purpose::Activity, Keep::Everything) {
        return config;
    }
    // If the user requested larger rings, sixteen of them still fit.
    let bound = SHARED_BYTES.max(SHARES * config.capacity.bytes());
    let share = bound.saturating_sub(taken) / SHARES;
    let share = Capacity::at_least(1 << share.max(1).ilog2()).max(LEAST);
    Config {
        capacity: config.capacity.min(share),
        ..config
    }
}

fn block(limit: Duration) -> Policy {
    Policy::Block { limit }
}

/// A ring, and the losses that were already reported.
pub(crate) struct Ring {
    consumer: Consumer,
    purpose: Purpose,
    capacity: Capacity,
    reported: Losses,
    reported_overtaken: u64,
    fault: Option<String>,
    fault_reported: bool,
}

/// The result of reading a ring once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) records: u64,
    /// The ring contains more records than one turn may read.
    pub(crate) more: bool,
}

impl std::ops::AddAssign for Progress {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.more |= other.more;
    }
}

impl Ring {
    pub(crate) fn new(consumer: Consumer, purpose: Purpose, capacity: Capacity) -> Self {
        Self {
            consumer,
            purpose,
            capacity,
            reported: Losses::default(),
            reported_overtaken: 0,
            fault: None,
            fault_reported: false,
        }
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity.bytes()
    }

    /// Reads records, at most as many as one turn may read.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&Record<'_>)) -> Progress {
        let mut progress = Progress::default();
        for _ in 0..READS_PER_TURN {
            let mut records = 0;
            let mut fault = None;
            match self.consumer.read() {
                Ok(read) => {
                    for record in read {
                        match record {
                            Ok(record) => {
                                each(&record);
                                records += 1;
                            }
                            Err(error) => fault = Some(error),
                        }
                    }
                }
                Err(error) => fault = Some(error),
            }
            progress.records += records;
            if let Some(error) = fault {
                self.fault.get_or_insert_with(|| error.to_string());
                return progress;
            }
            if records == 0 {
                return progress;
            }
        }
        progress.more = true;
        progress
    }

    /// Reads all published records.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Record<'_>)) {
        if let Err(error) = self.consumer.drain(|record| each(&record)) {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }

    /// Whether no more records can arrive.
    pub(crate) fn is_finished(&self) -> bool {
        self.fault.is_some() || self.consumer.is_closed()
    }

    /// Writes the losses since the last report to the trace.
    pub(crate) fn report_losses(&mut self, process: ProcessId, trace: &mut TraceRows) {
        let losses = self.consumer.losses();
        let dropped = losses
            .dropped_records
            .saturating_sub(self.reported.dropped_records);
        let name = self.name();
        if dropped > 0 {
            let bytes = losses.dropped_bytes.saturating_sub(self.reported.dropped_bytes);
            let words = format!("{name} was full");
            let notice = Notice::new(HealthCause::RING_FULL, process, &words);
            trace.note(notice.with_count(dropped).with_bytes(bytes));
        }
        let overtaken = self.consumer.overtaken_bytes();
        if overtaken > self.reported_overtaken {
            let records = losses
                .overwritten_records
                .saturating_sub(self.reported.overwritten_records);
            let words = format!("{name} overwrote its oldest records");
            let notice = Notice::new(HealthCause::OVERWRITTEN, process, &words);
            trace.note(
                notice
                    .with_count(records)
                    .with_bytes(overtaken - self.reported_overtaken),
            );
        }
        if let Some(fault) = self.fault.as_ref().filter(|_| !self.fault_reported) {
            let words = format!("{name}: {fault}");
            trace.note(Notice::new(HealthCause::DAMAGED, process, &words));
            self.fault_reported = true;
        }
        self.reported = losses;
        self.reported_overtaken = overtaken;
    }

    fn name(&self) -> &'static str {
        match self.purpose {
            Purpose::Definitions => "the ring for definitions",
            Purpose::Activity => "the ring for GPU activity",
            Purpose::Thread => "the ring of a program thread",
            Purpose::ReplayCapture => "the ring for replay data",
            Purpose::Control => "control",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(bytes: u64) -> Config {
        Config {
            capacity: Capacity::at_least(bytes),
            policy: block(ACTIVITY_LIMIT),
        }
    }

    #[test]
    fn rings_of_many_processes_share_memory_issue_26() {
        let mut taken = 0;
        let mut given = Vec::new();
        for _ in 0..128 {
            let config = shared(activity(32 << 20), Purpose::Activity, Keep::Everything, taken);
            given.push(config.capacity.bytes());
            taken += config.capacity.bytes();
        }
        assert!(taken <= SHARED_BYTES + (32 << 20), "{taken}");
        assert!(given.is_sorted_by(|one, next| one >= next), "{given:?}");
        assert!(given[..16].iter().all(|bytes| *bytes == 32 << 20), "{given:?}");
        assert!(given.iter().all(|bytes| *bytes >= LEAST.bytes()), "{given:?}");
    }

    #[test]
    fn what_a_user_asks_for_is_given() {
        let large = activity(256 << 20);
        assert_eq!(shared(large, Purpose::Activity, Keep::Everything, 0), large);
        let kept = shared(large, Purpose::Activity, Keep::LastPart, 64 << 30);
        assert_eq!(kept, large, "a flight recorder");
        let small = activity(1 << 16);
        assert_eq!(
            shared(small, Purpose::Activity, Keep::Everything, 64 << 30),
            small
        );
    }
}
