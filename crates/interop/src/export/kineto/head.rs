//! What stands before the events: the base of times, the devices, the rank, and what the file of origin said.

use tracesmith_format::tables::{ClockKind, ClockPair, Device};
use tracesmith_format::{ProcessId, Timestamp};
use tracesmith_trace::{ClockMap, Trace};

use crate::error::Error;
use crate::export::Out;
use crate::export::json_members::{is_value, members};
use crate::export::json_text::{push_format, push_key, push_number, push_string};
use crate::export::kineto::Origin;
use crate::export::stage::Stage;

const SECOND: u64 = 1_000_000_000;

/// Where the times of the file count from.
pub(super) struct Zero {
    /// On the trace's timeline.
    pub(super) time: u64,
    /// In nanoseconds since 1970, when that is known.
    since_1970: Option<u64>,
}

impl Zero {
    /// The base that the file of origin had; else the second in which the trace begins.
    pub(super) fn of(trace: &Trace, origin: Origin) -> Self {
        let known = |key: &str| trace.metadata.get(key).and_then(|text| text.parse::<u64>().ok());
        if let Some(base) = known("import.base_time_ns") {
            return Zero {
                time: base,
                since_1970: Some(base),
            };
        }
        if let Some(shift) = known("import.time_shift_ns") {
            return Zero {
                time: shift,
                since_1970: None,
            };
        }
        if origin == Origin::Profiler {
            // A file of 2021 to 2023, whose times count from 1970 themselves.
            return Zero {
                time: 0,
                since_1970: None,
            };
        }
        let first = trace.span().map_or(0, |(first, _)| first.0);
        let time = first - first % SECOND;
        Zero {
            time,
            since_1970: since_1970(trace, Timestamp(time.max(1))),
        }
    }
}

/// A moment of the trace's timeline in nanoseconds since 1970, if a clock of that kind is linked to it.
fn since_1970(trace: &Trace, time: Timestamp) -> Option<u64> {
    let realtime = trace
        .clocks
        .iter()
        .find(|clock| clock.kind == ClockKind::REALTIME)?;
    let reference = trace.clock_map.reference();
    let map = ClockMap::new(std::slice::from_ref(realtime), &trace.rows::<ClockPair>());
    map.is_linked(reference)
        .then(|| map.convert(reference, time).time.0)
}

/// What stands before the events of `processes`.
pub(super) fn write(
    stage: &Stage<'_>,
    processes: &[ProcessId],
    zero: &Zero,
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let trace = stage.trace;
    let mut head = b"{\"schemaVersion\":1".to_vec();
    // First, since it names the host of the devices.
    if !trace.metadata.contains_key("import.json.tracesmith") {
        push_own_metadata(&mut head, stage, processes);
    }
    let imported = |key: &str| trace.metadata.get(key).filter(|text| is_value(text));
    match imported("import.json.deviceProperties") {
        Some(text) => push_raw(&mut head, "deviceProperties", text),
        None => push_devices(&mut head, trace),
    }
    // The key has room for one rank. Those of several processes are in `tracesmith`.
    if let [process] = processes {
        match imported_rank(trace, *process) {
            Some(text) => push_raw(&mut head, "distributedInfo", text),
            None => push_rank(&mut head, trace, *process),
        }
    }
    let own = [
        "schemaVersion",
        "deviceProperties",
        "displayTimeUnit",
        "traceEvents",
        "distributedInfo",
    ];
    for (key, value) in &trace.metadata {
        if let Some(key) = key.strip_prefix("import.json.")
            && !own.contains(&key)
            && is_value(value)
        {
            push_raw(&mut head, key, value);
        }
    }
    if !trace.metadata.contains_key("import.json.traceName") {
        head.extend_from_slice(b",\"traceName\":");
        let command = trace.metadata.get("command");
        push_string(&mut head, command.map_or("tracesmith", |command| command));
    }
    if let Some(base) = zero.since_1970 {
        push_format(&mut head, format_args!(",\"baseTimeNanoseconds\":{base}"));
    }
    head.extend_from_slice(b",\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    out.put(&head)
}

/// What the file of origin of a process said of the job. Several files may have been imported together.
fn imported_rank(trace: &Trace, process: ProcessId) -> Option<&str> {
    let mut known = trace
        .metadata
        .iter()
        .filter(|(key, text)| key.starts_with("import.") && key.ends_with("distributed") && is_value(text));
    if trace.processes.len() < 2 {
        return known.next().map(|(_, text)| &**text);
    }
    let rank = trace.process(process)?.rank.get()?.to_string();
    let is_of_rank = |text: &str| {
        let members = members(text).unwrap_or_default();
        members
            .iter()
            .any(|(key, value)| *key == "rank" && *value == rank)
    };
    known.find(|(_, text)| is_of_rank(text)).map(|(_, text)| &**text)
}

fn push_raw(head: &mut Vec<u8>, key: &str, text: &str) {
    head.push(b',');
    push_key(head, key);
    head.extend_from_slice(text.as_bytes());
}

/// What the trace knows and the format has no key for: metadata, the host, and the processes of a file of several.
fn push_own_metadata(head: &mut Vec<u8>, stage: &Stage<'_>, processes: &[ProcessId]) {
    let trace = stage.trace;
    head.extend_from_slice(b",\"tracesmith\":{");
    let of_host = processes.first().and_then(|process| trace.process(*process));
    let host = of_host.and_then(|process| trace.host(process.host));
    let host = host.map_or("", |host| trace.string(host.name));
    let own = trace.metadata.iter().map(|(key, value)| (&**key, &**value));
    let own = own.filter(|(key, _)| !key.starts_with("import."));
    // Several hosts have no common name. Readers then take the file for one host.
    let host = Some(("host", host)).filter(|(_, host)| !host.is_empty() && trace.hosts.len() == 1);
    let mut separator = "";
    for (key, value) in host.into_iter().chain(own) {
        push_format(head, format_args!("{separator}"));
        push_key(head, key);
        push_string(head, value);
        separator = ",";
    }
    if processes.len() > 1 {
        push_format(head, format_args!("{separator}\"processes\":["));
        let known = processes.iter().filter_map(|process| trace.process(*process));
        for (at, process) in known.enumerate() {
            push_format(
                head,
                format_args!(
                    "{}{{\"pid\":{}",
                    if at > 0 { "," } else { "" },
                    stage.pids.process(process.id)
                ),
            );
            if let Some(rank) = process.rank.get() {
                push_format(head, format_args!(",\"rank\":{rank}"));
            }
            if process.world_size > 0 {
                push_format(head, format_args!(",\"world_size\":{}", process.world_size));
            }
            head.push(b'}');
        }
        head.push(b']');
    }
    head.push(b'}');
}

fn push_rank(head: &mut Vec<u8>, trace: &Trace, process: ProcessId) {
    let Some(process) = trace.process(process) else {
        return;
    };
    if let Some(rank) = process.rank.get() {
        // HolisticTraceAnalysis looks for the rank with a blank before it.
        push_format(head, format_args!(",\"distributedInfo\":{{\"rank\": {rank}"));
        if process.world_size > 0 {
            push_format(head, format_args!(",\"world_size\":{}", process.world_size));
        }
        if trace.collectives.rows() > 0 {
            head.extend_from_slice(b",\"backend\":\"nccl\"");
        }
        head.push(b'}');
    }
}

fn push_devices(head: &mut Vec<u8>, trace: &Trace) {
    head.extend_from_slice(b",\"deviceProperties\":[");
    for (at, device) in trace.devices.iter().enumerate() {
        if at > 0 {
            head.push(b',');
        }
        push_device(head, trace, device);
    }
    head.push(b']');
}

/// What is not known is left out.
fn push_device(head: &mut Vec<u8>, trace: &Trace, device: &Device) {
    push_format(head, format_args!("{{\"id\":{},\"name\":", device.ordinal));
    push_string(head, trace.string(device.name));
    for (key, number) in [
        ("totalGlobalMem", device.memory.0),
        ("computeMajor", u64::from(device.capability_major)),
        (
            "maxThreadsPerMultiprocessor",
            u64::from(device.threads_per_multiprocessor),
        ),
        ("warpSize", u64::from(device.warp_size)),
        ("sharedMemPerBlock", device.shared_per_block.0),
        ("numSms", u64::from(device.multiprocessors)),
        (
            "regsPerMultiprocessor",
            u64::from(device.registers_per_multiprocessor),
        ),
        ("sharedMemPerMultiprocessor", device.shared_per_multiprocessor.0),
    ] {
        if number > 0 {
            head.push(b',');
            push_key(head, key);
            push_number(head, number);
        }
        if key == "computeMajor" && number > 0 {
            push_format(
                head,
                format_args!(",\"computeMinor\":{}", device.capability_minor),
            );
        }
    }
    head.push(b'}');
}
