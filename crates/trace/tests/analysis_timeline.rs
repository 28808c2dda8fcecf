//! Busy time, idle time, overlap and concurrency of traces whose answers were worked out by hand.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::sync::Arc;

use crate::made;

use made::{DEVICE, Made, PROCESS, place};
use proptest::prelude::*;
use tracesmith_format::tables::{CopyDirection, CopyShape, Device, Place};
use tracesmith_format::{CorrelationId, DeviceId};
use tracesmith_trace::Trace;
use tracesmith_trace::analysis::{Analysis, Breakdown, IdleCause, IdleReport, Peak};
use tracesmith_trace::reconstruct::{Activity, Timeline, Window};

fn breakdown(trace: &Trace) -> Breakdown {
    let timeline = Timeline::of(&Activity::of(trace).unwrap());
    Breakdown::of(&timeline.devices[0].span)
}

fn idle(trace: &Arc<Trace>) -> IdleReport {
    Analysis::of(trace, Window::default())
        .unwrap()
        .swept()
        .idle
        .clone()
}

fn causes(trace: &Arc<Trace>) -> Vec<(IdleCause, u64)> {
    let mut causes: Vec<(IdleCause, u64)> = idle(trace).devices[0]
        .causes
        .iter()
        .map(|cause| (cause.cause, cause.total_ns))
        .collect();
    causes.sort_unstable();
    causes
}

#[test]
fn what_runs_at_once_counts_once() {
    let mut made = Made::new();
    made.kernel("a", 1, 100, 200);
    made.kernel("b", 2, 150, 250); // overlaps a
    made.kernel("c", 3, 160, 170); // within both
    made.kernel("d", 1, 250, 300); // touches b
    made.kernel("e", 1, 400, 400); // of no length
    made.kernel("f", 1, 500, 600);
    let trace = made.finish();
    let timeline = Timeline::of(&Activity::of(&trace).unwrap());
    let device = &timeline.devices[0];
    assert_eq!((device.first, device.last, device.ops), (100, 600, 6));
    let all = Breakdown::of(&device.span);
    assert_eq!(
        (all.span_ns, all.busy_ns, all.idle_ns, all.compute_ns),
        (500, 300, 200, 300)
    );
    assert_eq!(all.utilization, 0.6);
    assert_eq!((device.max_concurrency, device.max_at), (3, 160));
    assert_eq!(device.concurrency, [200, 50 + 50 + 50 + 100, 10 + 30, 10]);
    // 500 ns in stretches of three.
    assert_eq!(
        (device.load.len(), device.load[20].start, device.load[20].end),
        (167, 160, 163)
    );
    assert_eq!((device.load[20].busy, device.load[20].work), (3, 9));
    assert_eq!(device.load.iter().map(|load| load.busy).sum::<u64>(), 300);
    assert_eq!(
        device.load.iter().map(|load| load.work).sum::<u64>(),
        100 + 100 + 10 + 50 + 100
    );
}

#[test]
fn rows_out_of_order_give_the_same() {
    let spans = [(100, 200), (150, 250), (500, 600), (250, 300)];
    let made_of = |order: &[usize]| {
        let mut made = Made::new();
        for at in order {
            made.kernel("k", 1, spans[*at].0, spans[*at].1);
        }
        breakdown(&made.finish())
    };
    assert_eq!(made_of(&[0, 1, 2, 3]), made_of(&[3, 1, 0, 2]));
}

#[test]
fn one_event_and_none_are_no_trouble() {
    let empty = Made::new().finish();
    let report = Analysis::of(&empty, Window::default())
        .unwrap()
        .summary()
        .unwrap();
    assert_eq!((report.span_ns, report.utilization.devices.len()), (None, 0));
    assert!(report.doubts.is_none());
    let mut made = Made::new();
    made.kernel("only", 1, 50, 80);
    let trace = made.finish();
    let report = Analysis::of(&trace, Window::default())
        .unwrap()
        .summary()
        .unwrap();
    let device = &report.utilization.devices[0].breakdown;
    assert_eq!((device.busy_ns, device.idle_ns, device.utilization), (30, 0, 1.0));
    assert_eq!(report.kernels.rows[0].durations.p99_ns, 30);
    assert_eq!(report.span_ns, Some((50, 80)));
    let mut made = Made::new();
    made.kernel("of no length", 1, 50, 50);
    let device = breakdown(&made.finish());
    assert_eq!((device.span_ns, device.utilization), (0, 0.0));
}

#[test]
fn times_that_cannot_be_are_counted_and_said() {
    let mut made = Made::new();
    made.kernel("good", 1, 100, 200);
    made.kernel("backwards", 1, 300, 250);
    made.kernel("no end", 1, 400, 0);
    made.kernel("no start", 1, 0, 400);
    made.launched("before its call", 1, (700, 710), (600, 650));
    let trace = made.finish();
    let activity = Activity::of(&trace).unwrap();
    let doubts = &activity.doubts;
    assert_eq!((doubts.backwards, doubts.without_time), (1, 2));
    assert_eq!((doubts.before_its_call, doubts.before_its_call_by), (1, 100));
    assert_eq!(doubts.without_call, 2);
    assert_eq!(breakdown(&trace).busy_ns, 150);
    let said = doubts.sentences();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[1].contains("ends before the start"), "{said:?}");
    assert_eq!(
        said[2],
        "2 GPU operations have no API call in the trace: launch latencies and queue lengths leave them out; idle time before \
         them is 'call not recorded'"
    );
}

#[test]
fn a_trace_that_was_cut_off_says_so() {
    // Lengths without a pattern, so that the rows take several blocks.
    let length = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    let mut made = Made::new();
    for at in 0..200_000u64 {
        made.kernel("k", 1, (at + 1) * 100_000, (at + 1) * 100_000 + length(at));
    }
    let mut bytes = made.writer.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let trace = Trace::from_bytes(bytes).unwrap();
    let activity = Activity::of(&trace).unwrap();
    let kept = activity.ops.len() as u64;
    assert!(kept > 0 && kept < 200_000, "{kept}");
    assert!(activity.doubts.damaged_blocks > 0);
    let said = activity.doubts.sentences();
    assert!(
        said.iter().any(|sentence| sentence.contains("cannot be read")),
        "{said:?}"
    );
    let busy: u64 = (0..kept).map(length).sum();
    assert_eq!(breakdown(&trace).busy_ns, busy, "what is left counts as it is");
}

#[test]
fn communication_is_exposed_where_nothing_computes() {
    let mut made = Made::new();
    made.kernel("gemm", 1, 10, 110);
    made.kernel("ncclDevKernel_AllReduce", 2, 60, 160);
    made.copy(3, (100, 200), 1 << 20, CopyShape::default());
    let all = breakdown(&made.finish());
    assert_eq!((all.span_ns, all.busy_ns), (190, 190));
    assert_eq!(
        (all.compute_ns, all.communication_ns, all.copy_ns),
        (100, 100, 100)
    );
    assert_eq!(
        (all.communication_hidden_ns, all.communication_exposed_ns),
        (50, 50)
    );
    assert_eq!((all.copy_hidden_ns, all.copy_exposed_ns), (10, 40));
    assert_eq!(all.communication_overlap, Some(0.5));
}

#[test]
fn a_gap_is_split_by_what_the_host_did() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 110), (120, 200));
    made.call("cudaStreamSynchronize", (130, 230));
    made.call("cudaMalloc", (240, 300));
    made.call("cudaGetDevice", (310, 315));
    made.launched("b", 1, (330, 350), (360, 400));
    // Launched while b ran: the device itself took its time.
    made.launched("c", 1, (370, 380), (405, 500));
    let trace = made.finish();
    assert_eq!(
        causes(&trace),
        [
            (IdleCause::HostBusy, 10 + 10 + 15),
            (IdleCause::HostSync, 30),
            (IdleCause::HostAllocation, 60),
            (IdleCause::HostCall, 5),
            (IdleCause::LaunchGap, 30),
            (IdleCause::Dispatch, 5),
        ]
    );
    let report = idle(&trace);
    let device = &report.devices[0];
    assert_eq!((device.idle_ns, device.gaps, device.span_ns), (160 + 5, 2, 380));
    assert_eq!(device.longest[0].cause, IdleCause::HostAllocation);
    assert_eq!((device.longest[0].from_ns, device.longest[0].to_ns), (200, 360));
    assert_eq!(
        (device.longest[0].next.as_str(), device.longest[0].next_row),
        ("b", 1)
    );
}

#[test]
fn calls_within_calls_count_once_and_other_threads_do_not() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 110), (120, 200));
    made.call("cudaMalloc", (210, 300));
    made.call("cuMemAlloc_v2", (220, 290));
    made.call_of(
        tracesmith_format::ThreadId(9),
        "cudaDeviceSynchronize",
        (205, 299),
        tracesmith_format::StackId::NONE,
    );
    made.launched("b", 1, (300, 310), (320, 400));
    assert_eq!(
        causes(&made.finish()),
        [
            (IdleCause::HostBusy, 10),
            (IdleCause::HostAllocation, 90),
            (IdleCause::LaunchGap, 20),
        ]
    );
}

#[test]
fn a_gap_without_a_call_is_of_unknown_cause() {
    let mut made = Made::new();
    made.kernel("a", 1, 100, 200);
    made.kernel("b", 1, 260, 300);
    assert_eq!(causes(&made.finish()), [(IdleCause::Unknown, 60)]);
}

#[test]
fn a_window_clips_what_reaches_into_it() {
    let mut made = Made::new();
    made.kernel("a", 1, 100, 200);
    made.kernel("b", 1, 300, 400);
    let trace = made.finish();
    let window = Window {
        from: Some(150),
        to: Some(350),
    };
    let report = Analysis::of(&trace, window).unwrap().summary().unwrap();
    let device = &report.utilization.devices[0].breakdown;
    assert_eq!((device.span_ns, device.busy_ns, device.idle_ns), (200, 100, 100));
    assert_eq!(report.kernels.rows.len(), 1, "only b starts in it");
}

#[test]
fn devices_are_apart() {
    let mut made = Made::new();
    made.kernel("a", 1, 100, 200);
    let elsewhere = Place {
        device: tracesmith_format::DeviceId(2),
        ..place(1)
    };
    made.kernel_row("b", (150, 400), CorrelationId::NONE, elsewhere);
    let timeline = Timeline::of(&Activity::of(&made.finish()).unwrap());
    let busy: Vec<(u32, u64)> = timeline
        .devices
        .iter()
        .map(|d| (d.device.0, d.span.busy()))
        .collect();
    assert_eq!(busy, [(DEVICE.0, 100), (2, 250)]);
}

#[test]
fn copies_know_their_speed_and_their_memory() {
    use tracesmith_format::tables::MemoryKind;
    let mut made = Made::new();
    let shape = CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        source_memory: MemoryKind::PAGEABLE,
        destination_memory: MemoryKind::DEVICE,
        ..CopyShape::default()
    };
    made.copy(1, (100, 1_100), 2_000_000, shape);
    made.copy(1, (2_000, 3_000), 1_000, shape);
    let trace = made.finish();
    let report = Analysis::of(&trace, Window::default()).unwrap().copies().unwrap();
    let row = &report.rows[0];
    assert_eq!(
        (row.direction, row.source, row.destination),
        ("host to device", "pageable", "device")
    );
    assert_eq!((row.bytes, row.durations.count, row.small), (2_001_000, 2, 1));
    assert_eq!(row.gigabytes_per_second, Some(1000.5));
    assert_eq!(row.best_gigabytes_per_second, Some(2000.0));
    assert!(row.is_pageable && row.peak_gigabytes_per_second.is_none());
    assert_eq!((row.longest_row, row.longest_start_ns), (0, 100));
}

/// Copies of two mebibytes, at 20 bytes in a nanosecond, and what is known of the devices.
fn copy_peaks(devices: &[Device], shape: CopyShape) -> Vec<(Option<Peak>, Option<f64>)> {
    let mut made = Made::new();
    for device in devices {
        made.writer.define(device).unwrap();
    }
    made.copy(1, (1_000, 1_000 + (2 << 20) / 20), 2 << 20, shape);
    let trace = made.finish();
    let report = Analysis::of(&trace, Window::default()).unwrap().copies().unwrap();
    report
        .rows
        .iter()
        .map(|row| (row.peak_of, row.peak_gigabytes_per_second))
        .collect()
}

#[test]
fn copies_are_held_against_the_peak_of_what_they_go_over() {
    let device = Device {
        id: DEVICE,
        memory_bandwidth: 4_800_000_000_000,
        pcie_generation: 5,
        pcie_width: 16,
        ..Device::default()
    };
    let other = Device {
        id: DeviceId(2),
        nvlinks: 18,
        nvlink_bandwidth: 478_116_000_000,
        ..device.clone()
    };
    let linked = Device {
        nvlinks: 18,
        nvlink_bandwidth: 450_000_000_000,
        ..device.clone()
    };
    let host = CopyShape {
        direction: CopyDirection::HOST_TO_DEVICE,
        ..CopyShape::default()
    };
    let pcie = 16.0 * 4.0 * 128.0 / 130.0;
    assert_eq!(
        copy_peaks(std::slice::from_ref(&device), host),
        [(Some(Peak::Pcie), Some(pcie))]
    );
    // A trace that does not say, and a link that is slower than what was measured.
    let silent = Device {
        pcie_generation: 0,
        ..device.clone()
    };
    assert_eq!(copy_peaks(&[silent], host), [(None, None)]);
    let slow = Device {
        pcie_generation: 3,
        ..device.clone()
    };
    assert_eq!(copy_peaks(&[slow], host), [(None, None)]);
    let within = CopyShape {
        direction: CopyDirection::DEVICE_TO_DEVICE,
        ..CopyShape::default()
    };
    assert_eq!(
        copy_peaks(std::slice::from_ref(&device), within),
        [(Some(Peak::Memory), Some(2_400.0))]
    );
    let between = CopyShape {
        direction: CopyDirection::PEER,
        source_device: DEVICE,
        destination_device: DeviceId(2),
        ..CopyShape::default()
    };
    assert_eq!(
        copy_peaks(&[device.clone(), other.clone()], between),
        [(Some(Peak::Pcie), Some(pcie))],
        "one of them has no NVLink"
    );
    assert_eq!(
        copy_peaks(&[linked.clone(), other], between),
        [(Some(Peak::Nvlink), Some(450.0))]
    );
    assert_eq!(
        copy_peaks(std::slice::from_ref(&device), between),
        [(None, None)],
        "the other is not known"
    );
}

#[test]
fn steps_are_found_by_markers_and_their_time_is_counted_apart() {
    let mut made = Made::new();
    for step in 0..5u64 {
        let at = 1_000 * (step + 1);
        let length = if step == 0 { 990 } else { 500 };
        made.range(&format!("step {step}"), (at, at + length));
        made.range("forward", (at, at + 100));
        made.launched("k", 1, (at + 10, at + 20), (at + 100, at + 200));
        // Ends in the time of no step, or of the next.
        made.launched("late", 1, (at + 30, at + 40), (at + 450, at + 550));
    }
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let report = &analysis.swept().steps;
    assert_eq!(report.steps.len(), 5);
    let warm: Vec<bool> = report.steps.iter().map(|row| row.step.is_warm_up).collect();
    assert_eq!(warm, [true, false, false, false, false]);
    let second = &report.steps[1];
    assert_eq!((second.ops, second.devices[0].breakdown.busy_ns), (2, 150));
    assert_eq!(
        (second.devices[0].breakdown.idle_ns, second.step.name.as_str()),
        (350, "step 1")
    );
    assert_eq!((report.settled.count, report.settled.p50_ns), (4, 500));
    let kernels = analysis.kernels(Default::default());
    assert_eq!((kernels.steps, kernels.rows[0].step_spread), (4, Some(0.0)));
}

#[test]
fn steps_are_found_by_what_comes_again() {
    let mut made = Made::new();
    let mut time = 100;
    for step in 0..6 {
        for name in ["first", "gemm", "gemm", "norm", "gemm", "adam"] {
            made.launched(name, 1, (time, time + 5), (time + 10, time + 20));
            time += 30;
        }
        if step == 0 {
            time += 500;
        }
    }
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let report = &analysis.swept().steps;
    assert_eq!(report.steps.len(), 6);
    assert_eq!(report.steps[1].ops, 6);
    assert_eq!(
        (report.steps[1].step.start_ns, report.steps[1].step.duration()),
        (780, 180)
    );
    let warm = report.steps.iter().filter(|row| row.step.is_warm_up).count();
    assert_eq!(warm, 1);
    let mut made = Made::new();
    made.kernel("a", 1, 10, 20);
    made.kernel("b", 1, 30, 40);
    let none = made.finish();
    let analysis = Analysis::of(&none, Window::default()).unwrap();
    assert!(analysis.swept().steps.steps.is_empty());
}

#[test]
fn steps_do_not_overlap_when_some_calls_are_not_recorded() {
    let mut made = Made::new();
    for step in 0..8u64 {
        for (number, name) in ["first", "second", "third"].into_iter().enumerate() {
            let start = 100_000 + step * 1_000 + number as u64 * 300;
            let times = (start, start + 200);
            // Launched long before, and the recording began when half of them were.
            if step < 4 {
                made.kernel(name, 1, times.0, times.1);
            } else {
                let called = 50_000 + step * 30 + number as u64 * 10;
                made.launched(name, 1, (called, called + 5), times);
            }
        }
    }
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let report = &analysis.swept().steps;
    let found: Vec<(&str, u64, u64, u64)> = report
        .steps
        .iter()
        .map(|row| {
            (
                row.step.name.as_str(),
                row.step.start_ns,
                row.step.end_ns,
                row.ops,
            )
        })
        .collect();
    let names: Vec<String> = (0..8).map(|step| format!("step {step}")).collect();
    let expected: Vec<(&str, u64, u64, u64)> = (0..8u64)
        .map(|step| {
            let start = 100_000 + step * 1_000;
            let end = if step == 7 { start + 800 } else { start + 1_000 };
            (names[step as usize].as_str(), start, end, 3)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn kernels_are_grouped_by_what_is_asked() {
    use tracesmith_trace::analysis::KernelKey;
    let mut made = Made::new();
    made.range("train", (50, 1_000));
    made.range("forward", (60, 500));
    made.launched("void gemm<1>(int)", 1, (100, 110), (120, 220));
    made.launched("void gemm<2>(int)", 1, (130, 140), (220, 420));
    made.launched("void gemm<2>(int)", 1, (600, 610), (620, 720));
    let trace = made.finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let table = |by| -> Vec<(String, u64, u64)> {
        let rows = &analysis.kernels(by).rows;
        rows.iter()
            .map(|row| (row.name.clone(), row.durations.count, row.durations.total_ns))
            .collect()
    };
    assert_eq!(
        table(KernelKey::Name),
        [
            ("void gemm<2>(int)".to_owned(), 2, 300),
            ("void gemm<1>(int)".to_owned(), 1, 100)
        ]
    );
    assert_eq!(table(KernelKey::ShortName), [("gemm".to_owned(), 3, 400)]);
    assert_eq!(
        table(KernelKey::Ranges),
        [
            ("train / forward".to_owned(), 2, 300),
            ("train".to_owned(), 1, 100)
        ]
    );
    assert_eq!(table(KernelKey::Stack), [("no stack".to_owned(), 3, 400)]);
    assert!(table(KernelKey::Shape)[0].0.ends_with("grid 8×1×1 block 128×1×1"));
}

proptest! {
    /// Busy time by a bitmap of every nanosecond is that of the sweep; parts add up to the whole.
    #[test]
    fn the_sweep_agrees_with_a_bitmap(spans in prop::collection::vec((1u64..300, 0u64..60, 0u64..4, 0usize..3), 1..40)) {
        let names = ["gemm", "ncclKernel", "norm"];
        let mut made = Made::new();
        let mut bitmap = vec![[false; 2]; 400];
        for (start, length, stream, name) in &spans {
            made.kernel(names[*name], *stream, *start, start + length);
            for moment in *start..start + length {
                bitmap[moment as usize][usize::from(*name == 1)] = true;
            }
        }
        let trace = made.finish();
        let timeline = Timeline::of(&Activity::of(&trace).unwrap());
        let all = Breakdown::of(&timeline.devices[0].span);
        let count = |is: &dyn Fn(&[bool; 2]) -> bool| bitmap.iter().filter(|moment| is(moment)).count() as u64;
        prop_assert_eq!(all.busy_ns, count(&|m| m[0] || m[1]));
        prop_assert_eq!(all.compute_ns, count(&|m| m[0]));
        prop_assert_eq!(all.communication_ns, count(&|m| m[1]));
        prop_assert_eq!(all.communication_exposed_ns, count(&|m| m[1] && !m[0]));
        prop_assert_eq!(all.busy_ns + all.idle_ns, all.span_ns);
        prop_assert_eq!(timeline.devices[0].concurrency.iter().sum::<u64>(), all.span_ns);
        prop_assert!(all.utilization <= 1.0);
        let idle = idle(&trace);
        prop_assert_eq!(idle.devices[0].idle_ns, all.idle_ns);
    }
}

#[test]
fn the_process_of_work_joins_its_call() {
    let mut made = Made::new();
    made.launched("a", 1, (100, 110), (120, 200));
    let elsewhere = Place {
        process: tracesmith_format::ProcessId(2),
        ..place(1)
    };
    made.kernel_row("b", (300, 400), CorrelationId(1), elsewhere);
    let activity = Activity::of(&made.finish()).unwrap();
    assert_eq!(
        activity.doubts.without_call, 1,
        "correlations are of a process ({PROCESS:?})"
    );
}

/// Issue 29: a GPU that was busy for 99 % of the time was called launch-bound.
#[test]
fn a_busy_device_is_not_launch_bound() {
    let launch_bound = |kernel_nanos: u64| {
        let mut made = Made::new();
        for kernel in 0..20u64 {
            let call = 1_000_000 + kernel * (kernel_nanos + 10_000);
            let start = call + 3_000;
            made.launched("k", 1, (call, call + 2_500), (start, start + kernel_nanos));
        }
        let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
        analysis.summary().unwrap().launches.launch_bound.clone()
    };
    let found = launch_bound(20_000);
    assert_eq!((found.len(), found[0].ops, found[0].idle_ns), (1, 19, 190_000));
    assert_eq!(launch_bound(1_000_000), []);
}

/// The kernels of one graph launch were called launch-bound, each for itself.
#[test]
fn a_graph_waits_for_its_launch_once() {
    let mut made = Made::new();
    made.launched("before", 1, (1_000, 2_000), (3_000, 4_000));
    // The call returns when the graph is done.
    let launch = made.call("cudaGraphLaunch", (5_000, 200_000));
    for node in 0..20u64 {
        let start = 10_000 + node * 8_000;
        made.node(node, 1, (start, start + 5_000), launch);
    }
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    assert_eq!(analysis.summary().unwrap().launches.launch_bound, []);
}

/// A call of 463 ms was listed in an analyzed time of 10 ms.
#[test]
fn a_call_that_began_before_the_time_range_counts_from_there_on() {
    let mut made = Made::new();
    made.launched("long", 1, (1_000, 900_000), (950_000, 960_000));
    made.launched("short", 1, (901_000, 902_000), (960_000, 970_000));
    let window = Window {
        from: Some(895_000),
        to: None,
    };
    let analysis = Analysis::of(&made.finish(), window).unwrap();
    let launches = &analysis.summary().unwrap().launches;
    assert_eq!((launches.call.count, launches.call.max_ns), (2, 5_000));
}
