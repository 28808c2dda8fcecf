//! The trace's own state: clocks, health, the schema of its tables, and the index of its blocks.

use crate::ids::{ClockId, DeviceId, HostId, ProcessId, StringId, Timestamp, codes};
use crate::table::table;

table! {
    /// A clock that timestamps come from.
    Clock, Clocks, CLOCKS, times();
    /// The ID of the row.
    1 id: ClockId, delta;
    /// The kind of clock.
    2 kind: ClockKind, plain;
    /// The host, if any.
    3 host: HostId, plain;
    /// The device it belongs to, if any.
    4 device: DeviceId, plain;
    /// The process it belongs to, if any.
    5 process: ProcessId, plain;
    /// The name.
    6 name: StringId, plain;
    /// The resolution in nanoseconds; 0 is unknown.
    7 resolution: u64, plain;
}

table! {
    /// One clock synchronization sample: two clocks, read at the same time.
    ClockPair, ClockPairs, CLOCK_PAIRS, times();
    /// The first clock.
    1 first: ClockId, plain;
    /// The second clock.
    2 second: ClockId, plain;
    /// The reading of the first clock.
    3 first_time: Timestamp, delta;
    /// The reading of the second clock.
    4 second_time: Timestamp, delta;
    /// The largest time between the two readings, in nanoseconds.
    5 uncertainty: u64, plain;
}

table! {
    /// One kind of lost or doubtful data. Rows of the same cause add up.
    Health, HealthRows, HEALTH, times();
    /// The time when it was noticed, on the host's clock.
    1 time: Timestamp, delta;
    /// What happened.
    2 cause: HealthCause, plain;
    /// The kind of block that is affected; 0 is none in particular.
    3 table: u16, plain;
    /// The process that is affected.
    4 process: ProcessId, plain;
    /// The device that is affected.
    5 device: DeviceId, plain;
    /// The number of records.
    6 count: u64, plain;
    /// The number of bytes.
    7 bytes: u64, plain;
    /// A description.
    8 detail: StringId, plain;
}

table! {
    /// One column of one table. Readers use it to show unknown tables and columns.
    SchemaColumn, Schema, SCHEMA, times();
    /// The kind of block.
    1 table: u16, plain;
    /// The table's name.
    2 table_name: StringId, plain;
    /// The column's number.
    3 column: u16, plain;
    /// The index column of its group, or 0.
    4 group: u16, plain;
    /// The column's name.
    5 name: StringId, plain;
    /// The column type, as a number.
    6 column_type: u8, plain;
    /// The meaning, as a number.
    7 meaning: u8, plain;
}

table! {
    /// The position and header of one block.
    IndexEntry, Index, INDEX, times();
    /// The offset of the header.
    1 offset: u64, delta;
    /// The kind.
    2 kind: u16, plain;
    /// The length of the payload.
    3 payload_length: u32, plain;
    /// The unpacked length.
    4 unpacked_length: u32, plain;
    /// The first time.
    5 first_time: u64, delta;
    /// The last time.
    6 last_time: u64, after(5 first_time);
    /// The base.
    7 base: u64, plain;
    /// The number of rows.
    8 rows: u32, plain;
    /// The clock.
    9 clock: ClockId, plain;
    /// The sequence number.
    10 sequence: u32, delta;
    /// The checksum of the payload.
    11 payload_crc: u32, plain;
    /// The codec of the payload.
    12 codec: u8, plain;
}

codes! {
    /// A kind of clock.
    ClockKind {
        /// Unknown.
        UNKNOWN = 0 "unknown",
        /// Nanoseconds since the host started (CLOCK_MONOTONIC).
        MONOTONIC = 1 "monotonic",
        /// Nanoseconds since 1970 (CLOCK_REALTIME).
        REALTIME = 2 "realtime",
        /// Nanoseconds of a device's own clock.
        DEVICE = 3 "device",
        /// Device times, as CUPTI aligns them with the host.
        ALIGNED = 4 "aligned",
        /// Nanoseconds since the recording began.
        RECORDING = 5 "recording",
        /// Nanoseconds since the host started, including sleep (CLOCK_BOOTTIME).
        BOOTTIME = 6 "boottime",
        /// Nanoseconds of a PTP hardware clock. Without a host: the common time of synchronized PTP clocks.
        PTP = 7 "ptp",
        /// True UTC in nanoseconds since 1970. It belongs to no host and links the clocks of several hosts.
        UTC = 8 "utc",
    }

    /// Why data is lost or doubtful.
    HealthCause {
        /// Another cause; see `detail`.
        OTHER = 0 "other",
        /// A ring was full, and records were dropped.
        RING_FULL = 1 "ring full",
        /// CUPTI, or the tool that wrote an imported file, dropped records.
        VENDOR_DROPPED = 2 "vendor dropped",
        /// A record had no start or end.
        ZERO_TIME = 3 "zero time",
        /// A record had an unknown kind.
        UNKNOWN_RECORD = 4 "unknown record",
        /// A process ended without flushing its last records.
        PROCESS_DIED = 5 "process died",
        /// The file was truncated.
        CUT = 6 "cut",
        /// A block could not be read.
        DAMAGED = 7 "damaged",
        /// Another profiler prevented capture.
        CONFLICT = 8 "conflict",
        /// Capture was not possible.
        UNAVAILABLE = 9 "unavailable",
        /// A trace cannot represent an imported record.
        NOT_IMPORTED = 10 "not imported",
        /// This version could not carry over blocks of an unknown kind.
        NOT_CARRIED = 11 "not carried over",
        /// A flight recorder overwrote old records, as intended.
        OVERWRITTEN = 12 "overwritten",
        /// Text was not UTF-8 and was corrected.
        BAD_TEXT = 13 "bad text",
    }
}
