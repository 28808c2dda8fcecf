//! Memory and findings of traces made by hand: every rule has one that makes it speak and one that does not.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::made;

use made::{Made, THREAD};
use tracesmith_format::tables::{CopyDirection, CopyShape, MemoryKind, MemoryOperation, Place};
use tracesmith_format::{DeviceId, StackId, ThreadId};
use tracesmith_trace::analysis::{Analysis, Finding, MemoryReport, source_line};
use tracesmith_trace::reconstruct::Window;

const ALLOCATE: MemoryOperation = MemoryOperation::ALLOCATE;
const FREE: MemoryOperation = MemoryOperation::FREE;

fn findings(made: Made) -> Vec<Finding> {
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let summary = analysis.summary().unwrap();
    let found = analysis.findings(&summary).unwrap().findings;
    for finding in &found {
        assert!(!finding.evidence.is_empty(), "{} without evidence", finding.rule);
        for evidence in &finding.evidence {
            assert!(
                evidence.row.is_some() || evidence.end_ns > evidence.start_ns,
                "{finding:?}"
            );
        }
    }
    found
}

fn rules(made: Made) -> Vec<&'static str> {
    let mut rules: Vec<&'static str> = findings(made).iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules
}

/// A device that is busy from 1 ms to 11 ms, launched ahead of time: nothing to complain of.
fn healthy() -> Made {
    let mut made = Made::new();
    for at in 0..10u64 {
        let launch = 900_000 + at * 1_000;
        let start = 1_000_000 + at * 1_000_000;
        made.launched("gemm", 1, (launch, launch + 500), (start, start + 1_000_000));
    }
    made
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(rules(healthy()), [""; 0]);
    assert_eq!(rules(Made::new()), [""; 0]);
}

#[test]
fn a_program_that_keeps_the_gpu_busy_is_bound_by_its_kernels() {
    let bound = |made: Made| {
        let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
        let report = analysis.findings(&analysis.summary().unwrap()).unwrap();
        report.gpu_bound
    };
    let mut made = healthy();
    made.launched(
        "ns::attention<64>(int)",
        1,
        (950_000, 950_100),
        (11_000_000, 19_000_000),
    );
    assert_eq!(
        bound(made).unwrap(),
        "GPU-bound: busy 100 % of the time; gemm takes 56 %, ns::attention takes 44 % of the kernel time"
    );
    // Idle for a third of the time.
    let mut made = healthy();
    made.launched("gemm", 1, (15_500_000, 15_500_500), (15_500_600, 16_000_000));
    assert_eq!(bound(made), None);
    // Busy with copies.
    let mut made = Made::new();
    made.copy(1, (1_000_000, 11_000_000), 1 << 30, CopyShape::default());
    assert_eq!(bound(made), None);
}

#[test]
fn waits_are_found_with_the_line_that_waits() {
    let mut made = healthy();
    let stack = made.stack("/home/me/model.py", 88, "loss_item");
    made.launched("gemm", 1, (11_500_000, 11_500_500), (11_500_600, 11_600_000));
    for at in 0..4u64 {
        let start = 1_000_000 + at * 2_600_000;
        made.call_of(THREAD, "cudaStreamSynchronize", (start, start + 2_500_000), stack);
    }
    let found = findings(made);
    let wait = found.iter().find(|finding| finding.rule == "host_waits").unwrap();
    assert_eq!(
        wait.sentence,
        "94 % of the time the CPU waits in 4 cudaStreamSynchronize calls from model.py:88 (loss_item)"
    );
    assert_eq!(
        (
            wait.evidence[0].start_ns,
            wait.evidence[0].table,
            wait.evidence[0].row
        ),
        (1_000_000, "api_calls", Some(11)),
        "ten launches and one more stand before it"
    );
    let mut made = healthy();
    made.call("cudaStreamSynchronize", (1_000_000, 1_100_000));
    assert!(!rules(made).contains(&"host_waits"));
}

#[test]
fn a_program_without_lines_is_named_by_its_function() {
    let (program, driver) = ("/opt/train", "/usr/lib/libcuda.so.1");
    let outer = [("/lib/libc.so.6", "__libc_start_main"), (program, "main")];
    let cases: [(&[(&str, &str)], &str); 5] = [
        (
            &[
                (program, "train_step(int)"),
                (program, "cudaStreamSynchronize"),
                (driver, ""),
            ],
            "train_step(int)",
        ),
        (
            &[
                (program, "void add<float>(float*)"),
                (program, "__device_stub__Z3addIfEvPT_(float*)"),
                (program, "cudaLaunchKernel"),
                (driver, "cuLaunchKernel"),
            ],
            "main",
        ),
        // The first of the two is not there when it is inlined.
        (
            &[
                (program, "train_step(int)"),
                (program, "__device_stub__Z3addPf(float*)"),
                (driver, ""),
            ],
            "train_step(int)",
        ),
        (&[(program, ""), (driver, "")], "main"),
        (&[], "main"),
    ];
    for (inner, wanted) in cases {
        let mut made = Made::new();
        let frames = [&outer[..], inner].concat();
        let stack = made.native_stack(&frames);
        let trace = made.finish();
        assert_eq!(source_line(&trace, stack), wanted, "{frames:?}");
    }
    let mut made = Made::new();
    let stack = made.native_stack(&[(program, ""), (driver, "")]);
    assert_eq!(source_line(&made.finish(), stack), "train+0x0");
}

#[test]
fn exposed_communication_is_found_and_hidden_is_not() {
    let mut made = healthy();
    made.launched(
        "ncclDevKernel_AllReduce",
        2,
        (950_000, 950_100),
        (11_000_000, 13_000_000),
    );
    let found = findings(made);
    let exposed = found
        .iter()
        .find(|finding| finding.rule == "exposed_communication")
        .unwrap();
    assert_eq!(exposed.saves_ns, Some(2_000_000));
    assert_eq!(exposed.evidence[0].what, "ncclDevKernel_AllReduce");
    let mut made = healthy();
    made.launched(
        "ncclDevKernel_AllReduce",
        2,
        (950_000, 950_100),
        (2_000_000, 4_000_000),
    );
    assert_eq!(rules(made), [""; 0]);
}

/// The advice was to overlap 556 ms of communication with 4 ms of computation.
#[test]
fn communication_is_hidden_beside_computation_that_there_is() {
    let exposed = |compute_nanos: u64| {
        let mut made = Made::new();
        made.kernel("gemm", 1, 1_000_000, 1_000_000 + compute_nanos);
        let start = 1_000_000 + compute_nanos;
        made.kernel("ncclDevKernel_AllReduce", 2, start, start + 20_000_000);
        let found = findings(made);
        let exposed = found
            .into_iter()
            .find(|finding| finding.rule == "exposed_communication");
        exposed.unwrap()
    };
    let some = exposed(15_000_000);
    assert_eq!(some.saves_ns, Some(15_000_000), "no longer than the computation");
    assert!(
        some.advice.starts_with("Start communication earlier"),
        "{}",
        some.advice
    );
    let few = exposed(500_000);
    assert!(few.advice.starts_with("Communicate less: "), "{}", few.advice);
    let bound = "Overlap with computation saves at most 500.00 µs";
    assert!(few.advice.ends_with(bound), "{}", few.advice);
    assert_eq!(few.saves_ns, Some(20_000_000));
}

/// The time of the whole gap was shown as that of the cause, and the time after the call's return as time in the call.
#[test]
fn evidence_states_how_much_of_a_gap_has_the_cause() {
    let mut made = Made::new();
    for at in 0..20u64 {
        // The CPU computes for 20 µs, the call takes 5 µs, and the GPU starts 2 µs later.
        let start = 1_000_000 + at * 40_000;
        let call = start + 20_000;
        made.launched("k", 1, (call, call + 5_000), (call + 7_000, start + 40_000));
    }
    let found = findings(made);
    let cause = |rule: &str| {
        let finding = found.iter().find(|finding| finding.rule == rule).unwrap();
        let evidence = &finding.evidence[0];
        (evidence.cause_ns.unwrap(), evidence.end_ns - evidence.start_ns)
    };
    assert_eq!(cause("launch_gaps"), (7_000, 27_000));
    assert_eq!(cause("host_busy"), (20_000, 27_000));
    let launch = found
        .iter()
        .find(|finding| finding.rule == "launch_gaps")
        .unwrap();
    let sentence = "is idle from a launch call to the start of its work (19 gaps of 7.00 µs on average)";
    assert!(launch.sentence.ends_with(sentence), "{}", launch.sentence);
}

/// The advice for data loading promised the time of all CPU code.
#[test]
fn loading_ahead_saves_the_time_of_loading() {
    let mut made = Made::new();
    for at in 0..20u64 {
        let start = 1_000_000 + at * 200_000;
        made.range("DataLoader.__next__", (start, start + 75_000));
        made.launched(
            "k",
            1,
            (start + 100_000, start + 100_100),
            (start + 100_200, start + 200_000),
        );
    }
    let found = findings(made);
    let busy = found.iter().find(|finding| finding.rule == "host_busy").unwrap();
    assert!(busy.advice.starts_with("Prepare data ahead"), "{}", busy.advice);
    assert_eq!(busy.saves_ns, Some(19 * 75_000));
}

/// Work that is launched one by one, each when the device has run out of work.
fn one_by_one(host_nanos: u64, call_nanos: u64, kernel_nanos: u64) -> Made {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for _ in 0..50 {
        made.launched(
            "k",
            1,
            (time, time + call_nanos),
            (time + call_nanos, time + call_nanos + kernel_nanos),
        );
        time += call_nanos + kernel_nanos + host_nanos;
    }
    made
}

#[test]
fn launches_and_the_host_are_told_apart() {
    assert_eq!(rules(one_by_one(0, 5_000, 20_000)), ["launch_gaps"]);
    assert_eq!(rules(one_by_one(20_000, 100, 20_000)), ["host_busy"]);
    assert_eq!(
        rules(one_by_one(0, 5_000, 4_000)),
        ["launch_gaps", "short_kernels"]
    );
    assert_eq!(rules(one_by_one(0, 100, 20_000)), [""; 0]);
}

#[test]
fn a_long_start_hides_nothing() {
    let mut made = one_by_one(20_000, 100, 20_000);
    made.call("cuInit", (1, 10));
    let found = findings(made);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].sentence,
        "49 % of the time GPU #1 is idle, waiting for the CPU to launch work (49 gaps)"
    );
    assert_eq!(found[0].evidence[0].table, "kernels");
}

/// Kernels of two GPUs with a thread each, so many of each, with so much time between them.
fn two_devices(kernels: [(u64, u64); 2]) -> Made {
    let mut made = Made::new();
    for (device, (count, host_nanos)) in (1u32..).zip(kernels) {
        let mut time = 1_000_000;
        for _ in 0..count {
            let thread = ThreadId(u64::from(device));
            let call = made.call_of(thread, "cudaLaunchKernel", (time, time + 100), StackId::NONE);
            let place = Place {
                device: DeviceId(device),
                ..made::place(u64::from(device))
            };
            made.kernel_row("k", (time + 100, time + 20_100), call, place);
            time += 20_100 + host_nanos;
        }
    }
    made
}

/// Issue 29: the GPU that was idle for a quarter of the time was not named, since the other one did more.
#[test]
fn the_device_that_loses_most_is_named() {
    let found = findings(two_devices([(78, 5_000), (49, 20_000)]));
    assert_eq!(found.len(), 1, "{found:?}");
    let sentence = "49 % of the time GPU #2 is idle, waiting for the CPU to launch work (48 gaps)";
    assert_eq!(found[0].sentence, sentence);
    let found = findings(two_devices([(49, 20_000), (78, 5_000)]));
    assert_eq!(found[0].sentence, sentence.replace("#2", "#1"));
}

/// Issue 29: a kernel that had run many times was to be loaded before.
#[test]
fn only_first_launches_load_code() {
    let made = |kernel: &str| {
        let mut made = healthy();
        made.launched(kernel, 1, (11_100_000, 13_000_000), (13_000_000, 14_000_000));
        made.finish()
    };
    let advice = |kernel: &str, window: Window| {
        let analysis = Analysis::of(&made(kernel), window).unwrap();
        let findings = analysis.findings(&analysis.summary().unwrap()).unwrap();
        let slow = findings.findings.into_iter();
        let mut slow = slow.filter(|finding| finding.rule == "slow_launches");
        slow.next().unwrap().advice
    };
    let whole = Window::default();
    let end = Window {
        from: Some(11_000_000),
        to: None,
    };
    for window in [whole, end] {
        let first = advice("new", window);
        assert!(first.contains("CUDA_MODULE_LOADING"), "{first}");
        let again = advice("gemm", window);
        assert!(
            again.starts_with("The kernels had been launched before"),
            "{again}"
        );
        assert!(!again.contains("CUDA_MODULE_LOADING"), "{again}");
    }
}

#[test]
fn copies_that_nothing_runs_beside_are_named() {
    let mut made = healthy();
    let shape = CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        source_memory: MemoryKind::PINNED,
        ..CopyShape::default()
    };
    made.copy(2, (2_000_000, 9_000_000), 1 << 30, shape); // beside kernels
    made.copy(2, (10_900_000, 12_900_000), 1 << 30, shape); // alone for most of its time
    let found = findings(made);
    let alone = found
        .iter()
        .find(|finding| finding.rule == "copies_alone")
        .unwrap();
    let evidence = &alone.evidence;
    assert_eq!(
        (
            evidence.len(),
            evidence[0].table,
            evidence[0].row,
            evidence[0].start_ns
        ),
        (1, "copies", Some(1), 10_900_000)
    );
    assert_eq!(evidence[0].what, "host to device");
    assert_eq!(alone.saves_ns, Some(1_900_000));
}

/// 20 ms of copies and so much of kernels, one after the other.
fn copies_and_kernels(kernel_nanos: u64, back: u64) -> Finding {
    let mut made = Made::new();
    let (mut at, shape) = (1_000_000, CopyShape::default());
    for (direction, bytes) in [
        (CopyDirection::HOST_TO_DEVICE, 3 << 30),
        (CopyDirection::DEVICE_TO_HOST, back),
    ] {
        let shape = CopyShape { direction, ..shape };
        made.copy(1, (at, at + 10_000_000), bytes, shape);
        at += 10_000_000;
    }
    made.kernel("at::native::add", 1, at, at + kernel_nanos);
    let found = findings(made);
    let alone = found.into_iter().find(|finding| finding.rule == "copies_alone");
    alone.unwrap()
}

/// Issue 29: the finding was in each step and not in the whole trace, of which a long start is a part.
#[test]
fn short_kernels_of_steps_are_found_in_the_whole_trace() {
    let mut made = Made::new();
    made.launched("load", 1, (1_000, 1_500), (2_000, 3_000));
    for step in 0..5u64 {
        let start = 100_000_000 + step * 1_000_000;
        made.range(&format!("step {step}"), (start, start + 1_000_000));
        for at in 0..20u64 {
            let call = start + 100_000 + at * 40_000;
            made.launched("k", 1, (call, call + 10_000), (call + 10_000, call + 12_000));
        }
    }
    let found = findings(made);
    let short = found
        .iter()
        .find(|finding| finding.rule == "short_kernels")
        .unwrap();
    assert_eq!(
        short.sentence,
        "100 kernels (99 %) take less time than their launch calls: 200.00 µs of GPU work for 1.00 ms of launch calls. A \
         thread spends 20 % of the time of a step in them"
    );
}

/// Issue 29: copies were to be hidden beside kernels of a fortieth of their time.
#[test]
fn copies_are_hidden_beside_kernels_that_there_are() {
    let some = copies_and_kernels(15_000_000, 1 << 30);
    assert_eq!(some.saves_ns, Some(15_000_000), "no longer than the kernels");
    assert!(some.advice.starts_with("Start copies earlier"), "{}", some.advice);
    let few = copies_and_kernels(500_000, 1 << 30);
    assert_eq!(
        few.advice,
        "Move less data (3.0 GiB to the GPU, 1.0 GiB to the host): keep on the GPU what is used again, for example \
         without CPU offload of parameters or optimizer state, or use a smaller data type. Overlap with kernels saves at \
         most 500.00 µs"
    );
}

#[test]
fn memory_that_is_taken_between_launches_is_found() {
    let with = |nanos: u64| {
        let mut made = Made::new();
        let mut time = 1_000_000;
        for _ in 0..20 {
            made.call("cudaMalloc", (time, time + nanos));
            time += nanos;
            made.launched("k", 1, (time, time + 100), (time + 100, time + 100_000));
            time += 100_000;
        }
        made
    };
    assert_eq!(rules(with(50_000)), ["allocations"]);
    assert_eq!(rules(with(500)), [""; 0]);
}

fn copies(source: MemoryKind, count: u64, bytes: u64, nanos: u64) -> Made {
    let mut made = healthy();
    let shape = CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        source_memory: source,
        destination_memory: MemoryKind::DEVICE,
        ..CopyShape::default()
    };
    for at in 0..count {
        let start = 1_000_000 + at * nanos;
        made.copy(2, (start, start + nanos), bytes, shape);
    }
    made
}

#[test]
fn copies_are_found_by_memory_size_and_company() {
    assert_eq!(
        rules(copies(MemoryKind::PAGEABLE, 4, 4 << 20, 500_000)),
        ["pageable_copies"]
    );
    assert_eq!(rules(copies(MemoryKind::PINNED, 4, 4 << 20, 500_000)), [""; 0]);
    assert_eq!(
        rules(copies(MemoryKind::PINNED, 200, 1_000, 2_000)),
        ["small_copies"]
    );
    assert_eq!(rules(copies(MemoryKind::PINNED, 50, 1_000, 2_000)), [""; 0]);
    // Twenty of them, the second half after all kernels.
    assert_eq!(
        rules(copies(MemoryKind::PINNED, 20, 4 << 20, 1_000_000)),
        ["copies_alone"]
    );
    // What page-locked memory would do is known from copies that use it.
    let mut made = copies(MemoryKind::PAGEABLE, 4, 4 << 20, 500_000);
    let shape = CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        source_memory: MemoryKind::PINNED,
        destination_memory: MemoryKind::DEVICE,
        ..CopyShape::default()
    };
    made.copy(3, (5_000_000, 5_125_000), 4 << 20, shape);
    let found = findings(made);
    assert_eq!(found[0].saves_ns, Some(4 * (500_000 - 125_000)));
}

#[test]
fn steps_that_stand_out_are_found() {
    let with = |long: u64| {
        let mut made = healthy();
        let mut time = 1_000_000;
        for step in 0..8u64 {
            let length = if step == 5 { long } else { 1_000_000 };
            made.range(&format!("step {step}"), (time, time + length));
            time += length;
        }
        made
    };
    let found = findings(with(2_000_000));
    assert_eq!(
        (found[0].rule, found[0].saves_ns),
        ("uneven_steps", Some(1_000_000))
    );
    assert_eq!(found[0].evidence[0].what, "step 5");
    assert_eq!(rules(with(1_200_000)), [""; 0]);
}

/// Issue 29: a step that also begins the next pass was called uneven.
#[test]
fn a_step_that_does_more_is_not_uneven() {
    let with = |kernels: u64| {
        let mut made = Made::new();
        let mut time = 1_000_000;
        for step in 0..8u64 {
            let (count, length) = match step {
                5 => (kernels, 3_000_000),
                _ => (10, 1_000_000),
            };
            made.range(&format!("step {step}"), (time, time + length));
            let each = length / count;
            for at in 0..count {
                let start = time + at * each;
                made.launched("k", 1, (start, start + 10), (start + 20, start + each));
            }
            time += length;
        }
        let found = findings(made);
        let found = found.into_iter().find(|finding| finding.rule == "uneven_steps");
        found.unwrap()
    };
    let same = with(10);
    assert_eq!(
        (same.sentence.as_str(), same.saves_ns),
        (
            "1 of 8 steps takes more than 1.5× the median (1.00 ms); the longest is step 5 with 3.00 ms",
            Some(2_000_000)
        )
    );
    let more = with(30);
    assert_eq!(
        (more.sentence.as_str(), more.saves_ns),
        (
            "1 of 8 steps takes more than 1.5× the median (1.00 ms) and does different work: step 5 has 30 GPU \
             operations, the median is 10",
            None
        )
    );
    assert_eq!(
        more.advice,
        "Look at what the step adds: tracesmith analyze --step 5 --only kernels"
    );
}

#[test]
fn leaks_and_double_frees_are_found() {
    let with = |pieces: u64, frees: u64| {
        let mut made = healthy();
        let stack = made.stack("cache.py", 12, "grow");
        for at in 0..pieces {
            let time = 2_000_000 + at * 700_000;
            made.memory(ALLOCATE, time, 0x1000 + at * 0x10_0000, 1 << 18, stack);
        }
        made.memory(ALLOCATE, 3_000_000, 0x10, 64, StackId::NONE);
        for at in 0..frees {
            made.memory(FREE, 3_000_001 + at, 0x10, 0, stack);
        }
        made
    };
    assert_eq!(rules(with(12, 1)), ["leaks"]);
    assert_eq!(rules(with(3, 1)), [""; 0]);
    assert_eq!(rules(with(3, 2)), ["bad_frees"]);
}

fn memory(made: Made) -> MemoryReport {
    MemoryReport::of(&made.finish(), Window::default()).unwrap()
}

#[test]
fn memory_knows_its_peak_and_who_held_it() {
    let mut made = Made::new();
    let (model, cache) = (
        made.stack("model.py", 1, "init"),
        made.stack("cache.py", 2, "get"),
    );
    made.memory(ALLOCATE, 100, 0x100, 1_000, model);
    made.memory(ALLOCATE, 200, 0x200, 500, cache);
    made.memory(FREE, 300, 0x200, 0, cache);
    made.memory(ALLOCATE, 400, 0x300, 300, cache);
    made.memory(FREE, 500, 0x999, 0, cache); // never taken
    made.memory(FREE, 600, 0x200, 0, cache); // given back before
    let report = memory(made);
    let pool = &report.pools[0];
    assert_eq!(
        (pool.allocations, pool.frees, pool.allocated_bytes),
        (3, 3, 1_800)
    );
    assert_eq!(
        (pool.peak_bytes, pool.peak_at_ns, pool.live_bytes),
        (1_500, 200, 1_300)
    );
    let held: Vec<(&str, u64)> = pool
        .holders
        .iter()
        .map(|holder| (holder.stack.as_str(), holder.bytes))
        .collect();
    assert_eq!(held, [("model.py:1 (init)", 1_000), ("cache.py:2 (get)", 500)]);
    let left: Vec<(&str, u64)> = pool
        .never_freed
        .iter()
        .map(|holder| (holder.stack.as_str(), holder.bytes))
        .collect();
    assert_eq!(left, [("model.py:1 (init)", 1_000), ("cache.py:2 (get)", 300)]);
    assert_eq!(
        (report.unknown_frees.len(), report.unknown_frees[0].address),
        (1, 0x999)
    );
    assert_eq!((report.double_frees.len(), report.double_frees[0].row), (1, 5));
    let series: Vec<(u64, u64)> = pool
        .series
        .iter()
        .map(|point| (point.time_ns, point.bytes))
        .collect();
    assert_eq!(
        series[..4],
        [(100, 1_000), (200, 1_500), (300, 1_000), (400, 1_300)]
    );
}

#[test]
fn memory_without_addresses_adds_up_and_is_no_double_free() {
    let mut made = Made::new();
    for (at, bytes) in [(100, 1_000), (200, 500), (300, 250)] {
        made.memory(ALLOCATE, at, 0, bytes, StackId::NONE);
    }
    made.memory(FREE, 400, 0, 500, StackId::NONE);
    made.memory(FREE, 500, 0, 250, StackId::NONE);
    made.memory(FREE, 600, 0, 0, StackId::NONE); // cudaFree(NULL)
    let report = memory(made);
    let pool = &report.pools[0];
    assert_eq!(
        (pool.peak_bytes, pool.peak_at_ns, pool.live_bytes),
        (1_750, 300, 1_000)
    );
    assert_eq!((pool.allocations, pool.frees), (3, 2));
    assert_eq!(report.without_address, 5);
    assert!(report.double_frees.is_empty() && report.unknown_frees.is_empty());
    assert!(pool.holders.is_empty() && pool.never_freed.is_empty());
}

#[test]
fn memory_of_a_stretch_of_time_begins_with_what_is_held() {
    let trace = || {
        let mut made = Made::new();
        let stack = made.stack("a.py", 1, "a");
        made.memory(ALLOCATE, 100, 0x100, 5_000, stack);
        made.memory(FREE, 200, 0x100, 0, stack);
        made.memory(ALLOCATE, 300, 0x200, 1_000, stack);
        made.memory(ALLOCATE, 500, 0x300, 500, stack);
        made.memory(FREE, 600, 0x300, 0, stack);
        made.memory(ALLOCATE, 900, 0x400, 9_000, stack);
        made.finish()
    };
    let of = |from, to| {
        let window = Window {
            from: Some(from),
            to: Some(to),
        };
        MemoryReport::of(&trace(), window).unwrap().pools.remove(0)
    };
    let pool = of(400, 800);
    assert_eq!(
        (pool.allocations, pool.frees, pool.peak_bytes, pool.peak_at_ns),
        (1, 1, 1_500, 500)
    );
    assert_eq!((pool.live_bytes, pool.holders[0].bytes), (1_000, 1_500));
    assert_eq!(
        (pool.series[0].time_ns, pool.series[0].bytes),
        (400, 1_000),
        "what was held before"
    );
    let quiet = of(700, 800);
    assert_eq!(
        (quiet.peak_bytes, quiet.peak_at_ns, quiet.holders[0].bytes),
        (1_000, 700, 1_000)
    );
}

#[test]
fn an_address_that_is_taken_anew_makes_no_peak() {
    let mut made = Made::new();
    let (first, second) = (made.stack("a.py", 1, "a"), made.stack("b.py", 2, "b"));
    made.memory(ALLOCATE, 100, 0x100, 1_000, first);
    made.memory(ALLOCATE, 200, 0x100, 900, second);
    made.memory(ALLOCATE, 300, 0x200, 300, second);
    let report = memory(made);
    let pool = &report.pools[0];
    assert_eq!((pool.peak_bytes, pool.peak_at_ns), (1_200, 300));
    assert_eq!(
        (
            pool.holders.len(),
            pool.holders[0].bytes,
            pool.holders[0].first_row
        ),
        (1, 1_200, 1)
    );
}

#[test]
fn memory_taken_again_and_again_is_churn() {
    let mut made = Made::new();
    let stack = made.stack("loop.py", 3, "step");
    for at in 0..20u64 {
        made.memory(ALLOCATE, 100 + at * 10, 0x100, 64, stack);
        made.memory(FREE, 104 + at * 10, 0x100, 0, stack);
    }
    let report = memory(made);
    let churn = &report.pools[0].churn[0];
    assert_eq!((churn.count, churn.bytes, churn.held_ns), (20, 1_280, 80));
    assert_eq!((report.pools[0].peak_bytes, report.pools[0].live_bytes), (64, 0));
    assert!(memory(Made::new()).pools.is_empty());
    // An address that is taken again was given back unseen: it does not count twice.
    let mut made = Made::new();
    made.memory(ALLOCATE, 100, 0x100, 64, StackId::NONE);
    made.memory(ALLOCATE, 200, 0x100, 32, StackId::NONE);
    assert_eq!(memory(made).pools[0].live_bytes, 32);
}
