//! What a file begins with: which trace it is, its clocks, its machine and GPUs.

use tracesmith_format::ClockId;
use tracesmith_format::tables::{ClockKind, ClockPair};

use crate::model::trace::{Trace, rows};
use crate::perfetto::schema::{clock, clock_snapshot, gpu, packet, trace as file};
use crate::perfetto::wire::{put_bytes, put_message, put_number};
use crate::perfetto::words::{METADATA, OURSELVES, WRITER};

/// The Perfetto clock that the trace's timeline is.
pub(super) fn clock_of(trace: &Trace) -> u64 {
    match kind_of(trace, trace.clock_map.reference()) {
        ClockKind::MONOTONIC => clock::MONOTONIC,
        ClockKind::REALTIME => clock::REALTIME,
        // Perfetto's own default: without another clock beside it, it means nothing in particular.
        _ => clock::BOOTTIME,
    }
}

fn kind_of(trace: &Trace, id: ClockId) -> ClockKind {
    let clock = trace.clocks.iter().find(|clock| clock.id == id);
    clock.map_or(ClockKind::UNKNOWN, |clock| clock.kind)
}

/// The first packets of a file whose times start at `base`.
pub(super) fn preamble(trace: &Trace, base: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |field: u32, fill: &dyn Fn(&mut Vec<u8>)| {
        put_message(&mut out, file::PACKET, |out| {
            put_number(out, packet::SEQUENCE_ID, 1);
            put_message(out, field, |out| fill(out));
        });
    };
    put(packet::CLOCK_SNAPSHOT, &|out| put_clocks(trace, base, out));
    if let Some(header) = trace.header() {
        put(packet::TRACE_UUID, &|out| {
            for (field, half) in (1..).zip(header.id.chunks_exact(8)) {
                let half: [u8; 8] = half.try_into().expect("eight bytes");
                put_number(out, field, u64::from_le_bytes(half));
            }
        });
    }
    put(packet::SYSTEM_INFO, &|out| put_system(trace, out));
    put(packet::TRACE_ATTRIBUTES, &|out| {
        put_attribute(out, WRITER, &format!("{OURSELVES} {}", env!("CARGO_PKG_VERSION")));
        for (key, value) in &trace.metadata {
            put_attribute(out, &format!("{METADATA}{key}"), value);
        }
    });
    if !trace.devices.is_empty() {
        put(packet::GPU_INFO, &|out| put_gpus(trace, out));
    }
    out
}

/// The timeline's clock, and the time of day where the trace has read both at once.
fn put_clocks(trace: &Trace, base: u64, out: &mut Vec<u8>) {
    let primary = clock_of(trace);
    let mut put = |id: u64, time: u64| {
        put_message(out, clock_snapshot::CLOCKS, |out| {
            put_number(out, clock_snapshot::ID, id);
            put_number(out, clock_snapshot::TIMESTAMP, time);
        });
    };
    put(primary, base);
    if primary != clock::REALTIME
        && let Some(time) = time_of_day(trace, base)
    {
        put(clock::REALTIME, time);
    }
    put_number(out, clock_snapshot::PRIMARY, primary);
}

/// The time of day at a moment of the timeline, by the reading that is nearest to it.
fn time_of_day(trace: &Trace, base: u64) -> Option<u64> {
    let reference = trace.clock_map.reference();
    let readings = rows::<ClockPair>(&trace.file).into_iter().filter_map(|pair| {
        if pair.first == reference && kind_of(trace, pair.second) == ClockKind::REALTIME {
            Some((pair.first_time.0, pair.second_time.0))
        } else if pair.second == reference && kind_of(trace, pair.first) == ClockKind::REALTIME {
            Some((pair.second_time.0, pair.first_time.0))
        } else {
            None
        }
    });
    let (at, day) = readings.min_by_key(|(at, _)| at.abs_diff(base))?;
    let time = i128::from(day) + i128::from(base) - i128::from(at);
    u64::try_from(time).ok() // a day before 1970 is no day that Perfetto knows
}

fn put_system(trace: &Trace, out: &mut Vec<u8>) {
    let Some(host) = trace.hosts.first() else { return };
    let os = trace.string(host.os);
    let (system, release) = os.split_once(' ').unwrap_or((os, ""));
    put_message(out, 1, |out| {
        put_bytes(out, 1, system.as_bytes());
        put_bytes(out, 3, release.as_bytes());
    });
    put_number(out, 8, u64::from(host.cpus));
    put_number(out, 16, host.memory.0);
    put_bytes(out, 17, trace.string(host.name).as_bytes());
}

fn put_attribute(out: &mut Vec<u8>, key: &str, value: &str) {
    put_message(out, 1, |out| {
        put_bytes(out, 1, key.as_bytes());
        put_bytes(out, 3, value.as_bytes());
    });
}

fn put_gpus(trace: &Trace, out: &mut Vec<u8>) {
    for device in &trace.devices {
        put_message(out, gpu::GPUS, |out| {
            for (field, text) in [
                (gpu::NAME, device.name),
                (gpu::VENDOR, device.vendor),
                (gpu::ARCHITECTURE, device.architecture),
                (gpu::UUID, device.uuid),
                (gpu::PCI, device.pci),
            ] {
                let text = trace.string(text);
                if !text.is_empty() {
                    put_bytes(out, field, text.as_bytes());
                }
            }
        });
    }
}
