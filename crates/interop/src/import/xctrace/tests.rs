//! Real exports for the machinery, and tables of Metal made up after their documented columns.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use proptest::prelude::*;
use tracesmith_format::tables::{ApiDomain, HostCallKind};
use tracesmith_format::{Columns, StackId, Timestamp};
use tracesmith_trace::Trace;

use super::*;
use crate::fuzz::import_any;
use crate::import::support;

fn opened(name: &str) -> Option<Trace> {
    let path = support::data(&format!("xctrace/xcode27_{name}.xml"))?;
    Some(crate::open(&path).unwrap())
}

fn imported(text: &str) -> Trace {
    assert!(sniff(text.as_bytes()), "{text}");
    crate::open_bytes(text.as_bytes().to_vec()).unwrap()
}

/// Rows were counted with `grep -o '<row>' FILE | wc -l`.
#[test]
fn real_exports_are_read_in_full() {
    for (name, host_calls, markers) in [
        ("OSSignpostIntervals", 0, 2),
        ("PointsOfInterestEvents", 0, 2),
        ("display-surface-swap", 0, 12),
        ("display-vsyncs-interval", 0, 10),
        ("displayed-surfaces-interval", 0, 12),
        ("hitches", 0, 11),
        ("runloop-intervals", 12, 0),
        ("time-sample", 4, 0),
    ] {
        let Some(trace) = opened(name) else {
            return;
        };
        assert_eq!(
            (trace.host_calls.rows(), trace.markers.rows()),
            (host_calls, markers),
            "{name}"
        );
        assert!(trace.health().is_good(), "{name}: {:?}", trace.health());
    }
}

#[test]
fn real_samples_have_threads_and_stacks() {
    let Some(trace) = opened("time-sample") else {
        return;
    };
    let (_, rows) = trace.host_calls.columns().next().unwrap();
    assert_eq!(
        rows.start,
        [5_000_000, 5_000_000, 10_000_000, 10_000_000].map(Timestamp)
    );
    assert!((0..rows.len()).all(|row| rows.shape.get(row).kind == HostCallKind::SAMPLE));
    let addresses = |stack: StackId| -> Vec<u64> {
        let stack = trace.stack(stack);
        stack.frames.iter().map(|frame| frame.frame.address.0).collect()
    };
    assert_eq!(
        addresses(rows.stack[0]),
        [6_760_700_960, 6_760_737_324, 6_760_701_868, 6_761_773_004]
    );
    assert_eq!((rows.caller.get(3).thread.0, rows.cpu[3]), (2_007_040, 1));
    let names: Vec<(u32, &str)> = trace
        .processes
        .iter()
        .map(|process| (process.pid, trace.string(process.name)))
        .collect();
    assert_eq!(names[..2], [(1001, "TestApp"), (1002, "OtherApp")]);
    let thread = trace
        .threads
        .iter()
        .find(|thread| thread.thread.0 == 2_003_969)
        .unwrap();
    assert_eq!(trace.string(thread.name), "BackgroundThread");
}

#[test]
fn real_signposts_keep_names_and_times() {
    let Some(trace) = opened("OSSignpostIntervals") else {
        return;
    };
    let (_, rows) = trace.markers.columns().next().unwrap();
    let shape = rows.shape.get(0);
    assert_eq!(
        (trace.string(shape.name), trace.string(shape.domain)),
        ("PreFlight", "com.promptmanager.ai")
    );
    assert_eq!((rows.start[0].0, rows.end[0].0), (4_100_000_000, 4_920_000_000));
    assert_eq!(
        (rows.range[0], trace.string(rows.detail[0])),
        (1, "PreFlight begin")
    );
}

const HEAD: &str = "<?xml version=\"1.0\"?>\n<trace-query-result>\n";

fn table(schema: &str, columns: &[(&str, &str)], rows: &str) -> String {
    let columns: String = columns
        .iter()
        .map(|(name, kind)| {
            format!("<col><mnemonic>{name}</mnemonic><name>x</name><engineering-type>{kind}</engineering-type></col>")
        })
        .collect();
    format!("<node xpath='x'><schema name=\"{schema}\">{columns}</schema>{rows}</node>")
}

const GPU_COLUMNS: [(&str, &str); 9] = [
    ("start", "start-time"),
    ("duration", "duration"),
    ("channel-name", "gpu-channel-name"),
    ("start-latency", "duration"),
    ("event-depth", "metal-nesting-level"),
    ("event-label", "formatted-label"),
    ("process", "process"),
    ("gpu", "metal-device-name"),
    ("cmdbuffer-id", "metal-command-buffer-id"),
];

/// A command buffer with two encoders inside, another channel that overlaps, another process, and a null.
fn gpu_rows() -> String {
    let row = |start: u64, length: u64, channel: &str, depth: u64, label: &str, rest: &str| {
        format!(
            "<row><start-time>{start}</start-time><duration>{length}</duration>\
             <gpu-channel-name fmt=\"{channel}\">0</gpu-channel-name><duration>5</duration>\
             <metal-nesting-level>{depth}</metal-nesting-level>\
             <formatted-label fmt=\"{label}\"><string>x</string></formatted-label>{rest}</row>"
        )
    };
    let first = "<process id=\"1\" fmt=\"app (42)\"><pid id=\"2\" fmt=\"42\">42</pid></process>\
                 <metal-device-name id=\"3\" fmt=\"Apple M2\">Apple M2</metal-device-name>\
                 <metal-command-buffer-id id=\"4\" fmt=\"0x7\">7</metal-command-buffer-id>";
    let again = "<process ref=\"1\"/><metal-device-name ref=\"3\"/><metal-command-buffer-id ref=\"4\"/>";
    let other =
        "<process fmt=\"other (43)\"><pid>43</pid></process><metal-device-name ref=\"3\"/><sentinel/>";
    [
        row(100, 50, "Compute", 0, "Command Buffer 0", first),
        row(100, 20, "Compute", 1, "saxpy &amp; &lt;dot&gt;", again),
        row(125, 25, "Compute", 1, "reduce", again),
        row(110, 10, "Blit", 0, "copy", again),
        row(120, 10, "Compute", 1, "alone", other),
    ]
    .concat()
}

#[test]
fn gpu_intervals_are_counted_once() {
    let text = format!(
        "{HEAD}{}</trace-query-result>",
        table("metal-gpu-intervals", &GPU_COLUMNS, &gpu_rows())
    );
    let trace = imported(&text);
    let (_, kernels) = trace.kernels.columns().next().unwrap();
    let rows: Vec<_> = (0..kernels.len())
        .map(|row| {
            let stream = kernels.place.get(row).stream.0;
            (
                trace.string(kernels.shape.get(row).name),
                kernels.start[row].0,
                kernels.end[row].0,
                stream,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("Command Buffer 0", 100, 150, 1),
            ("copy", 110, 120, 2),
            ("alone", 120, 130, 1)
        ]
    );
    assert_eq!((kernels.submitted[0].0, kernels.correlation[0].0), (95, 7));
    let (_, markers) = trace.markers.columns().next().unwrap();
    let nested: Vec<_> = (0..markers.len())
        .map(|row| trace.string(markers.shape.get(row).name))
        .collect();
    assert_eq!(nested, ["saxpy & <dot>", "reduce"]);
    assert_eq!(trace.string(trace.devices[0].name), "Apple M2");
    let streams: Vec<&str> = trace
        .streams
        .iter()
        .map(|stream| trace.string(stream.name))
        .collect();
    assert_eq!(streams, ["Compute", "Blit", "Compute"]);
    assert!(trace.health().is_good(), "{:?}", trace.health());
}

#[test]
fn columns_are_found_by_name_in_any_order() {
    let columns = [
        GPU_COLUMNS[5],
        GPU_COLUMNS[1],
        ("new-in-2030", "uint64"),
        GPU_COLUMNS[0],
    ];
    let rows = "<row><formatted-label fmt=\"k\"/><duration>3</duration><uint64>9</uint64><start-time>7</start-time></row>";
    let trace = imported(&format!(
        "{HEAD}{}</trace-query-result>",
        table("metal-gpu-intervals", &columns, rows)
    ));
    let (_, kernels) = trace.kernels.columns().next().unwrap();
    assert_eq!((kernels.start[0].0, kernels.end[0].0), (7, 10));
    assert_eq!(trace.string(kernels.shape.get(0).name), "k");
}

#[test]
fn several_tables_join_and_unknown_ones_are_counted() {
    let submissions = table(
        "metal-application-command-buffer-submissions",
        &[
            ("start", "start-time"),
            ("duration", "duration"),
            ("thread", "thread"),
            ("cmdbuffer-id", "metal-command-buffer-id"),
        ],
        "<row><start-time>90</start-time><duration>4</duration>\
         <thread fmt=\"Main Thread (0x1) (app, pid: 42)\"><tid>1</tid><process ref=\"1\"/></thread><metal-command-buffer-id ref=\"4\"/></row>",
    );
    let counters = table(
        "gpu-counter-info",
        &[("counter-id", "uint64"), ("name", "string")],
        "<row><uint64>3</uint64><string>ALU</string></row>",
    ) + &table(
        "gpu-counter-value",
        &[
            ("timestamp", "event-time"),
            ("counter-id", "uint64"),
            ("value", "fixed-decimal"),
        ],
        "<row><event-time>8</event-time><uint64>3</uint64><fixed-decimal>12.5</fixed-decimal></row>",
    );
    let driver = table(
        "metal-driver-event-intervals",
        &[
            ("start", "start-time"),
            ("duration", "duration"),
            ("event-name", "string"),
        ],
        "<row><start-time>5</start-time><duration>6</duration><string>Wire Memory</string></row>",
    );
    let other = table(
        "metal-shader-profiler-intervals",
        &[("start", "start-time")],
        "<row><start-time>1</start-time></row><row><sentinel/></row>",
    );
    // The submissions refer to values of the table behind them; the last node has no schema of its own.
    let gpu = table("metal-gpu-intervals", &GPU_COLUMNS, &gpu_rows());
    let more = "<node xpath='y'><row><start-time>900</start-time><duration>1</duration></row></node>";
    let trace = imported(&format!(
        "{HEAD}{submissions}{counters}{driver}{other}{gpu}{more}</trace-query-result>"
    ));
    assert_eq!(trace.kernels.rows(), 4);
    let (_, calls) = trace.api_calls.columns().next().unwrap();
    assert_eq!(
        (calls.correlation[0].0, calls.shape.get(0).domain),
        (7, ApiDomain::METAL)
    );
    let process = trace.process(calls.caller.get(0).process).unwrap();
    assert_eq!((process.pid, trace.string(process.name)), (42, "app"));
    let (_, counters) = trace.counters.columns().next().unwrap();
    assert_eq!(
        (trace.string(counters.track.get(0).name), counters.value[0]),
        ("ALU", 12.5)
    );
    let (_, host) = trace.host_calls.columns().next().unwrap();
    assert_eq!(trace.string(host.shape.get(0).name), "Wire Memory");
    let health = trace.health();
    let skipped: Vec<(&str, u64)> = health
        .recorded
        .iter()
        .map(|item| (item.detail.as_str(), item.count))
        .collect();
    assert_eq!(
        skipped,
        [("rows of the table metal-shader-profiler-intervals", 2)]
    );
}

/// A row that defines nothing new but fills in what an earlier one referred to must not be forgotten.
#[test]
fn what_comes_late_stays_known() {
    let rows = "<row><start-time ref=\"9\"/><string>early</string></row>\
                <row><start-time id=\"9\">5</start-time><string>late</string></row>\
                <row><start-time>6</start-time><string>other</string></row>";
    let columns = [("start", "start-time"), ("label", "string")];
    let trace = imported(&format!(
        "{HEAD}{}</trace-query-result>",
        table("display-surface-swap", &columns, rows)
    ));
    let (_, markers) = trace.markers.columns().next().unwrap();
    let mut found: Vec<_> = (0..markers.len())
        .map(|row| (trace.string(markers.shape.get(row).name), markers.start[row].0))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("early", 5), ("late", 5), ("other", 6)]);
}

#[test]
fn named_stacks_have_images_and_lines() {
    let text = format!(
        "{HEAD}{}</trace-query-result>",
        table(
            "time-profile",
            &[
                ("time", "sample-time"),
                ("thread", "thread"),
                ("weight", "weight"),
                ("stack", "tagged-backtrace")
            ],
            "<row><sample-time>5</sample-time><thread fmt=\"t (0x9) (a, pid: 1)\"><tid>9</tid></thread><weight>1000000</weight>\
             <tagged-backtrace><backtrace><frame id=\"1\" name=\"leaf()\" addr=\"0x10\"><binary id=\"2\" name=\"a\" path=\"/bin/a\"/>\
             <source line=\"12\"><path id=\"3\">/src/a.c</path></source></frame><frame name=\"main\" addr=\"0x20\"><binary ref=\"2\"/></frame></backtrace></tagged-backtrace></row>",
        )
    );
    let trace = imported(&text);
    let (_, rows) = trace.host_calls.columns().next().unwrap();
    assert_eq!(
        (trace.string(rows.shape.get(0).name), rows.argument[0]),
        ("leaf()", 1_000_000)
    );
    let stack = trace.stack(rows.stack[0]);
    let frames: Vec<_> = stack
        .frames
        .iter()
        .map(|frame| {
            (
                trace.string(frame.frame.function),
                trace.string(frame.frame.file),
                frame.frame.line,
            )
        })
        .collect();
    assert_eq!(frames, [("leaf()", "/src/a.c", 12), ("main", "", 0)]);
    assert_eq!(trace.images.rows(), 1);
}

#[test]
fn contents_are_refused_with_the_remedy() {
    let text = "<?xml version=\"1.0\"?>\n<trace-toc><run number=\"1\"/></trace-toc>";
    assert!(sniff(text.as_bytes()));
    let error = crate::open_bytes(text.as_bytes().to_vec())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("table of contents") && error.contains("--xpath"),
        "{error}"
    );
}

#[test]
fn bad_documents_are_harmless() {
    let gpu = table("metal-gpu-intervals", &GPU_COLUMNS, &gpu_rows());
    let text = format!("{HEAD}{gpu}</trace-query-result>");
    for length in 0..text.len() {
        import_any("xctrace", &text.as_bytes()[..length]);
    }
    let cut = imported(&text[..text.len() / 2]);
    assert!(
        cut.health()
            .recorded
            .iter()
            .any(|item| item.detail.contains("ends in its middle"))
    );
    let circle = table(
        "hitches",
        &[("start", "start-time"), ("process", "process")],
        &format!(
            "<row><start-time>1</start-time><process id=\"1\">{}</process></row>",
            "<process ref=\"1\"/>".repeat(1000)
        ),
    );
    let twice = table(
        "hitches",
        &[("start", "start-time")],
        "<row><start-time id=\"1\">1</start-time></row><row><start-time id=\"1\">2</start-time></row>",
    );
    let missing = table(
        "hitches",
        &[("start", "start-time")],
        "<row><start-time ref=\"99\"/></row>",
    );
    let huge = table(
        "metal-gpu-intervals",
        &GPU_COLUMNS,
        "<row><start-time>9223372036854775808</start-time><duration>9223372036854775808</duration></row>\
         <row><start-time>-5</start-time><duration>-1</duration></row>",
    );
    for table in [circle, twice, missing, huge] {
        let trace = imported(&format!("{HEAD}{table}</trace-query-result>"));
        assert!(!trace.health().is_good(), "{table}");
    }
    let deep = format!("{HEAD}<node>{}", "<row>".repeat(10_000));
    import_any("xctrace", deep.as_bytes());
    let error = crate::open_bytes(format!("{HEAD}<node></row>").into_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("bad xctrace file: ") && error.contains("byte "),
        "{error}"
    );
    for text in [
        "<html></html>",
        "<?xml version=\"1.0\"?><plist/>",
        "",
        "<",
        "<?xml",
    ] {
        assert!(!sniff(text.as_bytes()), "{text}");
    }
}

proptest! {
    #[test]
    fn disjoint_intervals_come_back_as_they_were(gaps in proptest::collection::vec((1..1000u64, 1..1000u64), 1..40)) {
        let (mut time, mut expected, mut rows) = (0, Vec::new(), String::new());
        for (index, (gap, length)) in gaps.into_iter().enumerate() {
            let start = time + gap;
            time = start + length;
            expected.push((start, time));
            let id = index * 2 + 1;
            rows += &format!("<row><start-time id=\"{id}\">{start}</start-time><duration id=\"{}\">{length}</duration></row>", id + 1);
        }
        let trace = imported(&format!("{HEAD}{}</trace-query-result>", table("metal-gpu-intervals", &GPU_COLUMNS, &rows)));
        let (_, kernels) = trace.kernels.columns().next().unwrap();
        let found: Vec<_> = (0..kernels.len()).map(|row| (kernels.start[row].0, kernels.end[row].0)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_elements_are_harmless(text in "(<row>|</row>|<a id=\"1\">|<a ref=\"[12]\"/>|</a>|<sentinel/>|<schema name=\"hitches\">|</schema>|<col><mnemonic>start</mnemonic></col>|\\PC{0,5})*") {
        import_any("xctrace", format!("<trace-query-result>{text}").as_bytes());
    }
}
