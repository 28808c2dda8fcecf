//! The most device memory that each process of the two traces had at once.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tracesmith_format::tables::{Allocation, MemoryKind, MemoryOperation};
use tracesmith_format::{ProcessId, Projection};

use crate::error::Error;
use crate::model::trace::Trace;

/// The peak of device memory of a process in both traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryDiff {
    /// The process: its rank, or its place among the processes that allocate device memory.
    pub process: String,
    /// The allocator; empty for the driver.
    pub allocator: String,
    /// The most bytes at once in the first trace; none when it has no such process.
    pub a_bytes: Option<u64>,
    /// In the second.
    pub b_bytes: Option<u64>,
}

/// Peaks of both traces. A trace without allocations has none.
pub(super) fn compare(a: &Trace, b: &Trace) -> Result<Vec<MemoryDiff>, Error> {
    let mut rows: BTreeMap<(String, String), MemoryDiff> = BTreeMap::new();
    let mut add = |trace: &Trace, is_first: bool| -> Result<(), Error> {
        for ((process, allocator), bytes) in peaks(trace)? {
            let row = rows
                .entry((process.clone(), allocator.clone()))
                .or_insert(MemoryDiff {
                    process,
                    allocator,
                    a_bytes: None,
                    b_bytes: None,
                });
            match is_first {
                true => row.a_bytes = Some(bytes),
                false => row.b_bytes = Some(bytes),
            }
        }
        Ok(())
    };
    add(a, true)?;
    add(b, false)?;
    Ok(rows.into_values().collect())
}

/// Peaks by the label of a process and the name of an allocator.
fn peaks(trace: &Trace) -> Result<BTreeMap<(String, String), u64>, Error> {
    let mut events: Vec<Event> = Vec::new();
    let columns = ["time", "address", "bytes", "place.process", "shape"];
    trace.allocations.stream_wanted(
        &Projection::of::<Allocation>(&columns)?,
        |block, rows| {
            let mut line = trace.clock_map.line(block.header.clock);
            let times: Vec<u64> = rows.time.iter().map(|time| line.convert(*time)).collect();
            (times, rows)
        },
        |(times, rows)| {
            for (at, time) in times.into_iter().enumerate() {
                let shape = rows.shape.get(at);
                if shape.memory == MemoryKind::DEVICE && time != 0 {
                    events.push(Event {
                        time,
                        process: rows.place.get(at).process,
                        address: rows.address[at].0,
                        bytes: rows.bytes[at].0,
                        operation: shape.operation,
                        allocator: trace.string(shape.allocator).to_owned(),
                    });
                }
            }
        },
    );
    events.sort_by_key(|event| event.time);
    let mut live: FxHashMap<(ProcessId, u64), (String, u64)> = FxHashMap::default();
    let mut sums: BTreeMap<(ProcessId, String), (u64, u64)> = BTreeMap::new();
    for event in events {
        let place = (event.process, event.address);
        let ended = match event.operation {
            MemoryOperation::ALLOCATE if event.address == 0 => None,
            MemoryOperation::ALLOCATE => live.insert(place, (event.allocator.clone(), event.bytes)),
            MemoryOperation::FREE if event.address == 0 => Some((event.allocator.clone(), event.bytes)),
            MemoryOperation::FREE => live.remove(&place),
            _ => continue,
        };
        if let Some((allocator, bytes)) = ended
            && let Some(sum) = sums.get_mut(&(event.process, allocator))
        {
            sum.0 = sum.0.saturating_sub(bytes);
        }
        if event.operation == MemoryOperation::ALLOCATE {
            let sum = sums.entry((event.process, event.allocator)).or_default();
            sum.0 += event.bytes;
            sum.1 = sum.1.max(sum.0);
        }
    }
    Ok(labeled(trace, sums))
}

struct Event {
    time: u64,
    process: ProcessId,
    address: u64,
    bytes: u64,
    operation: MemoryOperation,
    allocator: String,
}

/// Pids differ between runs, so that a process without a rank is known by its place.
fn labeled(
    trace: &Trace,
    sums: BTreeMap<(ProcessId, String), (u64, u64)>,
) -> BTreeMap<(String, String), u64> {
    let mut labels: BTreeMap<ProcessId, String> = BTreeMap::new();
    for (process, _) in sums.keys() {
        let place = labels.len();
        labels.entry(*process).or_insert_with(|| {
            let row = trace.process(*process);
            match row.and_then(|row| row.rank.get()) {
                Some(rank) => format!("rank {rank}"),
                None => format!("process {place}"),
            }
        });
    }
    let peaks = sums.into_iter().map(|((process, allocator), (_, peak))| {
        let label = labels.get(&process).cloned().unwrap_or_default();
        ((label, allocator), peak)
    });
    peaks.collect()
}
