//! Real files of PyTorch's profiler: what is in the trace afterwards is what Python's own JSON reader counts in them.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stderr,
    reason = "a test may stop on any error, and says what it skipped"
)]

use crate::imported;
use tracesmith_skip as support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracesmith_format::tables::*;
use tracesmith_interop::import::ImportOptions;
use tracesmith_trace::Trace;

use imported::{health, import_bytes, named, rows, unpacked};

fn open(name: &str) -> Option<Trace> {
    Some(tracesmith_interop::open(&support::data(&format!("kineto/{name}"))?).unwrap())
}

/// The counts that the Python script prints, taken from the trace.
fn counts_of(trace: &Trace) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: &str, count: u64| *counts.entry(name.to_owned()).or_default() += count;
    let absolute = |time| {
        trace
            .clock_map
            .convert(trace.kernels.blocks().next().unwrap().header.clock, time)
            .time
            .0
    };
    let kernels = rows(&trace.kernels);
    let calls = rows(&trace.api_calls);
    let launched: BTreeSet<_> = calls
        .iter()
        .map(|call| (call.caller.process, call.correlation))
        .collect();
    for kernel in &kernels {
        add("kernels", 1);
        add("kernels_ns", kernel.end.0 - kernel.start.0);
        let is_joined = launched.contains(&(kernel.place.process, kernel.correlation));
        add(
            "joined_kernels",
            u64::from(is_joined && kernel.correlation.is_some()),
        );
    }
    add(
        "first_kernel",
        kernels
            .iter()
            .map(|kernel| absolute(kernel.start))
            .min()
            .unwrap_or(0),
    );
    add(
        "last_kernel",
        kernels
            .iter()
            .map(|kernel| absolute(kernel.end))
            .max()
            .unwrap_or(0),
    );
    for call in &calls {
        add("api_calls", 1);
        add("api_calls_ns", call.end.0 - call.start.0);
    }
    for copy in rows(&trace.copies) {
        add("copies", 1);
        add("copies_ns", copy.end.0 - copy.start.0);
    }
    for set in rows(&trace.sets) {
        add("sets", 1);
        add("sets_ns", set.end.0 - set.start.0);
    }
    add("syncs", trace.syncs.rows());
    add("markers", trace.markers.rows());
    for call in rows(&trace.host_calls) {
        match call.shape.kind {
            HostCallKind::OPERATOR => add("operators", 1),
            HostCallKind::PYTHON => add("python_functions", 1),
            HostCallKind::OVERHEAD => add("overheads", 1),
            other => panic!("{other:?}"),
        }
    }
    for allocation in rows(&trace.allocations) {
        add("allocations", 1);
        if allocation.shape.operation == MemoryOperation::FREE {
            add("freed_bytes", allocation.bytes.0);
        }
    }
    for flow in rows(&trace.flows) {
        match flow.shape.kind {
            FlowKind::FORWARD_BACKWARD => add("forward_backward", 1),
            FlowKind::EXTERNAL if flow.flow != 0 => add(
                match () {
                    () if flow.shape.device.is_some() => "device_external",
                    () => "api_calls_external",
                },
                1,
            ),
            _ => {}
        }
    }
    counts
}

/// What Python counts. Device work is put together: flows do not say of which table a row is.
fn python_counts(path: &Path) -> Option<BTreeMap<String, u64>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/count_events.py");
    let python = std::env::var_os("TRACESMITH_PYTHON").unwrap_or("python3".into());
    let output = match Command::new(python).arg(script).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            tracesmith_skip::without("python", error);
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut counts = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (name, count) = line.split_once(' ').unwrap();
        let name = match name {
            "kernels_external" | "copies_external" | "sets_external" => "device_external",
            name => name,
        };
        *counts.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    Some(counts)
}

#[test]
fn every_file_holds_what_python_counts() {
    let Some(folder) = support::data("kineto") else {
        return;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for path in files {
        holds_what_python_counts(&path);
    }
}

#[test]
fn our_file_holds_what_python_counts() {
    holds_what_python_counts(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/kineto-training.json"),
    );
}

fn holds_what_python_counts(path: &Path) {
    let Some(mut expected) = python_counts(path) else {
        return;
    };
    let trace = tracesmith_interop::open(path).unwrap();
    let mut found = counts_of(&trace);
    // Waits have external ids, too, which the script does not count.
    if trace.syncs.rows() > 0 {
        expected.remove("device_external");
        found.remove("device_external");
    }
    expected.retain(|_, count| *count > 0);
    found.retain(|_, count| *count > 0);
    assert_eq!(found, expected, "{}", path.display());
    assert!(trace.health().damage.is_empty());
}

#[test]
fn a_v100_of_nanosecond_resolution() {
    let Some(trace) = open("ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz") else {
        return;
    };
    // HolisticTraceAnalysis rounds down to 384,634 µs of kernels, copies and sets together in their union.
    assert_eq!(trace.kernels.rows(), 4_350);
    let process = &trace.processes[0];
    assert_eq!(
        (process.pid, process.rank.get(), process.world_size),
        (1_102, Some(0), 1)
    );
    assert_eq!(trace.processes.len(), 1, "GPUs are no processes");
    let device = &trace.devices[0];
    assert_eq!(trace.string(device.name), "Tesla V100-SXM2-32GB");
    assert_eq!(
        (device.capability_major, device.multiprocessors, device.warp_size),
        (7, 80, 32)
    );
    assert_eq!(device.memory.0, 34_079_637_504);
    let call = &rows(&trace.api_calls)[0];
    assert_eq!(call.start.0, 1_712_195_495_505_543_140, "ts 1712195495505543.140");
    assert_eq!(trace.clocks[0].kind, ClockKind::REALTIME);
    assert_eq!(trace.metadata["import.json.displayTimeUnit"], "\"ns\"");
    // The kernels do not say what they do; the operators that launched them do.
    let collectives = rows(&trace.collectives);
    assert_eq!(collectives.len(), 45);
    assert!(collectives.iter().all(|row| row.shape.name.is_some()));
}

#[test]
fn an_a100_and_its_collectives() {
    let Some(trace) = open("nccl_parser_config_nccl_data.json.gz") else {
        return;
    };
    let collectives = rows(&trace.collectives);
    let kernels: BTreeMap<_, _> = rows(&trace.kernels)
        .into_iter()
        .map(|kernel| (kernel.correlation, kernel))
        .collect();
    let on_device: Vec<_> = collectives
        .iter()
        .filter(|row| row.correlation.is_some())
        .collect();
    assert_eq!(on_device.len(), 21);
    for row in &on_device {
        let kernel = &kernels[&row.correlation];
        assert_eq!(
            (row.start, row.end, row.place),
            (kernel.start, kernel.end, kernel.place)
        );
        assert!(trace.string(kernel.shape.name).starts_with("nccl"));
        let size = BTreeMap::from([("Float", 4), ("Long", 8)])[trace.string(row.shape.datatype)];
        assert_eq!((row.shape.ranks, row.bytes.0), (2, row.count * size));
        assert!(row.enqueued.0 > 0 && row.enqueued < row.start);
    }
    // Six more operators (waits and barriers) launched nothing.
    assert_eq!(collectives.len(), 27);
    assert!(trace.metadata["import.distributed"].contains("\"pg_count\": 1"));
    // The base stands behind the events: the timeline is absolute all the same.
    assert_eq!(trace.metadata["import.base_time_ns"], "1711964646000000000");
    assert_eq!(trace.span().unwrap().0.0, 1_716_423_322_388_068_751);
    assert!(trace.health().unlinked_clocks.is_empty());
    let threads = rows(&trace.host_calls)
        .iter()
        .map(|call| call.caller.thread)
        .collect::<BTreeSet<_>>();
    assert_eq!(threads.len(), 2);
}

#[test]
fn gpus_of_amd() {
    let Some(trace) = open("amd_trace_mi250_minitoy_train_ROCm6_2_kineto.json.gz") else {
        return;
    };
    let calls = rows(&trace.api_calls);
    assert!(calls.iter().all(|call| call.shape.domain == ApiDomain::HIP));
    // These kernels have no grid of their own: their calls do.
    for kernel in rows(&trace.kernels) {
        assert!(kernel.shape.grid_x > 0 && kernel.shape.block_x > 0);
    }
    let copy = &rows(&trace.copies)[0];
    assert_eq!(copy.shape.direction, CopyDirection::HOST_TO_DEVICE);
    assert_eq!(copy.shape.source_memory, MemoryKind::PAGEABLE);
    let rest: Vec<_> = rows(&trace.flows)
        .into_iter()
        .filter(|flow| flow.shape.kind == FlowKind::EXTERNAL && flow.correlation == copy.correlation)
        .map(|flow| trace.string(flow.shape.name).to_owned())
        .collect();
    assert!(rest.contains(&r#"{"kind":"HtoD","name":"Memcpy HtoD (Host -> Device)"}"#.to_owned()));
    assert!(
        rest.iter().any(|rest| rest.contains(r#""src":"0x55674ecd4180""#)),
        "{rest:?}"
    );

    let Some(trace) = open("mi210_gpu_only_trace_gpu_only_trace.json.gz") else {
        return;
    };
    assert_eq!((trace.kernels.rows(), trace.api_calls.rows()), (562, 631));
    assert_eq!(trace.host_calls.rows(), 0);
    let kernel = &rows(&trace.kernels)[0];
    assert_eq!((kernel.shape.grid_x, kernel.shape.block_x), (65_536, 256));
    assert_eq!(trace.device(kernel.place.device).unwrap().ordinal, 1);
    assert_eq!(
        trace.string(trace.device(kernel.place.device).unwrap().name),
        "AMD Instinct MI210"
    );

    let Some(trace) = open("mi300_gaunernst_bert-small-uncased__1016001.json.gz") else {
        return;
    };
    let allocation = &rows(&trace.allocations)[0];
    assert_eq!(
        (allocation.shape.pool_kind, allocation.address.0),
        (6, 139_654_046_813_696)
    );
    assert_eq!(
        (allocation.pool_size.0, allocation.pool_used.0),
        (224_395_264, 57_950_720)
    );
    assert!(allocation.place.device.is_some());
}

#[test]
fn a_b200_with_python_stacks() {
    let Some(trace) = open("b200_eager_trace.json.gz") else {
        return;
    };
    let process = &trace.processes[0];
    assert_eq!(
        (process.rank.get(), process.world_size, trace.processes.len()),
        (Some(0), 8, 1)
    );
    assert_eq!(trace.devices.len(), 8);
    assert_eq!(
        (trace.devices[0].capability_major, trace.devices[0].memory.0),
        (10, 191_503_138_816)
    );
    let deepest = rows(&trace.host_calls)
        .into_iter()
        .max_by_key(|call| call.depth)
        .unwrap();
    let stack = trace.stack(deepest.stack);
    assert_eq!(stack.frames.len() as u32, deepest.depth);
    assert!(deepest.depth > 20, "{}", deepest.depth);
    let frame = &stack.frames[0].frame;
    assert_eq!(frame.kind, FrameKind::PYTHON);
    assert!(frame.line > 0 || trace.string(frame.function).starts_with("nn.Module"));
    let drivers = rows(&trace.api_calls)
        .iter()
        .filter(|call| call.shape.domain == ApiDomain::CUDA_DRIVER)
        .count();
    assert_eq!(drivers, 221);
    let allreduce = rows(&trace.collectives);
    assert_eq!(
        named(&trace, allreduce.iter().map(|row| row.shape.name)),
        ["_allgather_base"]
    );
    let on_gpu: Vec<_> = rows(&trace.markers)
        .into_iter()
        .filter(|marker| trace.string(marker.shape.category_name) == "gpu_user_annotation")
        .collect();
    assert_eq!(on_gpu.len(), 3);
    assert_eq!(trace.string(on_gpu[0].shape.domain), "device 0, stream 7");
}

#[test]
fn a_file_of_2021() {
    let Some(trace) = open("resnet50_num_workers_0_worker0.1623143089861.pt.trace.json.gz") else {
        return;
    };
    let operator = &rows(&trace.host_calls)[0];
    assert_eq!(trace.string(operator.shape.category), "Operator");
    assert_eq!(operator.start.0, 1_623_142_623_460_111_000);
    assert_eq!((operator.correlation.0, operator.caller.thread.0), (2, 25_738));
    let stack = trace.stack(operator.stack);
    assert_eq!(trace.string(stack.frames[0].frame.function), "__init__");
    assert_eq!(stack.frames[0].frame.line, 611);
    assert!(
        trace
            .string(stack.frames[0].frame.file)
            .ends_with("torch/autograd/profiler.py")
    );
    assert_eq!(
        trace.string(stack.frames.last().unwrap().frame.function),
        "<module>"
    );
    let kernel = &rows(&trace.kernels)[0];
    assert_eq!((kernel.place.stream.0, kernel.place.context.0), (7, 1));
    assert_eq!((kernel.shape.grid_x, kernel.shape.registers), (50, 38));
    let process = trace.process(kernel.place.process).unwrap();
    assert_eq!((process.pid, trace.string(process.name)), (25_738, "python"));
    assert_eq!(trace.allocations.rows(), 12_838);
    let threads = named(&trace, trace.threads.iter().map(|thread| thread.name));
    assert!(threads.contains(&"python"), "{threads:?}");
    assert!(
        !health(&trace)
            .iter()
            .any(|line| line.contains("arrows from launches")),
        "every arrow has its row"
    );
}

#[test]
fn waits_counters_and_triton() {
    let Some(trace) = open("critical_path_cuda_event_sync_event_sync_trace.json.gz") else {
        return;
    };
    let mut syncs = rows(&trace.syncs);
    syncs.sort_by_key(|sync| sync.start);
    let kinds: Vec<_> = syncs
        .iter()
        .map(|sync| {
            (
                sync.shape.kind,
                sync.event,
                sync.event_record,
                sync.place.stream.0,
            )
        })
        .collect();
    assert!(kinds.contains(&(SyncKind::EVENT_WAIT, 8, 1_533, 0)), "{kinds:?}");
    assert!(kinds.contains(&(SyncKind::STREAM_WAIT, 0, 0, 7)), "{kinds:?}");
    assert!(kinds.contains(&(SyncKind::CONTEXT_WAIT, 0, 0, 0)), "{kinds:?}");

    let Some(trace) = open("cupti_profiler_benchmark_result_924719_1679055439_trace.json.gz") else {
        return;
    };
    let counters = rows(&trace.counters);
    let metric = |counter: &&Counter| trace.string(counter.track.name).ends_with("op_ffma_pred_on.sum");
    assert_eq!(counters.len(), 77 * 9);
    assert_eq!(counters.iter().find(metric).unwrap().value, 38_731_776.0);

    let Some(trace) = open("cpu_only_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz") else {
        return;
    };
    assert_eq!((trace.kernels.rows(), trace.devices.len()), (0, 0));
    assert_eq!(
        (trace.processes[0].rank.get(), trace.processes[0].world_size),
        (Some(34), 300)
    );
    assert_eq!(trace.string(trace.processes[0].name), "pyper:trainer:8:2");

    let Some(trace) = open("torch_compile_triton_trace.json.gz") else {
        return;
    };
    let names: BTreeSet<_> = rows(&trace.kernels)
        .iter()
        .map(|kernel| kernel.shape.name)
        .collect();
    let names = named(&trace, names);
    assert!(
        names.contains(&"triton_red_fused_add_mean_mul_pow_rsqrt_0"),
        "{names:?}"
    );
    let details: Vec<_> = rows(&trace.host_calls)
        .iter()
        .map(|call| trace.string(call.detail).to_owned())
        .collect();
    assert!(
        details
            .iter()
            .any(|detail| detail.contains(r#""kernel_backend":"triton""#))
    );
    let annotations = rows(&trace.markers);
    assert!(annotations.iter().any(|marker| {
        trace
            .string(marker.shape.name)
            .starts_with("## Call CompiledFxGraph")
    }));
}

#[test]
fn a_real_file_cut_anywhere_gives_every_whole_event_before() {
    let Some(path) = support::data("kineto/critical_path_cuda_event_sync_event_sync_trace.json.gz") else {
        return;
    };
    let content = unpacked(&path);
    let list = content
        .windows(13)
        .position(|text| text == b"\"traceEvents\"")
        .unwrap();
    // This writer ends each event with a brace on a line of its own.
    let text = String::from_utf8(content.clone()).unwrap();
    let ends: Vec<usize> = text
        .match_indices("\n  }")
        .map(|(at, found)| at + found.len())
        .filter(|end| *end > list)
        .collect();
    let mut counted = 0;
    for cut in (list + 20..content.len()).step_by(97) {
        let trace = import_bytes("cut.json", content[..cut].to_vec(), &ImportOptions::default()).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let descriptions = text[..cut].matches("\"ph\": \"M\"").count();
        let arrows = text[..cut].matches("\"cat\": \"ac2g\"").count();
        let rows = [
            trace.kernels.rows(),
            trace.api_calls.rows(),
            trace.host_calls.rows(),
            trace.copies.rows(),
            trace.syncs.rows(),
            trace.markers.rows(),
        ];
        let rows = rows.iter().sum::<u64>() as usize;
        assert!(
            rows + descriptions + arrows >= whole && rows <= whole,
            "cut at {cut}"
        );
        assert!(
            health(&trace)
                .iter()
                .any(|line| line.contains("ends in its middle"))
        );
        counted += rows;
    }
    assert!(counted > 1_000);
}
