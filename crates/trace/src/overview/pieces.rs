//! What a picture needs of a block: times, and for each row where it happened and what it was.
//!
//! Places and shapes are looked at once for each distinct one of the block, not once a row.

use tracesmith_format::tables::*;
use tracesmith_format::{Block, Decoder, DeviceId, Error, Projection, Shared, Source, Table, Timestamp};

use super::{ActivityKind, RowKey, ThreadRole};
use crate::model::event::EventName;
use crate::model::strings::Strings;
use crate::model::trace::Trace;
use crate::query::Query;
use crate::reconstruct::OpClass;

/// The wanted part of a block.
pub(crate) struct Pieces {
    pub(crate) start: Vec<Timestamp>,
    pub(crate) end: Vec<Timestamp>,
    spots: Vec<RowKeys>,
    /// Which spot each row has.
    spot_of: Vec<u32>,
    shapes: Vec<Shape>,
    /// Which shape each row has; empty when all have the only one.
    shape_of: Vec<u32>,
}

/// Where something happened: the row of the picture for what is the stream's or thread's own, and the one for waits that
/// are not those of one stream. `None` when the query does not want this place.
#[derive(Clone, Copy)]
pub(crate) struct RowKeys {
    own: Option<RowKey>,
    waits: Option<RowKey>,
}

impl RowKeys {
    /// The row of the picture.
    pub(crate) fn key(&self, whose: RowOwner) -> Option<RowKey> {
        match whose {
            RowOwner::Own => self.own,
            RowOwner::Device => self.waits,
        }
    }
}

#[derive(Clone, Copy)]
struct Shape {
    name: EventName,
    activity: ActivityKind,
    whose: RowOwner,
    wanted: Wanted,
}

/// Whether a name passes the query's filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

/// RowOwner a row of a table is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOwner {
    /// The stream's or thread's.
    Own,
    /// The device's as a whole.
    Device,
}

impl Pieces {
    /// Reads what is needed of a block; `None` when its table cannot be drawn.
    pub(crate) fn read<S: Source>(
        decoder: &mut Decoder<'_, S>,
        block: &Block,
        trace: &Trace,
        query: &Query,
    ) -> Option<Result<Self, Error>> {
        macro_rules! read {
            ($($row:ident,)*) => {
                match block.header.kind {
                    $(<$row as Table>::KIND => Some(read_table::<$row, S>(decoder, block, trace, query)),)*
                    _ => None,
                }
            };
        }
        read! {
            Kernel, MemoryCopy, MemorySet, Synchronization, GraphLaunch, Collective, ApiCall, Marker, HostCall,
        }
    }

    /// The row of the picture that a row belongs to, and what it is; `None` for one that is not wanted.
    pub(super) fn place(&self, row: usize) -> Option<(RowKey, ActivityKind)> {
        let (whose, activity) = self.what(row)?;
        Some((self.spots[self.spot_number(row)].key(whose)?, activity))
    }

    /// The name of a row.
    pub(super) fn name(&self, row: usize) -> EventName {
        self.shapes[self.shape_number(row)].name
    }

    /// What a row is, and whose; `None` for one whose name is not wanted.
    #[inline]
    pub(super) fn what(&self, row: usize) -> Option<(RowOwner, ActivityKind)> {
        let shape = &self.shapes[self.shape_number(row)];
        (shape.wanted == Wanted::Yes).then_some((shape.whose, shape.activity))
    }

    /// The activity of a row whose name may not be wanted.
    pub(super) fn activity(&self, row: usize) -> ActivityKind {
        self.shapes[self.shape_number(row)].activity
    }

    /// All places of the block.
    pub(crate) fn spots(&self) -> &[RowKeys] {
        &self.spots
    }

    /// Which of them a row has.
    #[inline]
    pub(crate) fn spot_number(&self, row: usize) -> usize {
        self.spot_of[row] as usize
    }

    /// All shapes of the block: name, activity and whose row of the picture it is in.
    pub(crate) fn shapes(&self) -> impl ExactSizeIterator<Item = (EventName, ActivityKind, RowOwner)> {
        self.shapes
            .iter()
            .map(|shape| (shape.name, shape.activity, shape.whose))
    }

    /// Which of them a row has.
    #[inline]
    pub(crate) fn shape_number(&self, row: usize) -> usize {
        self.shape_of.get(row).map_or(0, |shape| *shape as usize)
    }
}

/// A table that can be drawn.
trait Drawn: Table {
    /// The columns that it takes.
    const COLUMNS: &'static [&'static str];
    /// Times, the places and the shapes of rows.
    fn parts(columns: Self::Columns, trace: &Trace, query: &Query) -> Pieces;
}

fn read_table<T: Drawn, S: Source>(
    decoder: &mut Decoder<'_, S>,
    block: &Block,
    trace: &Trace,
    query: &Query,
) -> Result<Pieces, Error> {
    let columns = decoder.read::<T>(block, &Projection::of::<T>(T::COLUMNS)?)?;
    Ok(T::parts(columns, trace, query))
}

/// The spots of a block of device work.
fn of_places(places: Shared<Place>, trace: &Trace, query: &Query) -> (Vec<RowKeys>, Vec<u32>) {
    let spots = places.values.iter().map(|place| {
        let (device, process) = (device_of(place, trace), place.process);
        let stream = RowKey::Stream {
            device,
            process,
            context: place.context,
            stream: place.stream,
        };
        let wanted = query.wants_place(process, device, Some(place.stream));
        RowKeys {
            own: wanted.then_some(stream),
            waits: wanted.then_some(RowKey::Waits { device, process }),
        }
    });
    (spots.collect(), places.index)
}

/// The device of a place; that of its context when the record says nothing of its own, as those of waits do.
fn device_of(place: &Place, trace: &Trace) -> DeviceId {
    if place.device.is_some() {
        return place.device;
    }
    let of_context = trace
        .contexts
        .iter()
        .find(|context| (context.process, context.context) == (place.process, place.context));
    of_context.map_or(DeviceId::NONE, |context| context.device)
}

/// The spots of a block of host work.
fn of_callers(callers: Shared<Caller>, role: ThreadRole, query: &Query) -> (Vec<RowKeys>, Vec<u32>) {
    let spots = callers.values.iter().map(|caller| {
        let (process, thread) = (caller.process, caller.thread);
        let row = RowKey::Thread {
            process,
            thread,
            role,
            depth: 0,
        };
        let wanted = query.wants_place(process, DeviceId::NONE, None);
        RowKeys {
            own: wanted.then_some(row),
            waits: None,
        }
    });
    (spots.collect(), callers.index)
}

fn shape(name: EventName, activity: ActivityKind, trace: &Trace, query: &Query) -> Shape {
    let text = match name {
        EventName::Id(id) => trace.strings.get(id),
        EventName::Word(word) => word,
    };
    let wanted = query.name.as_ref().is_none_or(|pattern| pattern.matches(text));
    Shape {
        name,
        activity,
        whose: RowOwner::Own,
        wanted: if wanted { Wanted::Yes } else { Wanted::No },
    }
}

/// Whether a kernel exchanges data, as analysis tells it.
fn communicates(name: &str) -> bool {
    OpClass::of_kernel(name) == OpClass::Communication
}

fn kernel_activity(shape: &KernelShape, strings: &Strings) -> ActivityKind {
    if communicates(strings.get(shape.name)) || communicates(strings.get(shape.demangled)) {
        ActivityKind::Communication
    } else {
        ActivityKind::Kernel
    }
}

impl Drawn for Kernel {
    const COLUMNS: &'static [&'static str] = &["start", "end", "place", "shape.name", "shape.demangled"];

    fn parts(columns: Kernels, trace: &Trace, query: &Query) -> Pieces {
        let (spots, spot_of) = of_places(columns.place, trace, query);
        let shapes = columns.shape.values.iter().map(|value| {
            let name = if value.demangled.is_some() {
                value.demangled
            } else {
                value.name
            };
            let activity = kernel_activity(value, &trace.strings);
            shape(EventName::Id(name), activity, trace, query)
        });
        Pieces {
            start: columns.start,
            end: columns.end,
            spots,
            spot_of,
            shapes: shapes.collect(),
            shape_of: columns.shape.index,
        }
    }
}

impl Drawn for MemoryCopy {
    const COLUMNS: &'static [&'static str] = &["start", "end", "place", "shape.direction"];

    fn parts(columns: MemoryCopies, trace: &Trace, query: &Query) -> Pieces {
        let (spots, spot_of) = of_places(columns.place, trace, query);
        let shapes = columns.shape.values.iter().map(|value| {
            let name = crate::model::copy::copy_name(value.direction);
            shape(EventName::Word(name), ActivityKind::Copy, trace, query)
        });
        Pieces {
            start: columns.start,
            end: columns.end,
            spots,
            spot_of,
            shapes: shapes.collect(),
            shape_of: columns.shape.index,
        }
    }
}

impl Drawn for Synchronization {
    const COLUMNS: &'static [&'static str] = &["start", "end", "place", "shape.kind"];

    fn parts(columns: Synchronizations, trace: &Trace, query: &Query) -> Pieces {
        let (spots, spot_of) = of_places(columns.place, trace, query);
        let shapes = columns.shape.values.iter().map(|value| {
            let name = EventName::Word(value.kind.name().unwrap_or("sync"));
            let whose = match value.kind {
                SyncKind::STREAM_WAIT | SyncKind::STREAM_WAIT_EVENT | SyncKind::EVENT_RECORD => RowOwner::Own,
                _ => RowOwner::Device,
            };
            Shape {
                whose,
                ..shape(name, ActivityKind::Sync, trace, query)
            }
        });
        Pieces {
            start: columns.start,
            end: columns.end,
            spots,
            spot_of,
            shapes: shapes.collect(),
            shape_of: columns.shape.index,
        }
    }
}

/// Tables whose rows have all the same word for a name.
macro_rules! drawn_by_word {
    ($($row:ident, $columns:ident, $word:literal, $activity:ident;)*) => {$(
        impl Drawn for $row {
            const COLUMNS: &'static [&'static str] = &["start", "end", "place"];

            fn parts(columns: $columns, trace: &Trace, query: &Query) -> Pieces {
                let (spots, spot_of) = of_places(columns.place, trace, query);
                Pieces {
                    start: columns.start,
                    end: columns.end,
                    spots,
                    spot_of,
                    shapes: vec![shape(EventName::Word($word), ActivityKind::$activity, trace, query)],
                    shape_of: Vec::new(),
                }
            }
        }
    )*};
}
drawn_by_word! {
    MemorySet, MemorySets, "set", Set;
    GraphLaunch, GraphLaunches, "graph launch", Graph;
}

impl Drawn for Collective {
    const COLUMNS: &'static [&'static str] = &["start", "end", "place", "shape.name"];

    fn parts(columns: Collectives, trace: &Trace, query: &Query) -> Pieces {
        let (spots, spot_of) = of_places(columns.place, trace, query);
        let shapes = columns.shape.values.iter().map(|value| {
            shape(
                EventName::Id(value.name),
                ActivityKind::Communication,
                trace,
                query,
            )
        });
        Pieces {
            start: columns.start,
            end: columns.end,
            spots,
            spot_of,
            shapes: shapes.collect(),
            shape_of: columns.shape.index,
        }
    }
}

/// Tables of the host.
macro_rules! drawn_by_thread {
    ($($row:ident, $columns:ident, $role:ident, $activity:ident;)*) => {$(
        impl Drawn for $row {
            const COLUMNS: &'static [&'static str] = &["start", "end", "caller", "shape.name"];

            fn parts(columns: $columns, trace: &Trace, query: &Query) -> Pieces {
                let (spots, spot_of) = of_callers(columns.caller, ThreadRole::$role, query);
                let shapes = columns
                    .shape
                    .values
                    .iter()
                    .map(|value| shape(EventName::Id(value.name), ActivityKind::$activity, trace, query));
                Pieces {
                    start: columns.start,
                    end: columns.end,
                    spots,
                    spot_of,
                    shapes: shapes.collect(),
                    shape_of: columns.shape.index,
                }
            }
        }
    )*};
}
drawn_by_thread! {
    ApiCall, ApiCalls, Calls, Call;
    Marker, Markers, Markers, Marker;
    HostCall, HostCalls, Host, Host;
}
