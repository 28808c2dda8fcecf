//! Memory of devices: how much was taken, by whom at the peak, what was never given back, and what was given back wrongly.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{Allocation, MemoryKind, MemoryOperation};
use tracesmith_format::{Columns, DeviceId, ProcessId, Projection, StackId, StringId};

use super::source_line::source_line;
use super::utilization::device_name;
use crate::error::Error;
use crate::model::trace::Trace;

/// Memory of devices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemoryReport {
    /// By device, kind of memory and allocator.
    pub pools: Vec<MemoryPool>,
    /// Addresses that were given back twice.
    pub double_frees: Vec<BadFree>,
    /// Addresses that were given back and never taken. Memory taken before the recording began looks the same.
    pub unknown_frees: Vec<BadFree>,
    /// Rows without a time, left out.
    pub without_time: u64,
}

/// Memory of one kind on one device, by one allocator.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryPool {
    /// The device.
    pub device: u32,
    /// Its name.
    pub device_name: String,
    /// The kind of memory.
    pub memory: &'static str,
    /// The allocator, where one says so.
    pub allocator: String,
    /// How often memory was taken.
    pub allocations: u64,
    /// How often it was given back.
    pub frees: u64,
    /// Bytes taken altogether.
    pub allocated_bytes: u64,
    /// The most that was taken at once.
    pub peak_bytes: u64,
    /// When that was first so.
    pub peak_at_ns: u64,
    /// Who held it then, the most first.
    pub holders: Vec<Holder>,
    /// What was still taken at the end.
    pub live_bytes: u64,
    /// By whom, the most first.
    pub never_freed: Vec<Holder>,
    /// Bytes taken over time, at most so many points: those where it changed most.
    pub series: Vec<MemoryPoint>,
    /// Who takes and gives back memory again and again, the most often first.
    pub churn: Vec<Churn>,
    /// The most that the allocator held of the device, where it says so.
    pub reserved_peak_bytes: Option<u64>,
    /// Share of that which was not in use, at the moment when most was held.
    pub fragmentation: Option<f64>,
}

/// Who holds memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The line of code that took it.
    pub stack: String,
    /// How much.
    pub bytes: u64,
    /// In how many pieces.
    pub count: u64,
    /// When the first of them was taken.
    pub first_ns: u64,
}

/// Who takes and gives back memory again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Churn {
    /// The line of code.
    pub stack: String,
    /// How often.
    pub count: u64,
    /// Bytes altogether.
    pub bytes: u64,
    /// How long it kept them, added up.
    pub held_ns: u64,
}

/// Memory that was given back wrongly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadFree {
    /// When.
    pub time_ns: u64,
    /// The address.
    pub address: u64,
    /// The line of code.
    pub stack: String,
    /// The row in the table of allocations.
    pub row: u64,
}

/// Bytes taken from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryPoint {
    /// The moment.
    pub time_ns: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Entries of a list.
const LISTED: usize = 20;
/// Points of a series.
const POINTS: usize = 500;
/// Pairs of taking and giving back that make a churn.
const CHURN: u64 = 10;

#[derive(Clone, Copy)]
struct Row {
    time: u64,
    row: u64,
    address: u64,
    bytes: u64,
    operation: MemoryOperation,
    stack: StackId,
    process: ProcessId,
    pool: Key,
    reserved: u64,
    used: u64,
}

type Key = (DeviceId, MemoryKind, StringId);

#[derive(Clone, Copy)]
struct Live {
    bytes: u64,
    stack: StackId,
    time: u64,
}

#[derive(Default)]
struct Sums {
    allocations: u64,
    frees: u64,
    allocated_bytes: u64,
    live_bytes: u64,
    peak: (u64, u64),
    series: Vec<MemoryPoint>,
    churn: FxHashMap<StackId, (u64, u64, u64)>,
    reserved_peak: u64,
    used_then: u64,
    holders: Vec<Holder>,
}

impl MemoryReport {
    /// Of all allocations of a trace.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        let (rows, without_time) = rows(trace)?;
        let mut report = MemoryReport {
            without_time,
            ..Self::default()
        };
        let mut pools: BTreeMap<Key, Sums> = BTreeMap::new();
        let mut live: FxHashMap<(ProcessId, u64), (Key, Live)> = FxHashMap::default();
        let mut freed: FxHashMap<(ProcessId, u64), u64> = FxHashMap::default();
        for row in &rows {
            let sums = pools.entry(row.pool).or_default();
            if row.reserved > sums.reserved_peak {
                (sums.reserved_peak, sums.used_then) = (row.reserved, row.used);
            }
            let place = (row.process, row.address);
            match row.operation {
                MemoryOperation::ALLOCATE => {
                    sums.allocations += 1;
                    sums.allocated_bytes = sums.allocated_bytes.saturating_add(row.bytes);
                    sums.live_bytes = sums.live_bytes.saturating_add(row.bytes);
                    if sums.live_bytes > sums.peak.0 {
                        sums.peak = (sums.live_bytes, row.time);
                    }
                    let taken = Live {
                        bytes: row.bytes,
                        stack: row.stack,
                        time: row.time,
                    };
                    // An address that is taken again without being given back was given back unseen.
                    if let Some((pool, old)) = live.insert(place, (row.pool, taken))
                        && let Some(sums) = pools.get_mut(&pool)
                    {
                        sums.live_bytes = sums.live_bytes.saturating_sub(old.bytes);
                    }
                    freed.remove(&place);
                }
                MemoryOperation::FREE => {
                    sums.frees += 1;
                    match live.remove(&place) {
                        Some((pool, taken)) => {
                            freed.insert(place, row.time);
                            let sums = pools.entry(pool).or_default();
                            sums.live_bytes = sums.live_bytes.saturating_sub(taken.bytes);
                            let churn = sums.churn.entry(taken.stack).or_default();
                            churn.0 += 1;
                            churn.1 = churn.1.saturating_add(taken.bytes);
                            churn.2 = churn.2.saturating_add(row.time.saturating_sub(taken.time));
                        }
                        None => report.add_bad_free(trace, row, freed.contains_key(&place)),
                    }
                }
                _ => continue,
            }
            let sums = pools.entry(row.pool).or_default();
            let point = MemoryPoint {
                time_ns: row.time,
                bytes: sums.live_bytes,
            };
            match sums.series.last_mut() {
                Some(last) if last.time_ns == row.time => *last = point,
                _ => sums.series.push(point),
            }
        }
        find_holders(trace, &rows, &mut pools);
        let mut left: BTreeMap<Key, Vec<Live>> = BTreeMap::new();
        for (pool, taken) in live.into_values() {
            left.entry(pool).or_default().push(taken);
        }
        report.pools = pools
            .into_iter()
            .filter(|(_, sums)| sums.allocations + sums.frees > 0)
            .map(|(key, sums)| pool_of(trace, key, sums, left.remove(&key).unwrap_or_default()))
            .collect();
        report
            .pools
            .sort_by_key(|pool| std::cmp::Reverse(pool.peak_bytes));
        Ok(report)
    }

    fn add_bad_free(&mut self, trace: &Trace, row: &Row, was_freed: bool) {
        let list = if was_freed {
            &mut self.double_frees
        } else {
            &mut self.unknown_frees
        };
        list.push(BadFree {
            time_ns: row.time,
            address: row.address,
            stack: source_line(trace, row.stack),
            row: row.row,
        });
    }
}

fn rows(trace: &Trace) -> Result<(Vec<Row>, u64), Error> {
    let columns = [
        "time",
        "address",
        "bytes",
        "stack",
        "place.process",
        "place.device",
        "shape",
        "pool_size",
        "pool_used",
    ];
    let mut rows = Vec::new();
    let (mut without_time, mut number) = (0, 0);
    trace.allocations.stream_wanted(
        &Projection::of::<Allocation>(&columns)?,
        |block, columns| {
            let mut line = trace.clock_map.line(block.header.clock);
            let times: Vec<u64> = columns.time.iter().map(|time| line.convert(*time)).collect();
            (times, columns)
        },
        |(times, columns)| {
            for (at, time) in times.iter().enumerate().take(columns.len()) {
                number += 1;
                let (place, shape) = (columns.place.get(at), columns.shape.get(at));
                if *time == 0 {
                    without_time += 1;
                    continue;
                }
                rows.push(Row {
                    time: *time,
                    row: number - 1,
                    address: columns.address[at].0,
                    bytes: columns.bytes[at].0,
                    operation: shape.operation,
                    stack: columns.stack[at],
                    process: place.process,
                    pool: (place.device, shape.memory, shape.allocator),
                    reserved: columns.pool_size[at].0,
                    used: columns.pool_used[at].0,
                });
            }
        },
    );
    rows.sort_by_key(|row| (row.time, row.row));
    Ok((rows, without_time))
}

/// Who held memory at the peaks: found by going through the rows again, now that it is known when those were.
fn find_holders(trace: &Trace, rows: &[Row], pools: &mut BTreeMap<Key, Sums>) {
    for (key, sums) in pools.iter_mut() {
        let mut live: FxHashMap<(ProcessId, u64), Live> = FxHashMap::default();
        let mut bytes = 0u64;
        for row in rows.iter().filter(|row| row.pool == *key) {
            let place = (row.process, row.address);
            match row.operation {
                MemoryOperation::ALLOCATE => {
                    let taken = Live {
                        bytes: row.bytes,
                        stack: row.stack,
                        time: row.time,
                    };
                    bytes += row.bytes;
                    if let Some(old) = live.insert(place, taken) {
                        bytes = bytes.saturating_sub(old.bytes);
                    }
                }
                MemoryOperation::FREE => {
                    if let Some(old) = live.remove(&place) {
                        bytes = bytes.saturating_sub(old.bytes);
                    }
                }
                _ => {}
            }
            if (bytes, row.time) == sums.peak {
                break;
            }
        }
        sums.holders = holders(trace, live.into_values());
    }
}

fn holders(trace: &Trace, live: impl Iterator<Item = Live>) -> Vec<Holder> {
    let mut by_stack: FxHashMap<StackId, (u64, u64, u64)> = FxHashMap::default();
    for taken in live {
        let sum = by_stack.entry(taken.stack).or_insert((0, 0, u64::MAX));
        *sum = (sum.0 + taken.bytes, sum.1 + 1, sum.2.min(taken.time));
    }
    let mut by_line: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for (stack, (bytes, count, first)) in by_stack {
        let sum = by_line
            .entry(source_line(trace, stack))
            .or_insert((0, 0, u64::MAX));
        *sum = (sum.0 + bytes, sum.1 + count, sum.2.min(first));
    }
    let mut holders: Vec<Holder> = by_line
        .into_iter()
        .map(|(stack, (bytes, count, first_ns))| Holder {
            stack,
            bytes,
            count,
            first_ns,
        })
        .collect();
    holders.sort_by(|a, b| (b.bytes, &a.stack).cmp(&(a.bytes, &b.stack)));
    holders.truncate(LISTED);
    holders
}

fn pool_of(trace: &Trace, key: Key, sums: Sums, left: Vec<Live>) -> MemoryPool {
    let (device, memory, allocator) = key;
    let mut by_line: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for (stack, (count, bytes, held)) in sums.churn.iter().filter(|(_, (count, ..))| *count >= CHURN) {
        let sum = by_line.entry(source_line(trace, *stack)).or_default();
        *sum = (
            sum.0 + count,
            sum.1.saturating_add(*bytes),
            sum.2.saturating_add(*held),
        );
    }
    let mut churn: Vec<Churn> = by_line
        .into_iter()
        .map(|(stack, (count, bytes, held_ns))| Churn {
            stack,
            count,
            bytes,
            held_ns,
        })
        .collect();
    churn.sort_by(|a, b| (b.count, &a.stack).cmp(&(a.count, &b.stack)));
    churn.truncate(LISTED);
    let has_reserved = sums.reserved_peak > 0;
    MemoryPool {
        device: device.0,
        device_name: if device.is_some() {
            device_name(trace, device)
        } else {
            "host".to_owned()
        },
        memory: memory.name().unwrap_or("unknown"),
        allocator: trace.string(allocator).to_owned(),
        allocations: sums.allocations,
        frees: sums.frees,
        allocated_bytes: sums.allocated_bytes,
        peak_bytes: sums.peak.0,
        peak_at_ns: sums.peak.1,
        holders: sums.holders,
        live_bytes: sums.live_bytes,
        never_freed: holders(trace, left.into_iter()),
        series: thinned(sums.series),
        churn,
        reserved_peak_bytes: has_reserved.then_some(sums.reserved_peak),
        fragmentation: has_reserved.then(|| 1.0 - sums.used_then as f64 / sums.reserved_peak as f64),
    }
}

/// Of many points the highest of each of even parts, so that no peak is lost.
fn thinned(series: Vec<MemoryPoint>) -> Vec<MemoryPoint> {
    if series.len() <= POINTS {
        return series;
    }
    let part = series.len().div_ceil(POINTS);
    series
        .chunks(part)
        .filter_map(|part| part.iter().max_by_key(|point| point.bytes).copied())
        .collect()
}
