//! Every export that an importer reads, read back: each process, stream and kind has as many events, and as much time.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::collections::BTreeMap;
use std::path::Path;

use tracesmith_format::tables::*;
use tracesmith_format::{
    Address, Bytes, ClockId, Columns, ContextId, CorrelationId, DeviceId, HostId, Ordinal, ProcessId,
    StreamId, Table, ThreadId, Timestamp, Writer, WriterOptions,
};
use tracesmith_interop::export::{ExportOptions, KinetoOptions, Out, Way, exporter, processes_with_events};
use tracesmith_interop::import::ImportOptions;
use tracesmith_trace::Trace;

use crate::imported::{health, import_bytes, import_files};

/// Process, kind of event and stream.
type Key = (u32, &'static str, Option<u64>);
/// Events, and their time in nanoseconds or their bytes.
type Sums = BTreeMap<Key, (u64, u64)>;

fn fixtures() -> Vec<(String, Trace)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "sbt" || ending == "json")
        })
        .collect();
    paths.sort();
    let mut traces: Vec<_> = paths
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, tracesmith_interop::open(path).unwrap())
        })
        .collect();
    assert!(traces.len() >= 4, "{paths:?}");
    traces.push(("three processes".to_owned(), three_processes()));
    traces
}

/// Three ranks that use the same correlation IDs, as those of one program do.
fn three_processes() -> Trace {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let host = HostId(1);
    let [host_name, call, gpu] =
        ["node7", "cudaLaunchKernel", "Example GPU"].map(|text| writer.string(text).unwrap());
    writer
        .define(&Host {
            id: host,
            name: host_name,
            ..Host::default()
        })
        .unwrap();
    let device = DeviceId(1);
    writer
        .define(&Device {
            id: device,
            host,
            name: gpu,
            ..Device::default()
        })
        .unwrap();
    for rank in 0..3_u32 {
        let process = ProcessId(rank + 1);
        let name = writer.string(&format!("kernel_of_rank_{rank}")).unwrap();
        let context = ContextId(1);
        writer
            .define(&Process {
                id: process,
                host,
                pid: 100 + rank,
                rank: Ordinal::new(rank),
                world_size: 3,
                ..Process::default()
            })
            .unwrap();
        writer
            .define(&Context {
                process,
                context,
                device,
                ..Context::default()
            })
            .unwrap();
        let caller = Caller {
            process,
            thread: ThreadId(u64::from(100 + rank)),
        };
        let place = Place {
            process,
            device,
            context,
            stream: StreamId(7),
            ..Place::default()
        };
        for number in 1..=u64::from(rank) + 2 {
            let start = 1_000_000_000 + number * 10_000 + u64::from(rank) * 1_000;
            let row = ApiCall {
                start: Timestamp(start),
                end: Timestamp(start + 500),
                correlation: CorrelationId(number),
                caller,
                shape: ApiShape {
                    name: call,
                    domain: ApiDomain::CUDA_RUNTIME,
                    ..ApiShape::default()
                },
                ..ApiCall::default()
            };
            writer.push(ClockId(1), &row).unwrap();
            let row = Kernel {
                start: Timestamp(start + 2_000),
                end: Timestamp(start + 3_000 + u64::from(rank)),
                correlation: CorrelationId(number),
                place,
                shape: KernelShape {
                    name,
                    grid_x: 1,
                    grid_y: 1,
                    grid_z: 1,
                    block_x: 32,
                    block_y: 1,
                    block_z: 1,
                    ..KernelShape::default()
                },
                ..Kernel::default()
            };
            writer.push(ClockId(1), &row).unwrap();
        }
        let row = Allocation {
            time: Timestamp(1_000_000_000),
            address: Address(0x1000),
            bytes: Bytes(64 << rank),
            place,
            shape: AllocationShape {
                operation: MemoryOperation::ALLOCATE,
                memory: MemoryKind::DEVICE,
                ..AllocationShape::default()
            },
            ..Allocation::default()
        };
        writer.push(ClockId(1), &row).unwrap();
    }
    writer
        .define(&Clock {
            id: ClockId(1),
            kind: ClockKind::MONOTONIC,
            host,
            ..Clock::default()
        })
        .unwrap();
    tracesmith_interop::open_bytes(writer.finish().unwrap()).unwrap()
}

/// The rows of a table, with their start and end on the trace's timeline.
fn timed<T: Table>(trace: &Trace) -> Vec<(T, Timestamp, Timestamp)> {
    let mut timed = Vec::new();
    for (block, columns) in trace.view::<T>().columns() {
        let convert = |time| trace.clock_map.convert(block.header.clock, time).time;
        for row in 0..columns.len() {
            let (start, end) = columns.times(row);
            timed.push((columns.row(row), convert(start), convert(end)));
        }
    }
    timed
}

fn sums(trace: &Trace) -> Sums {
    let mut sums = Sums::new();
    let pid = |process: ProcessId| trace.process(process).map_or(0, |process| process.pid);
    let mut add = |key: Key, start: Timestamp, amount: u64| {
        if start.is_some() {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + amount);
        }
    };
    macro_rules! device_work {
        ($($row:ident $kind:literal,)*) => { $(
            for (row, start, end) in timed::<$row>(trace) {
                let key = (pid(row.place.process), $kind, Some(row.place.stream.0));
                add(key, start, end.0.saturating_sub(start.0));
            }
        )* };
    }
    device_work! {
        Kernel "kernel", MemoryCopy "copy", MemorySet "set", GraphLaunch "graph launch", Collective "collective",
    }
    for (row, start, end) in timed::<Synchronization>(trace) {
        // A recorded event has only the moment at which the device passed it.
        let time = if start.is_some() { start } else { row.device_time };
        let key = (pid(row.place.process), "sync", Some(row.place.stream.0));
        add(key, time, end.0.saturating_sub(start.0));
    }
    macro_rules! host_work {
        ($($row:ident $kind:literal,)*) => { $(
            for (row, start, end) in timed::<$row>(trace) {
                let key = (pid(row.caller.process), $kind, None);
                add(key, start, end.0.saturating_sub(start.0));
            }
        )* };
    }
    host_work! { ApiCall "api call", HostCall "host call", Marker "marker", }
    for row in trace.rows::<Allocation>() {
        let kind = row.shape.operation.name().unwrap();
        add((pid(row.place.process), kind, None), row.time, row.bytes.0);
    }
    for row in trace.rows::<Counter>() {
        let device = trace
            .device(row.track.device)
            .map_or(99, |device| u64::from(device.ordinal));
        add(
            (pid(row.track.process), "counter", Some(device)),
            row.time,
            row.value.round() as u64,
        );
    }
    sums
}

/// Kineto has no graph launches and collectives of their own. They are ranges on the device.
fn as_kineto(sums: Sums) -> Sums {
    let mut changed = Sums::new();
    for ((pid, kind, stream), (count, amount)) in sums {
        let key = match kind {
            "graph launch" | "collective" => (pid, "marker", None),
            kind => (pid, kind, stream),
        };
        let sum = changed.entry(key).or_default();
        *sum = (sum.0 + count, sum.1 + amount);
    }
    changed
}

/// GPUs with work, counters or memory; a reader must not see more of them than there were.
fn used_devices(trace: &Trace) -> usize {
    let works = trace.rows::<Kernel>().into_iter().map(|row| row.place.device);
    let syncs = trace
        .rows::<Synchronization>()
        .into_iter()
        .map(|row| row.place.device);
    let counters = trace.rows::<Counter>().into_iter().map(|row| row.track.device);
    let memory = trace.rows::<Allocation>().into_iter().map(|row| row.place.device);
    let mut used: Vec<_> = works
        .chain(syncs)
        .chain(counters)
        .chain(memory)
        .filter(|id| id.is_some())
        .collect();
    used.sort_unstable();
    used.dedup();
    used.len()
}

fn stream(format: &str, trace: &Trace, options: &ExportOptions) -> Vec<u8> {
    let Way::Stream(write) = exporter(format).unwrap().way else {
        panic!("{format} is a stream");
    };
    let mut bytes = Vec::new();
    let mut out = Out::new(&mut bytes);
    write(trace, options, &mut out).unwrap();
    out.finish().unwrap();
    bytes
}

fn check(name: &str, format: &str, expected: &Sums, trace: &Trace, again: &Trace) {
    let found = sums(again);
    // Times that are converted to another clock are rounded to a nanosecond each.
    let is_close = |(key, (count, amount)): (&Key, &(u64, u64))| {
        let (other_count, other_amount) = found.get(key).copied().unwrap_or_default();
        *count == other_count && amount.abs_diff(other_amount) <= *count
    };
    assert!(
        expected.len() == found.len() && expected.iter().all(is_close),
        "{name} as {format}:\n{expected:?}\n{found:?}"
    );
    assert_eq!(
        used_devices(trace),
        used_devices(again),
        "GPUs of {name} as {format}"
    );
    // A process without events is in no file.
    let pids: Vec<u32> = expected.keys().map(|key| key.0).collect();
    let ranks = |trace: &Trace| -> Vec<_> {
        let mut ranks: Vec<_> = trace
            .processes
            .iter()
            .map(|process| (process.pid, process.rank.get()))
            .filter(|(pid, _)| pids.contains(pid))
            .collect();
        ranks.sort_unstable();
        ranks
    };
    if format.starts_with("kineto") {
        assert_eq!(ranks(trace), ranks(again), "{name} as {format}");
    }
}

#[test]
fn exports_are_read_back_with_all_events_of_every_process() {
    for (name, trace) in fixtures() {
        for format in ["perfetto", "json", "kineto"] {
            let bytes = stream(format, &trace, &ExportOptions::default());
            let again = import_bytes("again", bytes, &ImportOptions::default()).unwrap();
            let mut expected = sums(&trace);
            if format == "kineto" {
                expected = as_kineto(expected);
            }
            check(&name, format, &expected, &trace, &again);
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn an_nsys_database_is_read_back_with_all_events_of_every_process() {
    let Way::File(write) = exporter("sqlite").unwrap().way else {
        panic!("a database is a file");
    };
    for (name, trace) in fixtures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("again.sqlite");
        write(&trace, &ExportOptions::default(), &path).unwrap();
        let again = tracesmith_interop::open(&path).unwrap();
        check(&name, "sqlite", &sums(&trace), &trace, &again);
    }
}

/// A file for each process, as PyTorch writes one for each rank, imported together.
#[test]
fn kineto_files_of_processes_are_read_back_as_one_trace() {
    for (name, trace) in fixtures() {
        let processes = processes_with_events(&trace);
        let files = processes.iter().map(|process| {
            let options = ExportOptions {
                kineto: KinetoOptions {
                    process: Some(*process),
                },
                ..ExportOptions::default()
            };
            ("part.json", stream("kineto", &trace, &options))
        });
        let again = import_files(files.collect(), &ImportOptions::default()).unwrap();
        check(&name, "kineto files", &as_kineto(sums(&trace)), &trace, &again);
        if name == "three processes" {
            assert_eq!(again.hosts.len(), 1, "all files name the same host");
        }
    }
}

/// Readers join kernels and calls by correlation ID alone.
#[test]
fn correlation_ids_of_several_processes_differ_in_one_kineto_file() {
    let trace = three_processes();
    let bytes = stream("kineto", &trace, &ExportOptions::default());
    let again = import_bytes("again", bytes, &ImportOptions::default()).unwrap();
    let mut ids: Vec<u64> = again
        .rows::<Kernel>()
        .iter()
        .map(|row| row.correlation.0)
        .collect();
    let kernels = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), kernels), (9, 9));
    for kernel in again.rows::<Kernel>() {
        let calls = again.rows::<ApiCall>();
        let call = calls
            .iter()
            .find(|call| call.correlation == kernel.correlation)
            .unwrap();
        assert_eq!(call.caller.process, kernel.place.process);
    }
    assert!(health(&again).is_empty(), "{:?}", health(&again));
}
