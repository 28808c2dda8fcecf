//! What to record, when, and where to.

use std::{path::PathBuf, time::Duration};

use tracesmith_wire::{
    Capacity,
    control::{CaptureRange, Kinds, Settings, Steps},
};

use crate::counters::OpenCounters;

/// What to record, and how much may be spent on it.
pub struct Capture {
    /// The user's word for the amount, for the trace's metadata.
    pub level: String,
    /// What targets record.
    pub kinds: Kinds,
    /// When, within the window.
    pub range: CaptureRange,
    /// Which of the ranges, counted from 0; all without it.
    pub steps: Option<Steps>,
    /// The window.
    pub window: WindowSchedule,
    /// The most memory that buffers and rings of one target may take.
    pub memory_bytes: u64,
    /// Keep only the last part, in a ring of this many bytes for each process,
    /// and write it when asked.
    pub flight_recorder: Option<u64>,
    /// Opens what counters of devices come from, when the recording begins.
    pub counters: Option<OpenCounters>,
    /// Time between two samples of them.
    pub counter_period: Duration,
    /// Hears that a window begins which is recorded to be run again.
    pub announce: Option<Announce>,
    /// Further facts for the trace's metadata.
    pub metadata: Vec<(String, String)>,
}

/// Hears that a recording begins.
pub type Announce = fn(&ReplayCaptureStart);

/// What is known when a window begins that is recorded to be run again. What it
/// reaches is known only when it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCaptureStart {
    /// Memory that the program has: no more is read before and after the window.
    pub reachable_bytes: u64,
    /// What the disk has left, if it tells.
    pub free_bytes: Option<u64>,
    /// So much of it stays free.
    pub kept_bytes: u64,
}

/// When recording goes on, counted from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSchedule {
    /// Time before it opens.
    pub delay: Duration,
    /// Time that it stays open; to the end without it.
    pub duration: Option<Duration>,
}

/// Where the trace goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The file.
    pub path: PathBuf,
    /// What happens to a file that is there already.
    pub existing: Existing,
}

/// What happens to a file that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is recorded.
    Refuse,
    /// It is replaced.
    Replace,
}

/// Room for texts and the like: a target fills it in bursts only.
pub(crate) const DEFINITIONS_RING: Capacity = Capacity::at_least(1 << 20);
/// Room for the contents of memory, for which a target waits.
pub(crate) const REPLAY_CAPTURE_RING: Capacity = Capacity::at_least(16 << 20);
const THREAD_RING: Capacity = Capacity::at_least(256 << 10);
const FLUSH_PERIOD: Duration = Duration::from_millis(100);

impl Default for Capture {
    fn default() -> Self {
        Self {
            level: "standard".to_owned(),
            kinds: Kinds::KERNELS
                | Kinds::COPIES
                | Kinds::API
                | Kinds::SYNCS
                | Kinds::MEMORY
                | Kinds::MARKERS
                | Kinds::MODULES
                | Kinds::OVERHEAD
                | Kinds::STREAMS,
            range: CaptureRange::Everything,
            steps: None,
            window: WindowSchedule::default(),
            memory_bytes: 64 << 20,
            flight_recorder: None,
            counters: None,
            announce: None,
            counter_period: Duration::from_millis(100),
            metadata: Vec::new(),
        }
    }
}

/// The most memory that stacks take in one target, beside that of records.
pub const STACK_MEMORY_BYTES: u64 = 32 << 20;

impl Capture {
    /// What targets are told.
    pub(crate) fn settings(&self, collector: PathBuf) -> Settings {
        Settings {
            collector,
            kinds: self.kinds,
            range: self.range.clone(),
            steps: self.steps,
            activity_ring: self.activity_ring(),
            thread_ring: self.thread_ring(),
            memory_bytes: self.memory_bound(),
            flush_period: FLUSH_PERIOD,
        }
    }

    /// Half of what a target may take, or what the flight recorder is to hold.
    fn activity_ring(&self) -> Capacity {
        match self.flight_recorder {
            Some(bytes) => Capacity::at_least(bytes),
            None => {
                let half = (self.memory_bytes / 2).max(1 << 16);
                Capacity::at_least(1 << half.ilog2())
            }
        }
    }

    /// A flight recorder keeps calls and markers about as long as kernels.
    fn thread_ring(&self) -> Capacity {
        match self.flight_recorder {
            Some(bytes) => Capacity::at_least((bytes / 8).max(THREAD_RING.bytes())),
            None => THREAD_RING,
        }
    }

    /// The most memory of one target, room for a flight recorder included.
    pub(crate) fn memory_bound(&self) -> u64 {
        match self.flight_recorder {
            Some(_) => self.memory_bytes.max(2 * self.activity_ring().bytes()),
            None => self.memory_bytes,
        }
    }
}
