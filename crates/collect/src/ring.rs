//! One ring of a target, read and accounted for.

use std::time::Duration;

use tracesmith_format::{ProcessId, tables::HealthCause};
use tracesmith_wire::{
    Capacity, Config, Consumer, Losses, Policy, Record, control::Settings, handshake::Purpose,
};

use crate::{
    capture::{DEFINITIONS_RING, REPLAY_CAPTURE_RING},
    health::Notice,
    rows::TraceRows,
};

/// Reads of one ring before the next has its turn; a read is 16 KiB.
const READS_PER_TURN: usize = 64;

/// How long a target may wait for room, by what it has to say.
const DEFINITIONS_LIMIT: Duration = Duration::from_millis(100);
const ACTIVITY_LIMIT: Duration = Duration::from_millis(250);
/// A recording without all of its contents is worth nothing.
const RECORDING_LIMIT: Duration = Duration::from_secs(60);

/// What becomes of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of them, at once.
    Everything,
    /// The last of them, until someone asks.
    LastPart,
}

/// Size and behaviour of a ring for this purpose; none for control.
pub(crate) fn config(purpose: Purpose, settings: &Settings, keep: Keep) -> Option<Config> {
    let (capacity, policy) = match (purpose, keep) {
        (Purpose::Definitions, _) => (DEFINITIONS_RING, block(DEFINITIONS_LIMIT)),
        (Purpose::Activity, Keep::Everything) => (settings.activity_ring, block(ACTIVITY_LIMIT)),
        (Purpose::Activity, Keep::LastPart) => (settings.activity_ring, Policy::OverwriteOldest),
        (Purpose::Thread, Keep::Everything) => (settings.thread_ring, Policy::DropNewest),
        (Purpose::Thread, Keep::LastPart) => (settings.thread_ring, Policy::OverwriteOldest),
        (Purpose::Recording, Keep::Everything) => (REPLAY_CAPTURE_RING, block(RECORDING_LIMIT)),
        (Purpose::Control, _) | (Purpose::Recording, Keep::LastPart) => return None,
    };
    Some(Config { capacity, policy })
}

/// Memory that the rings for device activity of all processes should not exceed. A process has 32 MiB by default, and a
/// job of 128 ranks on one machine would take 4 GiB.
const SHARED_BYTES: u64 = 1 << 30;

/// Each new process gets a share of what is left. By default the first 16 processes get the full size, the next
/// 16 half of it, and so on.
const SHARES: u64 = 16;

/// The least: 1 MiB holds what a process launches in some milliseconds, and rings are read every millisecond.
const LEAST: Capacity = Capacity::at_least(1 << 20);

/// The size of a ring that `taken` bytes of rings are there beside already, of all processes. Only rings for device
/// activity that are read all the time shrink: a flight recorder's is as long as its user wants it, and others are small.
pub(crate) fn shared(config: Config, purpose: Purpose, keep: Keep, taken: u64) -> Config {
    if (purpose, keep) != (Purpose::Activity, Keep::Everything) {
        return config;
    }
    // One that is larger by wish of the user has room for sixteen of its kind too.
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

/// A ring and what was already said of its losses.
pub(crate) struct Ring {
    consumer: Consumer,
    purpose: Purpose,
    capacity: Capacity,
    reported: Losses,
    reported_overtaken: u64,
    fault: Option<String>,
    fault_reported: bool,
}

/// What one turn at a ring gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) records: u64,
    /// The ring had more than its turn allowed.
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

    /// Reads what there is, as much as one turn allows.
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

    /// Reads everything that is published now.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&Record<'_>)) {
        if let Err(error) = self.consumer.drain(|record| each(&record)) {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }

    /// Whether nothing will come any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.fault.is_some() || self.consumer.is_closed()
    }

    /// Writes down what was lost since the last time.
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
            Purpose::Recording => "the ring for replay data",
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
