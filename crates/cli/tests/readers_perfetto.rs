//! What Perfetto's own trace processor sees in our exports: every slice, flow and counter value, on the right tracks.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{perfetto, root, tracesmith};
use tempfile::TempDir;
use tracesmith_format::tables::*;
use tracesmith_format::*;

/// What Perfetto counts as wrong.
const PROBLEMS: &str =
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0 order by name";
/// Slices by what they are: how many, and nanoseconds in all.
const SLICES: &str = "select substr(category || ',', 1, instr(category || ',', ',') - 1) as kind, count(*) as slices, \
     sum(max(dur, 0)) as nanos from slice group by kind order by kind";

fn export(trace: &Path, name: &str, more: &[&str], folder: &TempDir) -> PathBuf {
    let out = folder.path().join(name);
    let args = [
        "export",
        trace.to_str().unwrap(),
        "-f",
        "perfetto",
        "-o",
        out.to_str().unwrap(),
    ];
    tracesmith(args.iter().chain(more)).ok();
    out
}

/// All events of a trace, as the command line shows them.
fn events(trace: &Path) -> Vec<Value> {
    let args = ["view", trace.to_str().unwrap(), "--format", "json", "-n", "0"];
    serde_json::from_str(&tracesmith(args).ok()).unwrap()
}

/// How a kind of event is called in an export; nothing for what is no slice.
fn category(event: &Value) -> Option<&'static str> {
    Some(match event["kind"].as_str().unwrap() {
        "kernel" => "kernel",
        "copy" => "copy",
        "set" => "set",
        "sync" => "sync",
        "api" => "api",
        "allocation" => "allocation",
        "marker" => "nvtx",
        "host" => "host",
        "graph" => "graph",
        "collective" => "collective",
        _ => return None,
    })
}

/// Slices and their time by kind, as they must be found.
fn expected_slices(events: &[Value]) -> Vec<Value> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for event in events {
        if let Some(category) = category(event) {
            let sum = sums.entry(category).or_default();
            sum.0 += 1;
            sum.1 += event["duration_ns"].as_u64().unwrap();
        }
    }
    sums.iter()
        .map(|(kind, (count, nanos))| json!([kind, count, nanos]))
        .collect()
}

/// Arrows: Perfetto links what shares a correlation in the order of time, and those who wait for an event with the call
/// that records it.
fn expected_flows(events: &[Value]) -> u64 {
    let mut shared: BTreeMap<(u64, &str, u64, u64), u64> = BTreeMap::new();
    let process_of = |event: &Value| event["process"].as_u64().unwrap_or(0);
    let calls: BTreeSet<(u64, u64)> = events
        .iter()
        .filter(|event| event["kind"] == "api")
        .filter_map(|call| Some((process_of(call), call["correlation"].as_u64()?)))
        .collect();
    for event in events {
        let process = process_of(event);
        let kind = event["kind"].as_str().unwrap();
        let launches = ["api", "kernel", "copy", "set", "sync", "graph", "collective"].contains(&kind);
        if let (true, Some(correlation)) = (launches, event["correlation"].as_u64()) {
            *shared.entry((process, "launch", correlation, 0)).or_default() += 1;
        }
        let fields = &event["fields"];
        if let (Some(number), Some(record)) = (fields["event"].as_u64(), fields["event_record"].as_u64())
            && number > 0
            && (event["name"] != "event record"
                || calls.contains(&(process, event["correlation"].as_u64().unwrap_or(0))))
        {
            *shared.entry((process, "event", number, record)).or_default() += 1;
        }
    }
    shared.values().map(|count| count - 1).sum()
}

#[test]
fn everything_of_the_fixtures_arrives() {
    for name in ["demo-h200.sbt", "synthetic-v1.sbt"] {
        let folder = TempDir::new().unwrap();
        let trace = root().join("fixtures").join(name);
        let events = events(&trace);
        let out = export(&trace, "out.pftrace", &[], &folder);
        let queries = [
            PROBLEMS,
            SLICES,
            "select count(*) from flow",
            "select count(*) from counter c join track t on c.track_id = t.id where t.name not like 'Live %' \
             and t.type != 'perf_cpu_counter'",
            "select count(*) from slice where dur < 0",
        ];
        let Some(answers) = perfetto::query(&out, &queries) else {
            return;
        };
        assert_eq!(answers[0], Vec::<Value>::new(), "{name}");
        assert_eq!(answers[1], expected_slices(&events), "{name}");
        assert_eq!(answers[2], [json!([expected_flows(&events)])], "{name}");
        let counters = events.iter().filter(|event| event["kind"] == "counter").count();
        assert_eq!(answers[3], [json!([counters])], "{name}");
        assert_eq!(answers[4], [json!([0])], "{name}");
    }
}

#[test]
fn the_recording_has_its_gpu_streams_threads_and_counters() {
    let folder = TempDir::new().unwrap();
    let out = export(
        &root().join("fixtures/demo-h200.sbt"),
        "out.pftrace",
        &[],
        &folder,
    );
    let queries = [
        "select distinct t.name from track t join track g on t.parent_id = g.id where g.name = 'GPU 0 NVIDIA H200' order by 1",
        "select pid, name from process where pid > 0",
        "select tid from thread where tid > 0",
        "select a.key, a.display_value from slice s join args a using (arg_set_id) \
         where s.name = 'matmul' and s.id = (select min(id) from slice where name = 'matmul') and a.key like 'debug.%' \
         and a.key not like '%graph%' order by 1",
        "select start_ts, end_ts from trace_bounds",
        "select unit from counter_track where name = 'power'",
    ];
    let Some(answers) = perfetto::query(&out, &queries) else {
        return;
    };
    let names: Vec<&str> = answers[0].iter().map(|row| row[0].as_str().unwrap()).collect();
    for name in [
        "Stream 13",
        "Stream 14",
        "Stream 13 syncs",
        "power",
        "GPU utilization",
        "temperature",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert_eq!(answers[1], [json!([417, "tracesmith"])]);
    assert_eq!(answers[2], [json!([417])]);
    let keys: Vec<&str> = answers[3].iter().map(|row| row[0].as_str().unwrap()).collect();
    for key in [
        "debug.block",
        "debug.correlation",
        "debug.grid",
        "debug.registers",
    ] {
        assert!(keys.contains(&key), "{key} is not among {keys:?}");
    }
    assert_eq!(
        answers[4],
        [json!([24_202_728_937u64, 24_827_591_797u64])],
        "times are the trace's own"
    );
    assert_eq!(answers[5], [json!(["W"])]);
}

#[test]
fn arrows_lead_from_events_to_those_who_wait_for_them() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/demo-h200.sbt");
    let out = export(&trace, "out.pftrace", &[], &folder);
    // Each of the 20 rounds forks to the second stream and joins it again.
    let arrows = "select b.name, count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
         where a.name = 'cuEventRecord' and b.name like '%wait%' group by 1 order by 1";
    // The event is the one that the recording call passed on to the device.
    let others = "select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id \
         join flow g on g.slice_out = a.id join slice r on g.slice_in = r.id where r.name = 'event record' and \
         b.name like '%wait%' and (extract_arg(r.arg_set_id, 'debug.event'), extract_arg(r.arg_set_id, 'debug.event record')) \
         != (extract_arg(b.arg_set_id, 'debug.event'), extract_arg(b.arg_set_id, 'debug.event record'))";
    let Some(answers) = perfetto::query(&out, &[arrows, others]) else {
        return;
    };
    assert_eq!(answers[0], [json!(["stream wait event", 40])]);
    assert_eq!(answers[1], [json!([0])]);
}

#[test]
fn copies_tell_how_much_and_how_fast() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/demo-h200.sbt");
    let mut expected: Vec<(u64, u64)> = events(&trace)
        .iter()
        .filter(|event| event["kind"] == "copy")
        .map(|copy| {
            let bytes = copy["bytes"].as_u64().unwrap();
            (
                bytes,
                bytes * 1_000_000_000 / copy["duration_ns"].as_u64().unwrap(),
            )
        })
        .collect();
    expected.sort_unstable();
    let out = export(&trace, "out.pftrace", &[], &folder);
    let query = "select extract_arg(arg_set_id, 'debug.bytes') as bytes, \
         extract_arg(arg_set_id, 'debug.bandwidth (bytes/s)') as bandwidth from slice where category = 'copy' order by 1, 2";
    let Some(answers) = perfetto::query(&out, &[query]) else {
        return;
    };
    let found: Vec<(u64, u64)> = answers[0]
        .iter()
        .map(|row| (row[0].as_u64().unwrap(), row[1].as_u64().unwrap()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_clocks_and_facts_of_the_recording_are_there() {
    let folder = TempDir::new().unwrap();
    let queries = [
        "select name, str_value from metadata where name = 'cr-command'",
        "select count(*) from clock_snapshot where clock_name = 'MONOTONIC' and clock_value != ts",
        // Times that are not the timeline's, as they were read.
        "select ts, clock_value from clock_snapshot where clock_id = 130 order by ts",
    ];
    let out = export(
        &root().join("fixtures/synthetic-v1.sbt"),
        "out.pftrace",
        &[],
        &folder,
    );
    let Some(answers) = perfetto::query(&out, &queries) else {
        return;
    };
    assert_eq!(answers[0], [json!(["cr-command", "python train.py --steps 3"])]);
    assert_eq!(answers[1], [json!([0])]);
    // The fixture's GPU is ahead by a thousand seconds; its second reading lies behind the last event.
    assert_eq!(answers[2], [json!([5_000_000_000u64, 1_005_000_000_000u64])]);
}

#[test]
fn ranges_have_tracks_of_their_own() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/synthetic-v1.sbt");
    let out = export(&trace, "out.pftrace", &[], &folder);
    let query = "select t.name, count(*) from slice s join track t on s.track_id = t.id \
         where s.category = 'nvtx' group by 1 order by 1";
    let Some(answers) = perfetto::query(&out, &[query]) else {
        return;
    };
    let names: Vec<&str> = answers[0].iter().map(|row| row[0].as_str().unwrap()).collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| name.starts_with("NVTX")),
        "{names:?}"
    );
    let found: u64 = answers[0].iter().map(|row| row[1].as_u64().unwrap()).sum();
    let markers = events(&trace)
        .iter()
        .filter(|event| event["kind"] == "marker")
        .count();
    assert_eq!(found, markers as u64);
}

#[test]
fn stacks_are_in_the_export() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/synthetic-v1.sbt");
    let queries = [
        "select count(*) from args where key = 'debug.stack' and display_value like '%< train_step < main <%'",
        // As samples, which flame graphs are drawn of: a sample for every call with a stack, frames once.
        "select count(*) from perf_sample where callsite_id is not null",
        "select count(*), count(distinct parent_id || ' ' || frame_id) from stack_profile_callsite where depth > 0",
        "select distinct f.name from stack_profile_callsite c join stack_profile_frame f on c.frame_id = f.id \
         where c.depth < 3 order by c.depth",
        PROBLEMS,
    ];
    let out = export(&trace, "out.pftrace", &[], &folder);
    let Some(answers) = perfetto::query(&out, &queries) else {
        return;
    };
    assert!(answers[0][0][0].as_u64().unwrap() > 0);
    let with_stack = |event: &&Value| {
        let is_of_thread = ["api", "host"].contains(&event["kind"].as_str().unwrap());
        is_of_thread && event["fields"]["stack"].as_u64().is_some_and(|stack| stack > 0)
    };
    let expected = events(&trace).iter().filter(with_stack).count();
    assert_eq!(answers[1], [json!([expected])]);
    let callsites = &answers[2][0];
    assert!(
        callsites[0].as_u64().unwrap() > 0 && callsites[0] == callsites[1],
        "{callsites}"
    );
    assert_eq!(
        answers[3],
        [json!(["<module>"]), json!(["main"]), json!(["train_step"])]
    );
    assert_eq!(answers[4], Vec::<Value>::new());
}

#[test]
fn render_stages_are_seen_as_such() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/demo-h200.sbt");
    let work: Vec<Value> = events(&trace)
        .into_iter()
        .filter(|event| ["kernel", "copy", "set"].contains(&event["kind"].as_str().unwrap()))
        .collect();
    let nanos: u64 = work
        .iter()
        .map(|event| event["duration_ns"].as_u64().unwrap())
        .sum();
    let queries = [
        "select count(*), sum(dur) from gpu_slice",
        "select count(*) from gpu_slice where name = 'saxpy'",
        "select count(*) from slice where category = 'kernel'",
        // Versions before v53 take the ties between calls and render stages for errors of the writer.
        "select name from stats where severity in ('error', 'data_loss') and value > 0 and name != 'unknown_extension_fields'",
    ];
    for (form, slices) in [("render-stages", 0), ("both", 300)] {
        let out = export(&trace, form, &["--gpu-form", form], &folder);
        let Some(answers) = perfetto::query(&out, &queries) else {
            return;
        };
        assert_eq!(answers[0], [json!([work.len(), nanos])]);
        assert_eq!(answers[1], [json!([100])]);
        assert_eq!(answers[2], [json!([slices])]);
        assert_eq!(answers[3], Vec::<Value>::new());
    }
}

#[test]
fn each_file_of_a_split_trace_loads_alone() {
    let folder = TempDir::new().unwrap();
    let trace = root().join("fixtures/demo-h200.sbt");
    export(&trace, "part.pftrace", &["--split", "8K"], &folder);
    let mut found = 0;
    let mut files = 0;
    for number in 1.. {
        let file = folder.path().join(format!("part.{number}.pftrace"));
        if !file.exists() {
            break;
        }
        files += 1;
        let Some(answers) = perfetto::query(&file, &[PROBLEMS, "select count(*) from slice"]) else {
            return;
        };
        assert_eq!(answers[0], Vec::<Value>::new());
        found += answers[1][0][0].as_u64().unwrap();
    }
    assert!(files > 1);
    let all: u64 = expected_slices(&events(&trace))
        .iter()
        .map(|row| row[1].as_u64().unwrap())
        .sum();
    assert_eq!(found, all);
}

const NAMES: [&str; 6] = [
    "gemm",
    "",
    "quote \" back \\ slash",
    "line\nbreak",
    "größe 数 🚀",
    "a < b > c & d",
];

/// Two processes on two hosts with the same pid, three GPUs, five streams each; everything overlaps.
fn write_hard_trace(path: &Path) {
    let mut writer = Writer::new(
        Vec::new(),
        WriterOptions {
            rows_per_block: 64,
            ..WriterOptions::default()
        },
    )
    .unwrap();
    let clock = ClockId(1);
    let mut names: Vec<StringId> = NAMES.iter().map(|name| writer.string(name).unwrap()).collect();
    names.push(writer.string(&"long ".repeat(2_000)).unwrap());
    writer
        .define(&Clock {
            id: clock,
            kind: ClockKind::MONOTONIC,
            ..Clock::default()
        })
        .unwrap();
    for id in 1..=2 {
        let name = writer.string(&format!("host{id}")).unwrap();
        writer
            .define(&Host {
                id: HostId(id),
                name,
                ..Host::default()
            })
            .unwrap();
        let process = Process {
            id: ProcessId(id),
            host: HostId(id),
            pid: 900,
            ..Process::default()
        };
        writer.define(&process).unwrap();
    }
    for id in 1..=3 {
        let device = Device {
            id: DeviceId(id),
            host: HostId(id.min(2)),
            ordinal: id - 1,
            ..Device::default()
        };
        writer.define(&device).unwrap();
    }
    for number in 0..1_000u64 {
        let process = ProcessId(1 + (number % 2) as u32);
        let start = Timestamp(1_000_000 + number * 700);
        let place = Place {
            process,
            device: DeviceId(1 + (number % 3) as u32),
            context: ContextId(1),
            stream: StreamId(number % 5),
            ..Place::default()
        };
        // Every third is of no length, others reach over the next few of the same stream.
        let length = if number % 3 == 0 { 0 } else { number * 37 % 40_000 };
        let kernel = Kernel {
            start,
            end: Timestamp(start.0 + length),
            correlation: CorrelationId(number + 1),
            place,
            shape: KernelShape {
                name: names[number as usize % names.len()],
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(clock, &kernel).unwrap();
        let call = ApiCall {
            start: Timestamp(start.0 - 500),
            end: Timestamp(start.0 - 100 + number % 7 * 300),
            correlation: CorrelationId(number + 1),
            caller: Caller {
                process,
                thread: ThreadId(900 + number % 4),
            },
            shape: ApiShape {
                name: names[0],
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        writer.push(clock, &call).unwrap();
        let marker = Marker {
            start: Timestamp(start.0 - 600),
            end: Timestamp(start.0 + number % 11 * 1_000),
            caller: call.caller,
            shape: MarkerShape {
                name: names[number as usize % names.len()],
                kind: if number % 2 == 0 {
                    MarkerKind::FREE_RANGE
                } else {
                    MarkerKind::NESTED_RANGE
                },
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        writer.push(clock, &marker).unwrap();
        let counter = Counter {
            time: start,
            value: number as f64 / 3.0,
            track: CounterTrack {
                name: names[4],
                device: place.device,
                ..CounterTrack::default()
            },
        };
        writer.push(clock, &counter).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn nothing_is_dropped_where_everything_overlaps() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("hard.sbt");
    write_hard_trace(&trace);
    let events = events(&trace);
    let out = export(&trace, "hard.pftrace", &[], &folder);
    let queries = [
        PROBLEMS,
        SLICES,
        "select count(*) from flow",
        "select count(*) from counter",
        "select g.name as gpu, t.name as stream, count(*), sum(s.dur) from slice s join track t on s.track_id = t.id \
         join track g on t.parent_id = g.id where s.category = 'kernel' group by 1, 2 order by 1, 2",
        "select count(*) from process where pid > 0",
        "select coalesce(name, ''), count(*), sum(dur) from slice where category = 'kernel' group by 1 order by 1",
    ];
    let Some(answers) = perfetto::query(&out, &queries) else {
        return;
    };
    assert_eq!(answers[0], Vec::<Value>::new());
    assert_eq!(answers[1], expected_slices(&events));
    assert_eq!(answers[2], [json!([1_000])]);
    assert_eq!(answers[3], [json!([1_000])]);
    let kernels = || events.iter().filter(|event| event["kind"] == "kernel");
    let mut streams: BTreeMap<(u64, u64, u64), (u64, u64)> = BTreeMap::new();
    let mut names: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for kernel in kernels() {
        let number = |key: &str| kernel[key].as_u64().unwrap();
        let sums = [
            streams
                .entry((number("device"), number("process"), number("stream")))
                .or_default(),
            names.entry(kernel["name"].as_str().unwrap()).or_default(),
        ];
        for sum in sums {
            *sum = (sum.0 + 1, sum.1 + number("duration_ns"));
        }
    }
    let totals = |sums: Vec<&(u64, u64)>| {
        let mut totals: Vec<(u64, u64)> = sums.into_iter().copied().collect();
        totals.sort_unstable();
        totals
    };
    let found = |rows: &[Value], from: usize| {
        let total = |row: &Value| (row[from].as_u64().unwrap(), row[from + 1].as_u64().unwrap());
        let mut totals: Vec<(u64, u64)> = rows.iter().map(total).collect();
        totals.sort_unstable();
        totals
    };
    assert_eq!(
        found(&answers[4], 2),
        totals(streams.values().collect()),
        "{:?}",
        answers[4]
    );
    assert_eq!(answers[5], [json!([2])], "one pid on two hosts is two processes");
    assert_eq!(found(&answers[6], 1), totals(names.values().collect()));
    let found: Vec<&str> = answers[6].iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(found, names.keys().copied().collect::<Vec<_>>());
}
