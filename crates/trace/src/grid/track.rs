//! Tracks: what a person sees as one labeled row, and how they are grouped and ordered.

use std::fmt;

use tracesmith_format::{DeviceId, ProcessId};

use crate::model::trace::Trace;
use crate::overview::{RowKey, ThreadRole};

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKind {
    /// All streams of a device together.
    Device,
    /// The gaps of a device, named by their cause.
    Idle,
    /// The work of a stream.
    Stream,
    /// Waits for a device or context as a whole.
    Waits,
    /// Collectives of a device.
    Collectives,
    /// Ranges that a thread marked.
    Markers,
    /// Operators and functions of a thread.
    Host,
    /// Calls of a GPU interface by a thread.
    Calls,
    /// The values of a counter.
    Counter,
    /// Allocated bytes over time.
    Memory,
}

impl TrackKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Idle => "idle",
            Self::Stream => "stream",
            Self::Waits => "waits",
            Self::Collectives => "collective",
            Self::Markers => "markers",
            Self::Host => "host",
            Self::Calls => "calls",
            Self::Counter => "counter",
            Self::Memory => "memory",
        }
    }

    /// Whether it is drawn as values.
    pub fn has_values(self) -> bool {
        matches!(self, Self::Counter | Self::Memory)
    }
}

/// The categories of a kind of track. Those of idle time depend on the trace.
pub(super) fn categories(kind: TrackKind) -> &'static [&'static str] {
    match kind {
        TrackKind::Device | TrackKind::Stream | TrackKind::Collectives => {
            &["compute", "communication", "copy", "other"]
        }
        TrackKind::Calls => &["launch", "wait", "memory", "call"],
        TrackKind::Waits => &["wait"],
        TrackKind::Markers => &["range"],
        TrackKind::Host => &["operator"],
        TrackKind::Idle | TrackKind::Counter | TrackKind::Memory => &[],
    }
}

/// What a track is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKey {
    /// A device, stream, thread or counter.
    Row(RowKey),
    /// The gaps of a device.
    Idle {
        /// The device.
        device: DeviceId,
    },
    /// Collectives of a process on a device.
    Collectives {
        /// The device.
        device: DeviceId,
        /// The process.
        process: ProcessId,
    },
    /// A pool of memory.
    Memory {
        /// The device; none for memory of the host.
        device: DeviceId,
        /// The process.
        process: ProcessId,
        /// The kind of memory.
        memory: &'static str,
        /// The allocator, where one reports it.
        allocator: String,
    },
}

impl TrackKey {
    /// What it shows.
    pub fn kind(&self) -> TrackKind {
        match self {
            Self::Row(RowKey::Device { .. }) => TrackKind::Device,
            Self::Row(RowKey::Stream { .. }) => TrackKind::Stream,
            Self::Row(RowKey::Waits { .. }) => TrackKind::Waits,
            Self::Row(RowKey::Thread { role, .. }) => match role {
                ThreadRole::Markers => TrackKind::Markers,
                ThreadRole::Host => TrackKind::Host,
                ThreadRole::Calls => TrackKind::Calls,
            },
            Self::Row(RowKey::Counter(_)) => TrackKind::Counter,
            Self::Idle { .. } => TrackKind::Idle,
            Self::Collectives { .. } => TrackKind::Collectives,
            Self::Memory { .. } => TrackKind::Memory,
        }
    }

    /// The device, for tracks of one.
    pub fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Row(row) => row.device(),
            Self::Idle { device } | Self::Collectives { device, .. } => Some(*device),
            Self::Memory { device, .. } => Some(*device).filter(|device| device.is_some()),
        }
    }

    /// The process, unless the track is about several.
    pub fn process(&self) -> Option<ProcessId> {
        match self {
            Self::Row(row) => row.process(),
            Self::Idle { .. } => None,
            Self::Collectives { process, .. } | Self::Memory { process, .. } => Some(*process),
        }
    }

    /// The group that it is shown in.
    pub fn group(&self) -> GroupKey {
        match (self.device(), self.process()) {
            (Some(device), _) => GroupKey::Device(device),
            (None, Some(process)) => GroupKey::Process(process),
            (None, None) => GroupKey::Counters,
        }
    }

    /// What tracks are ordered by, before their keys.
    pub(super) fn rank(&self) -> Rank {
        let group = match self.group() {
            // Work of no device comes after that of all devices.
            GroupKey::Device(device) => (u8::from(!device.is_some()), device.0),
            GroupKey::Process(process) => (2, process.0),
            GroupKey::Counters => (3, 0),
        };
        let part = match self.kind() {
            TrackKind::Device => 0,
            TrackKind::Idle => 1,
            TrackKind::Stream => 2,
            TrackKind::Waits => 3,
            TrackKind::Collectives => 4,
            // Tracks of a thread stay together.
            TrackKind::Markers | TrackKind::Host | TrackKind::Calls => 5,
            TrackKind::Memory => 6,
            TrackKind::Counter => 7,
        };
        (group, part)
    }

    /// Text that names the track of this trace wherever the trace is opened, for addresses of pages.
    pub(super) fn address(&self, trace: &Trace) -> String {
        let kind = self.kind().name();
        match self {
            Self::Row(RowKey::Device { device }) | Self::Idle { device } => format!("{kind}:{}", device.0),
            Self::Row(RowKey::Stream {
                device,
                process,
                context,
                stream,
            }) => format!("{kind}:{}.{}.{}.{}", device.0, process.0, context.0, stream.0),
            Self::Row(RowKey::Waits { device, process }) | Self::Collectives { device, process } => {
                format!("{kind}:{}.{}", device.0, process.0)
            }
            Self::Row(RowKey::Thread { process, thread, .. }) => {
                format!("{kind}:{}.{}", process.0, thread.0)
            }
            Self::Row(RowKey::Counter(counter)) => format!(
                "{kind}:{}.{}.{}.{}.{}.{}",
                counter.device.0,
                counter.process.0,
                counter.thread.0,
                counter.instance,
                trace.string(counter.name),
                trace.string(counter.unit)
            ),
            Self::Memory {
                device,
                process,
                memory,
                allocator,
            } => format!("{kind}:{}.{}.{memory}.{allocator}", device.0, process.0),
        }
    }
}

/// The place of a group, and a place within it.
pub(super) type Rank = ((u8, u32), u8);

/// Tracks that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// Those of a device.
    Device(DeviceId),
    /// Those of a process.
    Process(ProcessId),
    /// Counters of no device and no process.
    Counters,
}

impl GroupKey {
    /// The word for this kind of group.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Device(_) => "device",
            Self::Process(_) => "process",
            Self::Counters => "counters",
        }
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => write!(f, "device:{}", device.0),
            Self::Process(process) => write!(f, "process:{}", process.0),
            Self::Counters => f.write_str("counters"),
        }
    }
}

/// A group of tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which one.
    pub key: GroupKey,
    /// Its label.
    pub label: String,
}

/// One track.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// What it is about.
    pub key: TrackKey,
    /// Text that names it, the same wherever the trace is opened.
    pub address: String,
    /// The group that it is in. Tracks of a group follow each other.
    pub group: GroupKey,
    /// Its label within the group.
    pub label: String,
    /// What it shows.
    pub kind: TrackKind,
    /// Its first row.
    pub first_row: u32,
    /// How many rows it has, one for each lane.
    pub rows: u32,
    /// Slices of all its rows; samples of a counter. 0 for a device.
    pub slices: u64,
    /// What its categories mean.
    pub categories: Vec<String>,
    /// The unit of its values.
    pub unit: Option<String>,
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
}
