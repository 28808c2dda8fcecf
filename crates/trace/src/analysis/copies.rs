//! Memory moved: how much, how fast, between which kinds of memory.

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{CopyDirection, Device, MemoryCopy, MemoryKind, MemorySet};
use tracesmith_format::{Columns, DeviceId, Projection};

use super::distribution::Distribution;
use super::registry::{Analyzer, Answer, Need};
use super::utilization::device_name;
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Window, first_rows, times_on};
use crate::selection::Selected;

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "copies",
    aliases: &[],
    description: "Memcpys and memsets, with their bandwidth",
    needs: Need::Ops,
    run: |analysis, _| {
        Ok(Answer::list(
            "rows",
            analysis.copies()?,
            |report: &CopiesReport| &report.rows,
        ))
    },
};

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
    /// For copies between devices the one that was read.
    pub source_device: Option<u32>,
    /// Its name.
    pub source_device_name: Option<String>,
    /// For copies between devices the one that was written.
    pub destination_device: Option<u32>,
    /// Its name.
    pub destination_device_name: Option<String>,
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
    /// The most that the link or the device's memory can do, whichever limits, where the trace says it.
    pub peak_gigabytes_per_second: Option<f64>,
    /// What that is the peak of.
    pub peak_of: Option<Peak>,
    /// Copies of less than 64 KiB: their time is mostly that of starting them.
    pub small: u64,
    /// The row of the longest one, in the table of copies or of sets.
    pub longest_row: u64,
    /// When that started.
    pub longest_start_ns: u64,
    /// Whether host memory that is not page-locked was involved.
    pub is_pageable: bool,
}

/// What limits a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Peak {
    /// The device's memory.
    Memory,
    /// PCIe, in one direction.
    Pcie,
    /// All NVLinks of the device that has fewer, in one direction.
    Nvlink,
}

/// What copies have in common that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    device: DeviceId,
    direction: CopyDirection,
    source: MemoryKind,
    destination: MemoryKind,
    /// Between devices, from which to which.
    peers: Option<(DeviceId, DeviceId)>,
    word: &'static str,
}

#[derive(Default)]
struct Sums {
    bytes: u64,
    durations: Vec<u64>,
    best: f64,
    small: u64,
    /// Length, start and row of the longest.
    longest: (u64, u64, u64),
}

/// Copies below this are told apart.
const SMALL_BYTES: u64 = 64 << 10;
/// Copies from this on can show what a link can do.
const LARGE_BYTES: u64 = 1 << 20;

impl Sums {
    fn add(&mut self, bytes: u64, (start, end): (u64, u64), row: u64) {
        let nanos = end.saturating_sub(start);
        if self.durations.is_empty() || nanos > self.longest.0 {
            self.longest = (nanos, start, row);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.durations.push(nanos);
        self.small += u64::from(bytes < SMALL_BYTES);
        if bytes >= LARGE_BYTES && nanos > 0 {
            self.best = self.best.max(bytes as f64 / nanos as f64);
        }
    }
}

impl CopiesReport {
    /// The selected copies and sets that started in a window.
    pub fn of(trace: &Trace, window: &Window, selected: &Selected) -> Result<Self, Error> {
        let mut sums: FxHashMap<Key, Sums> = FxHashMap::default();
        let columns = [
            "start",
            "end",
            "bytes",
            "place.process",
            "place.device",
            "place.stream",
            "shape.direction",
            "shape.source_memory",
            "shape.destination_memory",
            "shape.source_device",
            "shape.destination_device",
        ];
        let is_wanted = |start: u64, end: u64| start != 0 && end != 0 && window.holds(start);
        let first_row = first_rows(&trace.copies);
        trace.copies.stream_wanted(
            &Projection::of::<MemoryCopy>(&columns)?,
            |block, rows| {
                let times = times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
                (first_row(block), times, rows)
            },
            |(first, (start, end), rows)| {
                for row in (0..rows.len()).filter(|row| is_wanted(start[*row], end[*row])) {
                    if !selected.wants_place(rows.place.get(row)) {
                        continue;
                    }
                    let shape = rows.shape.get(row);
                    let (from, to) = (shape.source_device, shape.destination_device);
                    let is_between = from != to && from.is_some() && to.is_some();
                    let key = Key {
                        device: rows.place.get(row).device,
                        direction: shape.direction,
                        source: shape.source_memory,
                        destination: shape.destination_memory,
                        peers: is_between.then_some((from, to)),
                        word: shape.direction.name().unwrap_or("unknown"),
                    };
                    let (times, number) = ((start[row], end[row]), first + row as u64);
                    sums.entry(key).or_default().add(rows.bytes[row].0, times, number);
                }
            },
        );
        let first_row = first_rows(&trace.sets);
        trace.sets.stream_wanted(
            &Projection::of::<MemorySet>(&[
                "start",
                "end",
                "bytes",
                "place.process",
                "place.device",
                "place.stream",
                "shape.memory",
            ])?,
            |block, rows| {
                let times = times_on(trace.clock_map.line(block.header.clock), &rows.start, &rows.end);
                (first_row(block), times, rows)
            },
            |(first, (start, end), rows)| {
                for row in (0..rows.len()).filter(|row| is_wanted(start[*row], end[*row])) {
                    if !selected.wants_place(rows.place.get(row)) {
                        continue;
                    }
                    let key = Key {
                        device: rows.place.get(row).device,
                        direction: CopyDirection::UNKNOWN,
                        source: MemoryKind::UNKNOWN,
                        destination: rows.shape.get(row).memory,
                        peers: None,
                        word: "set",
                    };
                    let (times, number) = ((start[row], end[row]), first + row as u64);
                    sums.entry(key).or_default().add(rows.bytes[row].0, times, number);
                }
            },
        );
        let mut rows: Vec<CopyRow> = sums
            .into_iter()
            .map(|(key, sums)| row_of(trace, key, sums))
            .collect();
        rows.sort_by_key(|row| {
            let peers = (row.source_device, row.destination_device);
            let place = (row.device, row.direction, row.source, row.destination, peers);
            (std::cmp::Reverse(row.durations.total_ns), place)
        });
        Ok(CopiesReport { rows })
    }
}

fn row_of(trace: &Trace, key: Key, mut sums: Sums) -> CopyRow {
    let durations = Distribution::of(&mut sums.durations);
    let (_, longest_start_ns, longest_row) = sums.longest;
    // What was faster than a link did not go over it, as on boards whose CPU and GPU share another one.
    let speed = (durations.total_ns > 0).then(|| sums.bytes as f64 / durations.total_ns as f64);
    let fastest = speed.unwrap_or(0.0).max(sums.best);
    let peak = peak(trace, &key).filter(|(_, peak)| fastest <= *peak);
    CopyRow {
        device: key.device.0,
        device_name: device_name(trace, key.device),
        direction: key.word,
        source_device: key.peers.map(|(source, _)| source.0),
        source_device_name: key.peers.map(|(source, _)| device_name(trace, source)),
        destination_device: key.peers.map(|(_, destination)| destination.0),
        destination_device_name: key.peers.map(|(_, destination)| device_name(trace, destination)),
        source: if key.word == "set" {
            ""
        } else {
            key.source.name().unwrap_or("unknown")
        },
        destination: key.destination.name().unwrap_or("unknown"),
        bytes: sums.bytes,
        durations,
        gigabytes_per_second: speed,
        best_gigabytes_per_second: (sums.best > 0.0).then_some(sums.best),
        peak_gigabytes_per_second: peak.map(|(_, peak)| peak),
        peak_of: peak.map(|(of, _)| of),
        small: sums.small,
        longest_row,
        longest_start_ns,
        is_pageable: [key.source, key.destination].contains(&MemoryKind::PAGEABLE),
    }
}

/// The most that copies of a kind can do, in gigabytes a second, where the trace says it.
fn peak(trace: &Trace, key: &Key) -> Option<(Peak, f64)> {
    let device = trace.device(key.device)?;
    let memory = device.memory_bandwidth as f64 / 1e9;
    let (of, peak) = match (key.peers, key.direction) {
        _ if key.word == "set" => (Peak::Memory, memory),
        (Some((source, destination)), _) => between(trace.device(source)?, trace.device(destination)?),
        // It reads and writes the same memory.
        (None, CopyDirection::DEVICE_TO_DEVICE) => (Peak::Memory, memory / 2.0),
        (None, CopyDirection::HOST_TO_DEVICE | CopyDirection::DEVICE_TO_HOST) => (Peak::Pcie, pcie(device)),
        _ => return None,
    };
    (peak > 0.0).then_some((of, peak))
}

/// Between two devices: NVLink where both have some, else PCIe.
fn between(one: &Device, other: &Device) -> (Peak, f64) {
    let links = one.nvlink_bandwidth.min(other.nvlink_bandwidth);
    match (one.nvlinks.min(other.nvlinks), links) {
        (0, _) => (Peak::Pcie, pcie(one).min(pcie(other))),
        (_, links) => (Peak::Nvlink, links as f64 / 1e9),
    }
}

/// Gigabytes a second over PCIe in one direction, less what the coding of its lines takes; 0 where it is not known.
/// Headers of packets take another tenth or so, by their size.
fn pcie(device: &Device) -> f64 {
    let of_lane = match device.pcie_generation {
        1 => 0.25,
        2 => 0.5,
        // Eight, sixteen and thirty-two gigabits, of which 128 in 130 are data.
        generation @ 3..=5 => f64::from(1u32 << (generation - 3)) * 128.0 / 130.0,
        // Packets of 256 bytes, of which 242 are data.
        6 => 8.0 * 242.0 / 256.0,
        _ => 0.0,
    };
    of_lane * f64::from(device.pcie_width)
}
