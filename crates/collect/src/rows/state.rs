//! The state of the capture: clocks, losses, notes, windows, and the process itself.

use tracesmith_format::{Ordinal, Timestamp, tables, tables::HealthCause};
use tracesmith_wire::record as wire;

use super::{HOST_CLOCK, ProcessRows, TraceRows, definitions::readable};
use crate::health::Notice;

impl ProcessRows {
    pub(super) fn clock_pair(&mut self, record: &wire::ClockPair, trace: &mut TraceRows) {
        self.saw(record.host_clock);
        let row = tables::ClockPair {
            first: HOST_CLOCK,
            second: self.clock,
            first_time: Timestamp(record.host_clock),
            second_time: Timestamp(record.device_clock),
            uncertainty: record.uncertainty,
        };
        trace.file.define(&row);
    }

    pub(super) fn losses(&mut self, record: &wire::Losses, trace: &mut TraceRows) {
        self.saw(record.time);
        for (cause, count, words) in [
            (
                HealthCause::VENDOR_DROPPED,
                record.dropped,
                "dropped by the vendor's profiling library",
            ),
            (HealthCause::ZERO_TIME, record.zero_time, "without start or end"),
            (
                HealthCause::UNKNOWN_RECORD,
                record.unknown,
                "of a kind that this version does not support",
            ),
        ] {
            if count > 0 {
                trace.note(Notice::new(cause, self.id, words).with_count(count));
            }
        }
    }

    pub(super) fn note(&mut self, record: &wire::Note, words: &[u8], trace: &mut TraceRows) {
        self.saw(record.time);
        let cause = HealthCause(u8::try_from(record.cause).unwrap_or(HealthCause::OTHER.0));
        let words = readable(words);
        trace.note(Notice::new(cause, self.id, &words).with_count(u64::from(record.count)));
    }

    pub(super) fn process_start(&mut self, record: &wire::ProcessStart, trace: &mut TraceRows) {
        self.saw(record.time);
        let (driver, library) = (record.driver_version, record.library_version);
        if driver != 0 {
            self.driver = format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10);
        }
        if library != 0 {
            self.fact("vendor_library.version", &library.to_string(), trace);
        }
        if self.row.parent_pid == 0 {
            self.row.parent_pid = record.parent;
            trace.file.define(&self.row);
        }
    }

    /// Writes a property of a process to the metadata, under the process's ID. Ranks also belong to the row of the
    /// process. A program can set them after it started.
    pub(super) fn process_fact(&mut self, record: &wire::ProcessFact, words: &[u8], trace: &mut TraceRows) {
        let key_bytes = usize::try_from(record.key_bytes).unwrap_or(usize::MAX);
        let Some((key, value)) = words.split_at_checked(key_bytes) else {
            self.count_unknown();
            return;
        };
        let (key, value) = (readable(key), readable(value));
        let number = value.parse().ok();
        match &*key {
            "env.RANK" => self.row.rank = number.map_or(self.row.rank, Ordinal::new),
            "env.LOCAL_RANK" => self.row.local_rank = number.map_or(self.row.local_rank, Ordinal::new),
            "env.WORLD_SIZE" => self.row.world_size = number.unwrap_or(self.row.world_size),
            _ => {}
        }
        if key.starts_with("env.") {
            trace.file.define(&self.row);
        }
        self.fact(&key, &value, trace);
    }

    /// With a capture range there can be many windows. The trace has the first opening and the last close.
    pub(super) fn window(&mut self, record: &wire::Window, trace: &mut TraceRows) {
        self.saw(record.time);
        trace.saw_window = true;
        let time = record.time.to_string();
        match record.phase {
            wire::WINDOW_OPENED => {
                if !self.was_in_window {
                    self.fact("window.opened", &time, trace);
                }
                self.in_window = true;
                self.was_in_window = true;
            }
            wire::WINDOW_CLOSED => {
                self.fact("window.closed", &time, trace);
                self.in_window = false;
            }
            _ => self.count_unknown(),
        }
    }

    pub(super) fn goodbye(&mut self, record: &wire::Goodbye) {
        self.saw(record.time);
        self.in_window = false;
    }

    pub(super) fn fact(&self, key: &str, value: &str, trace: &mut TraceRows) {
        trace
            .file
            .metadata(&format!("process.{}.{key}", self.identity.pid), value);
    }
}
