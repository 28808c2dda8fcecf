//! The data that a replay of a window needs.

use std::path::Path;

use rustc_hash::FxHashSet;
use tracesmith_format::{
    Address, Blob, Bytes, ContextId, CorrelationId, ModuleId, ThreadId, Timestamp,
    tables::{Buffer, Command, CommandKind, Content, HealthCause, MemoryKind, Module, Moment, Piece},
};
use tracesmith_wire::record as wire;
use xxhash_rust::xxh3::xxh3_128;

use super::{HOST_CLOCK, ProcessRows, TraceRows, definitions::readable};
use crate::{capture::ReplayCaptureStart, health::Notice};

/// The contents that are already in the file. Each is written once.
#[derive(Default)]
pub(crate) struct Stored {
    contents: FxHashSet<u128>,
    code: FxHashSet<(u64, u64, u64)>,
    /// Calls that cannot be replayed, with the reason. Each is reported once.
    refused: FxHashSet<String>,
    /// Bytes written since the last check of the disk space.
    unchecked: u64,
    /// The free disk space when it was too small.
    left: Option<u64>,
}

/// The disk space is checked each time this much was written.
const CHECK_EVERY: u64 = 64 << 20;

/// This much disk space stays free, for the trace itself and for other programs.
const ROOM_KEPT: u64 = 256 << 20;

/// Free space on the disk of a file.
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

impl Stored {
    /// Whether there is space for this many bytes. After the first failure it is always false, because a replay
    /// capture with a gap is useless.
    fn has_room(&mut self, bytes: u64, path: &Path) -> bool {
        self.unchecked += bytes;
        if self.left.is_none() && self.unchecked >= CHECK_EVERY {
            self.unchecked = 0;
            self.left = free_bytes(path).filter(|left| *left < ROOM_KEPT);
        }
        self.left.is_none()
    }
}

impl ProcessRows {
    pub(super) fn command(&mut self, record: &wire::Command, behind: &[u8], trace: &mut TraceRows) {
        self.saw(record.time);
        let parts = || {
            let (name, behind) = behind.split_at_checked(record.name_bytes as usize)?;
            let (parameters, behind) = behind.split_at_checked(record.parameter_bytes as usize)?;
            let (attributes, behind) = behind.split_at_checked(record.attribute_bytes as usize)?;
            let (follows, reason) = behind.split_at_checked(record.follows_bytes as usize)?;
            Some((name, parameters, attributes, follows, reason))
        };
        let Some((name, parameters, attributes, follows, reason)) = parts() else {
            self.count_unknown();
            return;
        };
        if CommandKind(record.kind) == CommandKind::REFUSED {
            let words = format!("not replayable: {}: {}", readable(name), readable(reason));
            if trace.contents.refused.insert(words.clone()) {
                trace.note(Notice::new(HealthCause::OTHER, self.id, &words));
            }
        }
        let [grid_x, grid_y, grid_z] = record.grid;
        let [block_x, block_y, block_z] = record.block;
        let row = Command {
            number: record.number,
            time: Timestamp(record.time),
            process: self.id,
            context: ContextId(record.context),
            thread: ThreadId(u64::from(record.thread)),
            correlation: CorrelationId(record.correlation),
            kind: CommandKind(record.kind),
            stream: record.stream,
            object: record.object,
            function: trace.file.string(&readable(name)),
            module: record.module,
            reason: trace.file.string(&readable(reason)),
            grid_x,
            grid_y,
            grid_z,
            block_x,
            block_y,
            block_z,
            shared: record.shared,
            parameters: Blob(parameters.to_owned()),
            attributes: Blob(attributes.to_owned()),
            destination: Address(record.destination),
            source: Address(record.source),
            bytes: Bytes(record.bytes),
            value: record.value,
            width: record.width,
            graph: record.graph,
            follows: Blob(follows.to_owned()),
        };
        trace.push(HOST_CLOCK, &row);
    }

    pub(super) fn buffer(&mut self, record: &wire::Buffer, variable: &[u8], trace: &mut TraceRows) {
        let variable = trace.file.string(&readable(variable));
        trace.file.define(&Buffer {
            process: self.id,
            moment: Moment(record.moment),
            address: Address(record.address),
            bytes: Bytes(record.bytes),
            memory: MemoryKind(record.memory),
            context: ContextId(record.context),
            variable,
            module: record.module,
        });
    }

    pub(super) fn piece(&mut self, record: &wire::Piece, bytes: &[u8], trace: &mut TraceRows) {
        let hash = xxh3_128(bytes);
        let (hash_high, hash_low) = ((hash >> 64) as u64, hash as u64);
        let is_new = !trace.contents.contents.contains(&hash);
        if is_new && trace.contents.has_room(bytes.len() as u64, trace.file.path()) {
            trace.contents.contents.insert(hash);
            trace.file.define(&Content {
                hash_high,
                hash_low,
                data: Blob(bytes.to_owned()),
            });
        }
        trace.file.define(&Piece {
            process: self.id,
            moment: Moment(u8::try_from(record.moment).unwrap_or(u8::MAX)),
            command: record.command,
            address: Address(record.address),
            bytes: Bytes(bytes.len() as u64),
            hash_high,
            hash_low,
        });
    }

    /// A module is written once, even if several processes load it.
    pub(super) fn code(&mut self, record: &wire::Code, bytes: &[u8], trace: &mut TraceRows) {
        let hash = (record.hash_high, record.hash_low);
        self.hashes.insert((record.context, record.module), hash);
        if !trace.contents.code.insert((hash.0, hash.1, record.offset)) {
            return;
        }
        trace.file.define(&Module {
            process: self.id,
            context: ContextId(record.context),
            module: ModuleId(record.module),
            size: Bytes(record.size),
            hash_high: hash.0,
            hash_low: hash.1,
            code: Blob(bytes.to_owned()),
            ..Module::default()
        });
    }

    pub(super) fn module_handle(&mut self, record: &wire::ModuleHandle, trace: &mut TraceRows) {
        let hash = self.hashes.get(&(record.context, record.module)).copied();
        let (hash_high, hash_low) = hash.unwrap_or_default();
        trace.file.define(&Module {
            process: self.id,
            context: ContextId(record.context),
            module: ModuleId(record.module),
            hash_high,
            hash_low,
            handle: record.handle,
            ..Module::default()
        });
    }

    pub(super) fn recording_begin(&mut self, record: &wire::ReplayCaptureBegin, trace: &mut TraceRows) {
        self.saw(record.time);
        self.fact("recording.reachable_bytes", &record.bytes.to_string(), trace);
        if let Some(announce) = trace.announce {
            announce(&ReplayCaptureStart {
                reachable_bytes: record.bytes,
                free_bytes: free_bytes(trace.file.path()),
                kept_bytes: ROOM_KEPT,
            });
        }
    }

    pub(super) fn recording_end(
        &mut self,
        record: &wire::ReplayCaptureEnd,
        words: &[u8],
        trace: &mut TraceRows,
    ) {
        self.saw(record.time);
        self.fact("recording.commands", &record.commands.to_string(), trace);
        self.fact("recording.bytes", &record.bytes.to_string(), trace);
        self.fact("recording.nanos", &record.nanos.to_string(), trace);
        trace.counts.recorded_calls += record.commands;
        trace.counts.recorded_bytes += record.bytes;
        trace.counts.recorded_nanos += record.nanos;
        let full = trace.contents.left.map(|left| {
            format!(
                "not enough disk space for the memory of the window: {} MiB are free, {} MiB are needed",
                left >> 20,
                record.bytes >> 20
            )
        });
        if record.broken != 0 || full.is_some() {
            let why = full.unwrap_or_else(|| readable(words).into_owned());
            let words = format!("the replay recording is incomplete: {why}");
            self.fact("recording.broken", &readable(words.as_bytes()), trace);
            trace.note(Notice::new(HealthCause::OTHER, self.id, &words));
        }
    }
}
