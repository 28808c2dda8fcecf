//! The same figures by Meta's HolisticTraceAnalysis on files of PyTorch's profiler: a small one of our own, and real ones.
//!
//! It takes starts up and ends down to whole microseconds, which makes the shortest kernels negative. For the comparison ours
//! are rounded alike, and its negative ones are made 0.
//! `TRACESMITH_PYTHON` names an interpreter that has `HolisticTraceAnalysis` installed.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use tracesmith_skip as support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::data;
use tracesmith_trace::analysis::{
    Breakdown, IdleCause, KernelKey, KernelsReport, LaunchesReport, StreamIdle,
};
use tracesmith_trace::reconstruct::{
    Activity, ClassSet, Dependencies, OpClass, OpId, Span, StreamIndex, Timeline,
};

const SCRIPT: &str = r"
import gzip, json, logging, sys, warnings
warnings.filterwarnings('ignore')
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
reader = gzip.open if sys.argv[1].endswith('.gz') else open
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
frame = analysis.t.get_trace(0)
frame['dur'] = frame['dur'].clip(lower=0)
times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6, duration_ratio=1.0)
overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]['comp_comm_overlap_pctg']
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
queues = analysis.get_queue_length_summary()['queue_length']['max']
idle = analysis.get_idle_time_breakdown(visualize=False)[0]
print(json.dumps({
    'base': json.load(reader(sys.argv[1])).get('baseTimeNanoseconds', 0),
    'work': int(frame.stream.ne(-1).sum()),
    'span': int(times['kernel_time(us)']), 'idle': int(times['idle_time(us)']), 'compute': int(times['compute_time(us)']),
    'types': {row['kernel_type']: int(row['sum']) for _, row in types.iterrows()},
    'overlap': None if overlap != overlap else float(overlap),
    'launches': [len(launches), int(launches.cpu_duration.sum()), int(launches.launch_delay.sum())],
    'queues': [int(number) for number in queues],
    'stream_idle': [[int(row['stream']), row['idle_category'], int(row['idle_time'])] for _, row in idle.iterrows()],
    'kernels': sorted([row['name'], int(row['sum (us)'])] for _, row in kernels.iterrows() if row['kernel_type'] != 'MEMORY'),
}))
";

fn by_hta(path: &Path) -> Option<Value> {
    let interpreter = std::env::var_os("TRACESMITH_PYTHON").unwrap_or("python3".into());
    let has_hta = Command::new(&interpreter).args(["-c", "import hta"]).output();
    if !has_hta.is_ok_and(|output| output.status.success()) {
        tracesmith_skip::without("python packages", "hta");
        return None;
    }
    let output = Command::new(&interpreter)
        .args(["-c", SCRIPT])
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

/// Start and end in whole microseconds, as nanoseconds. They add in floating point, which for times since 1970 has steps of a
/// quarter of a microsecond: so does this.
fn round(base: u64, start: &mut [u64], end: &mut [u64]) {
    let micros = |nanos: u64| (nanos / 1_000) as f64 + (nanos % 1_000) as f64 / 1_000.0;
    for (start, end) in start.iter_mut().zip(end) {
        let from = micros(*start - base);
        let to = from + micros(*end - *start);
        *start = base + from.ceil() as u64 * 1_000;
        *end = (base + to.floor() as u64 * 1_000).max(*start);
    }
}

/// Idle time of streams. They give a gap as a whole to the host when the call that ended it came after the gap began; ours
/// goes on to say what the host did, and what of it was the launch. So the sums of the gaps are the same, and our parts lie
/// within theirs.
fn compare_idle(name: &str, activity: &Activity, theirs: &Value, calls: Calls) {
    let mut by_stream: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for row in theirs.as_array().unwrap() {
        let micros = row[2].as_i64().unwrap();
        let (all, host) = by_stream.entry(row[0].as_u64().unwrap()).or_default();
        *all += micros;
        *host += if row[1] == "host_wait" { micros } else { 0 };
    }
    let streams = StreamIdle::of(activity, &Dependencies::of(activity));
    assert_eq!(streams.len(), by_stream.len(), "{name}: streams");
    for (ours, lane) in streams.iter().zip(activity.lane_ids()) {
        let (all, host) = by_stream[&ours.stream];
        assert_eq!(ours.idle_ns as i64 / 1_000, all, "{name}: stream {}", ours.stream);
        if calls == Calls::SomeMissing {
            continue;
        }
        let of = |is_meant: &dyn Fn(IdleCause) -> bool| {
            let causes = ours.causes.iter().filter(|total| is_meant(total.cause));
            causes.map(|total| total.total_ns as i64 / 1_000).sum::<i64>()
        };
        let by_host = of(&|cause| cause < IdleCause::LaunchGap);
        let by_device = of(&|cause| matches!(cause, IdleCause::Dispatch | IdleCause::Unknown));
        assert!(
            by_host <= host,
            "{name}: stream {}: {by_host}, {host}",
            ours.stream
        );
        // Work that began long after its launch had returned waited on the device. Theirs gives that to the host, too.
        let late = late_starts(activity, lane) / 1_000;
        assert!(
            by_device <= all - host + late,
            "{name}: stream {}: {by_device}, {late}",
            ours.stream
        );
        assert_eq!(whole_gaps_of_the_host(activity, lane) / 1_000, host, "{name}");
    }
}

/// Whether they know the calls of all work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    All,
    SomeMissing,
}

/// Nanoseconds from the return of launches in gaps to the start of their work, where these are more than 100 µs.
fn late_starts(activity: &Activity, lane: StreamIndex) -> i64 {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let late = |pair: &[OpId]| {
        let (from, to) = (ops.end[pair[0].index()], ops.start[pair[1].index()]);
        let call = ops.call[pair[1].index()];
        let returned = call.is_some().then(|| calls.end[call.index()])?;
        (returned > from && to > returned + 100_000).then(|| (to - returned) as i64)
    };
    activity.ops_of(lane).windows(2).filter_map(late).sum()
}

/// Nanoseconds of all gaps of a stream that began before the call that ended them.
fn whole_gaps_of_the_host(activity: &Activity, lane: StreamIndex) -> i64 {
    let (ops, calls) = (&activity.ops, &activity.calls);
    let gap = |pair: &[OpId]| {
        let (from, to) = (ops.end[pair[0].index()], ops.start[pair[1].index()]);
        let call = ops.call[pair[1].index()];
        let is_hosts = call.is_some() && calls.start[call.index()] > from;
        if is_hosts { to as i64 - from as i64 } else { 0 }
    };
    activity.ops_of(lane).windows(2).map(gap).sum()
}

/// Microseconds in which exactly these kinds of kernels ran, by HTA's names for them.
fn type_times(span: &Span) -> Vec<(String, i64)> {
    let mut times: BTreeMap<String, i64> = BTreeMap::new();
    for set in ClassSet::all().filter(|set| !set.is_empty()) {
        let mut words = Vec::new();
        if set.has(OpClass::Compute) {
            words.push("COMPUTATION");
        }
        if set.has(OpClass::Communication) {
            words.push("COMMUNICATION");
        }
        if set.has(OpClass::Copy) || set.has(OpClass::Set) {
            words.push("MEMORY");
        }
        *times.entry(words.join(" overlapping ")).or_default() += span.exactly(set) as i64 / 1_000;
    }
    times.into_iter().filter(|(_, time)| *time > 0).collect()
}

fn compare_data(name: &str) {
    if let Some(path) = data(&format!("kineto/{name}")) {
        compare(&path);
    }
}

fn compare(path: &Path) {
    let name = &path.display().to_string();
    let Some(theirs) = by_hta(path) else { return };
    let trace = tracesmith_interop::open(path).unwrap();
    let mut activity = Activity::of(&trace).unwrap();
    let base = theirs["base"].as_u64().unwrap();
    round(base, &mut activity.ops.start, &mut activity.ops.end);
    round(base, &mut activity.calls.start, &mut activity.calls.end);
    assert_eq!(activity.ops.len() as i64, theirs["work"], "{name}");
    let timeline = Timeline::of(&activity);
    assert_eq!(timeline.devices.len(), 1, "{name}");
    let ours = Breakdown::of(&timeline.devices[0].span);
    for (what, nanos) in [
        ("span", ours.span_ns),
        ("idle", ours.idle_ns),
        ("compute", ours.compute_ns),
    ] {
        assert_eq!(
            nanos as i64 / 1_000,
            theirs[what].as_i64().unwrap(),
            "{name}: {what}"
        );
    }
    let mut types: Vec<(String, i64)> = theirs["types"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(kind, sum)| (kind.clone(), sum.as_i64().unwrap()))
        .filter(|(_, time)| *time > 0)
        .collect();
    types.sort();
    assert_eq!(type_times(&timeline.devices[0].span), types, "{name}");
    // They round it to two digits.
    let overlap = ours
        .communication_overlap
        .map(|share| (share * 1e4).round() / 100.0);
    assert_eq!(overlap, theirs["overlap"].as_f64(), "{name}: overlap");
    let table = KernelsReport::of(&trace, &activity, KernelKey::Name, None);
    let mut kernels: Vec<(String, i64)> = table
        .rows
        .iter()
        .map(|row| (row.name.clone(), row.durations.total_ns as i64 / 1_000))
        .collect();
    kernels.sort();
    let theirs_by_name: Vec<(String, i64)> = serde_json::from_value(theirs["kernels"].clone()).unwrap();
    assert_eq!(kernels, theirs_by_name, "{name}: kernels");
    let launches = LaunchesReport::of(&trace, &activity, None);
    // They know the calls of some names only; where these are all, the sums are the same.
    let counts: Vec<i64> = theirs["launches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_i64().unwrap())
        .collect();
    let is_all = counts[0] == launches.call.count as i64;
    let calls = if is_all { Calls::All } else { Calls::SomeMissing };
    compare_idle(name, &activity, &theirs["stream_idle"], calls);
    if is_all {
        assert_eq!(
            launches.call.total_ns as i64 / 1_000,
            counts[1],
            "{name}: time in calls"
        );
        assert_eq!(launches.delay.total_ns as i64 / 1_000, counts[2], "{name}: delay");
    }
    if let [queue] = theirs["queues"].as_array().unwrap().as_slice() {
        // Their order of a launch and a start in the same microsecond is left to chance.
        let most = launches.queues[0].max as i64;
        assert!(
            (most - queue.as_i64().unwrap()).abs() <= 1,
            "{name}: queue {most}, {queue}"
        );
    }
}

#[test]
fn a_training_loop_of_our_own_agrees_with_hta() {
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/kineto-training.json"));
}

#[test]
fn a_v100_training_agrees_with_hta() {
    compare_data("ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz");
}

#[test]
fn an_a100_training_with_nccl_agrees_with_hta() {
    compare_data("nccl_parser_config_nccl_data.json.gz");
}

#[test]
fn several_streams_that_overlap_agree_with_hta() {
    compare_data("timeline_analysis_sampled_rank-0.json.gz");
    compare_data("trace_filter_sampled_rank-1.json.gz");
}

#[test]
fn files_of_other_gpus_agree_with_hta() {
    compare_data("amd_trace_mi250_minitoy_train_ROCm6_2_kineto.json.gz");
    compare_data("h100_gaunernst_bert-small-uncased__1016001.json.gz");
    // Not that of a B200: they take an operator of the host for device work, as it has an argument called stream.
}
