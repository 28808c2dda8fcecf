//! What the program says of itself: ranges and instants, counters, and arrows between events.

use crate::ids::{
    CorrelationId, DeviceId, ProcessId, StackId, StreamId, StringId, ThreadId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Caller;

table! {
    /// One range or instant that the program marked.
    Marker, Markers, MARKERS, times(start, end);
    /// When it began, or happened.
    1 start: Timestamp, delta;
    /// When it ended; equal to the start for an instant.
    2 end: Timestamp, after(1 start);
    /// The runtime's own number of the range.
    3 range: u64, delta;
    /// The value that was marked with it, by its bits.
    4 payload: u64, plain;
    /// Further values, as text.
    5 detail: StringId, plain;
    /// The code that marked it.
    6 stack: StackId, plain;
    shared:
        /// Who marked it.
        32 caller: Caller;
        /// What was marked.
        64 shape: MarkerShape;
}

group! {
    /// A kind of marker.
    MarkerShape {
        /// Its text.
        1 name: StringId,
        /// The domain it belongs to.
        2 domain: StringId,
        /// The category's number in its domain.
        3 category: u32,
        /// The category's name.
        4 category_name: StringId,
        /// Its colour, as alpha, red, green and blue.
        5 color: u32,
        /// Range or instant.
        6 kind: MarkerKind,
        /// How the payload's bits are to be read.
        7 payload_kind: PayloadKind,
    }
}

table! {
    /// One sample of a counter.
    Counter, Counters, COUNTERS, times(time, time);
    /// When.
    1 time: Timestamp, delta;
    /// How much.
    2 value: f64, xor;
    shared:
        /// Of what.
        64 track: CounterTrack;
}

group! {
    /// A counter.
    CounterTrack {
        /// Its name.
        1 name: StringId,
        /// Its unit.
        2 unit: StringId,
        /// The process it belongs to, if to one.
        3 process: ProcessId,
        /// The device it belongs to, if to one.
        4 device: DeviceId,
        /// The thread it belongs to, if to one.
        5 thread: ThreadId,
        /// Which of several of the same name: a link, a fan, a core.
        6 instance: u32,
        /// How samples relate to each other.
        7 kind: CounterKind,
    }
}

table! {
    /// One end of an arrow between events. Ends with the same number and kind belong together.
    Flow, Flows, FLOWS, times(time, time);
    /// When.
    1 time: Timestamp, delta;
    /// The arrow's number.
    2 flow: u64, delta;
    /// The call or work at this end, where it has a correlation.
    3 correlation: CorrelationId, delta;
    shared:
        /// What kind of end it is, and where.
        64 shape: FlowShape;
}

group! {
    /// The kind and place of an arrow's end.
    FlowShape {
        /// What the arrow means.
        1 kind: FlowKind,
        /// Start, middle or end.
        2 phase: FlowPhase,
        /// The arrow's name.
        3 name: StringId,
        /// The process it is in.
        4 process: ProcessId,
        /// The thread, for an end on the host.
        5 thread: ThreadId,
        /// The device, for an end on a device.
        6 device: DeviceId,
        /// The stream, for an end on a device.
        7 stream: StreamId,
    }
}

codes! {
    /// Range or instant.
    MarkerKind {
        /// A moment.
        INSTANT = 0 "instant",
        /// Pushed and popped: nests within its thread.
        NESTED_RANGE = 1 "nested range",
        /// Started and ended, perhaps on another thread.
        FREE_RANGE = 2 "free range",
        /// A nested range whose end was not seen.
        OPEN_NESTED_RANGE = 3 "open nested range",
        /// A free range whose end was not seen.
        OPEN_FREE_RANGE = 4 "open free range",
    }

    /// How a payload is to be read.
    PayloadKind {
        /// There is none.
        NONE = 0 "none",
        /// Unsigned, 64 bits.
        U64 = 1 "u64",
        /// Signed, 64 bits.
        I64 = 2 "i64",
        /// Double.
        F64 = 3 "f64",
        /// Unsigned, 32 bits.
        U32 = 4 "u32",
        /// Signed, 32 bits.
        I32 = 5 "i32",
        /// Float.
        F32 = 6 "f32",
    }

    /// How samples of a counter relate to each other.
    CounterKind {
        /// A level at that moment.
        LEVEL = 0 "level",
        /// A total that only grows.
        TOTAL = 1 "total",
        /// The amount since the sample before.
        DELTA = 2 "delta",
    }

    /// What an arrow means.
    FlowKind {
        /// The source's own.
        CUSTOM = 0 "custom",
        /// From the launch on the host to the work on the device.
        LAUNCH = 1 "launch",
        /// From forward to backward work.
        FORWARD_BACKWARD = 2 "forward backward",
        /// From an event's record to a wait for it.
        EVENT_WAIT = 3 "event wait",
        /// From an operator to a call: the framework's own correlation.
        EXTERNAL = 4 "external",
        /// Between processes or hosts.
        MESSAGE = 5 "message",
    }

    /// Which part of an arrow.
    FlowPhase {
        /// Where it starts.
        START = 0 "start",
        /// Where it passes.
        STEP = 1 "step",
        /// Where it ends.
        END = 2 "end",
    }
}
