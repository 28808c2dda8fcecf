//! Facts about the machines, processes and devices of an export, and about how it was made.

use std::collections::BTreeMap;

use tracesmith_format::tables::*;
use tracesmith_format::{Bytes, ContextId, DeviceId, Ordinal, StreamId, StringId, ThreadId, Timestamp};

use super::codes::{self, Codes, Severity};
use super::session::{Session, machine_of};
use crate::error::Error;
use crate::import::Builder;

/// Facts longer than this are lists for machines: they stay behind, and their number is said.
const MAX_FACT_BYTES: usize = 4096;

/// Names of machines, and what else the export says of them. Comes before all events.
pub(super) fn machines(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut facts: BTreeMap<(i64, String), String> = BTreeMap::new();
    if let Some(mut query) = session.db.query("TARGET_INFO_SYSTEM_ENV") {
        let (machine, name, value) = (
            query.column("globalVid"),
            query.column("name"),
            query.column("value"),
        );
        session.db.read(&query, builder, |row, _| {
            if let (Some(name), Some(value)) = (row.text(name), row.any_text(value)) {
                let machine = machine_of(row.integer(machine).unwrap_or(0));
                facts.insert((machine, name.into_owned()), value);
            }
            Ok(())
        })?;
    }
    for ((machine, name), value) in &facts {
        if name == "Hostname" {
            session.name_host(*machine, value, builder)?;
        }
    }
    for ((machine, name), value) in &facts {
        let host = session.host(machine << 48, builder)?;
        let text = match name.as_str() {
            "OsDescription" | "CpuDescription" => builder.string(value)?,
            _ => StringId::NONE,
        };
        let host = builder.host_mut(host);
        match name.as_str() {
            "OsDescription" => host.os = text,
            "CpuDescription" => host.cpu = text,
            "CpuCores" => host.cpus = value.parse().unwrap_or(0),
            // The environment may hold secrets, and a trace is passed on.
            "Hostname" | "DeviceEnvironment" => {}
            _ if value.is_empty() => {}
            _ => fact(&format!("nsys.system.{name}"), value, builder)?,
        }
    }
    Ok(())
}

/// How and when the export was made.
pub(super) fn capture(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut command = BTreeMap::new();
    for (table, prefix) in [
        ("META_DATA_EXPORT", "nsys.export"),
        ("EXPORT_META_DATA", "nsys.export"),
        ("META_DATA_CAPTURE", "nsys.capture"),
    ] {
        let mut facts: BTreeMap<String, String> = BTreeMap::new();
        if let Some(mut query) = session.db.query(table) {
            let (name, value) = (query.column("name"), query.column("value"));
            session.db.read(&query, builder, |row, _| {
                if let (Some(name), Some(value)) = (row.text(name), row.any_text(value)) {
                    let known = facts.entry(name.into_owned()).or_default();
                    if !known.is_empty() {
                        known.push_str(", ");
                    }
                    known.push_str(&value);
                }
                Ok(())
            })?;
        }
        for (name, value) in facts {
            if let Some(part) = name.strip_prefix("PROCESS_0:") {
                let place = match part.strip_prefix("ARGUMENT_") {
                    Some(number) => number
                        .parse()
                        .map_or(u32::MAX, |number: u32| number.saturating_add(1)),
                    None => 0,
                };
                if part == "COMMAND" || place > 0 {
                    command.insert(place, value);
                    continue;
                }
            }
            if !name.ends_with("ENVIRONMENT_VARIABLE") {
                fact(&format!("{prefix}.{name}"), &value, builder)?;
            }
        }
    }
    if !command.is_empty() {
        let words: Vec<String> = command.into_values().collect();
        builder.metadata("command", &words.join(" "))?;
    }
    Ok(())
}

/// Ties the session's clock to the time of day.
pub(super) fn session_start(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = session.db.query("TARGET_INFO_SESSION_START_TIME") else {
        return Ok(());
    };
    let epoch = query.column("utcEpochNs");
    let mut start = None;
    session.db.read(&query, builder, |row, _| {
        start = start.or(row.integer(epoch).and_then(|epoch| u64::try_from(epoch).ok()));
        Ok(())
    })?;
    let Some(start) = start.filter(|start| *start > 0) else {
        return Ok(());
    };
    let realtime = builder.clock(ClockKind::REALTIME, "time of day")?;
    // A pair at the session's zero cannot be told from an unknown time: one nanosecond later it can.
    let first = session.optional_time(Some(1));
    builder.define(&ClockPair {
        first: session.clock,
        second: realtime,
        first_time: first,
        second_time: Timestamp(start.saturating_add(1)),
        ..ClockPair::default()
    })
}

/// GPUs, all of them.
pub(super) fn gpus(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = session.db.query("TARGET_INFO_GPU") else {
        return Ok(());
    };
    let (machine, id, name) = (query.column("vmId"), query.column("id"), query.column("name"));
    let (bus, uuid, chip) = (
        query.column("busLocation"),
        query.column("uuid"),
        query.column("chipName"),
    );
    let (memory, bandwidth, cache) = (
        query.column("totalMemory"),
        query.column("memoryBandwidth"),
        query.column("l2CacheSize"),
    );
    let (clock, multiprocessors) = (query.column("clockRate"), query.column("smCount"));
    let (warp, warps, blocks) = (
        query.column("threadsPerWarp"),
        query.column("maxWarpsPerSm"),
        query.column("maxBlocksPerSm"),
    );
    let (registers, shared, block_shared) = (
        query.column("maxRegistersPerSm"),
        query.column("maxShmemPerSm"),
        query.column("maxShmemPerBlock"),
    );
    let (engines, major, minor) = (
        query.column("asyncEngines"),
        query.column("computeMajor"),
        query.column("computeMinor"),
    );
    let db = session.db;
    db.read(&query, builder, |row, builder| {
        let Some(number) = row.integer(id).and_then(|id| u64::try_from(id).ok()) else {
            builder.skip("GPUs without a number", 1);
            return Ok(());
        };
        let host = session.host(row.integer(machine).unwrap_or(0), builder)?;
        let mut text = |column| match row.text(column) {
            Some(text) => builder.string(&text),
            None => Ok(StringId::NONE),
        };
        let (name, pci, uuid, architecture) = (text(name)?, text(bus)?, text(uuid)?, text(chip)?);
        let vendor = builder.string("NVIDIA")?;
        let id = builder.device(host, number);
        let mut small = |column| session.number::<u32>(row.integer(column));
        let warp_size = small(warp);
        let known = Device {
            name,
            vendor,
            pci,
            uuid,
            architecture,
            multiprocessors: small(multiprocessors),
            warp_size,
            threads_per_multiprocessor: small(warps).saturating_mul(warp_size),
            blocks_per_multiprocessor: small(blocks),
            registers_per_multiprocessor: small(registers),
            copy_engines: small(engines),
            capability_major: small(major),
            capability_minor: small(minor),
            clock_khz: session.number(row.integer(clock).map(|hertz| hertz / 1000)),
            memory: Bytes(session.number(row.integer(memory))),
            memory_bandwidth: session.number(row.integer(bandwidth)),
            cache: Bytes(session.number(row.integer(cache))),
            shared_per_multiprocessor: Bytes(session.number(row.integer(shared))),
            shared_per_block: Bytes(session.number(row.integer(block_shared))),
            ..Device::default()
        };
        let device = builder.device_mut(id);
        *device = Device {
            id: device.id,
            host: device.host,
            ordinal: device.ordinal,
            ..known
        };
        Ok(())
    })
}

/// Names of the processes and threads of which something was recorded. An export lists all of the machine.
pub(super) fn processes(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let mut others = 0u64;
    if let Some(mut query) = db.query("PROCESSES") {
        let (process, name) = (query.column("globalPid"), query.column("name"));
        db.read(&query, builder, |row, builder| {
            match session.known_process(row.integer(process)) {
                Some(process) => {
                    let name = row.text(name).unwrap_or_default();
                    builder.process_mut(process).name = builder.string(&name)?;
                }
                None => others += 1,
            }
            Ok(())
        })?;
    }
    if others > 0 {
        builder.metadata("nsys.other_processes", &others.to_string())?;
    }
    if let Some(mut query) = db.query("ThreadNames") {
        let (thread, name) = (query.column("globalTid"), query.column("nameId"));
        db.read(&query, builder, |row, builder| {
            let global = row.integer(thread);
            if let (Some(process), Some(global)) = (session.known_process(global), global) {
                let name = session.name(row.integer(name), builder)?;
                let thread = ThreadId((global & 0xff_ffff).unsigned_abs());
                let thread = builder.thread_mut(process, thread);
                if thread.name == StringId::NONE {
                    thread.name = name;
                }
            }
            Ok(())
        })?;
    }
    if let Some(mut query) = db.query("MPI_RANKS") {
        let (thread, rank) = (query.column("globalTid"), query.column("rank"));
        db.read(&query, builder, |row, builder| {
            let rank = row.integer(rank).and_then(|rank| u32::try_from(rank).ok());
            if let (Some(process), Some(rank)) = (session.known_process(row.integer(thread)), rank) {
                builder.process_mut(process).rank = Ordinal::new(rank);
            }
            Ok(())
        })?;
    }
    output(session, builder)
}

/// What the programs printed, as far as it is short.
fn output(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = session.db.query("ProcessStreams") else {
        return Ok(());
    };
    let (process, file, content) = (
        query.column("globalPid"),
        query.column("filenameId"),
        query.column("contentId"),
    );
    let db = session.db;
    db.read(&query, builder, |row, builder| {
        let pid = super::session::pid_of(row.integer(process).unwrap_or(0));
        let name = session.text(row.integer(file)).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or(name);
        let key = format!("nsys.output.{pid}.{name}");
        match session.text(row.integer(content)) {
            Some(text) => fact(&key, text, builder),
            None => Ok(()),
        }
    })
}

/// Contexts and streams of the processes of which something was recorded.
pub(super) fn streams(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let kinds = Codes::load(db, "ENUM_CUPTI_STREAM_TYPE", codes::STREAMS, builder)?;
    for (table, kind) in [
        ("TARGET_INFO_CUDA_CONTEXT_INFO", Listed::Context),
        ("TARGET_INFO_CUDA_NULL_STREAM", Listed::NullStream),
        ("TARGET_INFO_CUDA_STREAM", Listed::Stream),
        ("TARGET_INFO_NVTX_CUDA_STREAM", Listed::StreamName),
    ] {
        let Some(mut query) = db.query(table) else {
            continue;
        };
        let (machine, pid) = (query.column("vmId"), query.column("processId"));
        let (device, context, stream) = (
            query.column("deviceId"),
            query.column("contextId"),
            query.column(match kind {
                Listed::Context => "nullStreamId",
                _ => "streamId",
            }),
        );
        let (priority, flag, name, parent) = (
            query.column("priority"),
            query.column("flag"),
            query.column("name"),
            query.column("parentContextId"),
        );
        db.read(&query, builder, |row, builder| {
            let Some((global, process)) = find(session, row.integer(machine), row.integer(pid)) else {
                return Ok(());
            };
            let mut place = Place {
                process,
                context: ContextId(session.number(row.integer(context))),
                stream: StreamId(session.number(row.integer(stream))),
                ..Place::default()
            };
            place.device = match row.integer(device) {
                Some(device) => session.device(Some(global), Some(device), builder)?,
                None => builder.context_mut(&place).device,
            };
            match kind {
                Listed::Context | Listed::NullStream => {
                    let parent = ContextId(session.number(row.integer(parent)));
                    let context = builder.context_mut(&place);
                    context.default_stream = place.stream;
                    context.parent = parent;
                    if context.device == DeviceId::NONE {
                        context.device = place.device;
                    }
                    builder.stream_mut(&place).kind = StreamKind::LEGACY_DEFAULT;
                }
                Listed::Stream => {
                    let priority = session.number(row.integer(priority));
                    let stream = builder.stream_mut(&place);
                    stream.priority = priority;
                    stream.kind = kinds.get(row.integer(flag)).unwrap_or(stream.kind);
                }
                Listed::StreamName => {
                    let name = builder.string(&row.text(name).unwrap_or_default())?;
                    builder.stream_mut(&place).name = name;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// What a table of the target lists.
#[derive(Clone, Copy)]
enum Listed {
    Context,
    NullStream,
    Stream,
    StreamName,
}

/// The process that a table names by its machine and pid.
fn find(
    session: &Session<'_>,
    machine: Option<i64>,
    pid: Option<i64>,
) -> Option<(i64, tracesmith_format::ProcessId)> {
    let pid = pid.filter(|pid| (0..=0xff_ffff).contains(pid))?;
    // The machine comes as its own number, or as the upper part of a packed one.
    let machine = match machine.unwrap_or(0) {
        small @ 0..=0xffff => small,
        packed => machine_of(packed),
    };
    let global = machine << 48 | pid << 24;
    session
        .known_process(Some(global))
        .map(|process| (global, process))
}

/// What the profiler said while it recorded.
pub(super) fn diagnostics(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("DIAGNOSTIC_EVENT") else {
        return Ok(());
    };
    let severities = Codes::load(db, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", codes::SEVERITIES, builder)?;
    let (severity, text) = (query.column("severity"), query.column("text"));
    db.read(&query, builder, |row, builder| {
        let text = row.text(text).unwrap_or_default();
        let lost = ["dropped", "lost", "missed", "overflow"]
            .iter()
            .any(|word| text.to_ascii_lowercase().contains(word));
        match severities.get(row.integer(severity)).unwrap_or(Severity::Warning) {
            Severity::Talk => {}
            _ if lost => builder.doubt(HealthCause::VENDOR_DROPPED, &format!("nsys: {text}"), 1),
            Severity::Warning => builder.doubt(HealthCause::OTHER, &format!("nsys warns: {text}"), 1),
            Severity::Error => builder.doubt(HealthCause::OTHER, &format!("nsys failed: {text}"), 1),
        }
        Ok(())
    })
}

/// The stretch that the export covers.
pub(super) fn analysis(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let Some(mut query) = session.db.query("ANALYSIS_DETAILS") else {
        return Ok(());
    };
    let duration = query.column("duration");
    session
        .db
        .read(&query, builder, |row, builder| match row.integer(duration) {
            Some(duration) => builder.metadata("nsys.duration_nanos", &duration.to_string()),
            None => Ok(()),
        })
}

fn fact(key: &str, value: &str, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    if value.len() > MAX_FACT_BYTES {
        builder.skip("facts about the recording longer than 4 KiB", 1);
        return Ok(());
    }
    builder.metadata(key, value)
}
