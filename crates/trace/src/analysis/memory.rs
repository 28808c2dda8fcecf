//! Memory of devices: how much was taken, by whom at the peak, what was never given back, and what was given back wrongly.
//!
//! Processes are apart: each has its own pools, and their sums would be of no machine.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tracesmith_format::tables::{Allocation, MemoryKind, MemoryOperation};
use tracesmith_format::{Columns, DeviceId, ProcessId, Projection, StackId, StringId};

use super::registry::{Analyzer, Answer, Need, row};
use super::source_line::source_line;
use super::utilization::device_name;
use crate::error::Error;
use crate::model::table::Kept;
use crate::model::trace::Trace;
use crate::reconstruct::Window;
use crate::selection::Selected;

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "memory",
    aliases: &[],
    description: "Memory use: the peak, who holds it, and what is never freed",
    needs: Need::Allocations,
    run: |analysis, _| {
        Ok(Answer::whole(analysis.memory()?, |report| {
            Box::new(report.pools.iter().map(row))
        }))
    },
};

/// Memory of devices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemoryReport {
    /// By process, device, kind of memory and allocator.
    pub pools: Vec<MemoryPool>,
    /// Addresses that were given back twice.
    pub double_frees: Vec<BadFree>,
    /// Addresses that were given back and never taken. Memory taken before the recording began looks the same.
    pub unknown_frees: Vec<BadFree>,
    /// Rows without a time, left out.
    pub without_time: u64,
    /// Rows without an address: they count for the bytes taken, but not for who holds them.
    pub without_address: u64,
}

/// Memory of one kind on one device, by one allocator of one process.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryPool {
    /// The process.
    pub process: u32,
    /// Its number in the operating system; 0 if it is not known.
    pub pid: u32,
    /// Its rank, if it has one.
    pub rank: Option<u32>,
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
    /// What was still taken at the end of what was looked at.
    pub live_bytes: u64,
    /// The part of that which allocators and libraries keep on purpose.
    pub kept_bytes: u64,
    /// By whom it was taken, the most first.
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
    /// What keeps it on purpose, such as a caching allocator, a library or a module.
    pub kept_by: Option<&'static str>,
    /// How much.
    pub bytes: u64,
    /// In how many pieces.
    pub count: u64,
    /// How many of them were taken in the second half of the trace.
    pub late: u64,
    /// When the first of them was taken.
    pub first_ns: u64,
    /// Its row in the table of allocations.
    pub first_row: u64,
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
    pool: Key,
    reserved: u64,
    used: u64,
}

/// Process, device, kind of memory and allocator.
type Key = (ProcessId, DeviceId, MemoryKind, StringId);

#[derive(Clone, Copy)]
struct Live {
    bytes: u64,
    stack: StackId,
    time: u64,
    row: u64,
}

#[derive(Default)]
struct Sums {
    allocations: u64,
    frees: u64,
    allocated_bytes: u64,
    live_bytes: u64,
    peak: (u64, u64),
    /// The place of the row that made the peak.
    peak_row: usize,
    series: Vec<MemoryPoint>,
    churn: FxHashMap<StackId, (u64, u64, u64)>,
    reserved_peak: u64,
    used_then: u64,
    holders: Vec<Holder>,
}

impl Sums {
    /// Counts anew from a moment on, before the row at a place: what is held stays.
    fn begin(&mut self, time: u64, at: usize) {
        *self = Sums {
            live_bytes: self.live_bytes,
            peak: (self.live_bytes, time),
            peak_row: at.saturating_sub(1),
            series: vec![MemoryPoint {
                time_ns: time,
                bytes: self.live_bytes,
            }],
            ..Sums::default()
        };
    }

    fn taken(&mut self, at: usize, row: &Row) {
        self.allocations += 1;
        self.allocated_bytes = self.allocated_bytes.saturating_add(row.bytes);
        self.live_bytes = self.live_bytes.saturating_add(row.bytes);
        if self.live_bytes > self.peak.0 {
            self.peak = (self.live_bytes, row.time);
            self.peak_row = at;
        }
    }

    fn given_back(&mut self, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(bytes);
    }

    fn kept(&mut self, taken: &Live, until: u64) {
        let churn = self.churn.entry(taken.stack).or_default();
        churn.0 += 1;
        churn.1 = churn.1.saturating_add(taken.bytes);
        churn.2 = churn.2.saturating_add(until.saturating_sub(taken.time));
    }

    fn note(&mut self, time_ns: u64) {
        let point = MemoryPoint {
            time_ns,
            bytes: self.live_bytes,
        };
        match self.series.last_mut() {
            Some(last) if last.time_ns == time_ns => *last = point,
            _ => self.series.push(point),
        }
    }
}

/// What is taken at a moment, by process and address, with the pool that it was taken from.
#[derive(Default)]
struct Taken(FxHashMap<(ProcessId, u64), (Key, Live)>);

impl Taken {
    /// Takes or gives back by a row that has an address. What this ends comes back: the piece that is given back, or one whose
    /// address is taken again, which was given back unseen.
    fn follow(&mut self, row: &Row) -> Option<(Key, Live)> {
        let place = (row.pool.0, row.address);
        match row.operation {
            MemoryOperation::ALLOCATE => {
                let live = Live {
                    bytes: row.bytes,
                    stack: row.stack,
                    time: row.time,
                    row: row.row,
                };
                self.0.insert(place, (row.pool, live))
            }
            MemoryOperation::FREE => self.0.remove(&place),
            _ => None,
        }
    }
}

impl MemoryReport {
    /// Of the allocations of a stretch of a trace. What was taken before counts as held, no more.
    pub fn of(trace: &Trace, window: Window) -> Result<Self, Error> {
        Self::selected(trace, window, &Selected::default())
    }

    /// The same, of the selected processes and devices.
    pub fn selected(trace: &Trace, window: Window, selected: &Selected) -> Result<Self, Error> {
        Self::with_points(trace, window, selected, POINTS)
    }

    /// The same, with at most so many points in each series.
    pub(crate) fn with_points(
        trace: &Trace,
        window: Window,
        selected: &Selected,
        points: usize,
    ) -> Result<Self, Error> {
        let (mut rows, without_time) = rows(trace, selected)?;
        rows.truncate(rows.partition_point(|row| window.to.is_none_or(|to| row.time < to)));
        let first = rows.partition_point(|row| window.from.is_some_and(|from| row.time < from));
        let mut report = MemoryReport {
            without_time,
            ..Self::default()
        };
        let mut pools: BTreeMap<Key, Sums> = BTreeMap::new();
        let mut taken = Taken::default();
        let mut freed: FxHashSet<(ProcessId, u64)> = FxHashSet::default();
        for (at, row) in rows.iter().enumerate() {
            if let Some(from) = window.from.filter(|_| at == first) {
                pools.values_mut().for_each(|sums| sums.begin(from, at));
            }
            let sums = pools.entry(row.pool).or_default();
            if row.reserved > sums.reserved_peak {
                (sums.reserved_peak, sums.used_then) = (row.reserved, row.used);
            }
            let is_allocation = row.operation == MemoryOperation::ALLOCATE;
            if !is_allocation && row.operation != MemoryOperation::FREE || row.is_nothing() {
                continue;
            }
            if row.address == 0 {
                report.without_address += 1;
                match is_allocation {
                    true => sums.taken(at, row),
                    false => {
                        sums.frees += 1;
                        sums.given_back(row.bytes);
                    }
                }
                sums.note(row.time);
                continue;
            }
            let place = (row.pool.0, row.address);
            let ended = taken.follow(row);
            if let Some((pool, old)) = &ended
                && let Some(sums) = pools.get_mut(pool)
            {
                sums.given_back(old.bytes);
                if !is_allocation {
                    sums.kept(old, row.time);
                }
                sums.note(row.time);
            }
            let sums = pools.entry(row.pool).or_default();
            if is_allocation {
                sums.taken(at, row);
                freed.remove(&place);
            } else {
                sums.frees += 1;
                if ended.is_some() {
                    freed.insert(place);
                } else if freed.contains(&place) {
                    report.double_frees.push(BadFree::of(trace, row));
                } else {
                    report.unknown_frees.push(BadFree::of(trace, row));
                }
            }
            sums.note(row.time);
        }
        if let Some(from) = window.from.filter(|_| first == rows.len()) {
            pools.values_mut().for_each(|sums| sums.begin(from, first));
        }
        find_holders(trace, &rows, &mut pools);
        let mut left: BTreeMap<Key, Vec<Live>> = BTreeMap::new();
        for (pool, taken) in taken.0.into_values() {
            left.entry(pool).or_default().push(taken);
        }
        report.pools = pools
            .into_iter()
            .filter(|(_, sums)| sums.allocations + sums.frees > 0 || sums.peak.0 > 0)
            .map(|(key, sums)| pool_of(trace, key, sums, left.remove(&key).unwrap_or_default(), points))
            .collect();
        report
            .pools
            .sort_by_key(|pool| std::cmp::Reverse(pool.peak_bytes));
        Ok(report)
    }
}

impl BadFree {
    fn of(trace: &Trace, row: &Row) -> Self {
        BadFree {
            time_ns: row.time,
            address: row.address,
            stack: source_line(trace, row.stack),
            row: row.row,
        }
    }
}

impl Row {
    /// Whether it gives back no memory at all, as `cudaFree(NULL)` does.
    fn is_nothing(&self) -> bool {
        self.operation == MemoryOperation::FREE && self.address == 0 && self.bytes == 0
    }
}

fn rows(trace: &Trace, selected: &Selected) -> Result<(Vec<Row>, u64), Error> {
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
    let kept = Kept::new(trace.allocations.rows(), size_of::<Row>());
    trace.file.admit_rows("allocations", &[kept])?;
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
                if !selected.wants_memory(place.process, place.device) {
                    continue;
                }
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
                    pool: (place.process, place.device, shape.memory, shape.allocator),
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
    let peaks = pools.iter().filter(|(_, sums)| sums.peak.0 > 0);
    let mut peaks: Vec<(usize, Key)> = peaks.map(|(key, sums)| (sums.peak_row, *key)).collect();
    peaks.sort_unstable();
    let mut taken = Taken::default();
    let mut peaks = peaks.into_iter().peekable();
    for (at, row) in rows.iter().enumerate() {
        if row.address != 0 {
            taken.follow(row);
        }
        while let Some((_, key)) = peaks.next_if(|(peak_row, _)| *peak_row == at) {
            let held = taken.0.values().filter(|(pool, _)| *pool == key);
            let holders = holders(trace, key.2, held.map(|(_, live)| *live));
            pools.entry(key).or_default().holders = listed(holders);
        }
        if peaks.peek().is_none() {
            break;
        }
    }
}

fn holders(trace: &Trace, memory: MemoryKind, live: impl Iterator<Item = Live>) -> Vec<Holder> {
    /// Bytes, pieces, late ones, and time and row of the first.
    type Sum = (u64, u64, u64, (u64, u64));
    const NOTHING: Sum = (0, 0, 0, (u64::MAX, u64::MAX));
    let add = |sum: &mut Sum, more: Sum| {
        *sum = (
            sum.0.saturating_add(more.0),
            sum.1 + more.1,
            sum.2 + more.2,
            sum.3.min(more.3),
        );
    };
    let middle = trace
        .span()
        .map_or(0, |(first, last)| first.0 + last.0.saturating_sub(first.0) / 2);
    let mut by_stack: FxHashMap<StackId, Sum> = FxHashMap::default();
    for taken in live {
        let sum = by_stack.entry(taken.stack).or_insert(NOTHING);
        let late = u64::from(taken.time > middle);
        add(sum, (taken.bytes, 1, late, (taken.time, taken.row)));
    }
    let mut by_line: BTreeMap<(String, Option<&'static str>), Sum> = BTreeMap::new();
    for (stack, of_stack) in by_stack {
        let line = (source_line(trace, stack), kept_by(trace, memory, stack));
        let sum = by_line.entry(line).or_insert(NOTHING);
        add(sum, of_stack);
    }
    let mut holders: Vec<Holder> = by_line
        .into_iter()
        .map(
            |((stack, kept_by), (bytes, count, late, (first_ns, first_row)))| Holder {
                stack,
                kept_by,
                bytes,
                count,
                late,
                first_ns,
                first_row,
            },
        )
        .collect();
    holders.sort_by(|a, b| (b.bytes, &a.stack, a.kept_by).cmp(&(a.bytes, &b.stack, b.kept_by)));
    holders
}

fn listed(mut holders: Vec<Holder>) -> Vec<Holder> {
    holders.truncate(LISTED);
    holders
}

/// Who keeps memory until the end on purpose, by the kind of the memory and by the functions and libraries on the stack
/// that took it.
fn kept_by(trace: &Trace, memory: MemoryKind, stack: StackId) -> Option<&'static str> {
    if [MemoryKind::DEVICE_STATIC, MemoryKind::MANAGED_STATIC].contains(&memory) {
        return Some("module");
    }
    if !stack.is_some() {
        return None;
    }
    let view = trace.stack(stack);
    view.frames.iter().find_map(|frame| {
        let name = trace.frame_name(frame);
        let image = trace.image(frame.frame.image);
        let path = image.map_or("", |image| trace.string(image.path));
        let file = path.rsplit('/').next().unwrap_or(path);
        KEEPERS
            .iter()
            .find(|(function, library, _)| {
                name.contains(function) && (library.is_empty() || name.starts_with(function))
                    || !library.is_empty() && file.starts_with(library)
            })
            .map(|(.., by)| *by)
    })
}

/// A function, the file of its library, and what they are of. Functions of libraries begin with the name, others have it
/// as a part.
const KEEPERS: &[(&str, &str, &str)] = &[
    ("CachingAllocator", "", "caching allocator"),
    ("CachingHostAllocator", "", "caching allocator"),
    ("BFCAllocator", "", "caching allocator"),
    ("rmm::mr::pool", "", "caching allocator"),
    ("cublas", "libcublas", "cuBLAS"),
    ("cudnn", "libcudnn", "cuDNN"),
    ("cusolver", "libcusolver", "cuSOLVER"),
    ("cusparse", "libcusparse", "cuSPARSE"),
    ("cufft", "libcufft", "cuFFT"),
    ("nccl", "libnccl", "NCCL"),
    ("ModuleLoad", "", "module"),
    ("LibraryLoad", "", "module"),
];

fn pool_of(trace: &Trace, key: Key, sums: Sums, left: Vec<Live>, points: usize) -> MemoryPool {
    let (process_id, device, memory, allocator) = key;
    let process = trace.process(process_id);
    let never_freed = holders(trace, memory, left.into_iter());
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
        process: process_id.0,
        pid: process.map_or(0, |process| process.pid),
        rank: process.and_then(|process| process.rank.get()),
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
        kept_bytes: never_freed
            .iter()
            .filter(|holder| holder.kept_by.is_some())
            .map(|holder| holder.bytes)
            .sum(),
        never_freed: listed(never_freed),
        series: thinned(sums.series, points),
        churn,
        reserved_peak_bytes: has_reserved.then_some(sums.reserved_peak),
        fragmentation: has_reserved.then(|| {
            let used = sums.used_then as f64 / sums.reserved_peak as f64;
            (1.0 - used).clamp(0.0, 1.0)
        }),
    }
}

/// Of many points the highest of each of even parts, so that no peak is lost.
fn thinned(series: Vec<MemoryPoint>, points: usize) -> Vec<MemoryPoint> {
    if series.len() <= points {
        return series;
    }
    let part = series.len().div_ceil(points);
    series
        .chunks(part)
        .filter_map(|part| part.iter().max_by_key(|point| point.bytes).copied())
        .collect()
}
