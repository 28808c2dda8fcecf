//! What a packet sequence begins with: its track, its clock, and the words that its packets refer to.

use tracesmith_trace::Trace;

use super::item::{StreamKey, StreamRole, TrackKey};
use super::lane::Scene;
use super::stacks::put_interned_text;
use super::stage;
use super::tracks::Tracks;
use crate::perfetto::schema::{
    clock, clock_snapshot, defaults, flags, gpu, interned, packet, sample, trace as file,
};
use crate::perfetto::wire::{put_bytes, put_message, put_number};
use crate::perfetto::words::{Argument, Category, api_domains};

/// What stacks of a thread are counted as, where Perfetto would say that they were sampled by time.
const SAMPLED: &str = "stacks";

/// Adds the first packet of a lane.
pub(super) fn put(scene: &Scene<'_>, tracks: &Tracks<'_>, key: &TrackKey, uuid: u64, out: &mut Vec<u8>) {
    put_message(out, file::PACKET, |out| {
        put_number(out, packet::SEQUENCE_ID, uuid);
        put_number(out, packet::SEQUENCE_FLAGS, flags::CLEARED);
        put_number(out, packet::FIRST_ON_SEQUENCE, 1);
        put_message(out, packet::DEFAULTS, |out| put_defaults(key, uuid, out));
        put_message(out, packet::CLOCK_SNAPSHOT, |out| put_clocks(scene, out));
        match key {
            TrackKey::Counter(_) | TrackKey::Memory(..) => {}
            TrackKey::Stream(stream, StreamRole::Stages) => {
                put_message(out, packet::INTERNED_DATA, |out| {
                    put_queue(scene, tracks, stream, uuid, out);
                });
            }
            _ => put_message(out, packet::INTERNED_DATA, put_words),
        }
    });
}

fn put_defaults(key: &TrackKey, uuid: u64, out: &mut Vec<u8>) {
    put_number(out, defaults::TIMESTAMP_CLOCK_ID, clock::OF_SEQUENCE);
    put_message(out, defaults::TRACK_EVENT, |out| {
        put_number(out, defaults::TRACK_UUID, uuid);
    });
    if let TrackKey::Thread(..) = key {
        put_message(out, defaults::PERF_SAMPLE, |out| {
            put_message(out, sample::TIMEBASE, |out| {
                put_bytes(out, sample::TIMEBASE_NAME, SAMPLED.as_bytes());
            });
        });
    }
}

/// The sequence's own clock counts from the packet before; it starts with the timeline's.
fn put_clocks(scene: &Scene<'_>, out: &mut Vec<u8>) {
    put_message(out, clock_snapshot::CLOCKS, |out| {
        put_number(out, clock_snapshot::ID, clock::OF_SEQUENCE);
        put_number(out, clock_snapshot::TIMESTAMP, scene.base);
        put_number(out, clock_snapshot::IS_INCREMENTAL, 1);
    });
    put_message(out, clock_snapshot::CLOCKS, |out| {
        put_number(out, clock_snapshot::ID, scene.clock);
        put_number(out, clock_snapshot::TIMESTAMP, scene.base);
    });
}

/// A stream as a queue of render stages.
fn put_queue(scene: &Scene<'_>, tracks: &Tracks<'_>, stream: &StreamKey, uuid: u64, out: &mut Vec<u8>) {
    put_message(out, interned::GRAPHICS_CONTEXTS, |out| {
        let context = stage::context_id(stream.process, stream.context);
        put_number(out, interned::IID, context);
        put_number(out, gpu::CONTEXT_PID, tracks.pid(stream.process));
        put_number(out, gpu::CONTEXT_API, api_of(scene.trace, stream.device));
    });
    put_message(out, interned::GPU_SPECIFICATIONS, |out| {
        put_number(out, interned::IID, queue_id(uuid));
        put_bytes(out, interned::TEXT, tracks.stream_name(stream).as_bytes());
    });
    for (iid, name) in stage::LAUNCH_ARGUMENTS {
        put_interned_text(out, interned::COMPUTE_ARGUMENT_NAMES, *iid, name.as_bytes());
    }
}

/// Categories and names of arguments, all of them: they are few, and every sequence packs to the same bytes.
fn put_words(out: &mut Vec<u8>) {
    for (domain, text) in api_domains() {
        put_interned_text(out, interned::CATEGORIES, domain, text.as_bytes());
    }
    for (category, text) in Category::ALL {
        put_interned_text(out, interned::CATEGORIES, u64::from(category.0), text.as_bytes());
    }
    for (argument, text) in Argument::ALL {
        put_interned_text(
            out,
            interned::ANNOTATION_NAMES,
            u64::from(argument.0),
            text.as_bytes(),
        );
    }
}

/// Queues are interned beside stages and must not share their numbers, nor with queues of other sequences.
pub(super) fn queue_id(uuid: u64) -> u64 {
    1 << 33 | uuid
}

fn api_of(trace: &Trace, device: tracesmith_format::DeviceId) -> u64 {
    let vendor = trace
        .device(device)
        .map_or("", |device| trace.string(device.vendor));
    if vendor.to_ascii_lowercase().contains("amd") || vendor.to_ascii_lowercase().contains("advanced micro") {
        gpu::HIP
    } else {
        gpu::CUDA
    }
}
