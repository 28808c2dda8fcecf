//! Differences between traces made by hand: what is certain, what is not, and which kernels are the same.

use std::sync::Arc;

use proptest::prelude::*;
use tracesmith_format::StackId;
use tracesmith_format::tables::{CopyDirection, CopyShape, MemoryOperation, Metadata};
use tracesmith_trace::Trace;
use tracesmith_trace::analysis::{
    Analysis, DiffKey, DiffReport, DiffUnit, Fate, IdleCause, KernelDiff, RunDiff,
};
use tracesmith_trace::reconstruct::Window;

use crate::made::{CLOCK, Made};

/// Ten steps of two kernels; the second takes `nanos` and a little noise.
fn steps(nanos: u64, other: &str) -> Arc<Trace> {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for step in 0..10u64 {
        let noise = [0, 300, 100, 500, 200][step as usize % 5];
        made.range(&format!("step {step}"), (time, time + 100_000 + nanos + noise));
        made.launched("same", 1, (time, time + 10), (time + 20, time + 50_020));
        let start = time + 60_000;
        made.launched(
            "changed",
            1,
            (time + 20, time + 30),
            (start, start + nanos + noise),
        );
        made.launched(other, 2, (time + 40, time + 50), (time + 60, time + 1_060));
        time += 110_000 + nanos + noise;
    }
    made.finish()
}

fn diff(a: &Arc<Trace>, b: &Arc<Trace>) -> DiffReport {
    let analysis = |trace| Analysis::of(trace, Window::default()).unwrap();
    DiffReport::of(&analysis(a), &analysis(b), DiffKey::Name).unwrap()
}

#[test]
fn a_slower_kernel_is_told_from_noise() {
    let report = diff(&steps(20_000, "old"), &steps(30_000, "new"));
    assert_eq!(
        (report.unit, report.steps_a, report.steps_b),
        (DiffUnit::Step, 10, 10)
    );
    assert!(report.time.is_significant);
    assert_eq!(report.time.change_ns, 10_000.0);
    let kernel = &report.kernels[0];
    assert_eq!(
        (kernel.name.as_str(), kernel.fate, kernel.time.change_ns),
        ("changed", Fate::Kept, 10_000.0)
    );
    assert!(kernel.time.is_significant && kernel.time.p.unwrap() < 1e-4);
    let fates: Vec<(&str, Fate)> = report
        .kernels
        .iter()
        .map(|kernel| (kernel.name.as_str(), kernel.fate))
        .collect();
    assert_eq!(fates[1..3], [("new", Fate::New), ("old", Fate::Gone)]);
    assert!(
        !report
            .kernels
            .iter()
            .find(|kernel| kernel.name == "same")
            .unwrap()
            .time
            .is_significant
    );
    let noise = diff(&steps(20_000, "x"), &steps(20_050, "x"));
    assert!(!noise.time.is_significant, "{:?}", noise.time);
    let same = diff(&steps(20_000, "x"), &steps(20_000, "x"));
    assert_eq!((same.time.change_ns, same.time.is_significant), (0.0, false));
}

#[test]
fn traces_without_steps_are_compared_as_a_whole() {
    let one = |nanos: u64| {
        let mut made = Made::new();
        made.kernel("k", 1, 100, 100 + nanos);
        made.finish()
    };
    let report = diff(&one(1_000), &one(2_000));
    assert_eq!((report.unit, report.time.p), (DiffUnit::Trace, None));
    assert_eq!(report.time.change, Some(1.0));
    assert!(
        report.time.is_significant,
        "a single measurement is taken at its word"
    );
    let empty = diff(&Made::new().finish(), &Made::new().finish());
    assert_eq!((empty.time.change, empty.kernels.len()), (None, 0));
}

/// Steps in which each kernel takes its time, one after the other on one stream, 1 µs apart.
fn looped(steps: &[&[(&str, u64)]]) -> Made {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for (number, kernels) in steps.iter().enumerate() {
        let start = time;
        for (name, nanos) in *kernels {
            made.launched(name, 1, (time, time + 100), (time + 200, time + 200 + nanos));
            time += nanos + 1_200;
        }
        made.range(&format!("step {number}"), (start, time));
    }
    made
}

fn repeated(kernels: &[(&str, u64)]) -> Arc<Trace> {
    looped(&[kernels; 6]).finish()
}

fn kernel<'r>(report: &'r DiffReport, name: &str) -> &'r KernelDiff {
    report.kernels.iter().find(|kernel| kernel.name == name).unwrap()
}

#[test]
fn longer_in_every_step_is_never_noise() {
    // Both vary by a lot, and the second is always slower by a little.
    let times = |plus: u64| -> Arc<Trace> {
        let steps: Vec<Vec<(&str, u64)>> = (0..3u64)
            .map(|step| vec![("same", 10_000), ("slower", 10_000 + step * 3 + plus)])
            .collect();
        let steps: Vec<&[(&str, u64)]> = steps.iter().map(Vec::as_slice).collect();
        looped(&steps).finish()
    };
    let report = diff(&times(0), &times(10));
    let slower = kernel(&report, "slower");
    assert!(slower.time.is_in_every_step && !report.has_enough_steps);
    assert!((slower.time.p.unwrap() - 0.1).abs() < 1e-9, "{:?}", slower.time);
    assert!(
        !slower.time.is_significant,
        "three steps are too few to be certain"
    );
    assert!(report.is_slower_by(0.0001) && !report.is_slower_by(0.5));
    let report = diff(&times(10), &times(0));
    assert!(kernel(&report, "slower").time.is_in_every_step && !report.is_slower_by(0.0));
}

#[test]
fn many_kernels_make_chance_more_likely() {
    let names: Vec<String> = (0..100).map(|number| format!("kernel {number}")).collect();
    let made = |plus: u64| {
        let steps: Vec<Vec<(&str, u64)>> = (0..6u64)
            .map(|step| {
                let noise = |at: usize| (step * 7 + at as u64 * 5) % 11;
                let time = |at: usize| 1_000 + noise(at) + if at == 0 { plus } else { 0 };
                (0..100).map(|at| (names[at].as_str(), time(at))).collect()
            })
            .collect();
        let steps: Vec<&[(&str, u64)]> = steps.iter().map(Vec::as_slice).collect();
        looped(&steps).finish()
    };
    let report = diff(&made(0), &made(100));
    let first = &report.kernels[0];
    assert_eq!(
        (first.name.as_str(), first.time.is_in_every_step),
        ("kernel 0", true)
    );
    let (p, adjusted) = (first.time.p.unwrap(), first.time.p_adjusted.unwrap());
    assert!(p < 0.01 && (adjusted - 100.0 * p).abs() < 1e-9, "{p} {adjusted}");
    assert!(!first.time.is_significant && report.has_enough_steps);
    assert!(
        report.kernels[1..]
            .iter()
            .all(|kernel| !kernel.time.is_significant)
    );
}

#[test]
fn kernels_that_were_renamed_are_one_row() {
    let old = [
        ("load", 1_000),
        ("gemm_64x64_tn", 20_000),
        ("triton_add_0", 500),
        ("store", 1_000),
    ];
    let new = [
        ("load", 1_000),
        ("gemm_128x64_tn", 15_000),
        ("triton_add_1", 500),
        ("store", 1_000),
    ];
    let report = diff(&repeated(&old), &repeated(&new));
    let gemm = &report.kernels[0];
    assert_eq!(
        (gemm.name.as_str(), gemm.renamed_to.as_deref(), gemm.fate),
        ("gemm_64x64_tn", Some("gemm_128x64_tn"), Fate::Renamed)
    );
    assert_eq!(gemm.time.change_ns, -5_000.0);
    assert!(gemm.time.is_significant);
    assert_eq!(
        kernel(&report, "triton_add_0").renamed_to.as_deref(),
        Some("triton_add_1")
    );
    assert_eq!(report.kernels.len(), 4);
}

#[test]
fn names_that_could_be_two_kernels_stay_new_and_gone() {
    // Both are between the same neighbors, so that either could have been the first.
    let old = [
        ("x", 1_000),
        ("add_0", 100),
        ("x", 1_000),
        ("add_1", 300),
        ("x", 1_000),
    ];
    let new = [
        ("x", 1_000),
        ("add_2", 300),
        ("x", 1_000),
        ("add_3", 100),
        ("x", 1_000),
    ];
    let report = diff(&repeated(&old), &repeated(&new));
    let fates: Vec<Fate> = report.kernels.iter().map(|kernel| kernel.fate).collect();
    assert!(!fates.contains(&Fate::Renamed), "{fates:?}");
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::New).count(), 2);
    // One that runs twice as often is another one.
    let old = [("x", 1_000), ("add_0", 100), ("y", 1_000)];
    let new = [("x", 1_000), ("add_1", 100), ("add_1", 100), ("y", 1_000)];
    let report = diff(&repeated(&old), &repeated(&new));
    assert_eq!(kernel(&report, "add_0").fate, Fate::Gone);
}

#[test]
fn short_names_put_overloads_together() {
    let old = repeated(&[("void f<4>(int)", 100), ("void f<8>(int)", 200), ("g", 50)]);
    let new = repeated(&[("void f<4>(int)", 100), ("void f<16>(int)", 250), ("g", 50)]);
    let analysis = |trace| Analysis::of(trace, Window::default()).unwrap();
    let report = DiffReport::of(&analysis(&old), &analysis(&new), DiffKey::Short).unwrap();
    let names: Vec<&str> = report.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["f", "g"]);
    assert_eq!(
        (report.kernels[0].count_a, report.kernels[0].time.change_ns),
        (2.0, 50.0)
    );
}

#[test]
fn idle_time_copies_and_memory_are_compared() {
    let made = |wait: u64, bytes: u64| {
        let mut made = Made::new();
        for step in 0..6u64 {
            let start = 1_000_000 * (step + 1);
            made.range(&format!("step {step}"), (start, start + 1_000_000));
            made.launched("k", 1, (start + 10, start + 20), (start + 30, start + 100_000));
            let shape = CopyShape {
                direction: CopyDirection::HOST_TO_DEVICE,
                ..CopyShape::default()
            };
            made.copy(1, (start + 100_000, start + 150_000), bytes, shape);
            // Nothing runs until the wait is over.
            made.call("cudaDeviceSynchronize", (start + 200_000, start + 200_000 + wait));
            let next = start + 210_000 + wait;
            made.launched("k", 1, (next, next + 10), (next + 20, next + 100_000));
        }
        made.memory(
            MemoryOperation::ALLOCATE,
            1_100_000,
            0x100,
            10 * bytes,
            StackId::NONE,
        );
        made.memory(MemoryOperation::FREE, 2_100_000, 0x100, 0, StackId::NONE);
        made.memory(
            MemoryOperation::ALLOCATE,
            3_100_000,
            0x100,
            5 * bytes,
            StackId::NONE,
        );
        made.finish()
    };
    let report = diff(&made(100_000, 64), &made(300_000, 128));
    let idle = report
        .idle
        .iter()
        .find(|row| row.cause == IdleCause::HostSync)
        .unwrap();
    assert_eq!((idle.time.change_ns, idle.time.is_significant), (200_000.0, true));
    let copies = &report.copies[0];
    assert_eq!(
        (copies.direction, copies.count_a, copies.a_bytes, copies.b_bytes),
        ("host to device", 1.0, 64.0, 128.0)
    );
    assert_eq!(copies.time.change_ns, 0.0);
    let memory = &report.memory[0];
    assert_eq!(
        (memory.process.as_str(), memory.a_bytes, memory.b_bytes),
        ("process 0", Some(640), Some(1_280))
    );
}

#[test]
fn what_differs_between_the_runs_comes_first() {
    let made = |command: &str, nccl: &str, steps: usize| {
        let kernels: &[(&str, u64)] = &[("k", 100), ("l", 100)];
        let mut made = looped(&vec![kernels; steps]);
        for (key, value) in [
            ("command", command),
            ("env.NCCL_VERSION", nccl),
            ("created", command),
        ] {
            let row = Metadata {
                key: made.writer.string(key).unwrap(),
                value: made.writer.string(value).unwrap(),
            };
            made.writer.push(CLOCK, &row).unwrap();
        }
        made.finish()
    };
    let report = diff(&made("train 1", "2.28", 5), &made("train 2", "2.28", 6));
    let row = |what: &str, a: &str, b: &str| RunDiff {
        what: what.to_owned(),
        a: a.to_owned(),
        b: b.to_owned(),
    };
    assert_eq!(
        report.runs,
        [row("command", "train 1", "train 2"), row("steps", "5", "6")]
    );
    assert_eq!(diff(&made("x", "1", 5), &made("x", "1", 5)).runs, []);
    assert_eq!(
        diff(&made("x", "1", 5), &made("x", "2", 5)).runs,
        [row("env.NCCL_VERSION", "1", "2")]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn swapping_the_traces_turns_all_signs(
        a in prop::collection::vec(prop::collection::vec(1u64..50, 3), 2..8),
        b in prop::collection::vec(prop::collection::vec(1u64..50, 3), 2..8),
    ) {
        let made = |steps: &[Vec<u64>], names: [&'static str; 3]| {
            let steps: Vec<Vec<(&str, u64)>> = steps
                .iter()
                .map(|times| names.into_iter().zip(times.iter().map(|time| time * 100)).collect())
                .collect();
            let steps: Vec<&[(&str, u64)]> = steps.iter().map(Vec::as_slice).collect();
            looped(&steps).finish()
        };
        let first = made(&a, ["kept", "gemm_1", "gone"]);
        let second = made(&b, ["kept", "gemm_2", "other"]);
        let (there, back) = (diff(&first, &second), diff(&second, &first));
        prop_assert!((there.time.change_ns + back.time.change_ns).abs() < 1e-6);
        prop_assert_eq!(there.kernels.len(), back.kernels.len());
        for row in &there.kernels {
            let name = row.renamed_to.as_ref().unwrap_or(&row.name);
            let other = back.kernels.iter().find(|other| other.name == *name).unwrap();
            prop_assert!((row.time.change_ns + other.time.change_ns).abs() < 1e-6);
            prop_assert_eq!(row.time.is_in_every_step, other.time.is_in_every_step);
            for p in [row.time.p, row.time.p_adjusted].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&p));
            }
            let same = row.time.p.zip(other.time.p).is_none_or(|(p, q)| (p - q).abs() < 1e-9);
            prop_assert!(same);
        }
    }
}
