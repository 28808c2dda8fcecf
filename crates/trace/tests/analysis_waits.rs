//! What the CPU waits for where no call says so, and what that means for critical path and what-if.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;

use crate::made;

use made::{CLOCK, Made, place};
use tracesmith_format::tables::{CopyDirection, CopyShape, Place, SyncKind, SyncShape, Synchronization};
use tracesmith_format::{DeviceId, Timestamp};
use tracesmith_trace::analysis::{Analysis, HostWaits, Scale, WhatIf, WhatIfReport};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{NamePattern, Trace};

/// What becomes of a trace whose kernels of this name take half as long.
fn halved(trace: &Arc<Trace>, name: &str) -> WhatIfReport {
    let scale = Scale {
        name: NamePattern::new(name).unwrap(),
        factor: 0.5,
    };
    let what_if = WhatIf {
        scales: vec![scale],
        ..WhatIf::default()
    };
    Analysis::of(trace, Window::default())
        .unwrap()
        .what_if(&what_if)
        .unwrap()
}

/// Nsight Systems gives all waits device 0. The clocks of host and device may differ by some microseconds, more than the op
/// that the host waits for takes.
#[test]
fn a_wait_finds_its_op_although_its_device_and_its_clock_are_off() {
    let mut made = Made::new();
    made.launched("gemm", 1, (100_000, 101_000), (110_000, 1_110_000));
    made.launched("copy", 1, (102_000, 103_000), (1_112_000, 1_113_000));
    let wait = made.call("cudaStreamSynchronize", (105_000, 1_108_000));
    let row = Synchronization {
        start: Timestamp(105_000),
        end: Timestamp(1_108_000),
        correlation: wait,
        place: Place {
            device: DeviceId(99),
            ..place(1)
        },
        shape: SyncShape {
            kind: SyncKind::STREAM_WAIT,
            result: 0,
        },
        ..Synchronization::default()
    };
    made.writer.push(CLOCK, &row).unwrap();
    made.launched("norm", 1, (1_109_000, 1_109_500), (1_120_000, 1_220_000));
    let trace = made.finish();
    let report = halved(&trace, "gemm");
    assert_eq!(report.unchanged_ns, report.measured_ns);
    assert_eq!(report.measured_ns - report.changed_ns, 500_000);
    let path = Analysis::of(&trace, Window::default()).unwrap().critical_path();
    let names: Vec<&str> = path.totals.iter().map(|total| total.name.as_str()).collect();
    assert!(names.contains(&"gemm"), "{names:?}");
}

/// The first launches take 1 µs. Once the queue is full, each takes as long as a kernel.
fn full_queue(queue: u64, launches: u64) -> Made {
    full_queue_with_gaps(queue, launches, 1_000)
}

/// The same with a longer time between kernels.
fn full_queue_with_gaps(queue: u64, launches: u64, gap: u64) -> Made {
    const KERNEL: u64 = 100_000;
    let mut made = Made::new();
    let mut time = 1_000;
    for number in 0..launches {
        let start = 10_000 + number * (KERNEL + gap);
        // A launch beyond the queue returns 5 µs after the kernel at the front ends.
        let released = match number.checked_sub(queue) {
            Some(front) => 10_000 + front * (KERNEL + gap) + KERNEL + 5_000,
            None => 0,
        };
        let end = released.max(time + 1_000);
        made.launched("gemm", 1, (time, end), (start, start + KERNEL));
        time = end + 1_000;
    }
    made
}

/// Kernels seemed to be too short for their launches, which took long because the GPU was busy.
#[test]
fn a_kernel_is_not_short_because_its_launch_blocked() {
    let trace = full_queue_with_gaps(1_000, 1_600, 10_000).finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let short = analysis.summary().unwrap().launches.short_kernels;
    assert_eq!((short.count, short.launched), (0, 1_600));
    assert!(short.blocked > 500, "{}", short.blocked);
}

#[test]
fn launches_into_a_full_queue_wait_for_the_gpu() {
    let report = halved(&full_queue(1_000, 1_600).finish(), "gemm");
    assert_eq!(report.unchanged_ns, report.measured_ns);
    // The GPU has done 20 kernels by the time that 1,000 are queued.
    assert_eq!(report.blocked_launches, 580);
    let gain = 1.0 - report.changed_ns as f64 / report.measured_ns as f64;
    assert!((0.48..0.51).contains(&gain), "{gain}");
    // A few kernels are no full queue: the CPU is slow for another reason.
    let report = halved(&full_queue(4, 600).finish(), "gemm");
    assert_eq!(report.blocked_launches, 0);
}

/// A thread that launches, and then does something without a call until shortly after the kernel's end.
fn silent_thread(after_end: impl Fn(u64) -> u64) -> Made {
    let mut made = Made::new();
    let mut time = 1_000;
    for number in 0..40 {
        let end = time + 5_000 + 1_000_000;
        made.launched("gemm", 1, (time, time + 2_000), (time + 5_000, end));
        time = end + after_end(number);
    }
    made
}

#[test]
fn a_thread_that_always_goes_on_when_its_kernel_ends_waits_for_it() {
    let report = halved(&silent_thread(|_| 7_000).finish(), "gemm");
    assert_eq!(
        (report.assumed_waits, report.unchanged_ns),
        (39, report.measured_ns)
    );
    let gain = 1.0 - report.changed_ns as f64 / report.measured_ns as f64;
    assert!((0.48..0.50).contains(&gain), "{gain}");
    // Without waits the CPU launches ahead: only the times between the kernels are saved.
    let without = WhatIf {
        host_waits: HostWaits::Left,
        ..WhatIf::default()
    };
    let trace = silent_thread(|_| 7_000).finish();
    let report = Analysis::of(&trace, Window::default())
        .unwrap()
        .what_if(&without)
        .unwrap();
    assert_eq!(report.left_waits, 39);
    assert_eq!(report.measured_ns - report.changed_ns, 39 * 7_000);
    // The CPU works on its own.
    let report = halved(
        &silent_thread(|number| 7_000 + 50_000 * (number % 4)).finish(),
        "gemm",
    );
    assert_eq!(report.assumed_waits, 0);
    assert!(report.changed_ns * 10 > report.measured_ns * 9, "{report:?}");
}

/// A copy that blocks takes long to begin, as the first one of a program does. That time is no wait.
#[test]
fn the_time_before_a_blocking_copy_begins_is_not_a_wait() {
    let mut made = Made::new();
    let shape = CopyShape {
        direction: CopyDirection::DEVICE_TO_HOST,
        ..CopyShape::default()
    };
    let correlation = made.call("cudaMemcpyAsync", (1_000, 11_001_000));
    made.copy_of(correlation, 1, (10_998_000, 11_000_000), 64, shape);
    made.launched("gemm", 1, (11_002_000, 11_003_000), (11_005_000, 11_105_000));
    let without = WhatIf {
        host_waits: HostWaits::Left,
        ..WhatIf::default()
    };
    let report = Analysis::of(&made.finish(), Window::default())
        .unwrap()
        .what_if(&without)
        .unwrap();
    assert_eq!(report.unchanged_ns, report.measured_ns);
    let gain = report.measured_ns - report.changed_ns;
    assert!(gain <= 5_000, "{gain}");
}

/// A copy from pageable memory returns when its last part is in the driver's buffer, a little before the copy is over. A
/// copy from pinned memory returns long before.
#[test]
fn a_copy_from_pageable_memory_blocks_the_thread_that_asks_for_it() {
    let without_copy = |call: (u64, u64)| {
        let mut made = Made::new();
        let shape = CopyShape {
            direction: CopyDirection::HOST_TO_DEVICE,
            ..CopyShape::default()
        };
        let correlation = made.call("cudaMemcpyAsync", call);
        made.copy_of(correlation, 1, (160_000, 2_100_000), 19_267_584, shape);
        made.launched("gemm", 2, (2_030_000, 2_031_000), (2_110_000, 2_210_000));
        let what_if = WhatIf {
            scales: vec![Scale {
                name: NamePattern::new("host to device").unwrap(),
                factor: 0.0,
            }],
            ..WhatIf::default()
        };
        let report = Analysis::of(&made.finish(), Window::default())
            .unwrap()
            .what_if(&what_if)
            .unwrap();
        assert_eq!(report.unchanged_ns, report.measured_ns);
        report.measured_ns - report.changed_ns
    };
    // What the call does before the copy begins stays.
    assert_eq!(without_copy((1_000, 2_020_000)), 1_860_000);
    assert_eq!(without_copy((1_000, 200_000)), 0);
}

/// Launches that are captured into a graph have no ops. After a full queue they take the time that they take.
#[test]
fn launches_without_ops_are_blocked_only_after_the_last_op() {
    let mut made = full_queue(1_000, 1_100);
    let kernels = 10_000 + 900 * 101_000;
    for number in 0..5 {
        let at = kernels + number * 400_000;
        made.call("cudaLaunchKernel", (at, at + 300_000));
    }
    let report = halved(&made.finish(), "gemm");
    assert_eq!(report.blocked_launches, 80);
}

/// A graph has many ops of one call. They are looked at once.
#[test]
fn graphs_with_many_kernels_take_no_longer_than_as_many_kernels() {
    let began = std::time::Instant::now();
    let mut made = Made::new();
    let (mut time, mut start) = (1_000, 300_000);
    for _ in 0..30 {
        let launch = made.call("cudaGraphLaunch", (time, time + 200_000));
        for node in 0..2_000 {
            made.node(1 + node, 1, (start, start + 2_900), launch);
            start += 3_000;
        }
        time += 250_000;
    }
    let trace = made.finish();
    let report = halved(&trace, "no such kernel");
    assert_eq!(report.blocked_launches, 0);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// Times that no program has: a hostile file must not stop the analysis.
#[test]
fn times_may_be_as_far_apart_as_numbers_allow() {
    let mut made = Made::new();
    made.launched("early", 1, (1, 2), (3, 4));
    made.call("cudaDeviceSynchronize", (5, u64::MAX - 10));
    made.launched(
        "late",
        1,
        (u64::MAX - 9, u64::MAX - 8),
        (u64::MAX - 7, u64::MAX - 1),
    );
    let report = halved(&made.finish(), "");
    assert!(report.changed_ns <= report.measured_ns);
}
