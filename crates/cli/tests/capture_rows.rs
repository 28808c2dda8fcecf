//! What a program did on the GPU is in the trace, row by row. The program, the binary and the library are real; the driver
//! is the fake one.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use support::rows::{assert_whole, call_counts, calls, joined_kernels, rows};
use support::stage::{Place, run, stage};
use tracesmith_fake_cuda::Options;
use tracesmith_format::tables::{
    ApiDomain, CopyDirection, MemoryKind, MemoryOperation, StreamKind, SyncKind,
};
use tracesmith_format::{Bytes, GraphId, Timestamp};
use tracesmith_trace::Trace;

#[test]
fn every_launch_is_a_kernel_that_is_joined_to_its_call() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("", "launcher launch 1000");
    assert_eq!(run.stdout, "launched 1000\n");
    assert_whole(&trace);
    let calls = calls(&trace);
    let kernels = joined_kernels(&trace);
    assert_eq!(kernels.len(), 1000);
    let correlations: BTreeSet<u64> = kernels.iter().map(|kernel| kernel.correlation.0).collect();
    assert_eq!(correlations.len(), 1000, "each has a call of its own");
    for kernel in &kernels {
        let call = &calls[&(kernel.place.process, kernel.correlation.0)];
        assert_eq!(trace.string(call.shape.name), "cuLaunchKernel");
        assert_eq!(
            (call.shape.domain, call.shape.result),
            (ApiDomain::CUDA_DRIVER, 0)
        );
        assert!(call.caller.thread.is_some());
        assert_eq!(trace.string(kernel.shape.name), "noop");
        let shape = &kernel.shape;
        assert_eq!((shape.grid_x, shape.grid_y, shape.grid_z), (1, 1, 1));
        assert_eq!((shape.block_x, shape.block_y, shape.block_z), (32, 1, 1));
        assert_eq!(
            (kernel.queued, kernel.submitted),
            (Timestamp::NONE, Timestamp::NONE)
        );
    }
    let process = &trace.processes[0];
    assert_eq!(trace.string(process.name), "launcher");
    assert!(trace.string(process.command).ends_with("launcher launch 1000"));
}

#[test]
fn kernels_have_their_names_and_shapes() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher compute 1024");
    assert_whole(&trace);
    let mut shapes: Vec<(&str, u32, u32)> = joined_kernels(&trace)
        .iter()
        .map(|kernel| {
            let shape = &kernel.shape;
            (trace.string(shape.name), shape.grid_x, shape.block_x)
        })
        .collect();
    shapes.sort_unstable();
    let expected = [
        ("accumulate", 4, 256),
        ("fill", 1, 1),
        ("fill", 4, 256),
        ("matmul", 1, 256),
        ("saxpy", 4, 256),
        ("vector_add", 4, 256),
    ];
    assert_eq!(shapes, expected);
}

#[test]
fn devices_contexts_and_streams_are_described() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher streams 3 5");
    assert_whole(&trace);
    let device = &trace.devices[0];
    assert_eq!(trace.devices.len(), 1);
    assert!(trace.string(device.uuid).starts_with("GPU-"), "{device:?}");
    assert!(device.memory.0 > 0 && device.multiprocessors > 0 && device.warp_size == 32);
    assert_eq!((device.pcie_generation, device.pcie_width), (5, 16), "by NVML");
    assert_eq!((device.nvlinks, device.nvlink_bandwidth), (0, 0), "it is alone");
    let context = &trace.contexts[0];
    assert_eq!((trace.contexts.len(), context.device), (1, device.id));
    let made: Vec<_> = trace
        .streams
        .iter()
        .filter(|stream| stream.destroyed.is_some())
        .collect();
    assert_eq!(made.len(), 3, "the others are the driver's own");
    for stream in &made {
        assert_eq!((stream.context, stream.device), (context.context, device.id));
        assert_eq!((stream.kind, stream.priority), (StreamKind::NON_BLOCKING, 0));
        assert!(stream.destroyed > stream.created, "{stream:?}");
    }
    let mut kernels: BTreeMap<u64, usize> = BTreeMap::new();
    for kernel in joined_kernels(&trace) {
        assert_eq!(
            (kernel.place.device, kernel.place.context),
            (device.id, context.context)
        );
        *kernels.entry(kernel.place.stream.0).or_default() += 1;
    }
    let expected: BTreeMap<u64, usize> = made.iter().map(|stream| (stream.stream.0, 5)).collect();
    assert_eq!(kernels, expected);
}

#[test]
fn a_call_that_fails_keeps_its_result() {
    let Some(stage) = stage() else { return };
    let options = Options {
        launch_failure_every: 11,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let run = run(&mut place.profile("", "launcher launch 100"));
    assert_eq!(run.code, Some(2), "the program's own: {}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(
        trace.kernels.rows(),
        10,
        "the last may lack times: it did not wait for them"
    );
    let failed: Vec<_> = rows(&trace.api_calls)
        .into_iter()
        .filter(|call| call.shape.result != 0)
        .map(|call| (trace.string(call.shape.name).to_owned(), call.shape.result))
        .collect();
    assert_eq!(failed, [("cuLaunchKernel".to_owned(), 701)]);
}

#[test]
fn copies_and_sets_have_their_directions_and_bytes() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher copies 10");
    assert_whole(&trace);
    let calls = calls(&trace);
    let mut directions: BTreeMap<CopyDirection, usize> = BTreeMap::new();
    for copy in rows(&trace.copies) {
        assert_eq!(copy.bytes, Bytes(1 << 16));
        assert!(copy.start <= copy.end && copy.start.is_some() && copy.place.device.is_some());
        let call = &calls[&(copy.place.process, copy.correlation.0)];
        let (function, source, destination) = match copy.shape.direction {
            CopyDirection::HOST_TO_DEVICE => ("cuMemcpyHtoD", MemoryKind::PAGEABLE, MemoryKind::DEVICE),
            CopyDirection::DEVICE_TO_HOST => ("cuMemcpyDtoH", MemoryKind::DEVICE, MemoryKind::PAGEABLE),
            _ => ("cuMemcpyDtoDAsync", MemoryKind::DEVICE, MemoryKind::DEVICE),
        };
        assert_eq!(trace.string(call.shape.name), function);
        let shape = &copy.shape;
        assert_eq!(
            (shape.source_memory, shape.destination_memory),
            (source, destination)
        );
        *directions.entry(copy.shape.direction).or_default() += 1;
    }
    let expected = [
        (CopyDirection::HOST_TO_DEVICE, 10),
        (CopyDirection::DEVICE_TO_HOST, 10),
        (CopyDirection::DEVICE_TO_DEVICE, 10),
    ];
    assert_eq!(directions, BTreeMap::from(expected));
    let sets = rows(&trace.sets);
    assert_eq!(sets.len(), 10);
    for set in sets {
        assert_eq!((set.bytes, set.value), (Bytes(1 << 16), 0));
        assert_eq!(set.shape.memory, MemoryKind::DEVICE);
        assert!(calls.contains_key(&(set.place.process, set.correlation.0)));
    }
}

#[test]
fn copies_between_devices_name_both() {
    let Some(stage) = stage() else { return };
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    let (_, trace) = Place::with(stage, options).profiled("", "launcher peer");
    assert_whole(&trace);
    assert_eq!((trace.devices.len(), trace.contexts.len()), (2, 2));
    for device in &trace.devices {
        assert_eq!(
            (device.nvlinks, device.nvlink_bandwidth),
            (18, 18 * 26_562_000_000)
        );
    }
    let [first, second] = [trace.devices[0].id, trace.devices[1].id];
    let mut peers: Vec<_> = rows(&trace.copies)
        .into_iter()
        .filter(|copy| copy.shape.direction == CopyDirection::PEER)
        .map(|copy| {
            (
                copy.shape.source_device,
                copy.shape.destination_device,
                copy.bytes.0,
            )
        })
        .collect();
    peers.sort_unstable();
    assert_eq!(peers, [(first, second, 4), (second, first, 4)]);
    // The second device's context was current then.
    let waits: Vec<_> = rows(&trace.syncs)
        .iter()
        .map(|sync| (sync.shape.kind, sync.place.device, sync.place.stream.0 != 0))
        .collect();
    for wait in [
        (SyncKind::EVENT_RECORD, first, true),
        (SyncKind::STREAM_WAIT, first, true),
        (SyncKind::EVENT_WAIT, first, false),
    ] {
        assert!(waits.contains(&wait), "{wait:?}: {waits:?}");
    }
}

/// A callback at the runtime's launches costs too much; with every call recorded it costs nothing more.
#[test]
fn launches_of_the_runtime_are_told_by_the_driver() {
    let Some(stage) = stage() else { return };
    for (options, expected) in [
        ("", BTreeMap::from([("cuLaunchKernel", 7)])),
        (
            "--level full",
            BTreeMap::from([("cuLaunchKernel", 7), ("cudaLaunchKernel", 7)]),
        ),
    ] {
        let (run, trace) = Place::newest(stage).profiled(options, "launcher runtime_launch 7");
        assert_eq!(run.stdout, "launched 7 by the runtime result 0\n");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 7, "{options}");
        let mut launches = BTreeMap::new();
        for call in rows(&trace.api_calls) {
            let name = trace.string(call.shape.name);
            if name.contains("Launch") {
                *launches.entry(name).or_insert(0) += 1;
            }
        }
        assert_eq!(launches, expected, "{options}");
    }
}

#[test]
fn waits_and_events_are_rows() {
    let Some(stage) = stage() else { return };
    for options in ["", "--level full"] {
        let (_, trace) = Place::newest(stage).profiled(options, "launcher events");
        assert_waits_and_events(&trace);
        let times = rows(&trace.syncs)
            .iter()
            .filter(|sync| sync.device_time.is_some())
            .count();
        assert_eq!(
            times,
            if options.is_empty() { 0 } else { 3 },
            "when the device passed each"
        );
    }
    // By callbacks too, and nothing else.
    let (_, trace) = Place::new(stage).profiled("-t sync", "launcher events");
    assert_eq!(
        (trace.syncs.rows(), trace.api_calls.rows(), trace.kernels.rows()),
        (5, 0, 0)
    );
}

fn assert_waits_and_events(trace: &Trace) {
    assert_whole(trace);
    let syncs = rows(&trace.syncs);
    let of = |kind: SyncKind| -> Vec<_> { syncs.iter().filter(|sync| sync.shape.kind == kind).collect() };
    let recorded = of(SyncKind::EVENT_RECORD);
    assert_eq!(recorded.len(), 3, "{syncs:?}");
    assert!(recorded.iter().all(|event| event.event != 0));
    let waits = of(SyncKind::STREAM_WAIT_EVENT);
    assert_eq!(waits.len(), 1, "{syncs:?}");
    let middle = recorded.iter().find(|event| event.event == waits[0].event);
    let middle = middle.expect("the wait is for a recorded event");
    assert_eq!(waits[0].event_record, middle.event_record);
    assert_ne!(waits[0].place.stream, middle.place.stream, "another stream waits");
    assert_eq!(of(SyncKind::EVENT_WAIT).len(), 1, "{syncs:?}");
    for wait in of(SyncKind::EVENT_WAIT) {
        assert!(wait.start.is_some() && wait.start <= wait.end);
    }
    let calls = calls(trace);
    for sync in &syncs {
        assert!(
            calls.contains_key(&(sync.place.process, sync.correlation.0)),
            "{sync:?}"
        );
        assert!(sync.place.device.is_some(), "{sync:?}");
    }
}

#[test]
fn every_kind_of_memory_is_taken_and_given_back() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher memory");
    assert_whole(&trace);
    let allocations = rows(&trace.allocations);
    let of = |operation: MemoryOperation| {
        let mut found: Vec<_> = allocations
            .iter()
            .filter(|row| row.shape.operation == operation)
            .map(|row| {
                (
                    row.shape.memory,
                    row.shape.asynchronous,
                    row.bytes.0,
                    row.address.0,
                )
            })
            .collect();
        found.sort_unstable();
        found
    };
    let taken = of(MemoryOperation::ALLOCATE);
    let kinds: Vec<_> = taken.iter().map(|row| (row.0, row.1, row.2)).collect();
    let expected = [
        (MemoryKind::PINNED, false, 1 << 16),
        (MemoryKind::DEVICE, false, 1 << 20),
        (MemoryKind::DEVICE, true, 1 << 18),
        (MemoryKind::MANAGED, false, 1 << 16),
    ];
    assert_eq!(kinds, expected, "{allocations:#?}");
    let addresses =
        |rows: &[(MemoryKind, bool, u64, u64)]| -> BTreeSet<u64> { rows.iter().map(|row| row.3).collect() };
    assert_eq!(addresses(&taken), addresses(&of(MemoryOperation::FREE)));
    assert!(!addresses(&taken).contains(&0));
    for row in &allocations {
        assert!(row.time.is_some() && row.place.process.is_some(), "{row:?}");
    }
}

#[test]
fn mapped_memory_is_recorded() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher virtual");
    assert_whole(&trace);
    let allocations = rows(&trace.allocations);
    let of = |operation: MemoryOperation| {
        allocations
            .iter()
            .filter(move |row| row.shape.operation == operation)
    };
    assert!(
        of(MemoryOperation::ALLOCATE).any(|row| row.bytes == Bytes(2 << 20)),
        "{allocations:#?}"
    );
    assert!(of(MemoryOperation::FREE).count() > 0);
    let counts = call_counts(&trace);
    for function in [
        "cuMemCreate",
        "cuMemMap",
        "cuMemUnmap",
        "cuMemRelease",
        "cuMemAddressReserve",
    ] {
        assert!(counts.contains_key(function), "{function}: {counts:?}");
    }
}

#[test]
fn graphs_are_recorded_by_their_nodes() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher graph 5 4");
    assert_whole(&trace);
    assert_eq!(trace.graph_launches.rows(), 0);
    let kernels = joined_kernels(&trace);
    assert_eq!(kernels.len(), 20);
    let mut nodes: BTreeMap<u64, usize> = BTreeMap::new();
    for kernel in &kernels {
        assert!(
            kernel.shape.graph.is_some() && kernel.graph_node.is_some(),
            "{kernel:?}"
        );
        *nodes.entry(kernel.graph_node.0).or_default() += 1;
    }
    assert_eq!(
        nodes.values().copied().collect::<Vec<_>>(),
        [4; 5],
        "each node, each launch"
    );
    let launches: BTreeSet<u64> = kernels.iter().map(|kernel| kernel.correlation.0).collect();
    assert_eq!(launches.len(), 4, "a launch is one call");
}

#[test]
fn what_nodes_of_a_graph_wait_for_is_recorded() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for options in ["", "-t kernels", "--capture-range cuda-profiler-api"] {
        let (_, trace) = place.profiled(options, "launcher diamond 2");
        let edges: BTreeSet<(u64, u64)> = rows(&trace.graph_edges)
            .iter()
            .map(|edge| (edge.node.0 & 0xffff, edge.before.0 & 0xffff))
            .collect();
        // The driver puts a node between each of two and the one that waits for both.
        let expected = [(1, 0), (2, 0), (3, 4), (3, 5), (4, 1), (5, 2)];
        assert_eq!(edges, BTreeSet::from(expected), "{options}");
        assert_eq!(
            trace.graph_edges.rows(),
            6,
            "the copy that runs, and no other: {options}"
        );
        let graphs: BTreeSet<u64> = rows(&trace.kernels)
            .iter()
            .filter(|kernel| kernel.graph_node.is_some())
            .map(|kernel| kernel.graph_node.0 >> 32)
            .collect();
        let edges = rows(&trace.graph_edges);
        assert!(
            graphs
                .iter()
                .all(|graph| edges.iter().all(|edge| edge.node.0 >> 32 == *graph))
        );
    }
    let (_, trace) = place.profiled("--graphs whole", "launcher diamond 2");
    assert_eq!(trace.graph_edges.rows(), 0, "nodes are not recorded");
}

#[test]
fn graphs_can_be_recorded_as_a_whole() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for options in ["--graphs whole", "-t graphs,api,streams"] {
        let (_, trace) = place.profiled(options, "launcher graph 5 4");
        assert_whole(&trace);
        assert_eq!(trace.kernels.rows(), 0, "{options}: no node by node");
        let calls = calls(&trace);
        let launches = rows(&trace.graph_launches);
        assert_eq!(launches.len(), 4, "{options}");
        for launch in &launches {
            assert!(launch.shape.graph != GraphId::NONE && launch.start <= launch.end);
            let call = &calls[&(launch.place.process, launch.correlation.0)];
            assert_eq!(trace.string(call.shape.name), "cuGraphLaunch");
        }
    }
}

#[test]
fn modules_come_with_their_content_and_their_time() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher modules");
    assert_whole(&trace);
    let modules = rows(&trace.modules);
    assert_eq!(modules.len(), 4, "{modules:?}");
    let contents: BTreeSet<(u64, u64, u64)> = modules
        .iter()
        .map(|module| (module.hash_high, module.hash_low, module.size.0))
        .collect();
    assert_eq!(contents.len(), 1, "the same code four times: {modules:?}");
    assert!(
        modules
            .iter()
            .all(|module| module.size.0 > 0 && module.hash_low != 0)
    );
    assert!(modules.iter().all(|module| module.loaded.is_some()));
    let unloaded = modules.iter().filter(|module| module.unloaded.is_some());
    assert_eq!(
        unloaded.filter(|module| module.unloaded >= module.loaded).count(),
        3
    );
}

#[test]
fn calls_of_the_runtime_are_told_from_those_of_the_driver() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher runtime");
    let calls = rows(&trace.api_calls);
    let runtime: BTreeSet<&str> = calls
        .iter()
        .filter(|call| call.shape.domain == ApiDomain::CUDA_RUNTIME)
        .map(|call| trace.string(call.shape.name))
        .collect();
    for function in [
        "cudaMalloc",
        "cudaMemset",
        "cudaMemcpyAsync",
        "cudaStreamSynchronize",
        "cudaFree",
    ] {
        assert!(runtime.contains(function), "{function}: {runtime:?}");
    }
    assert!(!runtime.contains("cudaGetLastError"), "it only asks");
    assert_eq!((trace.copies.rows(), trace.sets.rows()), (1, 1));
}
