//! The trace's own state: clocks, health, the schema of its tables, and the index of its blocks.

use crate::ids::{ClockId, DeviceId, HostId, ProcessId, StringId, Timestamp, codes};
use crate::table::table;

table! {
    /// A clock that times were taken with.
    Clock, Clocks, CLOCKS, times();
    /// Its id.
    1 id: ClockId, delta;
    /// What it counts.
    2 kind: ClockKind, plain;
    /// The machine it belongs to.
    3 host: HostId, plain;
    /// The device it belongs to, if to one.
    4 device: DeviceId, plain;
    /// The process it belongs to, if to one.
    5 process: ProcessId, plain;
    /// Its name.
    6 name: StringId, plain;
    /// Its smallest step in nanoseconds; 0 is not known.
    7 resolution: u64, plain;
}

table! {
    /// Two clocks read at the same moment.
    ClockPair, ClockPairs, CLOCK_PAIRS, times();
    /// One clock.
    1 first: ClockId, plain;
    /// The other.
    2 second: ClockId, plain;
    /// What the first showed.
    3 first_time: Timestamp, delta;
    /// What the second showed.
    4 second_time: Timestamp, delta;
    /// How far apart the readings can have been, in nanoseconds.
    5 uncertainty: u64, plain;
}

table! {
    /// Something lost, cut or doubtful. Amounts of the same cause add up.
    Health, HealthRows, HEALTH, times();
    /// When it was noticed, on the host's clock.
    1 time: Timestamp, delta;
    /// What happened.
    2 cause: HealthCause, plain;
    /// The kind of block that it concerns; 0 is none in particular.
    3 table: u16, plain;
    /// The process that it concerns.
    4 process: ProcessId, plain;
    /// The device that it concerns.
    5 device: DeviceId, plain;
    /// How many records.
    6 count: u64, plain;
    /// How many bytes.
    7 bytes: u64, plain;
    /// In words.
    8 detail: StringId, plain;
}

table! {
    /// One column of one table, so that a reader can show what it does not know.
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
    /// How it is represented: the number of a column type.
    6 column_type: u8, plain;
    /// What its numbers stand for: the number of a meaning.
    7 meaning: u8, plain;
}

table! {
    /// Where one block is.
    IndexEntry, Index, INDEX, times();
    /// Where its header starts.
    1 offset: u64, delta;
    /// Its kind.
    2 kind: u16, plain;
    /// Its payload's length.
    3 payload_length: u32, plain;
    /// Its unpacked length.
    4 unpacked_length: u32, plain;
    /// Its earliest time.
    5 first_time: u64, delta;
    /// Its latest time.
    6 last_time: u64, after(5 first_time);
    /// Its base.
    7 base: u64, plain;
    /// Its rows.
    8 rows: u32, plain;
    /// Its clock.
    9 clock: ClockId, plain;
    /// Its sequence number.
    10 sequence: u32, delta;
    /// Its payload's checksum.
    11 payload_crc: u32, plain;
    /// How its payload is laid out.
    12 codec: u8, plain;
}

codes! {
    /// What a clock counts.
    ClockKind {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// Nanoseconds since the host started (CLOCK_MONOTONIC).
        MONOTONIC = 1 "monotonic",
        /// Nanoseconds since 1970 (CLOCK_REALTIME).
        REALTIME = 2 "realtime",
        /// A device's own nanoseconds.
        DEVICE = 3 "device",
        /// Device times as the vendor's library aligns them with the host.
        ALIGNED = 4 "aligned",
        /// Nanoseconds since the recording began.
        RECORDING = 5 "recording",
        /// Nanoseconds since the host started, sleep included (CLOCK_BOOTTIME).
        BOOTTIME = 6 "boottime",
        /// Nanoseconds of a PTP hardware clock. Without a host: what the PTP clocks of several hosts are synchronised to.
        PTP = 7 "ptp",
        /// Nanoseconds since 1970, as they truly are. It belongs to no host: clocks of several hosts are compared by it.
        UTC = 8 "utc",
    }

    /// What happened to data.
    HealthCause {
        /// Something that has no number yet; see its words.
        OTHER = 0 "other",
        /// The ring was full.
        RING_FULL = 1 "ring full",
        /// The vendor's library dropped records.
        VENDOR_DROPPED = 2 "vendor dropped",
        /// A record had no start or end.
        ZERO_TIME = 3 "zero time",
        /// A record's kind is not known.
        UNKNOWN_RECORD = 4 "unknown record",
        /// A process ended without handing over its last records.
        PROCESS_DIED = 5 "process died",
        /// The file was cut off.
        CUT = 6 "cut",
        /// A block could not be read.
        DAMAGED = 7 "damaged",
        /// Another profiler was in the way.
        CONFLICT = 8 "conflict",
        /// Capture was not possible.
        UNAVAILABLE = 9 "unavailable",
        /// An imported record has no place in the model.
        NOT_IMPORTED = 10 "not imported",
        /// Blocks of a kind that this version could not carry over.
        NOT_CARRIED = 11 "not carried over",
        /// The recorder overwrote old records on purpose.
        OVERWRITTEN = 12 "overwritten",
        /// Text was not UTF-8 and was mended.
        BAD_TEXT = 13 "bad text",
    }
}
