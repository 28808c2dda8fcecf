//! How fast the collector turns records into a trace.
//!
//! This program starts itself again as the target: it pushes kernels and calls of a training job as fast as its ring takes
//! them, so that the collector is what limits; the ring holds a fraction of them. It waits for room, so nothing may be lost.
//! `cargo bench -p tracesmith-bench --bench capture`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

use tracesmith_bench::figure::{millions_per_second, print, print_head};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_collect::{
    Capture, Destination, Existing, Forwarding, Injection, Launch, Preload, Report, Wait, profile,
};
use tracesmith_format::StringId;
use tracesmith_format::tables::{ApiCall, Kernel};
use tracesmith_wire::control::{Message, Settings};
use tracesmith_wire::environment;
use tracesmith_wire::frame::frame_bytes;
use tracesmith_wire::handshake::{Purpose, connect, connect_control};
use tracesmith_wire::record::{self, IntoBytes, Payload};
use tracesmith_wire::{Producer, Pushed};

const LIMIT: Duration = Duration::from_secs(20);
/// Says how many targets to be, and where each states the time that it took.
const ROLE: &str = "TRACESMITH_BENCH_ROLE";
const TIMES: &str = "TRACESMITH_BENCH_TIMES";
const PROCESSES: &str = "TRACESMITH_BENCH_PROCESSES";
const RUNS: usize = 5;
/// Of the ring for device activity, by default.
const RING_BYTES: u64 = 32 << 20;
/// Launches of each target: a call and a kernel each.
const LAUNCHES: usize = 1_000_000;

fn main() {
    match env::var(ROLE).as_deref() {
        Ok("target") => return target(),
        Ok(processes) => return start_targets(processes.parse().unwrap()),
        Err(_) => {}
    }
    print_head("collector: kernels and their calls from targets that push as fast as they can");
    for processes in [1, 4] {
        measure(processes);
    }
}

fn measure(processes: usize) {
    let mut runs: Vec<(f64, f64)> = (0..RUNS).map(|_| run(processes)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((least, _), (median, bytes), (most, _)) = (runs[0], runs[RUNS / 2], runs[RUNS - 1]);
    let of = match processes {
        1 => "one process".to_owned(),
        processes => format!("{processes} processes at once"),
    };
    print(
        &format!("million records a second, {of}, median of {RUNS}"),
        format!("{median:.2}"),
        "",
    );
    print(
        "  slowest and fastest run",
        format!("{least:.2} to {most:.2}"),
        "",
    );
    print("  bytes of the file for a launch", format!("{bytes:.1}"), "");
}

/// Millions of records a second of one recording, and bytes of its file for a launch.
fn run(processes: usize) -> (f64, f64) {
    let folder = env::temp_dir().join(format!("tracesmith-bench-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let report = record(processes, &folder.join("capture.sbt"), &folder);
    let spans = (0..processes).map(|number| {
        let span = fs::read_to_string(folder.join(format!("{number}.span"))).unwrap();
        let (start, end) = span.split_once(' ').unwrap();
        (start.parse::<u64>().unwrap(), end.parse::<u64>().unwrap())
    });
    // From the first push of any target to the last one of all.
    let (start, end) = spans
        .reduce(|(start, end), (other_start, other_end)| (start.min(other_start), end.max(other_end)))
        .unwrap();
    let records = 2 * LAUNCHES * processes;
    let rows = report.rows.kernels + report.rows.api_calls;
    assert_eq!(rows, records as u64, "{:?}", report.losses);
    assert!(report.is_whole(), "{:?}", report.losses);
    // When a target has pushed its last record, its ring may be full of those that are not read yet.
    let launch_bytes = frame_bytes(size_of::<record::ApiCall>()) + frame_bytes(size_of::<record::Kernel>());
    let unread = 2 * processes * (RING_BYTES / launch_bytes) as usize;
    let rate = millions_per_second(records - unread, Duration::from_nanos(end - start));
    let (_, bytes) = &report.files[0];
    fs::remove_dir_all(&folder).unwrap();
    (rate, *bytes as f64 / (LAUNCHES * processes) as f64)
}

fn record(processes: usize, path: &Path, folder: &Path) -> Report {
    let launch = Launch {
        command: vec![
            "env".into(),
            format!("{ROLE}={processes}").into(),
            format!("{TIMES}={}", folder.display()).into(),
            env::current_exe().unwrap().into(),
        ],
        library: PathBuf::from("/nowhere"),
        preload: Preload::No,
        injection: Injection::ByDriver,
        wait: Wait::Primary,
        forwarding: Forwarding::Program,
    };
    let destination = Destination {
        path: path.to_owned(),
        existing: Existing::Refuse,
    };
    let (_, report) = profile(launch, Capture::default(), destination).unwrap();
    report
}

fn start_targets(processes: usize) {
    let folder = PathBuf::from(env::var_os(TIMES).unwrap());
    let children: Vec<_> = (0..processes)
        .map(|number| {
            process::Command::new(env::current_exe().unwrap())
                .env(ROLE, "target")
                .env(PROCESSES, processes.to_string())
                .env(TIMES, folder.join(number.to_string()))
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

fn target() {
    let names: Vec<StringId> = (1..=200).map(StringId).collect();
    let calls: Vec<_> = Training::new(7, &names)
        .api_calls(LAUNCHES)
        .iter()
        .map(wire_call)
        .collect();
    let kernels: Vec<_> = Training::new(7, &names)
        .kernels(LAUNCHES)
        .iter()
        .map(wire_kernel)
        .collect();
    let collector = PathBuf::from(env::var_os(environment::COLLECTOR).unwrap());
    let control = connect_control(&collector, LIMIT).unwrap();
    let Some(Message::Open(settings)) = control.receive(LIMIT).unwrap() else {
        panic!("no order to record");
    };
    let (mut definitions, mut activity) = rings(&settings);
    control.send(&Message::Done, LIMIT).unwrap();
    define(&mut definitions);
    wait_for_all();
    let start = now();
    for (call, kernel) in calls.iter().zip(&kernels) {
        push(&mut activity, call);
        push(&mut activity, kernel);
    }
    push(&mut definitions, &record::Goodbye { time: 1 });
    let span = format!("{start} {}", now());
    fs::write(own_file("span"), span).unwrap();
}

/// Targets make their records first, which takes them unequally long: they push at the same time.
fn wait_for_all() {
    fs::write(own_file("ready"), "").unwrap();
    let folder = own_file("ready").parent().unwrap().to_owned();
    let processes: usize = env::var(PROCESSES).unwrap().parse().unwrap();
    let is_ready = |number: usize| folder.join(format!("{number}.ready")).exists();
    while !(0..processes).all(is_ready) {
        thread::sleep(Duration::from_micros(100));
    }
}

fn own_file(extension: &str) -> PathBuf {
    PathBuf::from(env::var_os(TIMES).unwrap()).with_extension(extension)
}

/// Nanoseconds that all processes of the machine agree on.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn rings(settings: &Settings) -> (Producer, Producer) {
    let ring = |purpose| connect(&settings.collector, purpose, settings.activity_ring, LIMIT).unwrap();
    (ring(Purpose::Definitions), ring(Purpose::Activity))
}

fn define(definitions: &mut Producer) {
    for (number, name) in kernel_names().iter().enumerate() {
        let text = record::Text {
            id: number as u32 + 1,
            reserved: 0,
        };
        let bytes = [text.as_bytes(), name.as_bytes()].concat();
        let _ = definitions.push(record::Text::KIND.into(), &bytes);
    }
    push(
        definitions,
        &record::Device {
            uuid: [1; 16],
            ..record::Device::default()
        },
    );
}

/// The ring waits for room.
fn push<T: Payload>(ring: &mut Producer, record: &T) {
    let pushed = ring.push(T::KIND.into(), record.as_bytes());
    assert_eq!(
        pushed,
        Pushed::Written,
        "the collector took longer than a ring may wait"
    );
}

fn wire_call(call: &ApiCall) -> record::ApiCall {
    record::ApiCall {
        start: call.start.0,
        end: call.end.0,
        correlation: call.correlation.0,
        thread: call.caller.thread.0 as u32,
        name: call.shape.name.0,
        function: call.shape.function as u16,
        result: call.shape.result,
        domain: 2,
        ..record::ApiCall::default()
    }
}

fn wire_kernel(kernel: &Kernel) -> record::Kernel {
    let shape = &kernel.shape;
    record::Kernel {
        start: kernel.start.0,
        end: kernel.end.0,
        completed: kernel.completed.0,
        grid_id: kernel.grid_id,
        local_total: shape.local_total.0,
        correlation: kernel.correlation.0,
        context: 1,
        stream: kernel.place.stream.0 as u32,
        name: shape.name.0,
        grid: [shape.grid_x, shape.grid_y, shape.grid_z],
        block: [shape.block_x, shape.block_y, shape.block_z],
        static_shared: shape.static_shared.0 as u32,
        dynamic_shared: shape.dynamic_shared.0 as u32,
        shared_executed: shape.shared_executed.0 as u32,
        max_cluster_size: shape.max_cluster_size,
        channel: kernel.place.channel,
        registers: shape.registers,
        channel_kind: 1,
        shared_config: shape.shared_config,
        shared_carveout: shape.shared_carveout,
        cache_executed: shape.cache_executed,
        ..record::Kernel::default()
    }
}
