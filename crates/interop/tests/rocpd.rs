//! Databases of rocprofv3. No real one was at hand: these are made here after the documented schema.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use rusqlite::Connection;
use tempfile::TempDir;
use tracesmith_format::Columns;
use tracesmith_format::tables::{ApiDomain, CopyDirection, MarkerKind, MemoryOperation};
use tracesmith_interop::import::{Input, importer_of};

/// The tables of one process, their names ending in `{id}`; views join the sets, as in merged files.
const TABLES: &str = r#"
CREATE TABLE "rocpd_metadata{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "tag" TEXT NOT NULL, "value" TEXT NOT NULL);
CREATE TABLE "rocpd_string{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "string" TEXT NOT NULL UNIQUE);
CREATE TABLE "rocpd_info_node{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "hash" BIGINT NOT NULL, "machine_id" TEXT NOT NULL, "system_name" TEXT, "hostname" TEXT, "release" TEXT);
CREATE TABLE "rocpd_info_process{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "ppid" INTEGER, "pid" INTEGER NOT NULL, "start" BIGINT, "end" BIGINT, "command" TEXT);
CREATE TABLE "rocpd_info_thread{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER NOT NULL, "name" TEXT);
CREATE TABLE "rocpd_info_agent{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "type" TEXT CHECK ("type" IN ('CPU', 'GPU')), "absolute_index" INTEGER, "type_index" INTEGER, "name" TEXT, "vendor_name" TEXT, "product_name" TEXT);
CREATE TABLE "rocpd_info_queue{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "name" TEXT);
CREATE TABLE "rocpd_info_stream{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "name" TEXT);
CREATE TABLE "rocpd_info_pmc{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "pid" INTEGER NOT NULL, "agent_id" INTEGER, "name" TEXT NOT NULL, "units" TEXT DEFAULT "");
CREATE TABLE "rocpd_info_kernel_symbol{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "kernel_name" TEXT, "display_name" TEXT, "group_segment_size" INTEGER, "arch_vgpr_count" INTEGER);
CREATE TABLE "rocpd_track{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER, "tid" INTEGER, "name_id" INTEGER);
CREATE TABLE "rocpd_event{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "category_id" INTEGER, "stack_id" INTEGER, "parent_stack_id" INTEGER, "correlation_id" INTEGER, "extdata" JSONB DEFAULT "{}" NOT NULL);
CREATE TABLE "rocpd_arg{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "event_id" INTEGER NOT NULL, "name" TEXT NOT NULL, "value" TEXT);
CREATE TABLE "rocpd_pmc_event{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "event_id" INTEGER, "pmc_id" INTEGER NOT NULL, "value" REAL DEFAULT 0.0);
CREATE TABLE "rocpd_region{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER NOT NULL, "start" BIGINT NOT NULL, "end" BIGINT NOT NULL, "name_id" INTEGER NOT NULL, "event_id" INTEGER);
CREATE TABLE "rocpd_sample{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "track_id" INTEGER NOT NULL, "timestamp" BIGINT NOT NULL, "event_id" INTEGER);
CREATE TABLE "rocpd_kernel_dispatch{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER, "agent_id" INTEGER NOT NULL, "kernel_id" INTEGER NOT NULL, "dispatch_id" INTEGER NOT NULL, "queue_id" INTEGER NOT NULL, "stream_id" INTEGER NOT NULL, "start" BIGINT NOT NULL, "end" BIGINT NOT NULL, "private_segment_size" INTEGER, "group_segment_size" INTEGER, "workgroup_size_x" INTEGER NOT NULL, "workgroup_size_y" INTEGER NOT NULL, "workgroup_size_z" INTEGER NOT NULL, "grid_size_x" INTEGER NOT NULL, "grid_size_y" INTEGER NOT NULL, "grid_size_z" INTEGER NOT NULL, "event_id" INTEGER);
CREATE TABLE "rocpd_memory_copy{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER, "start" BIGINT NOT NULL, "end" BIGINT NOT NULL, "name_id" INTEGER NOT NULL, "dst_agent_id" INTEGER, "dst_address" INTEGER, "src_agent_id" INTEGER, "src_address" INTEGER, "size" INTEGER NOT NULL, "queue_id" INTEGER, "stream_id" INTEGER, "event_id" INTEGER);
CREATE TABLE "rocpd_memory_allocate{id}" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT NOT NULL, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER, "agent_id" INTEGER, "type" TEXT, "level" TEXT, "start" BIGINT NOT NULL, "end" BIGINT NOT NULL, "address" INTEGER, "size" INTEGER NOT NULL, "queue_id" INTEGER, "stream_id" INTEGER, "event_id" INTEGER);
"#;

/// What one process of a node did: a launch, its kernel with a counter, a copy each way, an allocation, a range and a mark.
const ROWS: &str = r#"
INSERT INTO "rocpd_metadata{id}" VALUES (1, 'schema_version', '3');
INSERT INTO "rocpd_string{id}" VALUES (1, 'g', 'HIP_RUNTIME_API_EXT'), (2, 'g', 'hipLaunchKernel'), (3, 'g', 'KERNEL_DISPATCH'), (4, 'g', 'MARKER_CORE_RANGE_API'), (5, 'g', 'roctxRangePushA'), (6, 'g', 'MEMORY_COPY_HOST_TO_DEVICE'), (7, 'g', 'HSA_CORE_API'), (8, 'g', 'hsa_signal_wait'), (9, 'g', 'RCCL_API'), (10, 'g', 'ncclAllReduce');
INSERT INTO "rocpd_info_node{id}" VALUES (1, 'g', 11, 'machine-{host}', 'Linux', '{host}', '6.8');
INSERT INTO "rocpd_info_process{id}" VALUES (3, 'g', 1, 1, {pid}, 900, 9000, 'train');
INSERT INTO "rocpd_info_thread{id}" VALUES (4, 'g', 1, 3, 4321, 'worker');
INSERT INTO "rocpd_info_agent{id}" VALUES (0, 'g', 1, 3, 'CPU', 0, 0, 'EPYC', 'CPU', 'EPYC'), (5, 'g', 1, 3, 'GPU', 1, 0, 'gfx942', 'AMD', 'MI300X'), (6, 'g', 1, 3, 'GPU', 2, 1, 'gfx942', 'AMD', 'MI300X');
INSERT INTO "rocpd_info_stream{id}" VALUES (2, 'g', 'Stream 2');
INSERT INTO "rocpd_info_pmc{id}" VALUES (8, 'g', 3, 5, 'SQ_WAVES', 'waves');
INSERT INTO "rocpd_info_kernel_symbol{id}" VALUES (9, 'g', '_Z5saxpyPf.kd', 'saxpy(float*)', 512, 32);
INSERT INTO "rocpd_track{id}" VALUES (1, 'g', 1, 3, 4, 4);
INSERT INTO "rocpd_event{id}" VALUES (1, 'g', 1, 77, 77, 0, '{}'), (2, 'g', 3, 77, 77, 0, '{}'), (3, 'g', 4, 78, 78, 0, '{"message":"step \"1\""}'), (4, 'g', 4, 79, 79, 0, '{"message":"here"}'), (5, 'g', 7, 80, 80, 0, '{}'), (6, 'g', 9, 81, 81, 0, '{}');
INSERT INTO "rocpd_region{id}" VALUES (1, 'g', 1, 3, 4, 1000, 1010, 2, 1), (2, 'g', 1, 3, 4, 990, 2000, 5, 3), (3, 'g', 1, 3, 4, 1020, 1030, 8, 5), (4, 'g', 1, 3, 4, 1040, 1050, 10, 6);
INSERT INTO "rocpd_sample{id}" VALUES (1, 'g', 1, 1005, 4);
INSERT INTO "rocpd_kernel_dispatch{id}" VALUES (1, 'g', 1, 3, 4, 5, 9, 21, 7, 2, 1100, 1200, 16, 768, 64, 2, 1, 1000, 4, 1, 2);
INSERT INTO "rocpd_pmc_event{id}" VALUES (1, 'g', 2, 8, 16.0);
INSERT INTO "rocpd_memory_copy{id}" VALUES (1, 'g', 1, 3, 4, 1300, 1310, 6, 5, 65536, 0, 4096, 256, 7, 2, 1), (2, 'g', 1, 3, 4, 1320, 1330, 6, 6, 0, 5, 0, 512, 7, 2, 1);
INSERT INTO "rocpd_memory_allocate{id}" VALUES (1, 'g', 1, 3, 4, 5, 'ALLOC', 'REAL', 950, 960, 65536, 4096, 7, 2, 1), (2, 'g', 1, 3, 4, NULL, 'FREE', 'REAL', 3000, 3010, 65536, 0, 7, 2, 1);
INSERT INTO "rocpd_arg{id}" VALUES (1, 'g', 1, 'stream', '2'), (2, 'g', 1, 'blocks', '16');
CREATE VIEW IF NOT EXISTS rocpd_string AS SELECT * FROM "rocpd_string{id}";
"#;

/// A database of these processes: their ids, hosts and pids.
fn database(processes: &[(&str, &str, &str)]) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("results.db");
    let connection = Connection::open(&path).unwrap();
    for part in [TABLES, ROWS] {
        for (id, host, pid) in processes {
            let script = part
                .replace("{id}", id)
                .replace("{host}", host)
                .replace("{pid}", pid);
            connection.execute_batch(&script).unwrap();
        }
    }
    connection.close().unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn everything_of_a_process_is_read() {
    let bytes = database(&[("_0a1b", "node1", "42")]);
    let input = Input::from_bytes("results.db", bytes.clone()).unwrap();
    assert_eq!(importer_of(&input).unwrap().name, "rocpd");
    let trace = tracesmith_interop::open_bytes(bytes).unwrap();

    let (_, kernels) = trace.kernels.columns().next().unwrap();
    let (place, shape) = (kernels.place.get(0), kernels.shape.get(0));
    assert_eq!(
        (kernels.start[0].0, kernels.end[0].0, kernels.correlation[0].0),
        (1100, 1200, 77)
    );
    assert_eq!(
        (trace.string(shape.name), trace.string(shape.demangled)),
        ("_Z5saxpyPf", "saxpy(float*)")
    );
    assert_eq!(
        (shape.grid_x, shape.grid_y, shape.block_x, shape.block_y),
        (16, 2, 64, 2)
    );
    assert_eq!(
        (shape.static_shared.0, shape.dynamic_shared.0, shape.registers),
        (512, 256, 32)
    );
    assert_eq!((place.stream.0, place.channel), (2, 7));
    assert_eq!(trace.string(trace.device(place.device).unwrap().name), "MI300X");
    assert_eq!(
        trace.string(trace.streams.iter().find(|s| s.stream.0 == 2).unwrap().name),
        "Stream 2"
    );

    let (_, calls) = trace.api_calls.columns().next().unwrap();
    let names: Vec<(&str, ApiDomain, u64)> = (0..calls.len())
        .map(|row| {
            (
                trace.string(calls.shape.get(row).name),
                calls.shape.get(row).domain,
                calls.correlation[row].0,
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("hipLaunchKernel", ApiDomain::HIP, 77),
            ("hsa_signal_wait", ApiDomain::HSA, 80)
        ]
    );
    let caller = calls.caller.get(0);
    assert_eq!(
        (trace.process(caller.process).unwrap().pid, caller.thread.0),
        (42, 4321)
    );
    assert_eq!(trace.string(trace.threads[0].name), "worker");

    let (_, markers) = trace.markers.columns().next().unwrap();
    let found: Vec<(&str, MarkerKind)> = (0..markers.len())
        .map(|row| {
            (
                trace.string(markers.shape.get(row).name),
                markers.shape.get(row).kind,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("step \"1\"", MarkerKind::NESTED_RANGE),
            ("here", MarkerKind::INSTANT)
        ]
    );

    let (_, copies) = trace.copies.columns().next().unwrap();
    let directions: Vec<_> = (0..copies.len())
        .map(|row| copies.shape.get(row).direction)
        .collect();
    assert_eq!(directions, [CopyDirection::HOST_TO_DEVICE, CopyDirection::PEER]);
    let (_, counters) = trace.counters.columns().next().unwrap();
    assert_eq!((counters.time[0].0, counters.value[0]), (1200, 16.0));
    assert_eq!(trace.string(counters.track.get(0).name), "SQ_WAVES");
    let (_, memory) = trace.allocations.columns().next().unwrap();
    let operations: Vec<_> = (0..memory.len())
        .map(|row| memory.shape.get(row).operation)
        .collect();
    assert_eq!(operations, [MemoryOperation::ALLOCATE, MemoryOperation::FREE]);
    let (_, others) = trace.host_calls.columns().next().unwrap();
    assert_eq!(trace.string(others.shape.get(0).name), "ncclAllReduce");

    let health: Vec<String> = trace
        .health()
        .recorded
        .iter()
        .map(|item| format!("{} {}", item.count, item.detail))
        .collect();
    assert_eq!(
        health,
        ["2 rows of rocpd_arg"],
        "what has no place is counted without the set's ending"
    );
}

#[test]
fn several_nodes_and_processes_stay_apart() {
    let trace = tracesmith_interop::open_bytes(database(&[
        ("_0a", "node1", "42"),
        ("_0b", "node1", "43"),
        ("_0c", "node2", "42"),
    ]))
    .unwrap();
    let processes: Vec<(&str, u32)> = trace
        .processes
        .iter()
        .map(|process| (trace.string(trace.host(process.host).unwrap().name), process.pid))
        .collect();
    assert_eq!(processes, [("node1", 42), ("node1", 43), ("node2", 42)]);
    assert_eq!(trace.kernels.rows(), 3);
    let mut devices: Vec<_> = trace
        .devices
        .iter()
        .map(|device| (device.host.0, device.ordinal))
        .collect();
    devices.sort_unstable();
    assert_eq!(devices, [(1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(trace.clocks.len(), 2, "each machine has its own");
}
