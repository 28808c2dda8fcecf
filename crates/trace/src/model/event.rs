//! Events: the one-size view of rows of all tables, for everything that treats them alike.

use std::any::Any;

use serde::{Deserialize, Serialize};
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, BlockKind, Bytes, CorrelationId, Decoder, DeviceId, Error, ProcessId, Projection, Source, StackId,
    StreamId, StringId, Table, ThreadId, Timestamp, Value, for_each_event_table,
};

use crate::model::strings::Strings;

/// What kind of event a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is named after its table")]
pub enum EventKind {
    Kernel,
    Copy,
    Set,
    Sync,
    #[serde(rename = "api")]
    ApiCall,
    Allocation,
    Counter,
    Marker,
    Flow,
    #[serde(rename = "host")]
    HostCall,
    #[serde(rename = "graph")]
    GraphLaunch,
    Collective,
}

impl EventKind {
    /// All kinds, in the order in which they are listed.
    pub const ALL: &'static [Self] = &[
        Self::Kernel,
        Self::Copy,
        Self::Set,
        Self::Sync,
        Self::ApiCall,
        Self::Allocation,
        Self::Counter,
        Self::Marker,
        Self::Flow,
        Self::HostCall,
        Self::GraphLaunch,
        Self::Collective,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Set => "set",
            Self::Sync => "sync",
            Self::ApiCall => "api",
            Self::Allocation => "allocation",
            Self::Counter => "counter",
            Self::Marker => "marker",
            Self::Flow => "flow",
            Self::HostCall => "host",
            Self::GraphLaunch => "graph",
            Self::Collective => "collective",
        }
    }

    /// The table that holds it.
    pub fn table(self) -> BlockKind {
        match self {
            Self::Kernel => BlockKind::KERNELS,
            Self::Copy => BlockKind::COPIES,
            Self::Set => BlockKind::SETS,
            Self::Sync => BlockKind::SYNCS,
            Self::ApiCall => BlockKind::API_CALLS,
            Self::Allocation => BlockKind::ALLOCATIONS,
            Self::Counter => BlockKind::COUNTERS,
            Self::Marker => BlockKind::MARKERS,
            Self::Flow => BlockKind::FLOWS,
            Self::HostCall => BlockKind::HOST_CALLS,
            Self::GraphLaunch => BlockKind::GRAPH_LAUNCHES,
            Self::Collective => BlockKind::COLLECTIVES,
        }
    }

    /// The kind of event that a table holds.
    pub fn of_table(table: BlockKind) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.table() == table)
    }
}

/// An event's name: the program's own, or ours for what has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    /// A string of the trace.
    Id(StringId),
    /// A word of ours.
    Word(&'static str),
}

impl Default for EventName {
    fn default() -> Self {
        EventName::Word("")
    }
}

/// A row of any table. What does not apply is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// What kind of event it is.
    pub kind: EventKind,
    /// When it began; on the trace's timeline once it comes out of a query.
    pub start: Timestamp,
    /// When it ended; equal to the start for an instant, none when not known.
    pub end: Timestamp,
    /// Its name.
    pub name: EventName,
    /// The process that asked for it.
    pub process: ProcessId,
    /// The thread on the host.
    pub thread: ThreadId,
    /// The device.
    pub device: DeviceId,
    /// The stream on the device; `None` for what happens on the host.
    pub stream: Option<StreamId>,
    /// Joins host and device.
    pub correlation: CorrelationId,
    /// Bytes moved, filled or allocated.
    pub bytes: Bytes,
    /// The code that made it.
    pub stack: StackId,
}

impl Event {
    /// An event with nothing but a kind and times.
    pub(crate) fn new(kind: EventKind, start: Timestamp, end: Timestamp) -> Self {
        Event {
            kind,
            start,
            end,
            name: EventName::default(),
            process: ProcessId::NONE,
            thread: ThreadId::NONE,
            device: DeviceId::NONE,
            stream: None,
            correlation: CorrelationId::NONE,
            bytes: Bytes::NONE,
            stack: StackId::NONE,
        }
    }

    /// Puts it where device work ran.
    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.process = place.process;
        self.device = place.device;
        self.stream = Some(place.stream);
        self
    }

    /// Puts it where the host did something.
    pub(crate) fn by(mut self, caller: &Caller) -> Self {
        self.process = caller.process;
        self.thread = caller.thread;
        self
    }

    /// Nanoseconds from start to end; 0 for an instant, for an unknown time and for one that runs backwards.
    pub fn duration(&self) -> u64 {
        if self.start.is_some() {
            self.end.0.saturating_sub(self.start.0)
        } else {
            0
        }
    }
}

/// Columns whose rows are events.
pub trait EventColumns: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// A row as an event, its times on the block's own clock.
    fn event(&self, row: usize) -> Event;
    /// What else is worth a glance: a kernel's grid, a copy's direction.
    fn detail(&self, row: usize, strings: &Strings) -> String;
    /// Calls `f` with every column's id and the row's value in it.
    fn visit_row(&self, row: usize, f: &mut dyn FnMut(u16, Value));
    /// Columns of the same table without rows.
    fn empty(&self) -> Box<dyn EventColumns>;
    /// Adds rows of these columns to `to`, which is of the same table; of another table nothing.
    fn copy_rows(&self, rows: &[usize], to: &mut dyn EventColumns);
    /// For those who know the table.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Reads a block of events of whatever table; `None` for a block of another kind.
pub(crate) fn read_events<S: Source>(
    decoder: &mut Decoder<'_, S>,
    block: &Block,
) -> Option<Result<Box<dyn EventColumns>, Error>> {
    macro_rules! read {
        ($($field:ident: $row:ident,)*) => {
            match block.header.kind {
                $(<$row as Table>::KIND => {
                    Some(decoder.read::<$row>(block, &Projection::all()).map(|columns| Box::new(columns) as _))
                })*
                _ => None,
            }
        };
    }
    for_each_event_table!(read)
}

/// Implements [`EventColumns`] for a table by two functions over its columns.
macro_rules! event_columns {
    ($columns:ty, $event:expr, $detail:expr) => {
        impl crate::model::event::EventColumns for $columns {
            fn rows(&self) -> usize {
                tracesmith_format::Columns::len(self)
            }

            fn event(&self, row: usize) -> crate::model::event::Event {
                $event(self, row)
            }

            fn detail(&self, row: usize, strings: &crate::model::strings::Strings) -> String {
                $detail(self, row, strings)
            }

            fn visit_row(&self, row: usize, f: &mut dyn FnMut(u16, tracesmith_format::Value)) {
                tracesmith_format::Columns::visit(self, row, f);
            }

            fn empty(&self) -> Box<dyn crate::model::event::EventColumns> {
                Box::new(<$columns as Default>::default())
            }

            fn copy_rows(&self, rows: &[usize], to: &mut dyn crate::model::event::EventColumns) {
                if let Some(to) = to.as_any_mut().downcast_mut::<$columns>() {
                    for row in rows {
                        let row = tracesmith_format::Columns::row(self, *row);
                        tracesmith_format::Columns::push(to, &row);
                    }
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
                self
            }
        }
    };
}
pub(crate) use event_columns;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_table_has_a_kind_of_event() {
        macro_rules! check {
            ($($field:ident: $row:ident,)*) => {
                $(assert!(EventKind::of_table($row::KIND).is_some());)*
                let tables = [$($row::KIND),*];
                assert_eq!(tables.len(), EventKind::ALL.len());
            };
        }
        for_each_event_table!(check);
    }

    #[test]
    fn a_duration_never_runs_backwards() {
        let event = |start, end| Event::new(EventKind::Kernel, Timestamp(start), Timestamp(end)).duration();
        assert_eq!((event(5, 9), event(9, 5), event(5, 0), event(0, 9)), (4, 0, 0, 0));
    }
}
