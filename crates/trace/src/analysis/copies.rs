//! Memory moved: how much, how fast, between which kinds of memory.

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{CopyDirection, MemoryCopy, MemoryKind, MemorySet};
use tracesmith_format::{Columns, DeviceId, Projection};

use super::distribution::Distribution;
use super::utilization::device_name;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Window, times_on};

/// Memory moved.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CopiesReport {
    /// By device, direction and kinds of memory, the longest total first.
    pub rows: Vec<CopyRow>,
}

/// Copies of one direction between two kinds of memory; or sets.
#[derive(Clone, Debug, Serialize)]
pub struct CopyRow {
    /// The device.
    pub device: u32,
    /// Its name.
    pub device_name: String,
    /// From where to where; `set` for sets.
    pub direction: &'static str,
    /// Kind of memory read.
    pub source: &'static str,
    /// Kind of memory written.
    pub destination: &'static str,
    /// Bytes of all.
    pub bytes: u64,
    /// Their durations.
    #[serde(flatten)]
    pub durations: Distribution,
    /// Bytes in a nanosecond, which is gigabytes in a second, over all; none where no time passed.
    pub gigabytes_per_second: Option<f64>,
    /// The fastest of those that moved at least a mebibyte.
    pub best_gigabytes_per_second: Option<f64>,
    /// The most that the device's memory can do, where that is what limits and is known.
    pub peak_gigabytes_per_second: Option<f64>,
    /// Copies of less than 64 KiB: their time is mostly that of starting them.
    pub small: u64,
    /// Whether host memory that is not page-locked was involved.
    pub is_pageable: bool,
}

type Key = (DeviceId, CopyDirection, MemoryKind, MemoryKind, &'static str);

#[derive(Default)]
struct Sums {
    bytes: u64,
    durations: Vec<u64>,
    best: f64,
    small: u64,
}

/// Copies below this are told apart.
const SMALL_BYTES: u64 = 64 << 10;
/// Copies from this on can show what a link can do.
const LARGE_BYTES: u64 = 1 << 20;

impl Sums {
    fn add(&mut self, bytes: u64, nanos: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.durations.push(nanos);
        self.small += u64::from(bytes < SMALL_BYTES);
        if bytes >= LARGE_BYTES && nanos > 0 {
            self.best = self.best.max(bytes as f64 / nanos as f64);
        }
    }
}

impl CopiesReport {
    /// The copies and sets that started in a window.
    pub fn of(trace: &Trace, window: &Window) -> Result<Self, Error> {
        let mut sums: FxHashMap<Key, Sums> = FxHashMap::default();
        let columns = [
            "start",
            "end",
            "bytes",
            "place.device",
            "shape.direction",
            "shape.source_memory",
            "shape.destination_memory",
        ];
        let is_wanted = |start: u64, end: u64| start != 0 && end != 0 && window.holds(start);
        trace.copies.stream_wanted(
            &Projection::of::<MemoryCopy>(&columns)?,
            |block, rows| {
                (
                    times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end),
                    rows,
                )
            },
            |((start, end), rows)| {
                for row in (0..rows.len()).filter(|row| is_wanted(start[*row], end[*row])) {
                    let shape = rows.shape.get(row);
                    let key = (
                        rows.place.get(row).device,
                        shape.direction,
                        shape.source_memory,
                        shape.destination_memory,
                        shape.direction.name().unwrap_or("unknown"),
                    );
                    let nanos = end[row].saturating_sub(start[row]);
                    sums.entry(key).or_default().add(rows.bytes[row].0, nanos);
                }
            },
        );
        trace.sets.stream_wanted(
            &Projection::of::<MemorySet>(&["start", "end", "bytes", "place.device", "shape.memory"])?,
            |block, rows| {
                (
                    times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end),
                    rows,
                )
            },
            |((start, end), rows)| {
                for row in (0..rows.len()).filter(|row| is_wanted(start[*row], end[*row])) {
                    let memory = rows.shape.get(row).memory;
                    let key = (
                        rows.place.get(row).device,
                        CopyDirection::UNKNOWN,
                        MemoryKind::UNKNOWN,
                        memory,
                        "set",
                    );
                    let nanos = end[row].saturating_sub(start[row]);
                    sums.entry(key).or_default().add(rows.bytes[row].0, nanos);
                }
            },
        );
        let mut rows: Vec<CopyRow> = sums
            .into_iter()
            .map(|(key, sums)| row_of(trace, key, sums))
            .collect();
        rows.sort_by_key(|row| {
            let place = (row.device, row.direction, row.source, row.destination);
            (std::cmp::Reverse(row.durations.total_ns), place)
        });
        Ok(CopiesReport { rows })
    }
}

fn row_of(trace: &Trace, key: Key, mut sums: Sums) -> CopyRow {
    let (device, direction, source, destination, word) = key;
    let durations = Distribution::of(&mut sums.durations);
    let host = [source, destination];
    CopyRow {
        device: device.0,
        device_name: device_name(trace, device),
        direction: word,
        source: if word == "set" {
            ""
        } else {
            source.name().unwrap_or("unknown")
        },
        destination: destination.name().unwrap_or("unknown"),
        bytes: sums.bytes,
        durations,
        gigabytes_per_second: (durations.total_ns > 0).then(|| sums.bytes as f64 / durations.total_ns as f64),
        best_gigabytes_per_second: (sums.best > 0.0).then_some(sums.best),
        peak_gigabytes_per_second: peak(trace, device, direction, word),
        small: sums.small,
        is_pageable: host.contains(&MemoryKind::PAGEABLE),
    }
}

/// A copy within a device reads and writes its memory; a set only writes.
fn peak(trace: &Trace, device: DeviceId, direction: CopyDirection, word: &str) -> Option<f64> {
    let peak = trace.device(device)?.memory_bandwidth as f64 / 1e9;
    let share = match (direction, word) {
        (CopyDirection::DEVICE_TO_DEVICE, _) => 0.5,
        (_, "set") => 1.0,
        _ => return None,
    };
    (peak > 0.0).then_some(peak * share)
}
