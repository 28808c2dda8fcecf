//! Results of rocprofv3, real and made up.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::collections::BTreeSet;
use std::io::Cursor;

use tracesmith_format::tables::{CopyDirection, MarkerKind, MemoryOperation};
use tracesmith_format::{Columns, Timestamp, Writer};
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::fuzz::import_any;
use crate::import::support;
use crate::import::{ImportOptions, Input, Sink, import, importer_of};

fn imported(files: &[(&str, &str)]) -> Result<Trace, Error> {
    let inputs: Vec<Input> = files
        .iter()
        .map(|(name, text)| Input::from_bytes(name, text.as_bytes().to_vec()).unwrap())
        .collect();
    let mut bytes = Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer = Writer::new(sink, Default::default()).unwrap();
    import(inputs, &ImportOptions::default(), &mut writer)?;
    writer.seal().unwrap();
    crate::open_bytes(bytes.into_inner())
}

/// The figures were counted with Python's json module over the same file.
#[test]
fn a_real_run_is_read_in_full() {
    let Some(path) = support::data("rocprof/tracelens_908_results.json.gz") else {
        return;
    };
    let trace = crate::open(&path).unwrap();
    assert_eq!(trace.kernels.rows(), 43_915);
    let (mut busy, mut first, mut last, mut copies) = (0, u64::MAX, 0, 0);
    let (mut streams, mut queues) = (BTreeSet::new(), BTreeSet::new());
    for (_, kernels) in trace.kernels.columns() {
        for row in 0..kernels.len() {
            let (start, end) = (kernels.start[row].0, kernels.end[row].0);
            busy += end - start;
            (first, last) = (first.min(start), last.max(end));
            streams.insert(kernels.place.get(row).stream);
            queues.insert(kernels.place.get(row).channel);
            let shape = kernels.shape.get(row);
            copies += u64::from(trace.string(shape.name).starts_with(
                "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_25bfloat16_copy_kernel_cuda",
            ));
            assert_eq!(
                trace.string(trace.device(kernels.place.get(row).device).unwrap().architecture),
                "gfx950"
            );
        }
    }
    assert_eq!(
        (busy, first, last),
        (4_441_741_378, 63_857_982_592_000, 63_873_104_615_494)
    );
    assert_eq!((streams.len(), queues.len(), copies), (567, 5, 5450));
    assert_eq!(trace.devices.len(), 8);
    let device = &trace.devices[0];
    assert_eq!(
        (
            trace.string(device.name),
            device.multiprocessors,
            device.warp_size,
            device.memory.0,
            trace.string(device.pci)
        ),
        ("AMD Instinct MI350X", 256, 64, 309_220_868_096, "0000:75:00.0")
    );
    assert_eq!(
        (trace.processes[0].pid, trace.string(trace.processes[0].name)),
        (908, "python3.10")
    );
    assert_eq!(trace.metadata["rocprof.init_time"], "63855948165371");
}

#[test]
fn sample_tables_of_the_tools_manual_are_read() {
    for (name, rows) in [
        ("kernel_trace", 7),
        ("memory_copy_trace", 2),
        ("hip_runtime_trace", 8),
        ("hip_compile_trace", 4),
        ("hsa_api_trace", 10),
        ("marker_api_trace", 5),
    ] {
        let Some(path) = support::data(&format!("rocprof/sdkdocs_{name}.csv")) else {
            return;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count() as u64 - 1;
        let trace = crate::open(&path).unwrap();
        let found =
            trace.kernels.rows() + trace.copies.rows() + trace.api_calls.rows() + trace.markers.rows();
        assert_eq!((found, lines), (rows, rows), "{name}");
        assert!(trace.health().is_good(), "{name}");
    }
}

#[test]
fn summaries_are_refused_in_words() {
    let text = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\"\n\"hipMalloc\",1,2,2.0\n";
    let error = imported(&[("hip_api_stats.csv", text)]).unwrap_err().to_string();
    assert!(
        error.contains("a summary") && error.contains("_trace.csv"),
        "{error}"
    );
}

const JSON: &str = r#"{"rocprofiler-sdk-tool": [{
  "metadata": {"node": {"hostname": "node7"}, "pid": 7, "command": ["/bin/app", "-x"], "init_time": 1, "fini_time": 9},
  "agents": [
    {"id": {"handle": 1}, "type": 1, "node_id": 0, "product_name": "EPYC"},
    {"id": {"handle": 2}, "type": 2, "node_id": 1, "name": "gfx942", "vendor_name": "AMD", "product_name": "MI300", "cu_count": 304, "wave_front_size": 64},
    {"id": {"handle": 3}, "type": 2, "node_id": 2, "name": "gfx942", "logical_node_type_id": 1}
  ],
  "counters": [{"id": {"handle": 5}, "name": "SQ_WAVES"}],
  "strings": {
    "buffer_records": [{"kind": "HIP_RUNTIME_API", "operations": ["hipInit", "hipLaunchKernel"]},
      {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"]},
      {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_DEVICE"]},
      {"kind": "MEMORY_ALLOCATION", "operations": ["NONE", "MEMORY_ALLOCATION_ALLOCATE"]}],
    "marker_api": [{"key": 4, "value": "step 1"}]
  },
  "kernel_symbols": [{"kernel_id": 9, "kernel_name": "_Z1kv.kd", "formatted_kernel_name": "k()", "group_segment_size": 64, "arch_vgpr_count": 12, "accum_vgpr_count": 4, "sgpr_count": 8}],
  "callback_records": {"counter_collection": [{"thread_id": 70, "dispatch_data": {"start_timestamp": 20, "dispatch_info": {"agent_id": {"handle": 2}}}, "records": [{"counter_id": {"handle": 5}, "value": 16384.0}]}]},
  "buffer_records": {
    "kernel_dispatch": [{"kind": 8, "operation": 2, "thread_id": 70, "correlation_id": {"internal": 3, "external": 77}, "start_timestamp": 20, "end_timestamp": 35,
      "dispatch_info": {"agent_id": {"handle": 2}, "queue_id": {"handle": 6}, "kernel_id": 9, "dispatch_id": 1, "private_segment_size": 32, "group_segment_size": 96,
        "workgroup_size": {"x": 64, "y": 2, "z": 1}, "grid_size": {"x": 130, "y": 4, "z": 1}}, "stream_id": {"handle": 11}}],
    "hip_api": [{"kind": 0, "operation": 1, "thread_id": 70, "correlation_id": {"internal": 3, "external": 0}, "start_timestamp": 10, "end_timestamp": 15}],
    "marker_api": [{"kind": 1, "operation": 1, "thread_id": 70, "correlation_id": {"internal": 4}, "start_timestamp": 9, "end_timestamp": 50}],
    "memory_copy": [{"kind": 2, "operation": 1, "correlation_id": {"internal": 5}, "start_timestamp": 40, "end_timestamp": 30, "dst_agent_id": {"handle": 2}, "src_agent_id": {"handle": 1}, "bytes": 4096},
                    {"kind": 2, "operation": 2, "correlation_id": {"internal": 6}, "start_timestamp": 40, "end_timestamp": 50, "dst_agent_id": {"handle": 2}, "src_agent_id": {"handle": 3}, "bytes": 1}],
    "memory_allocation": [{"kind": 3, "operation": 1, "correlation_id": {"internal": 8}, "start_timestamp": 2, "end_timestamp": 3, "agent_id": {"handle": 2}, "address": "0x1000", "allocation_size": 512}],
    "pc_sample_host_trap": [{}, {}]
  }}]}"#;

#[test]
fn every_kind_of_record_finds_its_place() {
    let trace = imported(&[("results.json", JSON)]).unwrap();
    assert_eq!(trace.string(trace.hosts[0].name), "node7");
    assert_eq!(trace.string(trace.processes[0].command), "/bin/app -x");
    let (_, kernels) = trace.kernels.columns().next().unwrap();
    let shape = kernels.shape.get(0);
    assert_eq!(
        (trace.string(shape.name), trace.string(shape.demangled)),
        ("_Z1kv", "k()")
    );
    assert_eq!(
        (shape.grid_x, shape.grid_y, shape.block_x, shape.block_y),
        (3, 2, 64, 2)
    );
    assert_eq!(
        (
            shape.static_shared.0,
            shape.dynamic_shared.0,
            shape.local_per_thread.0
        ),
        (64, 32, 32)
    );
    assert_eq!((shape.registers, kernels.grid_id[0]), (16, 1));
    let place = kernels.place.get(0);
    assert_eq!((place.stream.0, place.channel), (11, 6));
    let (_, calls) = trace.api_calls.columns().next().unwrap();
    assert_eq!(trace.string(calls.shape.get(0).name), "hipLaunchKernel");
    assert_eq!(calls.correlation[0], kernels.correlation[0]);
    let (_, markers) = trace.markers.columns().next().unwrap();
    assert_eq!(
        (trace.string(markers.shape.get(0).name), markers.shape.get(0).kind),
        ("step 1", MarkerKind::NESTED_RANGE)
    );
    let (_, copies) = trace.copies.columns().next().unwrap();
    assert_eq!(copies.shape.get(0).direction, CopyDirection::HOST_TO_DEVICE);
    assert_eq!(copies.end[0], Timestamp::NONE, "it ran backwards");
    assert_eq!(copies.shape.get(1).direction, CopyDirection::PEER);
    assert_eq!(copies.shape.get(1).source_device, trace.devices[1].id);
    let (_, allocations) = trace.allocations.columns().next().unwrap();
    assert_eq!((allocations.address[0].0, allocations.bytes[0].0), (4096, 512));
    assert_eq!(allocations.shape.get(0).operation, MemoryOperation::ALLOCATE);
    let (_, counters) = trace.counters.columns().next().unwrap();
    assert_eq!(
        (trace.string(counters.track.get(0).name), counters.value[0]),
        ("SQ_WAVES", 16384.0)
    );
    assert_eq!(trace.flows.rows(), 1, "the external correlation");
    let health = trace.health();
    let skipped: Vec<(&str, u64)> = health
        .recorded
        .iter()
        .map(|item| (item.detail.as_str(), item.count))
        .collect();
    assert_eq!(
        skipped,
        [
            ("records that end before they start", 1),
            ("pc_sample_host_trap", 2),
            ("scalar register counts of kernels", 1)
        ]
    );
}

/// The same document with the records before the tables that they refer to.
#[test]
fn records_may_come_before_their_tables() {
    let document: serde_json::Value = serde_json::from_str(JSON).unwrap();
    let tool = &document["rocprofiler-sdk-tool"][0];
    let keys = [
        "buffer_records",
        "kernel_symbols",
        "strings",
        "agents",
        "metadata",
    ];
    let parts: Vec<String> = keys
        .iter()
        .map(|key| format!("\"{key}\": {}", tool[key]))
        .collect();
    let text = format!("{{\"rocprofiler-sdk-tool\": [{{{}}}]}}", parts.join(","));
    let trace = imported(&[("results.json", &text)]).unwrap();
    let (_, kernels) = trace.kernels.columns().next().unwrap();
    assert_eq!(trace.string(kernels.shape.get(0).demangled), "k()");
    assert_eq!(
        trace.device(kernels.place.get(0).device).unwrap().multiprocessors,
        304
    );
}

#[test]
fn csv_files_of_one_run_join() {
    let kernels = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n\
        \"KERNEL_DISPATCH\",\"Agent 4\",3,2,69,1,16,\"void add<float>(float*, int)\",1451,100,200,512,16,8,4,16,64,1,1,1000,1,1\n";
    let calls = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\
        \"HIP_RUNTIME_API\",\"hipLaunchKernel\",238,69,1451,50,60\n";
    let agents = "\"Node_Id\",\"Logical_Node_Id\",\"Logical_Node_Type_Id\",\"Agent_Type\",\"Cu_Count\",\"Wave_Front_Size\",\"Name\",\"Vendor_Name\",\"Product_Name\"\n\
        0,0,0,\"CPU\",0,0,\"EPYC\",\"CPU\",\"EPYC\"\n4,4,3,\"GPU\",304,64,\"gfx942\",\"AMD\",\"MI300X\"\n";
    for order in [
        [kernels, calls, agents],
        [agents, calls, kernels],
        [calls, agents, kernels],
    ] {
        let trace = imported(&order.map(|text| ("file.csv", text))).unwrap();
        assert_eq!((trace.processes.len(), trace.processes[0].pid), (1, 238));
        let (_, kernels) = trace.kernels.columns().next().unwrap();
        let (_, calls) = trace.api_calls.columns().next().unwrap();
        assert_eq!(kernels.correlation[0], calls.correlation[0]);
        assert_eq!(kernels.place.get(0).process, calls.caller.get(0).process);
        let shape = kernels.shape.get(0);
        assert_eq!(
            (shape.grid_x, shape.registers, shape.shared_executed.0),
            (16, 12, 512)
        );
        assert_eq!(
            (kernels.place.get(0).stream.0, kernels.place.get(0).channel),
            (2, 3)
        );
        let device = trace.device(kernels.place.get(0).device).unwrap();
        assert_eq!((trace.string(device.name), device.ordinal), ("MI300X", 3));
    }
}

#[test]
fn cut_files_give_what_is_left_and_bad_ones_a_line() {
    for length in 0..JSON.len() {
        import_any("rocprof", &JSON.as_bytes()[..length]);
    }
    let kernels_end = JSON.find("\"hip_api\"").unwrap();
    let trace = imported(&[("results.json", &JSON[..kernels_end])]).unwrap();
    assert_eq!(trace.kernels.rows(), 1);
    assert!(
        trace
            .health()
            .recorded
            .iter()
            .any(|item| item.detail.contains("ends in its middle"))
    );
    let deep = format!("{{\"rocprofiler-sdk-tool\": {}", "[".repeat(10_000));
    for text in [
        JSON.replace("\"start_timestamp\": 20", "\"start_timestamp\": \"soon\""),
        JSON.replace("\"start_timestamp\": 20", "\"start_timestamp\": -1"),
        JSON.replace("\"agents\": [", "\"agents\": [7], \"agents\": ["),
        deep,
        "{\"rocprofiler-sdk-tool\": 5}".to_owned(),
        format!("{JSON} trailing"),
    ] {
        let error = imported(&[("results.json", &text)]).unwrap_err().to_string();
        assert!(
            error.starts_with("bad rocprof file: ") && error.contains("line "),
            "{error}"
        );
    }
    let huge = JSON.replace(
        "\"start_timestamp\": 20",
        &format!("\"start_timestamp\": {}", u64::MAX),
    );
    assert!(imported(&[("results.json", &huge)]).is_ok());
}

#[test]
fn bad_rows_of_tables_are_counted() {
    let head = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    let text = format!(
        "{head}\"HIP_RUNTIME_API\",\"f\",1,1,1,x,2\nshort,row\n\"HIP_RUNTIME_API\",\"f\",1,1,1,9,2\n\"HIP_RUNTIME_API\",\"f\",1,1\n"
    );
    for length in 0..text.len() {
        import_any("rocprof_csv", &text.as_bytes()[..length]);
    }
    let trace = imported(&[("hip_api_trace.csv", &text)]).unwrap();
    assert_eq!(trace.api_calls.rows(), 1);
    let health = trace.health();
    let found: Vec<(&str, u64)> = health
        .recorded
        .iter()
        .map(|item| (item.detail.as_str(), item.count))
        .collect();
    assert_eq!(
        found,
        [
            ("records that end before they start", 1),
            ("the last row is cut off", 1),
            ("rows whose numbers are none", 1),
            ("rows with more or fewer fields than columns", 1)
        ]
    );
    let open_quote = format!("{head}\"{}", "x".repeat(17 << 20));
    assert!(imported(&[("hip_api_trace.csv", &open_quote)]).is_err());
}

#[test]
fn other_files_are_not_taken_for_these() {
    for text in [
        "{}",
        "[]",
        "{\"traceEvents\": []}",
        "a,b,c\n1,2,3\n",
        "\"Name\",\"Calls\"\n",
        "",
        "main;f 3\n",
    ] {
        let input = Input::from_bytes("x", text.as_bytes().to_vec()).unwrap();
        let found = importer_of(&input).map_or("none", |importer| importer.name);
        assert!(!found.starts_with("rocprof"), "{text}: {found}");
    }
    let spaced = JSON.replace(
        "{\"rocprofiler-sdk-tool\": [",
        " { \n \"rocprofiler-sdk-tool\" :\n [",
    );
    assert!(super::json::sniff(spaced.as_bytes()));
}
