//! Rows that a session records, and how they get their values from columns of Python.
//!
//! A table's columns are listed once, with the function that sets each. Texts and codes are numbers by then: a row is plain
//! data, and a thread can keep thousands of them.

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, ContextId, CorrelationId, DeviceId, Ordinal, ProcessId, StreamId, StringId, ThreadId,
    Timestamp,
};

/// The only process of a session's file.
pub(super) const PROCESS: ProcessId = ProcessId(1);

/// A row of one of the tables. Wide rows are behind a pointer: most rows are marks and counters.
pub(super) enum Row {
    Marker(Marker),
    Counter(Counter),
    Flow(Flow),
    Kernel(Box<Kernel>),
    Copy(Box<MemoryCopy>),
    Set(Box<MemorySet>),
    Sync(Box<Synchronization>),
    Allocation(Box<Allocation>),
    ApiCall(ApiCall),
    HostCall(Box<HostCall>),
    Collective(Box<Collective>),
}

impl Row {
    /// The memory that the row takes until it is written.
    pub(super) fn bytes(&self) -> usize {
        let beside = match self {
            Row::Marker(_) | Row::Counter(_) | Row::Flow(_) | Row::ApiCall(_) => 0,
            Row::Kernel(_) => size_of::<Kernel>(),
            Row::Copy(_) => size_of::<MemoryCopy>(),
            Row::Set(_) => size_of::<MemorySet>(),
            Row::Sync(_) => size_of::<Synchronization>(),
            Row::Allocation(_) => size_of::<Allocation>(),
            Row::HostCall(_) => size_of::<HostCall>(),
            Row::Collective(_) => size_of::<Collective>(),
        };
        size_of::<Row>() + beside
    }
}

/// A value of a column. Texts and codes are their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    None,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

/// What a column holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Number,
    Text,
    /// A text with a number for each of its values.
    Code(fn() -> Vec<(u8, &'static str)>),
}

/// A column that can be recorded.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) set: fn(&mut R, Value) -> Result<(), OutOfRange>,
}

/// A value that its column cannot hold.
#[derive(Debug)]
pub(super) struct OutOfRange;

/// A row that can be recorded.
pub(super) trait Recorded: Sized + 'static {
    /// The columns; those that others depend on come first.
    const COLUMNS: &'static [Column<Self>];
    /// Columns without which a row says nothing.
    const REQUIRED: &'static [&'static str];
    /// A row of the calling thread, at this moment.
    fn at(now: Timestamp, thread: ThreadId) -> Self;
    /// Where the row ran on a device, if it did.
    fn place(&mut self) -> Option<&mut Place> {
        None
    }
    /// The row, for a buffer.
    fn into_row(self) -> Row;
}

fn unsigned(value: Value) -> Result<u64, OutOfRange> {
    match value {
        Value::None => Ok(0),
        Value::Unsigned(number) => Ok(number),
        Value::Signed(number) => u64::try_from(number).map_err(|_| OutOfRange),
        // 2^64 is a float, and too large.
        Value::Float(number) if number >= 0.0 && number.fract() == 0.0 && number < u64::MAX as f64 => {
            Ok(number as u64)
        }
        Value::Float(_) => Err(OutOfRange),
    }
}

fn number<T: TryFrom<u64>>(value: Value) -> Result<T, OutOfRange> {
    T::try_from(unsigned(value)?).map_err(|_| OutOfRange)
}

fn signed(value: Value) -> Result<i64, OutOfRange> {
    match value {
        Value::Signed(number) => Ok(number),
        other => i64::try_from(unsigned(other)?).map_err(|_| OutOfRange),
    }
}

fn float(value: Value) -> Result<f64, OutOfRange> {
    Ok(match value {
        Value::None => return Err(OutOfRange),
        Value::Unsigned(number) => number as f64,
        Value::Signed(number) => number as f64,
        Value::Float(number) => number,
    })
}

/// The bits of a payload: of a float those of the float, of a negative number those of its 64 bits.
fn bits(value: Value) -> Result<u64, OutOfRange> {
    Ok(match value {
        Value::Float(number) => number.to_bits(),
        Value::Signed(number) => number as u64,
        other => unsigned(other)?,
    })
}

fn small_signed(value: Value) -> Result<i32, OutOfRange> {
    i32::try_from(signed(value)?).map_err(|_| OutOfRange)
}

fn flag(value: Value) -> Result<bool, OutOfRange> {
    Ok(unsigned(value)? != 0)
}

/// A number that counts from 0 and may be missing.
fn ordinal(value: Value) -> Result<Ordinal, OutOfRange> {
    match value {
        Value::None => Ok(Ordinal::NONE),
        value => number(value).map(Ordinal::new),
    }
}

/// The device with the driver's number: a session's file counts devices from 1.
fn device(value: Value) -> Result<DeviceId, OutOfRange> {
    match value {
        Value::None => Ok(DeviceId::NONE),
        value => number::<u32>(value)?
            .checked_add(1)
            .map(DeviceId)
            .ok_or(OutOfRange),
    }
}

macro_rules! id {
    ($($function:ident $id:ident;)*) => {
        $(fn $function(value: Value) -> Result<$id, OutOfRange> {
            number(value).map($id)
        })*
    };
}
id! {
    time Timestamp;
    bytes Bytes;
    address Address;
    correlation CorrelationId;
    stream StreamId;
    context ContextId;
    thread ThreadId;
    text StringId;
}

macro_rules! column {
    ($name:literal lasting end) => {
        Column {
            name: $name,
            kind: Kind::Number,
            set: |row, value| {
                row.end = Timestamp(row.start.0.checked_add(unsigned(value)?).ok_or(OutOfRange)?);
                Ok(())
            },
        }
    };
    ($name:literal typed payload) => {
        Column {
            name: $name,
            kind: Kind::Number,
            set: |row, value| {
                row.payload = bits(value)?;
                row.shape.payload_kind = match value {
                    Value::None => PayloadKind::NONE,
                    Value::Unsigned(_) => PayloadKind::U64,
                    Value::Signed(_) => PayloadKind::I64,
                    Value::Float(_) => PayloadKind::F64,
                };
                Ok(())
            },
        }
    };
    ($name:literal text $($path:ident).+) => { column!(@ $name Kind::Text, text, $($path).+) };
    ($name:literal code($code:ident) $($path:ident).+) => {
        Column {
            name: $name,
            kind: Kind::Code(|| {
                let named = $code::ALL.iter().filter_map(|code| Some((code.0, code.name()?)));
                named.collect()
            }),
            set: |row, value| {
                row.$($path).+ = $code(number(value)?);
                Ok(())
            },
        }
    };
    ($name:literal $read:ident $($path:ident).+) => { column!(@ $name Kind::Number, $read, $($path).+) };
    (@ $name:literal $kind:expr, $read:ident, $($path:ident).+) => {
        Column {
            name: $name,
            kind: $kind,
            set: |row, value| {
                row.$($path).+ = $read(value)?;
                Ok(())
            },
        }
    };
}

macro_rules! columns {
    ($($name:literal $read:ident $(($code:ident))? $($path:ident).+;)*) => {
        &[$(column!($name $read $(($code))? $($path).+),)*]
    };
}

/// Columns of the rows that have a start and an end. A duration is set after the start.
macro_rules! interval_columns {
    ($($rest:tt)*) => {
        columns! {
            "start" time start;
            "end" time end;
            "duration" lasting end;
            $($rest)*
        }
    };
}

/// Implements a table whose rows ran on a device.
macro_rules! on_device {
    ($row:ident, $variant:ident, $required:expr, $($columns:tt)*) => {
        impl Recorded for $row {
            const REQUIRED: &'static [&'static str] = &$required;
            const COLUMNS: &'static [Column<Self>] = interval_columns! {
                "correlation" correlation correlation;
                "device" device place.device;
                "context" context place.context;
                "stream" stream place.stream;
                $($columns)*
            };

            fn at(now: Timestamp, _: ThreadId) -> Self {
                let place = Place { process: PROCESS, ..Place::default() };
                $row { start: now, place, ..$row::default() }
            }

            fn place(&mut self) -> Option<&mut Place> {
                Some(&mut self.place)
            }

            fn into_row(mut self) -> Row {
                self.end = self.end.max(self.start);
                Row::$variant(Box::new(self))
            }
        }
    };
}

on_device! { Kernel, Kernel, ["name"],
    "name" text shape.name;
    "demangled" text shape.demangled;
    "completed" time completed;
    "queued" time queued;
    "submitted" time submitted;
    "grid_x" number shape.grid_x;
    "grid_y" number shape.grid_y;
    "grid_z" number shape.grid_z;
    "block_x" number shape.block_x;
    "block_y" number shape.block_y;
    "block_z" number shape.block_z;
    "cluster_x" number shape.cluster_x;
    "cluster_y" number shape.cluster_y;
    "cluster_z" number shape.cluster_z;
    "registers" number shape.registers;
    "static_shared" bytes shape.static_shared;
    "dynamic_shared" bytes shape.dynamic_shared;
    "local_per_thread" bytes shape.local_per_thread;
    "priority" small_signed shape.priority;
    "launch" code(LaunchKind) shape.launch;
}

on_device! { MemoryCopy, Copy, [],
    "bytes" bytes bytes;
    "source" address source;
    "destination" address destination;
    "direction" code(CopyDirection) shape.direction;
    "source_memory" code(MemoryKind) shape.source_memory;
    "destination_memory" code(MemoryKind) shape.destination_memory;
    "source_device" device shape.source_device;
    "destination_device" device shape.destination_device;
    "asynchronous" flag shape.asynchronous;
}

on_device! { MemorySet, Set, [],
    "bytes" bytes bytes;
    "value" number value;
    "address" address address;
    "memory" code(MemoryKind) shape.memory;
    "asynchronous" flag shape.asynchronous;
}

on_device! { Synchronization, Sync, [],
    "event" unsigned event;
    "event_record" unsigned event_record;
    "event_stream" stream event_stream;
    "kind" code(SyncKind) shape.kind;
    "result" small_signed shape.result;
}

on_device! { Collective, Collective, ["name"],
    "name" text shape.name;
    "kind" code(CollectiveKind) shape.kind;
    "enqueued" time enqueued;
    "sequence" unsigned sequence;
    "count" unsigned count;
    "bytes" bytes bytes;
    "send_buffer" address send_buffer;
    "receive_buffer" address receive_buffer;
    "communicator" unsigned shape.communicator;
    "communicator_name" text shape.communicator_name;
    "rank" ordinal shape.rank;
    "ranks" number shape.ranks;
    "root" ordinal shape.root;
    "datatype" text shape.datatype;
    "reduction" text shape.reduction;
    "algorithm" text shape.algorithm;
    "protocol" text shape.protocol;
}

/// Implements a table whose rows ran on a thread.
macro_rules! on_thread {
    ($row:ident, $wrap:expr, $required:expr, $($columns:tt)*) => {
        impl Recorded for $row {
            const REQUIRED: &'static [&'static str] = &$required;
            const COLUMNS: &'static [Column<Self>] = interval_columns! {
                "thread" thread caller.thread;
                $($columns)*
            };

            fn at(now: Timestamp, thread: ThreadId) -> Self {
                $row {
                    start: now,
                    caller: Caller { process: PROCESS, thread },
                    ..$row::default()
                }
            }

            fn into_row(mut self) -> Row {
                self.end = self.end.max(self.start);
                $wrap(self)
            }
        }
    };
}

on_thread! { Marker, Row::Marker, ["name"],
    "name" text shape.name;
    "domain" text shape.domain;
    "category" number shape.category;
    "category_name" text shape.category_name;
    "color" number shape.color;
    "kind" code(MarkerKind) shape.kind;
    "payload" typed payload;
    "payload_kind" code(PayloadKind) shape.payload_kind;
    "detail" text detail;
    "range" unsigned range;
}

on_thread! { ApiCall, Row::ApiCall, ["name"],
    "name" text shape.name;
    "correlation" correlation correlation;
    "domain" code(ApiDomain) shape.domain;
    "function" number shape.function;
    "result" small_signed shape.result;
}

on_thread! { HostCall, |row| Row::HostCall(Box::new(row)), ["name"],
    "name" text shape.name;
    "correlation" correlation correlation;
    "kind" code(HostCallKind) shape.kind;
    "category" text shape.category;
    "exit" code(CallExit) shape.exit;
    "sequence" signed sequence;
    "depth" number depth;
    "cpu" number cpu;
    "argument" unsigned argument;
    "detail" text detail;
}

impl Recorded for Counter {
    const REQUIRED: &'static [&'static str] = &["name", "value"];
    const COLUMNS: &'static [Column<Self>] = columns! {
        "time" time time;
        "value" float value;
        "name" text track.name;
        "unit" text track.unit;
        "device" device track.device;
        "thread" thread track.thread;
        "instance" number track.instance;
        "kind" code(CounterKind) track.kind;
    };

    fn at(now: Timestamp, _: ThreadId) -> Self {
        let track = CounterTrack {
            process: PROCESS,
            ..CounterTrack::default()
        };
        Counter {
            time: now,
            track,
            ..Counter::default()
        }
    }

    fn into_row(self) -> Row {
        Row::Counter(self)
    }
}

impl Recorded for Flow {
    const REQUIRED: &'static [&'static str] = &["flow"];
    const COLUMNS: &'static [Column<Self>] = columns! {
        "time" time time;
        "flow" unsigned flow;
        "correlation" correlation correlation;
        "kind" code(FlowKind) shape.kind;
        "phase" code(FlowPhase) shape.phase;
        "name" text shape.name;
        "thread" thread shape.thread;
        "device" device shape.device;
        "stream" stream shape.stream;
    };

    fn at(now: Timestamp, thread: ThreadId) -> Self {
        let shape = FlowShape {
            process: PROCESS,
            thread,
            ..FlowShape::default()
        };
        Flow {
            time: now,
            shape,
            ..Flow::default()
        }
    }

    fn into_row(self) -> Row {
        Row::Flow(self)
    }
}

impl Recorded for Allocation {
    const REQUIRED: &'static [&'static str] = &["address"];
    const COLUMNS: &'static [Column<Self>] = columns! {
        "time" time time;
        "address" address address;
        "bytes" bytes bytes;
        "correlation" correlation correlation;
        "device" device place.device;
        "context" context place.context;
        "stream" stream place.stream;
        "thread" thread shape.thread;
        "operation" code(MemoryOperation) shape.operation;
        "memory" code(MemoryKind) shape.memory;
        "asynchronous" flag shape.asynchronous;
        "allocator" text shape.allocator;
        "category" text shape.category;
        "name" text shape.name;
        "pool" address pool;
        "pool_size" bytes pool_size;
        "pool_used" bytes pool_used;
    };

    fn at(now: Timestamp, thread: ThreadId) -> Self {
        let shape = AllocationShape {
            thread,
            ..AllocationShape::default()
        };
        let place = Place {
            process: PROCESS,
            ..Place::default()
        };
        Allocation {
            time: now,
            place,
            shape,
            ..Allocation::default()
        }
    }

    fn place(&mut self) -> Option<&mut Place> {
        Some(&mut self.place)
    }

    fn into_row(self) -> Row {
        Row::Allocation(Box::new(self))
    }
}
