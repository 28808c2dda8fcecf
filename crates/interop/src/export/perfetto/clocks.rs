//! Clocks: which of Perfetto's the timeline is, and the moments at which it was read together with another.
//!
//! A file begins with one snapshot, at the time that all deltas start from. The readings that the trace holds come last:
//! Perfetto wants the timeline's clock to go forward from snapshot to snapshot, and every lane brings one of the beginning.

use tracesmith_format::ClockId;
use tracesmith_format::tables::{Clock, ClockKind, ClockPair};
use tracesmith_trace::Trace;

use crate::perfetto::schema::{clock, clock_snapshot, packet, trace as file};
use crate::perfetto::wire::{put_message, put_number};

/// The timeline's clock and another, read at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    /// On the timeline.
    at: u64,
    /// What the other clock showed, by Perfetto's number for it.
    other: u64,
    shown: u64,
}

/// The Perfetto clock that the trace's timeline is.
pub(super) fn clock_of(trace: &Trace) -> u64 {
    match reference(trace).map(|clock| clock.kind) {
        Some(ClockKind::MONOTONIC) => clock::MONOTONIC,
        Some(ClockKind::REALTIME) => clock::REALTIME,
        // Perfetto's own default: without another clock beside it, it means nothing in particular.
        _ => clock::BOOTTIME,
    }
}

/// Fills a snapshot of the timeline's clock, and of the time of day where the trace has read both at once.
pub(super) fn put_first(trace: &Trace, base: u64, out: &mut Vec<u8>) {
    let primary = clock_of(trace);
    put_clock(out, primary, base);
    if let Some(time) = time_of_day(trace, base) {
        put_clock(out, clock::REALTIME, time);
    }
    put_number(out, clock_snapshot::PRIMARY, primary);
}

/// The packets of all readings within a file.
pub(super) fn readings_between(trace: &Trace, from: u64, to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let primary = clock_of(trace);
    for reading in readings(trace) {
        if !(from..=to).contains(&reading.at) {
            continue;
        }
        put_message(&mut out, file::PACKET, |out| {
            put_number(out, packet::SEQUENCE_ID, 1);
            put_message(out, packet::CLOCK_SNAPSHOT, |out| {
                put_clock(out, primary, reading.at);
                put_clock(out, reading.other, reading.shown);
                put_number(out, clock_snapshot::PRIMARY, primary);
            });
        });
    }
    out
}

fn put_clock(out: &mut Vec<u8>, id: u64, time: u64) {
    put_message(out, clock_snapshot::CLOCKS, |out| {
        put_number(out, clock_snapshot::ID, id);
        put_number(out, clock_snapshot::TIMESTAMP, time);
    });
}

fn reference(trace: &Trace) -> Option<&Clock> {
    let id = trace.clock_map.reference();
    trace.clocks.iter().find(|clock| clock.id == id)
}

/// Readings of the timeline's clock beside another, in the order of time.
fn readings(trace: &Trace) -> Vec<Reading> {
    let reference = trace.clock_map.reference();
    let mut readings: Vec<Reading> = trace
        .rows::<ClockPair>()
        .into_iter()
        .filter_map(|pair| {
            let (at, other, shown) = if pair.first == reference {
                (pair.first_time, pair.second, pair.second_time)
            } else if pair.second == reference {
                (pair.second_time, pair.first, pair.first_time)
            } else {
                return None;
            };
            (other != reference).then(|| Reading {
                at: at.0,
                other: number_of(trace, other),
                shown: shown.0,
            })
        })
        .collect();
    readings.sort_unstable();
    readings
}

/// Perfetto's number for a clock beside the timeline's: the time of day of the same machine has one, others get one.
fn number_of(trace: &Trace, id: ClockId) -> u64 {
    let clock = trace.clocks.iter().find(|clock| clock.id == id);
    let host = reference(trace).map(|clock| clock.host);
    match clock {
        Some(clock) if clock.kind == ClockKind::REALTIME && Some(clock.host) == host => clock::REALTIME,
        _ => clock::GLOBAL + u64::from(id.0),
    }
}

/// The time of day at a moment of the timeline, by the reading that is nearest to it.
fn time_of_day(trace: &Trace, base: u64) -> Option<u64> {
    let nearest = readings(trace)
        .into_iter()
        .filter(|reading| reading.other == clock::REALTIME)
        .min_by_key(|reading| reading.at.abs_diff(base))?;
    let time = i128::from(nearest.shown) + i128::from(base) - i128::from(nearest.at);
    u64::try_from(time).ok() // a day before 1970 is no day that Perfetto knows
}
