//! Waits and event records.

use crate::ids::{CorrelationId, StackId, StreamId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One wait or event record.
    Synchronization, Synchronizations, SYNCS, times(start, end);
    /// The start time.
    1 start: Timestamp, delta;
    /// The end time.
    2 end: Timestamp, after(1 start);
    /// The correlation ID of the call.
    3 correlation: CorrelationId, delta;
    /// The event that was recorded or waited for: the runtime's ID within its process.
    4 event: u64, plain;
    /// Distinguishes the records of one event.
    5 event_record: u64, delta;
    /// The time when the device passed the event, if the runtime reports it.
    6 device_time: Timestamp, after(1 start);
    /// The code that made the call.
    7 stack: StackId, plain;
    /// For a wait: the stream in which the event was recorded, if only the wait names it.
    8 event_stream: StreamId, plain;
    shared:
        /// The stream of the event record, or the stream that waited or was waited for.
        32 place: Place;
        /// The kind of wait.
        64 shape: SyncShape;
}

group! {
    /// The kind of a wait or event record.
    SyncShape {
        /// The kind.
        1 kind: SyncKind,
        /// The result code of the call.
        2 result: i32,
    }
}

codes! {
    /// A kind of wait, or an event record.
    SyncKind {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// The host waits for an event.
        EVENT_WAIT = 1 "event wait",
        /// A stream waits for an event.
        STREAM_WAIT_EVENT = 2 "stream wait event",
        /// The host waits for a stream.
        STREAM_WAIT = 3 "stream wait",
        /// The host waits for a context.
        CONTEXT_WAIT = 4 "context wait",
        /// The host waits for a device.
        DEVICE_WAIT = 5 "device wait",
        /// An event is recorded in a stream.
        EVENT_RECORD = 6 "event record",
    }
}
