//! Causes and shares: one base for all shares, calls that count once, overhead of the profiler, advice that fits the program,
//! and for every rule a trace on which it must stay silent. (Issue 28.)

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::collections::BTreeMap;

use crate::made;

use made::{Made, PROCESS, THREAD, place};
use tracesmith_format::tables::{CopyDirection, CopyShape, MemoryKind, MemoryOperation, Process};
use tracesmith_format::{Ordinal, ProcessId, StackId};
use tracesmith_trace::NamePattern;
use tracesmith_trace::analysis::{
    Analysis, Finding, FindingsReport, IdleCause, MemoryReport, Scale, SummaryReport, WhatIf, WhatIfReport,
};
use tracesmith_trace::reconstruct::Window;

const ALLOCATE: MemoryOperation = MemoryOperation::ALLOCATE;

fn analyzed(made: Made) -> (SummaryReport, Vec<Finding>) {
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    let summary = analysis.summary().unwrap();
    let findings = analysis.findings(&summary).unwrap().findings;
    (summary, findings)
}

fn findings(made: Made) -> Vec<Finding> {
    analyzed(made).1
}

fn found(made: Made, rule: &str) -> Finding {
    let findings = findings(made);
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
    let found = findings.iter().find(|finding| finding.rule == rule);
    found
        .unwrap_or_else(|| panic!("{rule} is silent; found {rules:?}"))
        .clone()
}

/// Busy from 1 ms to 11 ms, launched ahead of time.
fn healthy() -> Made {
    let mut made = Made::new();
    for at in 0..10u64 {
        let (launch, start) = (900_000 + at * 1_000, 1_000_000 + at * 1_000_000);
        made.launched("gemm", 1, (launch, launch + 500), (start, start + 1_000_000));
    }
    made
}

/// Kernels of 4 µs, each launched by a call of 5 µs when the one before it has ended.
fn one_by_one(name: &str, host_nanos: u64, call_nanos: u64, kernel_nanos: u64) -> Made {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for _ in 0..50 {
        let start = time + call_nanos;
        made.launched(name, 1, (time, start), (start, start + kernel_nanos));
        time = start + kernel_nanos + host_nanos;
    }
    made
}

/// Fifty launches of a graph of twenty short kernels. HIP names the graph of a kernel only by its call.
fn graphs(host_nanos: u64, call_nanos: u64, has_ids: bool) -> Made {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for _ in 0..50 {
        let launch = made.call("cudaGraphLaunch", (time, time + call_nanos));
        let mut start = time + call_nanos;
        for node in 0..20u64 {
            let times = (start, start + 1_000);
            match has_ids {
                true => made.node(node + 1, 1, times, launch),
                false => made.kernel_row("node", times, launch, place(1)),
            }
            start += 1_000;
        }
        time = start + host_nanos;
    }
    made
}

#[test]
fn a_launch_of_a_graph_counts_once() {
    for has_ids in [true, false] {
        let (summary, findings) = analyzed(graphs(0, 3_000, has_ids));
        let launches = &summary.launches;
        assert_eq!((launches.call.count, launches.call.total_ns), (50, 50 * 3_000));
        assert_eq!((launches.latency.count, launches.latency.max_ns), (50, 3_000));
        assert_eq!((launches.graph_launches, launches.graph_kernels), (50, 1_000));
        assert_eq!(
            (launches.short_kernels.launched, launches.short_kernels.call_ns),
            (0, 0)
        );
        let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["launch_gaps"], "no kernel of a graph is short");
        assert!(!findings[0].advice.contains("capture"), "{}", findings[0].advice);
    }
}

#[test]
fn nobody_is_advised_to_do_what_the_program_does() {
    let advice = |made: Made, rule: &str| found(made, rule).advice.into_owned();
    let with_graphs = advice(graphs(20_000, 100, true), "host_busy");
    assert!(!with_graphs.contains("graph"), "{with_graphs}");
    let eager = "void at::native::vectorized_elementwise_kernel<4>(int)";
    let compiled = "triton_poi_fused_add_0";
    let of = |name: &str| advice(one_by_one(name, 20_000, 100, 20_000), "host_busy");
    assert!(of(eager).contains("try torch.compile"));
    assert!(!of(compiled).contains("try torch.compile"));
    assert!(!of("my_kernel").contains("torch"));
    // Copies: on the stream of the kernels or on their own, pageable or pinned.
    let copies = |source: MemoryKind, stream: u64| {
        let mut made = healthy();
        let shape = CopyShape {
            direction: CopyDirection::HOST_TO_DEVICE,
            source_memory: source,
            destination_memory: MemoryKind::DEVICE,
            ..CopyShape::default()
        };
        made.copy(stream, (11_000_000, 13_000_000), 1 << 20, shape);
        advice(made, "copies_alone")
    };
    for (source, stream, pinned, separate) in [
        (MemoryKind::PAGEABLE, 1, true, true),
        (MemoryKind::PINNED, 1, false, true),
        (MemoryKind::PAGEABLE, 2, true, false),
        (MemoryKind::PINNED, 2, false, false),
    ] {
        let advice = copies(source, stream);
        assert_eq!(advice.contains("pinned"), pinned, "{advice}");
        assert_eq!(advice.contains("separate stream"), separate, "{advice}");
    }
}

#[test]
fn all_shares_of_a_summary_have_one_base() {
    // A long start of the program, and a second device that begins late.
    let mut made = one_by_one("k", 20_000, 100, 20_000);
    made.call("cuInit", (1, 900_000));
    let elsewhere = tracesmith_format::tables::Place {
        device: tracesmith_format::DeviceId(2),
        ..place(1)
    };
    let correlation = made.call("cudaLaunchKernel", (1_500_000, 1_500_010));
    made.kernel_row("late", (1_500_020, 1_600_000), correlation, elsewhere);
    let trace = made.finish();
    for window in [
        Window::default(),
        Window {
            from: Some(900_000),
            to: Some(1_700_000),
        },
    ] {
        let analysis = Analysis::of(&trace, window).unwrap();
        let summary = analysis.summary().unwrap();
        let base = summary.analyzed_ns.1 - summary.analyzed_ns.0;
        let expected = match window.from {
            None => 50 * 40_100 - 20_000 - 100,
            Some(_) => 800_000,
        };
        assert_eq!(base, expected);
        let findings = analysis.findings(&summary).unwrap();
        assert_eq!(findings.span_ns, base);
        for (busy, idle) in summary.utilization.devices.iter().zip(&summary.idle.devices) {
            assert_eq!((busy.breakdown.span_ns, idle.span_ns), (base, base));
            assert_eq!(busy.breakdown.idle_ns, idle.idle_ns);
            assert_eq!(busy.concurrency_ns.iter().sum::<u64>(), base);
            let causes: u64 = idle.causes.iter().map(|cause| cause.total_ns).sum();
            assert_eq!(causes, idle.idle_ns);
        }
        let of_device = &summary.idle.devices[0].causes;
        let host = of_device.iter().find(|cause| cause.cause == IdleCause::HostBusy);
        let finding = &findings.findings[0];
        assert_eq!(
            (finding.rule, finding.saves_share),
            ("host_busy", host.map(|cause| cause.share))
        );
    }
}

#[test]
fn overhead_of_the_profiler_is_a_cause_of_its_own() {
    // A busy host with a gap of 2 ms, which is the profiler's, and shorter ones that are not.
    let with = |name: &str, times: (u64, u64)| {
        let mut made = one_by_one("k", 20_000, 100, 20_000);
        made.overhead(name, times);
        made.launched("last", 1, (5_000_000, 5_000_100), (5_000_100, 5_900_000));
        made
    };
    let (summary, findings) = analyzed(with("Activity Buffer Request", (3_000_000, 4_990_000)));
    let device = &summary.idle.devices[0];
    let of = |cause: IdleCause| {
        let causes = device.causes.iter();
        let mut causes = causes.filter(|total| total.cause == cause);
        causes.next().map_or(0, |total| total.total_ns)
    };
    assert_eq!(of(IdleCause::ProfilerOverhead), 1_990_000);
    assert_eq!(
        (device.longest[0].cause, device.longest[0].overhead_ns),
        (IdleCause::ProfilerOverhead, 1_990_000)
    );
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["host_busy", "profiler_overhead"]);
    assert_eq!(findings[0].saves_ns, Some(of(IdleCause::HostBusy)));
    for evidence in &findings[0].evidence {
        assert!(
            evidence.end_ns <= 3_000_000,
            "overhead is no evidence of a busy host"
        );
    }
    assert_eq!(findings[1].evidence[0].what, "idle before last");
    // Device code that is loaded is not the profiler's work.
    let (summary, _) = analyzed(with("Lazy Function Loading", (3_000_000, 4_990_000)));
    let causes = &summary.idle.devices[0].causes;
    let module = causes.iter().find(|total| total.cause == IdleCause::HostModule);
    assert_eq!(module.unwrap().total_ns, 1_990_000);
}

#[test]
fn a_buffer_request_within_a_launch_is_no_slow_launch_and_no_short_kernel() {
    let mut made = healthy();
    for at in 0..20u64 {
        let start = 11_000_000 + at * 1_000_000;
        made.overhead("CUPTI buffer request", (start + 1_000, start + 900_000));
        made.launched(
            "k",
            1,
            (start, start + 901_000),
            (start + 902_000, start + 1_000_000),
        );
    }
    let (summary, findings) = analyzed(made);
    assert_eq!(summary.launches.short_kernels.count, 0);
    assert_eq!(summary.launches.short_kernels.worst_row, None);
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["profiler_overhead"]);
}

#[test]
fn a_flush_within_a_wait_or_a_step_is_no_evidence() {
    // Waits of 100 µs, each before a launch, and one of 3 ms in which the profiler flushes its buffers.
    let mut made = Made::new();
    let mut time = 1_000_000;
    for at in 0..20u64 {
        let wait = if at == 10 { 3_000_000 } else { 100_000 };
        made.call("cudaStreamSynchronize", (time, time + wait));
        if at == 10 {
            made.overhead("CUPTI buffer flush", (time + 50_000, time + wait - 50_000));
        }
        time += wait;
        made.launched("k", 1, (time, time + 100), (time + 100, time + 100_000));
        time += 100_000;
    }
    let finding = found(made, "host_waits");
    let evidence = &finding.evidence[0];
    assert_eq!(evidence.end_ns - evidence.start_ns, 100_000, "{finding:?}");
    // A step that is long because of the profiler.
    let steps = |overhead: bool| {
        let mut made = healthy();
        let mut time = 1_000_000;
        for step in 0..8u64 {
            let length = if step == 5 { 2_000_000 } else { 1_000_000 };
            made.range(&format!("step {step}"), (time, time + length));
            if step == 5 && overhead {
                made.overhead("CUPTI buffer request", (time, time + 900_000));
            }
            time += length;
        }
        findings(made)
            .iter()
            .any(|finding| finding.rule == "uneven_steps")
    };
    assert!(steps(false) && !steps(true));
}

#[test]
fn work_that_was_launched_long_before_waits_on_the_device() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 200), (300, 1_000));
    // The call is in progress when the gap begins, and returns at once.
    made.launched("b", 1, (900, 1_100), (5_000_000, 6_000_000));
    let (summary, findings) = analyzed(made);
    let causes: Vec<(IdleCause, u64)> = summary.idle.devices[0]
        .causes
        .iter()
        .map(|total| (total.cause, total.total_ns))
        .collect();
    assert_eq!(
        causes,
        [(IdleCause::Dispatch, 4_998_900), (IdleCause::LaunchGap, 100)]
    );
    assert_eq!(findings[0].rule, "queued_idle");
}

/// Issue 29: a decoder was recorded while its last step still ran, and half a second was called queued and idle.
#[test]
fn the_first_work_of_a_stream_waits_for_work_from_before_the_recording() {
    let made = |is_first: bool| {
        let mut made = Made::new();
        if !is_first {
            made.launched("earlier", 2, (50, 60), (70, 80));
        }
        made.launched("index", 1, (100, 200), (300, 1_000));
        made.launched("decode", 2, (900, 1_100), (50_000_000, 51_000_000));
        made.call("cudaMemcpyAsync", (2_000, 51_000_000));
        made
    };
    // A stream that is new in the middle of the recording waits for something else, such as a host function.
    let mut middle = Made::new();
    for number in 0..20 {
        let at = 100 + number * 2_000;
        middle.launched("index", 1, (at, at + 100), (at + 200, at + 1_000));
    }
    middle.launched("late", 3, (50_000, 50_100), (60_000_000, 61_000_000));
    let (summary, findings) = analyzed(middle);
    assert_eq!(summary.idle.devices[0].causes[0].cause, IdleCause::Dispatch);
    assert_eq!(findings[0].rule, "queued_idle");
    let (summary, findings) = analyzed(made(true));
    let main = &summary.idle.devices[0].causes[0];
    assert_eq!(
        (main.cause, main.total_ns),
        (IdleCause::BeforeRecording, 49_998_900)
    );
    assert_eq!(
        summary.idle.devices[0].longest[0].cause,
        IdleCause::BeforeRecording
    );
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["before_recording"]);
    assert_eq!(findings[0].saves_ns, None, "nobody can act on it");
    assert_eq!(
        findings[0].sentence,
        "98 % of the time GPU #1 has no work in the trace, because it finishes work that was launched before the \
         recording began (50.00 ms)"
    );
    assert_eq!(
        findings[0].advice,
        "This is not idle time of the program: analyze the time after it with --from 49999us"
    );
    let (summary, findings) = analyzed(made(false));
    let causes = &summary.idle.devices[0].causes;
    assert!(
        causes
            .iter()
            .all(|cause| cause.cause != IdleCause::BeforeRecording)
    );
    assert_eq!(findings[0].rule, "queued_idle");
}

#[test]
fn one_slow_launch_is_not_many_launches() {
    let mut made = one_by_one("k", 0, 100, 20_000);
    made.launched("first", 1, (2_010_000, 7_000_000), (7_000_010, 7_100_000));
    let finding = found(made, "slow_launches");
    assert!(
        finding.sentence.contains("1 launch call "),
        "{}",
        finding.sentence
    );
    assert_eq!(finding.evidence[0].what, "idle before first");
}

fn memory(made: Made) -> MemoryReport {
    MemoryReport::of(&made.finish(), Window::default()).unwrap()
}

#[test]
fn memory_that_is_kept_on_purpose_is_no_leak() {
    let grow = |made: &mut Made, stack: StackId, memory: MemoryKind| {
        for at in 0..12u64 {
            let time = 1_000_000 + at * 800_000;
            let piece = (0x1000 + at * 0x10_0000, 1 << 18);
            made.memory_of((PROCESS, memory), ALLOCATE, time, piece, stack);
        }
    };
    let kept = |frames: &[(&str, &str)], memory: MemoryKind| {
        let mut made = healthy();
        let stack = made.native_stack(frames);
        grow(&mut made, stack, memory);
        made
    };
    let (train, torch) = ("/opt/train", "/opt/libc10_cuda.so");
    let allocator = "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc";
    for (frames, kind, by) in [
        (
            &[(train, "main"), (torch, allocator)][..],
            MemoryKind::DEVICE,
            Some("caching allocator"),
        ),
        (
            &[(train, "main"), ("/opt/libcublasLt.so.12", "")][..],
            MemoryKind::DEVICE,
            Some("cuBLAS"),
        ),
        (&[(train, "main")][..], MemoryKind::DEVICE_STATIC, Some("module")),
        (
            &[(train, "main"), (train, "cache_rows")][..],
            MemoryKind::DEVICE,
            None,
        ),
    ] {
        let report = memory(kept(frames, kind));
        let pool = &report.pools[0];
        assert_eq!(pool.never_freed[0].kept_by, by, "{frames:?}");
        assert_eq!(pool.kept_bytes, by.map_or(0, |_| 12 << 18));
        assert_eq!((pool.never_freed[0].count, pool.never_freed[0].late), (12, 5));
        let rules: Vec<&str> = findings(kept(frames, kind))
            .iter()
            .map(|finding| finding.rule)
            .collect();
        let expected: &[&str] = if by.is_none() { &["leaks"] } else { &[] };
        assert_eq!(rules, expected, "{frames:?}");
    }
}

#[test]
fn memory_is_reported_by_process_and_rank() {
    let mut made = Made::new();
    for rank in 0..2u32 {
        let process = ProcessId(rank + 1);
        let row = Process {
            id: process,
            pid: 4_000 + rank,
            rank: Ordinal::new(rank),
            ..Process::default()
        };
        made.writer.define(&row).unwrap();
        let piece = (0x100, 1_000 * u64::from(rank + 1));
        made.memory_of((process, MemoryKind::DEVICE), ALLOCATE, 100, piece, StackId::NONE);
    }
    let report = memory(made);
    let pools: Vec<(u32, Option<u32>, u64)> = report
        .pools
        .iter()
        .map(|pool| (pool.pid, pool.rank, pool.peak_bytes))
        .collect();
    assert_eq!(pools, [(4_001, Some(1), 2_000), (4_000, Some(0), 1_000)]);
}

fn what_if(made: Made, pattern: &str) -> WhatIfReport {
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    analysis
        .what_if(&WhatIf {
            scales: vec![Scale {
                name: NamePattern::new(pattern).unwrap(),
                factor: 0.5,
            }],
            ..WhatIf::default()
        })
        .unwrap()
}

#[test]
fn what_if_explains_a_zero() {
    // The host takes much longer than the kernels, and waits for none but the last.
    let mut made = one_by_one("k", 20_000, 100, 1_000);
    made.launched("last", 1, (2_100_000, 2_100_100), (2_100_100, 2_200_000));
    let report = what_if(made, "k");
    assert_eq!(
        (report.scaled_ops, report.scaled_on_path, report.scaled_on_path_ns),
        (50, 0, 0)
    );
    assert_eq!(
        report.explanation.as_deref(),
        Some("50 GPU operations match, none on the critical path; the GPU waits for the CPU")
    );
    // Beside longer work of another stream.
    let mut made = healthy();
    made.launched("short", 2, (920_000, 920_100), (1_000_000, 2_000_000));
    let report = what_if(made, "short");
    assert_eq!(
        report.explanation.as_deref(),
        Some("1 GPU operation matches, none on the critical path; other GPU work determines the time")
    );
    let report = what_if(healthy(), "gemm");
    assert_eq!((report.scaled_on_path, report.explanation), (10, None));
    assert!(report.path_work_share > 0.98, "{}", report.path_work_share);
    assert_eq!(what_if(healthy(), "nothing").explanation, None);
}

/// For every rule a trace that is much like one it speaks on, and is fine.
fn silent() -> BTreeMap<&'static str, Made> {
    let mut traces: BTreeMap<&'static str, Made> = BTreeMap::new();
    // The host waits most of the time, for a device that is busy.
    let mut made = healthy();
    made.call("cudaDeviceSynchronize", (1_000_000, 11_001_000));
    traces.insert("host_waits", made);
    // All of it beside computation.
    let mut made = healthy();
    made.launched(
        "ncclDevKernel_AllReduce",
        2,
        (950_000, 950_100),
        (1_000_000, 11_000_000),
    );
    traces.insert("exposed_communication", made);
    // Long calls, ahead of time.
    let mut made = Made::new();
    for at in 0..10u64 {
        let (launch, start) = (900_000 + at * 50_000, 1_000_000 + at * 1_000_000);
        made.launched("gemm", 1, (launch, launch + 45_000), (start, start + 1_000_000));
    }
    traces.insert("launch_gaps", made);
    // A call of 5 ms, beside a device that is busy.
    let mut made = Made::new();
    for at in 0..10u64 {
        let start = 1_000_000 + at * 1_000_000;
        made.launched(
            "gemm",
            1,
            (900_000 + at, 900_000 + at),
            (start, start + 1_000_000),
        );
    }
    made.launched("next", 1, (2_000_000, 7_000_000), (11_000_000, 12_000_000));
    traces.insert("slow_launches", made);
    // A flush of 8 ms, beside a device that is busy.
    let mut made = healthy();
    made.overhead("CUPTI buffer flush", (1_500_000, 9_500_000));
    traces.insert("profiler_overhead", made);
    // A host that works for long, and has launched everything before.
    let mut made = healthy();
    made.launched("next", 1, (10_500_000, 10_500_100), (11_000_000, 12_000_000));
    traces.insert("host_busy", made);
    // The first work of a stream waits long, beside a device that is busy.
    let mut made = healthy();
    made.launched("next", 2, (950_000, 950_100), (11_000_000, 12_000_000));
    traces.insert("before_recording", made);
    // The usual microseconds from one kernel to the next.
    let mut made = Made::new();
    for at in 0..100u64 {
        let start = 1_000_000 + at * 10_000;
        made.launched("k", 1, (800_000 + at, 800_000 + at), (start, start + 8_000));
    }
    traces.insert("queued_idle", made);
    // Without any call, and without a gap.
    let mut made = Made::new();
    (0..10u64).for_each(|at| made.kernel("k", 1, 1_000_000 + at * 1_000, 1_001_000 + at * 1_000));
    traces.insert("unknown_idle", made);
    // Short kernels in a queue that is never empty.
    let mut made = Made::new();
    for at in 0..100u64 {
        let launch = 900_000 + at * 5_000;
        made.launched(
            "k",
            1,
            (launch, launch + 4_900),
            (2_000_000 + at * 2_000, 2_002_000 + at * 2_000),
        );
    }
    traces.insert("short_kernels", made);
    // Memory is taken all the time, beside a device that is busy.
    let mut made = healthy();
    made.call("cudaMalloc", (1_000_000, 10_900_000));
    traces.insert("allocations", made);
    let shape = |source: MemoryKind| CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        source_memory: source,
        destination_memory: MemoryKind::DEVICE,
        ..CopyShape::default()
    };
    // Pageable, and short.
    let mut made = healthy();
    made.copy(2, (1_000_000, 1_100_000), 1 << 20, shape(MemoryKind::PAGEABLE));
    traces.insert("pageable_copies", made);
    // Many, and not small.
    let mut made = healthy();
    for at in 0..200u64 {
        let start = 1_000_000 + at * 2_000;
        made.copy(2, (start, start + 2_000), 1 << 20, shape(MemoryKind::PINNED));
    }
    traces.insert("small_copies", made);
    // Long, beside kernels.
    let mut made = healthy();
    made.copy(2, (1_000_000, 11_000_000), 1 << 30, shape(MemoryKind::PINNED));
    traces.insert("copies_alone", made);
    // Only the first step is long: it warms up.
    let mut made = healthy();
    let mut time = 1_000_000;
    for step in 0..8u64 {
        let length = if step == 0 { 2_500_000 } else { 1_000_000 };
        made.range(&format!("step {step}"), (time, time + length));
        time += length;
    }
    traces.insert("uneven_steps", made);
    // A model that is taken at the start, in many pieces.
    let mut made = healthy();
    let stack = made.stack("model.py", 12, "load");
    for at in 0..100u64 {
        made.memory(ALLOCATE, 1_000_000 + at, 0x1000 + at * 0x10_0000, 1 << 18, stack);
    }
    traces.insert("leaks", made);
    // The address is taken again in between.
    let mut made = healthy();
    for at in 0..2u64 {
        made.memory(ALLOCATE, 2_000_000 + at * 1_000, 0x10, 64, StackId::NONE);
        made.memory(
            MemoryOperation::FREE,
            2_000_500 + at * 1_000,
            0x10,
            0,
            StackId::NONE,
        );
    }
    traces.insert("bad_frees", made);
    traces
}

#[test]
fn every_rule_has_a_trace_on_which_it_is_silent() {
    let mut traces = silent();
    for rule in FindingsReport::rules() {
        let made = traces
            .remove(rule)
            .unwrap_or_else(|| panic!("no trace for {rule}"));
        let rules: Vec<&str> = findings(made).iter().map(|finding| finding.rule).collect();
        assert!(!rules.contains(&rule), "{rule} speaks where nothing is wrong");
        assert!(rules.is_empty(), "{rules:?} speak on the trace of {rule}");
    }
    assert!(traces.is_empty(), "traces of no rule");
}

#[test]
fn every_finding_states_what_it_assumes() {
    let mut made = one_by_one("k", 20_000, 5_000, 4_000);
    made.call_of(THREAD, "cudaMalloc", (4_000_000, 5_000_000), StackId::NONE);
    made.launched("k", 1, (5_000_000, 5_000_100), (5_000_100, 5_100_000));
    let found = findings(made);
    assert!(found.len() >= 3, "{found:?}");
    for finding in found {
        assert!(
            !finding.assumption.is_empty() && !finding.assumption.ends_with('.'),
            "{finding:?}"
        );
        assert!(
            !finding.advice.is_empty() && !finding.advice.ends_with('.'),
            "{finding:?}"
        );
    }
}
