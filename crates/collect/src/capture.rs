//! What to record, when, and where to write it.

use std::{path::PathBuf, time::Duration};

use tracesmith_wire::{
    Capacity,
    control::{CaptureRange, Kinds, Settings, Steps},
};

use crate::counters::OpenCounters;

/// What to record, and the limits.
pub struct Capture {
    /// The user's name for the level of detail, for the trace's metadata.
    pub level: String,
    /// The kinds of records.
    pub kinds: Kinds,
    /// The ranges to record within the window.
    pub range: CaptureRange,
    /// The ranges to record, counted from 0. `None` records all.
    pub steps: Option<Steps>,
    /// When the window opens and closes.
    pub window: WindowSchedule,
    /// Memory limit for the buffers and rings of one target.
    pub memory_bytes: u64,
    /// The size of the flight recorder per process. It keeps only the latest records, and writes them on request.
    pub flight_recorder: Option<u64>,
    /// Opens the source of device counters when recording starts.
    pub counters: Option<OpenCounters>,
    /// Time between two counter samples.
    pub counter_period: Duration,
    /// Called when a replay capture starts.
    pub announce: Option<Announce>,
    /// More entries for the trace's metadata.
    pub metadata: Vec<(String, String)>,
}

/// Called when a replay capture starts.
pub type Announce = fn(&ReplayCaptureStart);

/// The state at the start of a replay capture. How much memory the window really uses is known only at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCaptureStart {
    /// Memory that the program has allocated. At most this much is read before and after the window.
    pub reachable_bytes: u64,
    /// Free disk space, if known.
    pub free_bytes: Option<u64>,
    /// Disk space that stays free.
    pub kept_bytes: u64,
}

/// The capture window, relative to the start of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSchedule {
    /// Time until the window opens.
    pub delay: Duration,
    /// How long the window stays open. `None`: until the end.
    pub duration: Option<Duration>,
}

/// The file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The file.
    pub path: PathBuf,
    /// What to do with an existing file.
    pub existing: Existing,
}

/// What to do with an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail, and record nothing.
    Refuse,
    /// Replace the file.
    Replace,
}

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

/// Memory limit for stacks in one target, in addition to the limit for records.
pub const STACK_MEMORY_BYTES: u64 = 32 << 20;

impl Capture {
    /// The settings that targets receive.
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

    /// Half of a target's memory limit, or the size of the flight recorder.
    fn activity_ring(&self) -> Capacity {
        match self.flight_recorder {
            Some(bytes) => Capacity::at_least(bytes),
            None => {
                let half = (self.memory_bytes / 2).max(1 << 16);
                Capacity::at_least(1 << half.ilog2())
            }
        }
    }

    /// A flight recorder keeps API calls and markers about as long as kernels.
    fn thread_ring(&self) -> Capacity {
        match self.flight_recorder {
            Some(bytes) => Capacity::at_least((bytes / 8).max(THREAD_RING.bytes())),
            None => THREAD_RING,
        }
    }

    /// The memory limit of one target, including the flight recorder.
    pub(crate) fn memory_bound(&self) -> u64 {
        match self.flight_recorder {
            Some(_) => self.memory_bytes.max(2 * self.activity_ring().bytes()),
            None => self.memory_bytes,
        }
    }
}
