//! Real files of PyTorch's profiler: what is in the trace afterwards is what Python's own JSON reader counts in them.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stderr,
    reason = "a test may stop on any error, and says what it skipped"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracesmith_format::tables::*;
use tracesmith_format::{Columns, StringId, Table};
use tracesmith_trace::import::{ImportOptions, Input, Sink, TimeUnit, import};
use tracesmith_trace::{FrameView, TableView, Trace};

fn open(name: &str) -> Option<Trace> {
    Some(Trace::open(&support::data(&format!("kineto/{name}"))?).unwrap())
}

fn rows<T: Table>(table: &TableView<T>) -> Vec<T> {
    let columns = table.columns().map(|(_, columns)| columns);
    columns
        .flat_map(|columns| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    Input::open(path).unwrap().read_to_end(&mut content).unwrap();
    content
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
            eprintln!("SKIPPED: no Python here: {error}");
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
        let Some(mut expected) = python_counts(&path) else {
            return;
        };
        let trace = Trace::open(&path).unwrap();
        let mut found = counts_of(&trace);
        // Waits have external ids, too, which Python was not asked for.
        if trace.syncs.rows() > 0 {
            expected.remove("device_external");
            found.remove("device_external");
        }
        expected.retain(|_, count| *count > 0);
        found.retain(|_, count| *count > 0);
        assert_eq!(found, expected, "{}", path.display());
        assert!(trace.health().damage.is_empty());
    }
}

fn import_bytes(
    name: &str,
    bytes: Vec<u8>,
    options: &ImportOptions,
) -> Result<Trace, tracesmith_trace::Error> {
    import_files(vec![(name, bytes)], options)
}

fn import_files(
    files: Vec<(&str, Vec<u8>)>,
    options: &ImportOptions,
) -> Result<Trace, tracesmith_trace::Error> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer =
        tracesmith_format::Writer::new(sink, tracesmith_format::WriterOptions::default()).unwrap();
    let inputs = files
        .into_iter()
        .map(|(name, bytes)| Input::from_bytes(name, bytes).unwrap());
    import(inputs.collect(), options, &mut writer)?;
    writer.seal().unwrap();
    Ok(Trace::from_bytes(bytes.into_inner()).unwrap())
}

fn import_text(text: &str) -> Trace {
    import_bytes("test.json", text.as_bytes().to_vec(), &ImportOptions::default()).unwrap()
}

/// What health says, as `words count`.
fn health(trace: &Trace) -> Vec<String> {
    let items = trace.health().recorded;
    items
        .iter()
        .map(|item| format!("{} {}", item.detail, item.count))
        .collect()
}

fn named<'t>(trace: &'t Trace, names: impl IntoIterator<Item = StringId>) -> Vec<&'t str> {
    names.into_iter().map(|name| trace.string(name)).collect()
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
    assert!(collectives.iter().all(|row| trace.string(row.shape.name) != ""));
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

/// An event of each kind that a cut can fall into.
const SMALL: &str = r#"{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1.001, "dur": 2, "args": {"correlation": 1}},
  {"ph": "X", "cat": "kernel", "name": "a \"quoted\" }, {", "pid": 0, "tid": 7, "ts": 4, "dur": 2.5, "args": {"correlation": 1, "grid": [1, 2, 3]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0.5, "dur": 9, "args": {"Input Dims": [[1], []]}}
], "traceName": "small"}"#;

#[test]
fn a_file_cut_anywhere_gives_every_whole_event_before() {
    let options = ImportOptions {
        format: tracesmith_trace::import::IMPORTERS
            .iter()
            .find(|importer| importer.name == "kineto"),
        ..ImportOptions::default()
    };
    let array = format!(
        "[{}",
        &SMALL[SMALL.find('\n').unwrap()..SMALL.rfind(']').unwrap()]
    );
    for text in [SMALL, &array] {
        let list = text.find('[').unwrap();
        let ends: Vec<usize> = text
            .match_indices("}},\n")
            .map(|(at, _)| at + 2)
            .chain([text.rfind("}}").unwrap() + 2])
            .collect();
        for cut in 0..text.len() {
            let imported = import_bytes("cut.json", text.as_bytes()[..cut].to_vec(), &options);
            if cut <= list {
                imported.unwrap_err();
                continue;
            }
            let trace = imported.unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count() as u64;
            let rows = trace.kernels.rows() + trace.api_calls.rows() + trace.host_calls.rows();
            assert_eq!(rows, whole, "cut at {cut}");
            let is_between = text.starts_with('[')
                && text[..cut].trim_end().ends_with([',', '[', '}'])
                && ends
                    .iter()
                    .any(|end| *end <= cut && text[*end..cut].trim_matches([',', '\n', ' ']).is_empty());
            let says_so = health(&trace)
                .iter()
                .any(|line| line.contains("ends in its middle"));
            assert_eq!(
                says_so,
                !is_between && text[list + 1..cut].trim() != "" || !text.starts_with('['),
                "cut at {cut}"
            );
        }
    }
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

#[test]
fn both_forms_and_every_packing_are_the_same_trace() {
    let text = SMALL.as_bytes().to_vec();
    let array = format!(
        "[{}",
        &SMALL[SMALL.find('\n').unwrap()..SMALL.rfind(']').unwrap()]
    );
    let packed = zstd::encode_all(&text[..], 1).unwrap();
    for bytes in [text, packed] {
        let trace = import_bytes("test.json", bytes, &ImportOptions::default()).unwrap();
        let kernel = &rows(&trace.kernels)[0];
        assert_eq!(
            (kernel.start.0, kernel.end.0),
            (1_700_000_000_000_004_000, 1_700_000_000_000_006_500)
        );
        assert_eq!(trace.string(kernel.shape.name), "a \"quoted\" }, {");
        assert_eq!(health(&trace), [""; 0]);
    }
    // Without the base the zero is not known, and times are a second later than in the file.
    let trace = import_text(&array);
    let kernel = &rows(&trace.kernels)[0];
    assert_eq!((kernel.start.0, kernel.end.0), (1_000_004_000, 1_000_006_500));
    assert_eq!(trace.metadata["import.time_shift_ns"], "1000000000");
    assert_eq!(trace.clocks[0].kind, ClockKind::UNKNOWN);
    assert_eq!(rows(&trace.api_calls)[0].start.0, 1_000_001_001);
}

#[test]
fn the_unit_of_times_can_be_told() {
    let options = ImportOptions {
        time_unit: Some(TimeUnit::Nanoseconds),
        ..ImportOptions::default()
    };
    let text = r#"{"traceEvents":[{"ph":"X","cat":"API","name":"mcLaunchKernel","pid":4,"tid":4,"ts":100,"dur":20,"args":{"correlation":1}},
        {"ph":"X","cat":"Kernel Exec","name":"vadd","pid":0,"tid":1,"ts":130,"dur":50,"args":{"correlation":1,"stream":1,"device":0}},"#;
    let trace = import_bytes("tracer_out-4.json", text.as_bytes().to_vec(), &options).unwrap();
    assert_eq!(trace.metadata["import.format"], "MetaX mcTracer JSON");
    let (call, kernel) = (&rows(&trace.api_calls)[0], &rows(&trace.kernels)[0]);
    assert_eq!(
        (call.shape.domain, call.end.0 - call.start.0),
        (ApiDomain::MACA, 20)
    );
    assert_eq!(
        (kernel.end.0 - kernel.start.0, kernel.correlation),
        (50, call.correlation)
    );
    assert_eq!(kernel.place.process, call.caller.process);
    assert!(
        health(&trace)
            .iter()
            .any(|line| line.contains("ends in its middle"))
    );
}

#[test]
fn phases_of_chrome() {
    let trace = import_text(
        r#"[{"name":"outer","cat":"c","ph":"B","pid":1,"tid":"main","ts":0},{"name":"inner","ph":"B","pid":1,"tid":"main","ts":1,"args":{"a":1}},
        {"ph":"E","pid":1,"tid":"main","ts":5},{"ph":"E","pid":1,"tid":"main","ts":7},{"ph":"E","pid":1,"tid":"main","ts":8},{"name":"open","ph":"B","pid":1,"tid":2,"ts":6},
        {"name":"request","cat":"net","ph":"b","id":"0x10","pid":1,"tid":2,"ts":1},{"name":"request","cat":"net","ph":"e","id":"0x10","pid":1,"tid":3,"ts":3},
        {"name":"never","cat":"net","ph":"b","id":"text","pid":1,"tid":2,"ts":1},{"name":"old","ph":"S","id":1,"pid":1,"tid":2,"ts":4},{"name":"old","ph":"F","id":1,"pid":1,"tid":2,"ts":9},
        {"name":"mem","ph":"C","pid":1,"ts":3,"args":{"value":1.5,"cached":2,"bad":"x"}},
        {"name":"w","ph":"s","id":3,"pid":1,"tid":2,"ts":1},{"name":"w","ph":"t","id":3,"pid":1,"tid":2,"ts":2},{"name":"w","ph":"f","id":3,"pid":1,"tid":2,"ts":3,"bp":"e"},
        {"name":"now","ph":"i","s":"p","pid":1,"tid":2,"ts":4},{"name":"o","ph":"N","id":1,"pid":1,"tid":2,"ts":1},{"ph":"v","ts":1},{"ph":"c","ts":1},
        {"name":"x","ph":"X","pid":1,"tid":2,"ts":1,"dur":1,"tts":7,"sf":"7"},{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"worker"}},
        {"name":"mtia","cat":"mtia_ccp_events","ph":"X","pid":1,"tid":2,"ts":1,"dur":1},{"name":"mtia","cat":"mtia_ccp_events","ph":"X","pid":1,"tid":2,"ts":1,"dur":1}"#,
    );
    let calls: Vec<_> = rows(&trace.host_calls)
        .iter()
        .map(|call| {
            (
                trace.string(call.shape.name).to_owned(),
                call.end.0.saturating_sub(call.start.0),
                call.shape.exit,
            )
        })
        .collect();
    let call = |name: &str, duration, exit| (name.to_owned(), duration, exit);
    assert_eq!(
        calls,
        [
            call("inner", 4_000, CallExit::RETURN),
            call("outer", 7_000, CallExit::RETURN),
            call("x", 1_000, CallExit::RETURN),
            call("open", 0, CallExit::OPEN)
        ]
    );
    let markers: Vec<_> = rows(&trace.markers)
        .iter()
        .map(|marker| {
            (
                trace.string(marker.shape.name).to_owned(),
                marker.shape.kind,
                marker.end.0,
            )
        })
        .collect();
    assert_eq!(
        markers,
        [
            ("request".to_owned(), MarkerKind::FREE_RANGE, 1_000_003_000),
            ("old".to_owned(), MarkerKind::FREE_RANGE, 1_000_009_000),
            ("now".to_owned(), MarkerKind::INSTANT, 1_000_004_000),
            ("never".to_owned(), MarkerKind::OPEN_FREE_RANGE, 0)
        ]
    );
    let counters = rows(&trace.counters);
    assert_eq!(
        named(&trace, counters.iter().map(|row| row.track.name)),
        ["mem", "mem: cached"]
    );
    assert_eq!(trace.flows.rows(), 3);
    assert_eq!(
        named(&trace, trace.threads.iter().map(|thread| thread.name)),
        ["worker", "", "main"]
    );
    for line in [
        "ends of ranges that did not begin 1",
        "object events 1",
        "memory dumps 1",
        "clock synchronisations 1",
        "values of counters that are no numbers 1",
        "\"tts\" of events 1",
        "stack frames that no table has 1",
        "events of category mtia_ccp_events 2",
    ] {
        assert!(
            health(&trace).contains(&line.to_owned()),
            "{line}: {:?}",
            health(&trace)
        );
    }
}

#[test]
fn stacks_of_chrome_before_and_behind_the_events() {
    let event = r#""traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"sf":7}]"#;
    let table = r#""stackFrames":{"5":{"category":"lib","name":"main"},"7":{"parent":"5","name":"work"},"8":{"parent":8,"name":"circle"}}"#;
    for text in [format!("{{{event},{table}}}"), format!("{{{table},{event}}}")] {
        let trace = import_text(&text);
        let stack = trace.stack(rows(&trace.host_calls)[0].stack);
        let function = |frame: &FrameView| match &frame.symbol {
            Some(symbol) => trace.string(symbol.function).to_owned(),
            None => trace.string(frame.frame.function).to_owned(),
        };
        let functions: Vec<_> = stack.frames.iter().map(function).collect();
        assert_eq!(functions, ["work", "main"], "{text}");
        assert_eq!(health(&trace), [""; 0]);
    }
}

#[test]
fn proton_writes_an_object_a_line() {
    let trace = import_text(
        "{\"displayTimeUnit\":\"us\",\"traceEvents\":[{\"name\":\"k\",\"cat\":\"kernel\",\"ph\":\"X\",\"ts\":0.0,\"dur\":1.5,\"tid\":3,\"args\":{\"call_stack\":[\"ROOT\",\"step\",\"k\"]}}]}\n\
         {\"displayTimeUnit\":\"us\",\"traceEvents\":[{\"name\":\"k2\",\"cat\":\"kernel\",\"ph\":\"X\",\"ts\":3.0,\"dur\":1.5,\"tid\":4}]}\n",
    );
    let kernels = rows(&trace.kernels);
    assert_eq!(
        kernels
            .iter()
            .map(|kernel| kernel.place.stream.0)
            .collect::<Vec<_>>(),
        [3, 4]
    );
    assert_eq!(kernels[0].start.0, 1_000_000_000, "0 is a time");
    assert_eq!(trace.stack(kernels[0].stack).frames.len(), 3);
}

#[test]
fn bad_values_are_counted_and_the_rest_is_kept() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let text = format!(
        r#"{{"traceEvents": [
        {{"ph": "X", "cat": "kernel", "name": "late", "ts": 9223372036854775808, "dur": 1}},
        {{"ph": "X", "cat": "kernel", "name": "too late", "ts": 1e309, "dur": 1}},
        {{"ph": "X", "cat": "kernel", "name": "nan", "ts": NaN, "dur": Infinity}},
        {{"ph": "X", "cat": "kernel", "name": "early", "ts": -5, "dur": 1, "args": {{"correlation": "x", "grid": {{}}, "stream": null, "device": -1}}}},
        {{"ph": "X", "cat": "kernel", "name": "short", "ts": 5, "dur": -1}},
        {{"ph": "X", "cat": "kernel", "name": "half \ud800", "ts": 5, "args": []}},
        {{"ph": "X", "cat": "kernel", "name": {{"a": 1}}, "ts": "7", "dur": "8", "pid": [], "tid": true}},
        {{"ph": "X", "cat": "cpu_op", "name": "deep", "ts": 5, "dur": 1, "args": {{"a": {deep}}}}},
        {{"ph": oops"}}, {{"ph": "X", "cat": "kernel", "name": "next", "ts": 5, "dur": 1}},
        null, 7, [], {{}}, "text"]}}"#
    );
    let trace = import_text(&text);
    let kernels = rows(&trace.kernels);
    let times: Vec<_> = kernels
        .iter()
        .map(|kernel| (kernel.start.0, kernel.end.0))
        .collect();
    let shift = 1_000_000_000;
    assert_eq!(
        times,
        [
            (0, 0),
            (0, 0),
            (0, 0),
            (shift - 5_000, shift - 4_000),
            (shift + 5_000, 0),
            (shift + 5_000, 0),
            (shift + 7_000, shift + 15_000),
            (shift + 5_000, shift + 6_000)
        ]
    );
    assert_eq!(trace.string(kernels[5].shape.name), "half \u{fffd}");
    assert_eq!(trace.string(kernels[7].shape.name), "next");
    assert_eq!(trace.host_calls.rows(), 1);
    for line in [
        "events whose time is missing or cannot be told 3",
        "durations that are negative or no numbers, kept without an end 1",
        "events without a duration, kept without an end 1",
        "events that are no JSON 1",
        "entries that are no events 4",
        "objects that are no events 1",
    ] {
        assert!(
            health(&trace).contains(&line.to_owned()),
            "{line}: {:?}",
            health(&trace)
        );
    }
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    for text in [
        "{}",
        "{\"a\": [1]}",
        "7",
        "{\"traceEvents\": 7}",
        "",
        "{\"schemaVersion\": 1, ",
        "{7}",
    ] {
        let options = ImportOptions {
            format: tracesmith_trace::import::IMPORTERS
                .iter()
                .find(|importer| importer.name == "kineto"),
            ..ImportOptions::default()
        };
        let error = import_bytes("test.json", text.as_bytes().to_vec(), &options)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("bad kineto file: ") && error.contains("at byte"),
            "{text}: {error}"
        );
    }
}

#[test]
fn equal_pids_of_two_files_are_two_processes() {
    let with_rank = |rank: u32| {
        SMALL.replace(
            "\"schemaVersion\": 1",
            &format!("\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": 2}}"),
        )
    };
    let files = vec![
        ("a.json", with_rank(0).into_bytes()),
        ("b.json", with_rank(1).into_bytes()),
    ];
    let trace = import_files(files, &ImportOptions::default()).unwrap();
    let ranks: Vec<_> = trace
        .processes
        .iter()
        .map(|process| (process.pid, process.rank.get(), process.world_size))
        .collect();
    assert_eq!(ranks, [(9, Some(0), 2), (9, Some(1), 2)]);
    assert!(trace.metadata.contains_key("import.file2.distributed"));
    let kernels = rows(&trace.kernels);
    assert_ne!(kernels[0].place.process, kernels[1].place.process);
    assert_ne!(kernels[0].place.device, kernels[1].place.device);
}

proptest::proptest! {
    #[test]
    fn any_tree_of_json_survives(tree in tree(), keys in proptest::collection::vec("ph|cat|name|pid|tid|ts|dur|args|id|sf|stack", 1..8)) {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\": {tree}")).collect();
        for category in ["kernel", "cpu_op", "gpu_memcpy", "cuda_sync", "python_function", "x"] {
            for phase in ["X", "B", "b", "C", "M", "i", "s", "P"] {
                let text = format!("[{{{}, \"ph\": \"{phase}\", \"cat\": \"{category}\", \"args\": {tree}}}, {tree}]", members.join(","));
                let _ = import_bytes("any.json", text.into_bytes(), &ImportOptions::default());
            }
        }
    }
}

fn tree() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[a-zA-Z \\\\\"\\[\\]{}:,]{0,8}".prop_map(|text| format!("{text:?}")),
    ];
    let key = "correlation|External id|grid|Bytes|Python id|Python parent id|name|labels|value|Call stack|Collective name|stream";
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            proptest::collection::vec((key, inner), 0..6).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("\"{key}\": {value}"))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}
