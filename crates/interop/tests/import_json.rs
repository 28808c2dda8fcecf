//! Trace-event JSON of every form, whole, cut and broken, made up for the purpose.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use crate::imported;

use tracesmith_format::tables::*;
use tracesmith_interop::import::{IMPORTERS, ImportOptions, TimeUnit};
use tracesmith_trace::FrameView;

use imported::{health, import_bytes, import_files, import_text, named, rows};

/// An event of each kind that a cut can fall into.
const SMALL: &str = r#"{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1.001, "dur": 2, "args": {"correlation": 1}},
  {"ph": "X", "cat": "kernel", "name": "a \"quoted\" }, {", "pid": 0, "tid": 7, "ts": 4, "dur": 2.5, "args": {"correlation": 1, "grid": [1, 2, 3]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0.5, "dur": 9, "args": {"Input Dims": [[1], []]}}
], "traceName": "small"}"#;

#[test]
fn a_file_cut_anywhere_gives_every_whole_event_before() {
    let options = ImportOptions {
        format: IMPORTERS.iter().find(|importer| importer.name == "kineto"),
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
fn descriptions_do_not_tell_what_times_count_from() {
    let trace = import_text(
        r#"[{"ph":"M","name":"process_name","pid":1,"ts":0,"args":{"name":"app"}},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1623142623460111,"dur":1}]"#,
    );
    assert_eq!(trace.clocks[0].kind, ClockKind::REALTIME);
    assert_eq!(rows(&trace.host_calls)[0].start.0, 1_623_142_623_460_111_000);
    assert_eq!(named(&trace, [trace.processes[0].name]), ["app"]);
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
            format: IMPORTERS.iter().find(|importer| importer.name == "kineto"),
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
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

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
