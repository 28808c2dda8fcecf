//! Steps of traces made by hand: every mark that programs have, patterns, and the ranks of a job.

use tracesmith_format::tables::{
    ApiCall, ApiDomain, ApiShape, Caller, Marker, MarkerKind, MarkerShape, Process,
};
use tracesmith_format::{Ordinal, ProcessId, Timestamp};
use tracesmith_trace::analysis::{Analysis, IdleCause, KernelKey, StepsReport};
use tracesmith_trace::reconstruct::{StepSource, Window};

use crate::made::{CLOCK, Made, THREAD, place};

fn report(made: Made) -> StepsReport {
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    analysis.swept().steps.clone()
}

/// A loop of 1 ms: three kernels, and a range at the end.
fn training(steps: u64, range: &str) -> Made {
    let mut made = Made::new();
    for step in 0..steps {
        let start = 1_000_000 * (step + 1);
        for (number, name) in ["forward", "backward", "update"].iter().enumerate() {
            let call = start + 1_000 + number as u64 * 200_000;
            made.launched(name, 1, (call, call + 5_000), (call + 10_000, call + 150_000));
        }
        made.range(range, (start + 700_000, start + 800_000));
    }
    made
}

#[test]
fn calls_of_the_optimizer_end_steps() {
    let name = "Optimizer.step#AdamW.step";
    let found = report(training(200, name));
    assert_eq!(
        found.source,
        StepSource::Optimizer {
            name: name.to_owned()
        }
    );
    assert_eq!(found.steps.len(), 200);
    assert_eq!(
        (found.steps[0].step.start_ns, found.steps[0].step.end_ns),
        (1_001_000, 1_800_000),
        "from the first launch"
    );
    assert_eq!(found.steps[7].step.duration(), 1_000_000);
    assert!(found.steps.iter().all(|row| row.ops == 3));
    assert_eq!(
        found.source.words(),
        "each up to the end of Optimizer.step#AdamW.step"
    );
}

#[test]
fn batches_begin_steps_and_the_end_of_the_data_is_none() {
    let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    let mut made = Made::new();
    for step in 0..10u64 {
        let start = 1_000_000 * (step + 1);
        made.range(name, (start, start + 50_000));
        // No kernels repeat, so that there is no pattern.
        let call = start + 100_000;
        let kernel = format!("kernel {step}");
        made.launched(&kernel, 1, (call, call + 5_000), (call + 10_000, call + 850_000));
    }
    made.range(name, (11_000_000, 11_010_000));
    let found = report(made);
    assert_eq!(
        found.source,
        StepSource::DataLoader {
            name: name.to_owned()
        }
    );
    assert_eq!(found.steps.len(), 10);
    assert!(
        found
            .steps
            .iter()
            .all(|row| row.step.duration() == 1_000_000 && row.ops == 1)
    );
}

#[test]
fn a_recording_that_begins_within_a_step_does_not_count_it() {
    let name = "Optimizer.step#SGD.step";
    let mut made = Made::new();
    made.launched("update", 1, (1_650_000, 1_655_000), (1_660_000, 1_690_000));
    for step in 0..5u64 {
        let start = 1_000_000 * (step + 1);
        made.range(name, (start + 700_000, start + 800_000));
    }
    assert_eq!(report(made).steps.len(), 4);
}

#[test]
fn ranges_of_steps_come_before_their_borders() {
    let mut made = training(5, "Optimizer.step#SGD.step");
    for step in 0..5u64 {
        let start = 1_000_000 * (step + 1);
        made.range(&format!("iteration {step}"), (start, start + 900_000));
    }
    let found = report(made);
    assert_eq!(found.source.words(), "from NVTX ranges named iteration");
    assert_eq!((found.steps.len(), found.processes), (5, 1));
}

#[test]
fn ranges_that_launch_little_are_parts_of_steps() {
    let mut made = training(10, "Optimizer.step#SGD.step");
    for step in 0..10u64 {
        let start = 1_000_000 * (step + 1);
        made.range("lr step", (start + 900_000, start + 950_000));
    }
    let found = report(made);
    assert!(
        matches!(found.source, StepSource::Optimizer { .. }),
        "{:?}",
        found.source
    );
    assert_eq!(found.steps.len(), 10);
}

#[test]
fn two_hundred_steps_are_found_where_some_also_log() {
    let mut made = Made::new();
    let mut time = 1_000;
    for step in 0..200u64 {
        let mut names = vec!["a", "b", "c", "b", "b", "d"];
        if step % 20 == 19 {
            names.extend(["log", "log"]);
        }
        for name in names {
            made.launched(name, 1, (time, time + 10), (time + 20, time + 90));
            time += 100;
        }
    }
    let found = report(made);
    assert_eq!(found.steps.len(), 200);
    assert!(matches!(&found.source, StepSource::Pattern { anchor, kernels: 6 } if anchor == "a"));
}

#[test]
fn layers_of_one_graph_launch_are_not_steps() {
    let made = |launches: u64| {
        let mut made = Made::new();
        for launch in 0..launches {
            let start = 1_000_000 * (launch + 1);
            let correlation = made.call("cudaGraphLaunch", (start, start + 10));
            for layer in 0..36u64 {
                for (number, name) in ["gemm", "norm", "add"].iter().enumerate() {
                    let at = start + 100 + layer * 300 + number as u64 * 100;
                    made.kernel_row(name, (at, at + 90), correlation, place(1));
                }
            }
        }
        report(made)
    };
    assert!(made(1).steps.is_empty(), "{:?}", made(1).source);
    let decoded = made(10);
    assert_eq!(decoded.steps.len(), 10, "each launch is a step");
    assert_eq!(decoded.steps[3].ops, 108);
}

/// Passes of 12 layers, launched one kernel at a time. The host reads a result back after each pass.
fn passes(passes: u64, layer: &[&str]) -> Made {
    let mut made = Made::new();
    let mut time = 1_000_000;
    for pass in 0..passes {
        if pass > 0 {
            made.launched("head", 1, (time, time + 5), (time + 10, time + 90));
            made.launched("sample", 1, (time + 100, time + 105), (time + 110, time + 190));
            made.call("cudaStreamSynchronize", (time + 200, time + 300));
            time += 400;
        }
        for _ in 0..12 {
            for name in layer {
                made.launched(name, 1, (time, time + 5), (time + 10, time + 90));
                time += 100;
            }
        }
    }
    made
}

/// Issue 29: a forward pass of 36 layers had 36 steps.
#[test]
fn layers_of_an_eager_pass_are_not_steps() {
    let layer = ["norm", "gemm", "attention", "gemm", "mlp"];
    let found = report(passes(2, &layer));
    assert_eq!(found.steps.len(), 0, "a result is read back where a pass ends");
    let mut made = passes(1, &layer);
    made.range("execute_model", (900_000, 1_006_000));
    let found = report(made);
    assert_eq!(found.steps.len(), 0, "one range is around all");
    assert_eq!(found.source, StepSource::None);
    let mut made = passes(1, &layer);
    made.range("execute_model", (900_000, 1_003_000));
    assert_eq!(
        report(made).steps.len(),
        12,
        "a range around some of them decides nothing"
    );
}

/// Issue 29: FSDP waits in each layer, and 16 layers were 16 steps.
#[test]
fn ranges_that_name_layers_are_around_layers() {
    let named = |name: &dyn Fn(u64) -> String| {
        let mut made = passes(1, &["norm", "gemm", "attention"]);
        for layer in 0..12u64 {
            let time = 1_000_000 + layer * 300;
            made.range(&name(layer), (time, time + 150));
            made.call("cudaStreamSynchronize", (time + 250, time + 270));
        }
        report(made).steps.len()
    };
    let fsdp = |layer: u64| {
        format!(
            "FSDP::pre_forward (blocks.{}._wrapped), op_id = {layer}",
            layer + 3
        )
    };
    assert_eq!(named(&fsdp), 0);
    assert_eq!(named(&|layer| format!("layer {}", 11 - layer)), 0, "backward");
    assert_eq!(named(&|_| "layers.0".to_owned()), 12, "each has the first layer");
    assert_eq!(named(&|token| format!("token {token}")), 12);
}

#[test]
fn steps_within_a_range_are_steps() {
    let mut made = passes(1, &["gemm", "backward", "multi_tensor_apply_kernel"]);
    made.range("epoch 1", (900_000, 1_006_000));
    assert_eq!(report(made).steps.len(), 12, "an optimizer ends each of them");
    let mut made = passes(1, &["norm", "gemm", "attention"]);
    for step in 0..12u64 {
        let time = 1_000_000 + step * 300 + 250;
        made.call("cudaStreamSynchronize", (time, time + 20));
    }
    made.range("decode", (900_000, 1_006_000));
    assert_eq!(report(made).steps.len(), 12, "the host waits in each of them");
}

/// Issue 29: the last step ended with its last kernel, and made a minimum of half of the others.
#[test]
fn a_last_step_without_an_end_is_left_out_of_statistics() {
    let mut made = Made::new();
    for step in 0..10u64 {
        let start = 1_000_000 * (step + 1);
        for (number, name) in ["forward", "backward"].iter().enumerate() {
            let call = start + number as u64 * 200_000;
            made.launched(name, 1, (call, call + 5_000), (call + 10_000, call + 150_000));
        }
    }
    let found = report(made);
    let cut_off: Vec<bool> = found.steps.iter().map(|row| row.step.is_cut_off).collect();
    assert_eq!(cut_off, [[false; 9].as_slice(), &[true]].concat());
    assert_eq!(
        (found.settled.count, found.settled.min_ns, found.settled.max_ns),
        (9, 1_000_000, 1_000_000)
    );
    assert_eq!(
        found.source.words(),
        "from a repeating pattern of 2 GPU operations, starting with forward"
    );
    // A profiler that stops within a step: a range that launches nothing.
    let mut made = training(5, "other");
    for step in 0..6u64 {
        let start = 1_000_000 * (step + 1);
        let end = start + if step == 5 { 50_000 } else { 1_000_000 };
        made.range(&format!("ProfilerStep#{step}"), (start, end));
    }
    let found = report(made);
    assert_eq!((found.steps.len(), found.settled.count), (6, 5));
    assert!(found.steps[5].step.is_cut_off);
}

/// Issue 29: 400 kernels were 199 steps of two and one that was cut off.
#[test]
fn a_last_step_with_all_its_work_is_complete() {
    let mut made = Made::new();
    for kernel in 0..20u64 {
        let (name, call) = (["add", "mul"][kernel as usize % 2], 1_010_000 * (kernel + 1));
        made.launched(name, 1, (call, call + 2_500), (call + 3_000, call + 1_003_000));
    }
    let found = report(made);
    assert_eq!((found.steps.len(), found.settled.count), (10, 10));
    let last = &found.steps[9].step;
    assert!(!last.is_cut_off);
    assert_eq!(last.duration(), 2_013_000, "to the end of its work");
    assert_eq!(found.settled.max_ns, 2_020_000);
}

/// Issue 29: two GPUs that run the same kernel for 40 % of a step each made it 80 % of the step.
#[test]
fn kernels_of_a_step_count_on_each_device() {
    let trace = job(2, Some("step #")).finish();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let kernels = analysis.kernels(KernelKey::Name);
    let steps: Vec<_> = kernels.rows.iter().map(|row| row.step_ns).collect();
    assert_eq!(steps, [Some(198_000.0), Some(198_000.0)]);
    assert_eq!(kernels.rows[0].durations.total_ns, 2 * 6 * 198_000);
}

/// Steps of several ranks on a device each, 100 µs apart.
fn job(ranks: u32, range: Option<&str>) -> Made {
    let mut made = Made::new();
    for rank in 0..ranks {
        let process = ProcessId(rank + 1);
        let row = Process {
            id: process,
            pid: 100 + rank,
            rank: Ordinal::new(rank),
            world_size: ranks,
            ..Process::default()
        };
        made.writer.push(CLOCK, &row).unwrap();
        for step in 0..6u64 {
            let start = 1_000_000 * (step + 1) + 100_000 * u64::from(rank);
            let caller = Caller {
                process,
                thread: THREAD,
            };
            if let Some(range) = range {
                let name = range.replace('#', &step.to_string());
                let row = Marker {
                    start: Timestamp(start),
                    end: Timestamp(start + 900_000),
                    caller,
                    shape: MarkerShape {
                        name: made.writer.string(&name).unwrap(),
                        kind: MarkerKind::NESTED_RANGE,
                        ..MarkerShape::default()
                    },
                    ..Marker::default()
                };
                made.writer.push(CLOCK, &row).unwrap();
            }
            for (number, name) in ["a", "b"].iter().enumerate() {
                let at = start + 10_000 + number as u64 * 300_000;
                let correlation = made.next_correlation();
                let call = ApiCall {
                    start: Timestamp(at),
                    end: Timestamp(at + 1_000),
                    correlation,
                    caller,
                    shape: ApiShape {
                        name: made.writer.string("cudaLaunchKernel").unwrap(),
                        domain: ApiDomain::CUDA_RUNTIME,
                        ..ApiShape::default()
                    },
                    ..ApiCall::default()
                };
                made.writer.push(CLOCK, &call).unwrap();
                let place = tracesmith_format::tables::Place {
                    process,
                    device: tracesmith_format::DeviceId(rank + 1),
                    ..place(1)
                };
                made.kernel_row(name, (at + 2_000, at + 200_000), correlation, place);
            }
        }
    }
    made
}

#[test]
fn the_ranks_of_a_job_share_its_steps() {
    for range in [Some("ProfilerStep##"), Some("step"), None] {
        let found = report(job(4, range));
        assert_eq!((found.steps.len(), found.processes), (6, 4), "{range:?}");
        let second = &found.steps[1];
        let ranks: Vec<_> = second.step.parts.iter().map(|part| part.rank).collect();
        assert_eq!(ranks, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!((second.ops, second.devices.len()), (8, 4), "{range:?}");
        let start = if range.is_some() { 2_000_000 } else { 2_010_000 };
        assert_eq!(second.step.start_ns, start, "when the first rank began it");
        if range.is_some() {
            assert_eq!(second.step.end_ns, 3_200_000, "when the last rank ended it");
        }
    }
}

#[test]
fn a_step_of_a_job_is_looked_at_with_all_ranks() {
    let trace = job(4, Some("step #")).finish();
    let step = Analysis::of_step(&trace, 2).unwrap();
    let steps = &step.swept().steps.steps;
    assert_eq!((steps.len(), steps[0].ops, steps[0].devices.len()), (1, 8, 4));
    assert!(Analysis::of_step(&trace, 6).is_err());
    let mut made = training(1, "other");
    made.range("ProfilerStep#0", (1_000_000, 2_000_000));
    let error = Analysis::of_step(&made.finish(), 3).err().unwrap();
    assert_eq!(
        error.to_string(),
        "there is no step 3: the trace has 1 step, number 0"
    );
}

/// Issue 29: the CPU prepares a batch at the start of each step, and there is no call before the first one.
#[test]
fn a_step_is_analyzed_from_its_start_to_its_end() {
    let mut made = Made::new();
    for step in 0..5u64 {
        let start = 1_000_000 * (step + 1);
        made.range(&format!("step {step}"), (start, start + 900_000));
        made.launched(
            "forward",
            1,
            (start + 600_000, start + 610_000),
            (start + 620_000, start + 800_000),
        );
    }
    let trace = made.finish();
    for step in [0, 3, 4] {
        let analysis = Analysis::of_step(&trace, step).unwrap();
        let start = 1_000_000 * (step as u64 + 1);
        let summary = analysis.summary().unwrap();
        assert_eq!(summary.analyzed_ns, (start, start + 900_000), "step {step}");
        let idle = &summary.idle.devices[0];
        let causes: Vec<_> = idle
            .causes
            .iter()
            .map(|cause| (cause.cause, cause.total_ns))
            .collect();
        assert_eq!(
            causes,
            [
                (IdleCause::HostBusy, 600_000),
                (IdleCause::End, 100_000),
                (IdleCause::LaunchGap, 20_000),
            ],
            "step {step}"
        );
        assert_eq!(idle.idle_ns, 720_000);
        assert_eq!(summary.utilization.devices[0].breakdown.idle_ns, 720_000);
        assert_eq!(summary.host.total_ns, 600_000, "step {step}");
    }
}

/// The CPU runs ahead: its steps were shorter than those of the program.
#[test]
fn steps_of_the_gpu_are_from_step_to_step() {
    let mut made = Made::new();
    for step in 0..5u64 {
        let (cpu, gpu) = (1_000_000 + step * 500_000, 2_000_000 + step * 1_000_000);
        made.range(&format!("ProfilerStep#{step}"), (cpu, cpu + 500_000));
        made.launched("k", 1, (cpu + 1_000, cpu + 2_000), (gpu, gpu + 900_000));
    }
    let analysis = Analysis::of(&made.finish(), Window::default()).unwrap();
    let summary = analysis.summary().unwrap();
    let steps = &summary.steps;
    assert_eq!(steps.settled.mean_ns, 500_000.0);
    assert_eq!(
        (steps.gpu_period.count, steps.gpu_period.mean_ns),
        (4, 1_000_000.0)
    );
}
