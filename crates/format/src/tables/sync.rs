//! Synchronisations: who waits for what, and the events that mark points in streams.

use crate::ids::{CorrelationId, StackId, StreamId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Place;

table! {
    /// One synchronisation, event record or wait.
    Synchronization, Synchronizations, SYNCS, times(start, end);
    /// When it began.
    1 start: Timestamp, delta;
    /// When it was over.
    2 end: Timestamp, after(1 start);
    /// Joins the call.
    3 correlation: CorrelationId, delta;
    /// The event recorded or waited for, as the runtime numbers it within its process.
    4 event: u64, plain;
    /// Tells the records of one event apart.
    5 event_record: u64, delta;
    /// When the device passed the recorded event, where the runtime says so.
    6 device_time: Timestamp, after(1 start);
    /// The code that asked for it.
    7 stack: StackId, plain;
    /// For a wait, the stream that its event was recorded in, where only the wait says so.
    8 event_stream: StreamId, plain;
    shared:
        /// The stream that was recorded in, or that waited or was waited for.
        32 place: Place;
        /// What kind it was.
        64 shape: SyncShape;
}

group! {
    /// The kind of a synchronisation.
    SyncShape {
        /// What was done.
        1 kind: SyncKind,
        /// What the call gave back.
        2 result: i32,
    }
}

codes! {
    /// What a synchronisation does.
    SyncKind {
        /// Not known.
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
