//! A trace seen from afar: for every stream and thread, what share of each cell of time it was busy, and with what.
//!
//! This is what timelines are drawn from. Work that ran at the same time counts once: the busy time of a cell is the union
//! of its events, and never more than the cell is long. Blocks are read once, with only the columns that are needed, and let
//! go again: memory follows the number of rows and cells, not that of events.

mod around;
mod axis;
mod browser;
mod cells;
mod counter_index;
pub(crate) mod counter_scan;
mod counters;
mod find;
mod labels;
mod nesting;
pub(crate) mod pieces;
pub(crate) mod scan;
mod sweep;
mod viewport;

use tracesmith_format::{BlockKind, ContextId, DeviceId, ProcessId, StreamId, ThreadId, Timestamp};

use crate::model::event::EventKind;
use crate::model::trace::Trace;
use crate::query::Query;

pub use around::Surroundings;
pub use axis::{Axis, Tick};
pub use browser::{Browser, LabeledRow, Picture};
pub use cells::{Overview, OverviewRow};
pub use counters::{CounterKey, CounterOverview, CounterRow, CounterValues};
pub use find::{Direction, Named, Picked, Position, named_within};
pub use labels::Labels;
pub use nesting::Nesting;
pub use viewport::Viewport;

/// What something was busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActivityKind {
    /// A kernel that computes.
    Kernel,
    /// Communication between GPUs: collectives, and kernels of the libraries that do them.
    Communication,
    /// A copy.
    Copy,
    /// A set.
    Set,
    /// A graph that was recorded as a whole.
    Graph,
    /// A wait. Nobody works meanwhile: it is shown where nothing else is, and counts as no busy time of a device.
    Sync,
    /// A call of a GPU interface.
    Call,
    /// A range that the program marked.
    Marker,
    /// Other work of the host.
    Host,
}

impl ActivityKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::Kernel,
        Self::Communication,
        Self::Copy,
        Self::Set,
        Self::Graph,
        Self::Sync,
        Self::Call,
        Self::Marker,
        Self::Host,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Communication => "communication",
            Self::Copy => "copy",
            Self::Set => "set",
            Self::Graph => "graph",
            Self::Sync => "sync",
            Self::Call => "api",
            Self::Marker => "marker",
            Self::Host => "host",
        }
    }

    /// Whether whoever does it is busy.
    pub fn is_work(self) -> bool {
        self != Self::Sync
    }
}

/// Who a row of the picture is about. The order is that of the picture: devices with their streams and counters, then
/// processes with their threads and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// All streams of a device together.
    Device {
        /// The device.
        device: DeviceId,
    },
    /// One stream. Numbers of streams count within their context.
    Stream {
        /// The device.
        device: DeviceId,
        /// The process that made the stream.
        process: ProcessId,
        /// The context that it belongs to.
        context: ContextId,
        /// Its number there.
        stream: StreamId,
    },
    /// Waits for a device or context as a whole.
    Waits {
        /// The device.
        device: DeviceId,
        /// The process that waits.
        process: ProcessId,
    },
    /// What a thread did.
    Thread {
        /// The process.
        process: ProcessId,
        /// The thread.
        thread: ThreadId,
        /// Which of the things that threads do.
        role: ThreadRole,
        /// The level: the first that is free when a range or operator starts. Where they only nest, it is the number of
        /// others around it. 0 where levels are not kept apart.
        depth: u8,
    },
    /// The values of a counter. An [`Overview`] has no such rows, but a [`CounterOverview`].
    Counter(CounterKey),
}

/// What a row of a thread shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadRole {
    /// Ranges that it marked.
    Markers,
    /// Operators and functions.
    Host,
    /// Calls of a GPU interface.
    Calls,
}

impl RowKey {
    /// The device, for rows of one.
    pub fn device(self) -> Option<DeviceId> {
        match self {
            Self::Device { device } | Self::Stream { device, .. } | Self::Waits { device, .. } => {
                Some(device)
            }
            Self::Counter(counter) => Some(counter.device).filter(|device| device.is_some()),
            Self::Thread { .. } => None,
        }
    }

    /// The process, unless the row is about several.
    pub fn process(self) -> Option<ProcessId> {
        match self {
            Self::Device { .. } => None,
            Self::Stream { process, .. } | Self::Waits { process, .. } | Self::Thread { process, .. } => {
                Some(process)
            }
            Self::Counter(counter) => Some(counter.process).filter(|process| process.is_some()),
        }
    }

    /// What rows are ordered by: devices come before threads, and each device's rows together; work of no device comes
    /// after that of all devices. Counters are the last rows of their device or process.
    pub(crate) fn rank(self) -> (u8, u32, u8, Self) {
        let of_device = |device: DeviceId, part| {
            let group = if device.is_some() { 0 } else { 1 };
            (group, device.0, part, self)
        };
        match self {
            Self::Device { device } => of_device(device, 0),
            Self::Stream { device, .. } => of_device(device, 1),
            Self::Waits { device, .. } => of_device(device, 2),
            Self::Thread { process, .. } => (2, process.0, 0, self),
            Self::Counter(counter) if counter.device.is_some() => of_device(counter.device, 3),
            Self::Counter(counter) if counter.process.is_some() => (2, counter.process.0, 1, self),
            Self::Counter(_) => (3, 0, 0, self),
        }
    }
}

/// Events that a picture cannot show as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubtful {
    /// Left out: nobody knows when they were.
    pub without_time: u64,
    /// Shown as moments: nobody knows when they ended.
    pub without_end: u64,
    /// Shown as moments: they end before they start.
    pub backwards: u64,
    /// There are more streams and threads than a picture has rows: events of the others are left out.
    pub has_more_rows: bool,
}

impl Doubtful {
    /// Adds what was found elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.without_time += other.without_time;
        self.without_end += other.without_end;
        self.backwards += other.backwards;
        self.has_more_rows |= other.has_more_rows;
    }
}

/// A stretch of time, at least a nanosecond long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Where it begins.
    pub from: Timestamp,
    /// Where it ends.
    pub to: Timestamp,
}

impl TimeSpan {
    /// From one moment to another; a nanosecond long when the second is not later.
    pub fn new(from: Timestamp, to: Timestamp) -> Self {
        // The end of all times has to lie behind the start.
        let from = from.min(Timestamp(u64::MAX - 1));
        TimeSpan {
            from,
            to: to.max(Timestamp(from.0 + 1)),
        }
    }

    /// All that a query asks for: between its own times where it has them, else as far as events of its kinds reach.
    /// `None` when there are none.
    pub fn of(trace: &Trace, query: &Query) -> Option<Self> {
        let reach = scan::blocks(trace, query)
            .into_iter()
            .map(|(first, last, _)| (first, last))
            .reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        let (first, last) = reach?;
        Some(Self::new(
            query.from.unwrap_or(Timestamp(first)),
            query.to.unwrap_or(Timestamp(last)),
        ))
    }

    /// Nanoseconds from its begin to its end.
    pub fn nanos(self) -> u64 {
        self.to.0 - self.from.0
    }

    /// Where a cell begins when the window is divided into so many. The last one ends where cell number `cells` would begin.
    pub fn cell_start(self, cell: usize, cells: usize) -> u64 {
        let share = u128::from(self.nanos()) * cell as u128 / cells.max(1) as u128;
        self.from.0 + share as u64
    }
}

/// Kinds of event that happen on devices and can be drawn.
pub const DEVICE_KINDS: &[EventKind] = &[
    EventKind::Kernel,
    EventKind::Copy,
    EventKind::Set,
    EventKind::Sync,
    EventKind::GraphLaunch,
    EventKind::Collective,
];

/// Kinds of event that happen on the host and can be drawn.
pub const HOST_KINDS: &[EventKind] = &[EventKind::ApiCall, EventKind::Marker, EventKind::HostCall];

/// Kinds of event that are drawn as values.
pub const VALUE_KINDS: &[EventKind] = &[EventKind::Counter];

/// Whether events of this table last and have a place of their own.
pub(crate) fn can_be_drawn(table: BlockKind) -> bool {
    let drawn = DEVICE_KINDS.iter().chain(HOST_KINDS);
    drawn.into_iter().any(|kind| kind.table() == table)
}
