//! Answers of a session as JSON. Addresses are texts, because they can be larger than numbers of JavaScript.

use std::ops::Range;

use anyhow::Context;
use serde_json::{Value, json};
use tracesmith_replay::debug::{
    BufferDiff, CallBuffer, Diff, Extent, Grid, Memory, Number, Role, Shape, Stats, grid, stats,
};
use tracesmith_replay::{Command, Recording};

use super::super::names::readable;
use super::super::plan::what;
use super::request::{Address, At, Rows, Type};

/// Bytes of one read.
const MOST_READ: u64 = 1 << 20;

/// Rows of one read. Each is a copy of its own.
const MOST_ROWS: u64 = 4096;

/// Intervals of a histogram.
const BINS: usize = 32;
const MOST_BINS: usize = 1024;

/// Blocks of a picture, per side.
const BLOCKS: u64 = 128;
const MOST_BLOCKS: u64 = 512;

/// Calls of one answer.
const MOST_CALLS: usize = 10_000;

/// Where a session stands: fields that all sessions have.
pub(super) fn position(recording: &Recording, place: usize) -> Value {
    let number = |place: usize| recording.commands.get(place).map(|command| command.number);
    json!({
        "place": place, "calls": recording.commands.len(),
        "next": number(place), "previous": place.checked_sub(1).and_then(number),
    })
}

/// Some calls, from a number on.
pub(super) fn calls(recording: &Recording, from: u64, limit: Option<usize>) -> Value {
    let limit = limit.unwrap_or(MOST_CALLS).min(MOST_CALLS);
    let first = recording.places(0..from).end;
    let commands = recording.commands.iter().enumerate().skip(first).take(limit);
    let calls: Vec<Value> = commands.map(|(place, command)| call(place, command)).collect();
    json!({ "total": recording.commands.len(), "calls": calls })
}

fn call(place: usize, command: &Command) -> Value {
    json!({
        "number": command.number, "place": place, "kind": command.kind.name().unwrap_or("unknown"),
        "name": match command.function.is_empty() {
            true => command.kind.name().unwrap_or("unknown").to_owned(),
            false => readable(&command.function),
        },
        "what": what(command), "function": command.function, "correlation": command.correlation,
        "stream": hex(command.stream), "grid": command.grid, "block": command.block, "shared": command.shared,
        "destination": hex(command.destination), "source": hex(command.source), "bytes": command.bytes,
        "graph": command.graph, "reason": command.reason,
        "recorded_ns": command.recorded.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    })
}

/// The buffers of a call. The index of an argument is known if the driver reports the offsets of all.
pub(super) fn call_buffers(number: u64, buffers: &[CallBuffer], offsets: Option<&[usize]>) -> Value {
    let buffers: Vec<Value> = buffers
        .iter()
        .map(|buffer| {
            let mut value = extent(&buffer.buffer);
            value["role"] = buffer.role.name().into();
            value["pointer"] = hex(buffer.pointer);
            if let Role::Parameter(at) = buffer.role {
                value["offset"] = at.into();
                // A struct can contain several addresses.
                let index = offsets.and_then(|offsets| offsets.iter().rposition(|offset| *offset <= at));
                value["argument"] = index.into();
            }
            value
        })
        .collect();
    json!({ "call": number, "buffers": buffers })
}

/// All buffers of a position.
pub(super) fn buffers(buffers: &[Extent]) -> Value {
    json!({ "buffers": buffers.iter().map(extent).collect::<Vec<Value>>() })
}

pub(super) fn extent(extent: &Extent) -> Value {
    json!({
        "address": hex(extent.range.start), "bytes": extent.bytes(),
        "memory": extent.memory.name().unwrap_or("unknown"), "variable": extent.variable,
    })
}

/// The range from the first row to the end of the last one.
pub(super) fn whole_range(bytes: u64, rows: Rows) -> anyhow::Result<u64> {
    anyhow::ensure!(
        bytes > 0 && (1..=MOST_ROWS).contains(&rows.rows) && (rows.rows == 1 || rows.pitch >= bytes),
        "`bytes` must be at least 1, `rows` from 1 to {MOST_ROWS}, and `pitch` at least `bytes`"
    );
    let read = bytes.checked_mul(rows.rows);
    anyhow::ensure!(
        read.is_some_and(|read| read <= MOST_READ),
        "{} × {bytes} bytes are too many: read at most {MOST_READ} at once",
        rows.rows
    );
    let before = rows.pitch.checked_mul(rows.rows - 1);
    let whole = before.and_then(|before| before.checked_add(bytes));
    whole.context("`pitch` is too large")
}

/// The bytes of a range, or of equally distant parts of it.
pub(super) fn read(
    memory: &mut impl Memory,
    range: &Range<u64>,
    at: At,
    bytes: u64,
    rows: Rows,
) -> anyhow::Result<Value> {
    let mut content = Vec::new();
    for row in 0..rows.rows {
        let start = range.start + row * rows.pitch;
        content.extend(memory.contents(at.0, start..start + bytes)?);
    }
    let mut text = String::with_capacity(2 * content.len());
    for byte in &content {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    Ok(json!({ "address": hex(range.start), "bytes": content.len(), "at": at.0.name(), "hex": text }))
}

/// Statistics and a histogram of a range.
pub(super) fn range_stats(
    memory: &mut impl Memory,
    range: &Range<u64>,
    at: At,
    Type(number): Type,
    bins: Option<usize>,
) -> anyhow::Result<Value> {
    let bins = bins.unwrap_or(BINS).min(MOST_BINS);
    let found = stats(memory, at.0, range, number, bins)?;
    let Stats { min, max, mean, .. } = found;
    let histogram: Vec<Value> = (0..found.bins.len())
        .filter_map(|bin| {
            let (from, to) = found.limits(bin)?;
            Some(json!({ "from": from, "to": to, "count": found.bins[bin] }))
        })
        .collect();
    Ok(json!({
        "address": hex(range.start), "bytes": range.end - range.start, "at": at.0.name(), "type": number.name(),
        "elements": found.elements, "finite": found.finite(), "nan": found.nan,
        "positive_infinity": found.positive_infinity, "negative_infinity": found.negative_infinity,
        "zero": found.zero, "min": min, "max": max, "mean": mean, "histogram": histogram,
    }))
}

/// A picture of a matrix.
pub(super) fn picture(
    memory: &mut impl Memory,
    range: &Range<u64>,
    at: At,
    Type(number): Type,
    shape: Shape,
    most: [Option<u64>; 2],
) -> anyhow::Result<Value> {
    let needed = shape.rows.checked_mul(shape.columns);
    let needed = needed.and_then(|count| count.checked_mul(number.bytes() as u64));
    let needed = needed.filter(|bytes| *bytes > 0 && *bytes <= range.end - range.start);
    let Some(needed) = needed else {
        anyhow::bail!(
            "{} rows of {} elements of {} do not fit into {} bytes",
            shape.rows,
            shape.columns,
            number.name(),
            range.end - range.start
        );
    };
    let [rows, columns] = most.map(|most| most.unwrap_or(BLOCKS).clamp(1, MOST_BLOCKS));
    let range = range.start..range.start + needed;
    let Grid {
        rows,
        columns,
        means,
        not_finite,
    } = grid(memory, at.0, &range, number, shape, Shape { rows, columns })?;
    let limit = |pick: fn(f64, f64) -> f64| means.iter().flatten().copied().reduce(pick);
    let (min, max) = (limit(f64::min), limit(f64::max));
    Ok(json!({
        "address": hex(range.start), "at": at.0.name(), "type": number.name(),
        "shape": [shape.rows, shape.columns], "rows": rows, "columns": columns, "min": min, "max": max,
        "means": means, "not_finite": not_finite,
    }))
}

/// Buffers that differ.
pub(super) fn buffer_diffs(diffs: &[BufferDiff]) -> Vec<Value> {
    let diffs = diffs.iter().map(|found| {
        let mut value = diff(&found.diff);
        if let (Some(value), Some(buffer)) = (value.as_object_mut(), extent(&found.buffer).as_object()) {
            value.extend(buffer.clone());
        }
        if let Some(call) = found.last_call {
            value["last_call"] = call.into();
        }
        value
    });
    diffs.collect()
}

pub(super) fn diff(diff: &Diff) -> Value {
    let number: Number = diff.number;
    let width = number.bytes() as u64;
    let ranges = diff.ranges.iter();
    let ranges: Vec<[u64; 2]> = ranges
        .map(|range| [range.start, range.end - range.start])
        .collect();
    let first: Vec<Value> = diff
        .first
        .iter()
        .map(|change| {
            json!({
                "offset": change.offset, "index": change.offset / width,
                "old": number.text(&change.old), "new": number.text(&change.new),
            })
        })
        .collect();
    json!({
        "type": number.name(), "bytes": diff.bytes, "elements": diff.bytes / width,
        "different_bytes": diff.different_bytes, "different_elements": diff.different_elements,
        "largest": diff.largest, "ranges": ranges, "range_count": diff.range_count, "first": first,
    })
}

/// Makes texts of all addresses in an answer of the command.
pub(super) fn with_address_texts(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                *field = match field.as_u64() {
                    Some(address) if name == "address" || name == "buffer" => hex(address),
                    _ => with_address_texts(field.take()),
                };
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                *entry = with_address_texts(entry.take());
            }
        }
        _ => {}
    }
    value
}

pub(super) fn hex(number: u64) -> Value {
    format!("{number:#x}").into()
}

/// The range of a request: without a size, it ends with its buffer.
pub(super) fn range_of(
    recording: &Recording,
    place: usize,
    address: Address,
    bytes: Option<u64>,
) -> anyhow::Result<Range<u64>> {
    let Some(buffer) = recording.buffer_at(place, address.0) else {
        anyhow::bail!(
            "no recorded buffer contains {:#x}; `buffers` lists them",
            address.0
        );
    };
    let range = match bytes {
        Some(bytes) => address.range(bytes)?,
        None => address.0..buffer.range.end,
    };
    anyhow::ensure!(
        range.end <= buffer.range.end,
        "the buffer at {:#x} has {} bytes: a range of {} bytes at offset {} ends after it",
        buffer.range.start,
        buffer.bytes(),
        range.end - range.start,
        range.start - buffer.range.start
    );
    Ok(range)
}

/// The position of a call.
pub(super) fn place_of(recording: &Recording, number: u64) -> anyhow::Result<usize> {
    let place = recording.places(0..number).end;
    let found = recording
        .commands
        .get(place)
        .filter(|command| command.number == number);
    match found {
        Some(_) => Ok(place),
        None => anyhow::bail!(
            "there is no call #{number}: {}",
            super::super::selection::recorded_calls(recording)
        ),
    }
}

/// The position that a request names.
pub(super) fn target(
    recording: &Recording,
    before: Option<u64>,
    after: Option<u64>,
    to: Option<super::request::Edge>,
) -> anyhow::Result<usize> {
    use super::request::Edge;
    match (before, after, to) {
        (Some(number), None, None) => place_of(recording, number),
        (None, Some(number), None) => Ok(place_of(recording, number)? + 1),
        (None, None, Some(Edge::Begin)) => Ok(0),
        (None, None, Some(Edge::End)) => Ok(recording.commands.len()),
        _ => anyhow::bail!("go needs one of `before`, `after` and `to`"),
    }
}
