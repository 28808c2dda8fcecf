//! Markers of the program, counters, and flows between events.

use crate::ids::{
    CorrelationId, DeviceId, ProcessId, StackId, StreamId, StringId, ThreadId, Timestamp, codes,
};
use crate::table::{group, table};
use crate::tables::place::Caller;

table! {
    /// One range or mark of the program (NVTX).
    Marker, Markers, MARKERS, times(start, end);
    /// The start time.
    1 start: Timestamp, delta;
    /// The end time; equal to the start for an instant.
    2 end: Timestamp, after(1 start);
    /// The ID of the range.
    3 range: u64, delta;
    /// The bits of the payload.
    4 payload: u64, plain;
    /// Further data, as text.
    5 detail: StringId, plain;
    /// The code that created the marker.
    6 stack: StackId, plain;
    shared:
        /// The process and thread.
        32 caller: Caller;
        /// The kind of marker.
        64 shape: MarkerShape;
}

group! {
    /// A kind of marker.
    MarkerShape {
        /// The text of the marker.
        1 name: StringId,
        /// The domain.
        2 domain: StringId,
        /// The number of the category in its domain.
        3 category: u32,
        /// The category's name.
        4 category_name: StringId,
        /// The color: alpha, red, green and blue.
        5 color: u32,
        /// Range or instant.
        6 kind: MarkerKind,
        /// The type of the payload.
        7 payload_kind: PayloadKind,
    }
}

table! {
    /// One sample of a counter.
    Counter, Counters, COUNTERS, times(time, time);
    /// The time.
    1 time: Timestamp, delta;
    /// The value.
    2 value: f64, xor;
    shared:
        /// The counter.
        64 track: CounterTrack;
}

group! {
    /// A counter.
    CounterTrack {
        /// The name.
        1 name: StringId,
        /// The unit.
        2 unit: StringId,
        /// The process it belongs to, if any.
        3 process: ProcessId,
        /// The device it belongs to, if any.
        4 device: DeviceId,
        /// The thread it belongs to, if any.
        5 thread: ThreadId,
        /// Distinguishes counters with the same name: a link, a fan, a core.
        6 instance: u32,
        /// The relation between samples.
        7 kind: CounterKind,
    }
}

table! {
    /// One point of a flow between events. Points with the same flow ID and kind belong together.
    Flow, Flows, FLOWS, times(time, time);
    /// The time.
    1 time: Timestamp, delta;
    /// The flow ID.
    2 flow: u64, delta;
    /// The correlation ID of the call or operation at this point, if any.
    3 correlation: CorrelationId, delta;
    shared:
        /// The kind and place of this point.
        64 shape: FlowShape;
}

group! {
    /// The kind and place of a point of a flow.
    FlowShape {
        /// The meaning of the flow.
        1 kind: FlowKind,
        /// Start, step or end.
        2 phase: FlowPhase,
        /// The name of the flow.
        3 name: StringId,
        /// The process.
        4 process: ProcessId,
        /// The thread, for a point on the host.
        5 thread: ThreadId,
        /// The device, for a point on a device.
        6 device: DeviceId,
        /// The stream, for a point on a device.
        7 stream: StreamId,
    }
}

codes! {
    /// Range or instant.
    MarkerKind {
        /// An instant.
        INSTANT = 0 "instant",
        /// A range that was pushed and popped. It nests within its thread.
        NESTED_RANGE = 1 "nested range",
        /// A range that was started and ended, possibly on another thread.
        FREE_RANGE = 2 "free range",
        /// A nested range whose end was not seen.
        OPEN_NESTED_RANGE = 3 "open nested range",
        /// A free range whose end was not seen.
        OPEN_FREE_RANGE = 4 "open free range",
    }

    /// The type of a payload.
    PayloadKind {
        /// No payload.
        NONE = 0 "none",
        /// Unsigned 64-bit integer.
        U64 = 1 "u64",
        /// Signed 64-bit integer.
        I64 = 2 "i64",
        /// 64-bit floating point.
        F64 = 3 "f64",
        /// Unsigned 32-bit integer.
        U32 = 4 "u32",
        /// Signed 32-bit integer.
        I32 = 5 "i32",
        /// 32-bit floating point.
        F32 = 6 "f32",
    }

    /// The relation between samples of a counter.
    CounterKind {
        /// The value at that time.
        LEVEL = 0 "level",
        /// A total that only grows.
        TOTAL = 1 "total",
        /// The increase since the previous sample.
        DELTA = 2 "delta",
    }

    /// The meaning of a flow.
    FlowKind {
        /// Defined by the source.
        CUSTOM = 0 "custom",
        /// From a launch call to its operation.
        LAUNCH = 1 "launch",
        /// From a forward to a backward operator.
        FORWARD_BACKWARD = 2 "forward backward",
        /// From an event record to its wait.
        EVENT_WAIT = 3 "event wait",
        /// From an operator to a call, by the framework's own ID.
        EXTERNAL = 4 "external",
        /// Between processes or hosts.
        MESSAGE = 5 "message",
    }

    /// The position in a flow.
    FlowPhase {
        /// The start.
        START = 0 "start",
        /// A point in the middle.
        STEP = 1 "step",
        /// The end.
        END = 2 "end",
    }
}
