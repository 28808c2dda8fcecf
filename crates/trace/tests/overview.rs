//! Traces seen from afar, against what plain loops over the same rows say.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use proptest::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::*;
use tracesmith_trace::overview::{
    ActivityKind, Browser, Direction, Nesting, Overview, Position, RowKey, Surroundings, ThreadRole,
    TimeSpan, named_within,
};
use tracesmith_trace::{EventKind, NamePattern, Query, Trace};

use crate::made::{Made, PROCESS, THREAD};

/// Start, end and stream of a kernel.
type Row = (u64, u64, u64);

fn kernel(start: u64, end: u64, stream: u64) -> Kernel {
    Kernel {
        start: Timestamp(start),
        end: Timestamp(end),
        place: Place {
            process: ProcessId(1),
            device: DeviceId(1),
            context: ContextId(1),
            stream: StreamId(stream),
            ..Place::default()
        },
        ..Kernel::default()
    }
}

fn bytes_of(rows: &[Row], rows_per_block: u32) -> Vec<u8> {
    let options = WriterOptions {
        rows_per_block,
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    for (start, end, stream) in rows {
        writer.push(ClockId(1), &kernel(*start, *end, *stream)).unwrap();
    }
    writer.finish().unwrap()
}

fn trace_of(rows: &[Row], rows_per_block: u32) -> Trace {
    Trace::from_bytes(bytes_of(rows, rows_per_block)).unwrap()
}

fn stream(number: u64) -> RowKey {
    RowKey::Stream {
        device: DeviceId(1),
        process: ProcessId(1),
        context: ContextId(1),
        stream: StreamId(number),
    }
}

const DEVICE: RowKey = RowKey::Device { device: DeviceId(1) };

fn window(from: u64, to: u64) -> TimeSpan {
    TimeSpan::new(Timestamp(from), Timestamp(to))
}

/// Busy nanoseconds between two moments: each nanosecond by itself.
fn busy_by_loop(rows: &[Row], from: u64, to: u64, wanted: impl Fn(u64) -> bool) -> u64 {
    (from..to)
        .filter(|at| {
            let runs = |row: &&Row| wanted(row.2) && row.0 != 0 && row.0 <= *at && *at < row.1;
            rows.iter().any(|row| runs(&row))
        })
        .count() as u64
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let time = prop_oneof![12 => 1..2_000u64, 1 => Just(0)];
    let row = (time, 0..300u64, 0..3u64, 0..20u8).prop_map(|(start, length, stream, odd)| match odd {
        0 => (start, 0, stream),
        1 => (start, start / 2, stream),
        _ => (start, start + length, stream),
    });
    prop::collection::vec(row, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_cell_holds_the_union_of_its_events(
        rows in rows(), rows_per_block in 1..20u32, cells in 1..40usize, from in 1..1_500u64, length in 1..2_000u64,
    ) {
        let trace = trace_of(&rows, rows_per_block);
        let overview = Overview::new(&trace, &Query::default(), window(from, from + length), cells);
        prop_assert_eq!(overview.cells(), cells);
        for row in &overview.rows {
            let is_wanted = |number: u64| row.key == DEVICE || row.key == stream(number);
            for cell in 0..cells {
                let (begin, end) = overview.cell(cell);
                prop_assert_eq!(
                    row.busy_nanos_of(cell),
                    busy_by_loop(&rows, begin.0, end.0, is_wanted),
                    "{:?} cell {}", row.key, cell
                );
            }
            let within = |row: &&Row| {
                is_wanted(row.2) && row.0 != 0 && row.0 <= from + length && row.0.max(row.1) >= from
            };
            prop_assert_eq!(row.events, rows.iter().filter(within).count() as u64);
        }
    }
}

/// All events of a row, or of all rows, one after the other.
fn walk(trace: &Trace, overview: &Overview, key: Option<RowKey>, direction: Direction) -> Vec<Position> {
    let query = Query::default();
    let mut from = match direction {
        Direction::Forward => Position::before(Timestamp(0)),
        Direction::Back => Position::behind(Timestamp(u64::MAX)),
    };
    let mut seen = Vec::new();
    while let Some(picked) = overview.seek(trace, &query, key, from, direction) {
        assert_eq!(picked.event.start, picked.position.start);
        assert!(key.is_none_or(|key| key == DEVICE || key == picked.key));
        from = picked.position;
        seen.push(picked.position);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn events_are_walked_in_the_order_of_their_starts(
        rows in rows(), rows_per_block in 1..20u32, cells in 1..40usize,
    ) {
        let trace = trace_of(&rows, rows_per_block);
        let Some(window) = TimeSpan::of(&trace, &Query::default()) else { return Ok(()) };
        let overview = Overview::new(&trace, &Query::default(), window, cells);
        for key in [None, Some(DEVICE), Some(stream(0)), Some(stream(2))] {
            let is_wanted = |row: &&Row| row.0 != 0 && key.is_none_or(|key| key == DEVICE || key == stream(row.2));
            let mut starts: Vec<u64> = rows.iter().filter(is_wanted).map(|row| row.0).collect();
            starts.sort_unstable();
            let forward = walk(&trace, &overview, key, Direction::Forward);
            let found: Vec<u64> = forward.iter().map(|position| position.start.0).collect();
            prop_assert_eq!(found, starts);
            let mut back = walk(&trace, &overview, key, Direction::Back);
            back.reverse();
            prop_assert_eq!(back, forward);
        }
    }
}

#[test]
fn an_event_knows_its_call_and_what_that_was_made_in() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let names = [
        "cudaLaunchKernel",
        "cuLaunchKernel",
        "step",
        "forward",
        "aten::mm",
    ];
    let [runtime, driver, step, forward, operator] = names.map(|name| writer.string(name).unwrap());
    let caller = Caller {
        process: ProcessId(1),
        thread: ThreadId(9),
    };
    for (name, start, end) in [(runtime, 50, 60), (driver, 52, 58)] {
        let call = ApiCall {
            start: Timestamp(start),
            end: Timestamp(end),
            correlation: CorrelationId(7),
            caller,
            shape: ApiShape {
                name,
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        writer.push(ClockId(1), &call).unwrap();
    }
    let other = Caller {
        thread: ThreadId(10),
        ..caller
    };
    for (name, start, end, caller) in [
        (forward, 40, 70, caller),
        (step, 10, 100, caller),
        (step, 10, 100, other),
        (forward, 60, 70, caller),
    ] {
        let marker = Marker {
            start: Timestamp(start),
            end: Timestamp(end),
            caller,
            shape: MarkerShape {
                name,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        writer.push(ClockId(1), &marker).unwrap();
    }
    let host = HostCall {
        start: Timestamp(45),
        end: Timestamp(65),
        caller,
        shape: HostShape {
            name: operator,
            ..HostShape::default()
        },
        ..HostCall::default()
    };
    writer.push(ClockId(1), &host).unwrap();
    let launched = Kernel {
        correlation: CorrelationId(7),
        ..kernel(80, 90, 3)
    };
    writer.push(ClockId(1), &launched).unwrap();
    writer.push(ClockId(1), &kernel(91, 92, 3)).unwrap();
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let overview = Overview::new(&trace, &Query::default(), window(1, 101), 10);
    let query = Query::default();
    let seek = |from, key| overview.seek(&trace, &query, Some(key), from, Direction::Forward);
    let picked = seek(Position::before(Timestamp(1)), stream(3)).unwrap();
    assert!(
        picked
            .fields
            .contains(&("place.stream".to_owned(), "3".to_owned()))
    );
    let around = Surroundings::of(&trace, &picked.event);
    let call = around.call.unwrap();
    assert_eq!(
        trace.event_name(&call),
        "cudaLaunchKernel",
        "the outermost of those with its number, as in analysis"
    );
    let path: Vec<&str> = around
        .inside
        .iter()
        .map(|event| trace.event_name(event))
        .collect();
    assert_eq!(path, ["step", "forward", "aten::mm"]);

    let alone = seek(picked.position, stream(3)).unwrap();
    assert_eq!(alone.event.start, Timestamp(91));
    let around = Surroundings::of(&trace, &alone.event);
    assert_eq!(
        (around.call, around.inside.len()),
        (None, 0),
        "it has no correlation"
    );

    let markers = RowKey::Thread {
        process: ProcessId(1),
        thread: ThreadId(9),
        role: ThreadRole::Markers,
        depth: 0,
    };
    let first = seek(Position::before(Timestamp(1)), markers).unwrap();
    assert_eq!(trace.event_name(&first.event), "step");
    assert_eq!(Surroundings::of(&trace, &first.event).inside, []);
    let second = seek(first.position, markers).unwrap();
    assert_eq!(Surroundings::of(&trace, &second.event).inside.len(), 1);
    let named = named_within(&trace, &query, window(75, 85), 10).unwrap();
    assert_eq!(named.len(), 3, "two ranges and a kernel: {named:?}");
    assert_eq!(named_within(&trace, &query, window(75, 85), 2), None);
}

#[test]
fn a_trace_without_events_has_nothing_to_show() {
    let trace = trace_of(&[], 8);
    assert_eq!(TimeSpan::of(&trace, &Query::default()), None);
    let overview = Overview::new(&trace, &Query::default(), window(1, 100), 10);
    assert!(overview.rows.is_empty());
}

#[test]
fn one_event_fills_its_window() {
    let trace = trace_of(&[(500, 700, 3)], 8);
    let window = TimeSpan::of(&trace, &Query::default()).unwrap();
    assert_eq!((window.from, window.to), (Timestamp(500), Timestamp(700)));
    let overview = Overview::new(&trace, &Query::default(), window, 7);
    let row = overview.row(stream(3)).unwrap();
    assert_eq!(overview.utilization(row), 1.0);
    assert!((0..7).all(|cell| overview.share(row, cell) == 1.0));
}

#[test]
fn a_moment_is_a_window_of_a_nanosecond() {
    let trace = trace_of(&[(500, 500, 3)], 8);
    let window = TimeSpan::of(&trace, &Query::default()).unwrap();
    assert_eq!(window.nanos(), 1);
    let overview = Overview::new(&trace, &Query::default(), window, 5);
    let row = overview.row(stream(3)).unwrap();
    assert_eq!((row.events, row.busy_nanos()), (1, 0));
    let starts: u32 = (0..5).map(|cell| row.starts(cell)).sum();
    assert_eq!(starts, 1);
}

#[test]
fn doubtful_times_are_counted() {
    let trace = trace_of(&[(0, 50, 1), (100, 0, 1), (200, 150, 1), (100, 300, 1)], 8);
    let overview = Overview::new(&trace, &Query::default(), window(100, 300), 4);
    let doubtful = overview.doubtful;
    assert_eq!(
        (doubtful.without_time, doubtful.without_end, doubtful.backwards),
        (1, 1, 1)
    );
    assert_eq!(overview.row(stream(1)).unwrap().events, 3);
}

#[test]
fn a_cut_file_shows_what_is_left_of_it() {
    let rows: Vec<Row> = (0..2_000).map(|at| (10 + at * 10, 15 + at * 10, 1)).collect();
    let bytes = bytes_of(&rows, 10);
    let cut = Trace::from_bytes(bytes[..bytes.len() * 2 / 3].to_vec()).unwrap();
    assert!(!cut.health().damage.is_empty());
    let window = TimeSpan::of(&cut, &Query::default()).unwrap();
    let left = Overview::new(&cut, &Query::default(), window, 10);
    let row = left.row(stream(1)).unwrap();
    assert!(row.events > 0 && row.events < 2_000);
    assert_eq!(row.busy_nanos(), row.events * 5);
}

#[test]
fn ten_thousand_streams_are_ten_thousand_rows() {
    let rows: Vec<Row> = (0..10_000).map(|at| (1_000 + at, 1_010 + at, at)).collect();
    let trace = trace_of(&rows, 1 << 10);
    let overview = Overview::new(&trace, &Query::default(), window(1_000, 11_010), 100);
    assert_eq!(overview.rows.len(), 10_001);
    assert_eq!(overview.rows[0].key, DEVICE);
    assert_eq!(overview.rows[0].busy_nanos(), 10_009);
    assert_eq!(overview.rows[10_000].key, stream(9_999));
}

#[test]
fn communication_waits_and_threads_are_told_apart() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let name = writer.string("ncclDevKernel_AllReduce").unwrap();
    writer
        .define(&Context {
            process: ProcessId(1),
            context: ContextId(1),
            device: DeviceId(1),
            ..Context::default()
        })
        .unwrap();
    let all_reduce = Kernel {
        shape: KernelShape {
            name,
            ..KernelShape::default()
        },
        ..kernel(10, 20, 7)
    };
    writer.push(ClockId(1), &all_reduce).unwrap();
    writer.push(ClockId(1), &kernel(30, 35, 7)).unwrap();
    let place = Place {
        device: DeviceId::NONE,
        ..all_reduce.place
    };
    for kind in [SyncKind::STREAM_WAIT, SyncKind::CONTEXT_WAIT] {
        let wait = Synchronization {
            start: Timestamp(40),
            end: Timestamp(50),
            place,
            shape: SyncShape { kind, result: 0 },
            ..Synchronization::default()
        };
        writer.push(ClockId(1), &wait).unwrap();
    }
    let call = ApiCall {
        start: Timestamp(5),
        end: Timestamp(9),
        caller: Caller {
            process: ProcessId(1),
            thread: ThreadId(4),
        },
        ..ApiCall::default()
    };
    writer.push(ClockId(1), &call).unwrap();
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let overview = Overview::new(&trace, &Query::default(), window(1, 51), 50);
    let waits = RowKey::Waits {
        device: DeviceId(1),
        process: ProcessId(1),
    };
    let thread = RowKey::Thread {
        process: ProcessId(1),
        thread: ThreadId(4),
        role: ThreadRole::Calls,
        depth: 0,
    };
    let keys: Vec<RowKey> = overview.rows.iter().map(|row| row.key).collect();
    assert_eq!(keys, [DEVICE, stream(7), waits, thread]);
    let row = overview.row(stream(7)).unwrap();
    let nanos = |activity| row.nanos_of(activity);
    assert_eq!(
        (
            nanos(ActivityKind::Communication),
            nanos(ActivityKind::Kernel),
            nanos(ActivityKind::Sync)
        ),
        (10, 5, 10)
    );
    assert_eq!(row.busy_nanos(), 15, "the wait is no work of the stream");
    assert_eq!(overview.row(thread).unwrap().nanos_of(ActivityKind::Call), 4);

    let kernels = Query {
        kinds: Some(vec![EventKind::Kernel]),
        name: Some(NamePattern::new("AllReduce").unwrap()),
        ..Query::default()
    };
    let overview = Overview::new(&trace, &kernels, window(1, 51), 50);
    assert_eq!(overview.rows.len(), 2);
    assert_eq!(overview.rows[1].busy_nanos(), 10);
}

#[test]
fn times_of_another_clock_come_to_the_traces_own() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for (id, kind) in [(1, ClockKind::MONOTONIC), (2, ClockKind::DEVICE)] {
        writer
            .define(&Clock {
                id: ClockId(id),
                kind,
                ..Clock::default()
            })
            .unwrap();
    }
    writer
        .define(&ClockPair {
            first: ClockId(2),
            second: ClockId(1),
            first_time: Timestamp(1_000),
            second_time: Timestamp(5_000),
            uncertainty: 0,
        })
        .unwrap();
    writer.push(ClockId(2), &kernel(1_100, 1_200, 7)).unwrap();
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let window = TimeSpan::of(&trace, &Query::default()).unwrap();
    assert_eq!((window.from, window.to), (Timestamp(5_100), Timestamp(5_200)));
    let overview = Overview::new(&trace, &Query::default(), window, 2);
    assert_eq!(overview.row(stream(7)).unwrap().busy_nanos(), 100);
}

/// Issue 28: one row of a thread hid what was within other ranges and operators.
#[test]
fn what_is_within_other_ranges_has_a_row_of_its_own() {
    let mut made = Made::new();
    for at in [0, 1_000] {
        made.range("step", (at + 100, at + 900));
        made.range("forward", (at + 100, at + 500));
        made.range("layer", (at + 200, at + 300));
        made.range("layer", (at + 300, at + 400));
        made.range("backward", (at + 500, at + 800));
    }
    let trace = made.finish();
    let mut browser = Browser::new(&trace, &Query::default(), None).unwrap();
    let key = |depth| RowKey::Thread {
        process: PROCESS,
        thread: THREAD,
        role: ThreadRole::Markers,
        depth,
    };
    let labels: Vec<(RowKey, String)> = browser
        .rows()
        .into_iter()
        .map(|row| (row.key, row.label))
        .collect();
    let first = format!("markers {}", THREAD.0);
    let expected = [
        (key(0), first),
        (key(1), "  level 1".to_owned()),
        (key(2), "  level 2".to_owned()),
    ];
    assert_eq!(labels, expected);
    let row = |depth| browser.summary().row(key(depth)).unwrap();
    assert_eq!((row(0).events, row(1).events, row(2).events), (2, 4, 4));
    assert_eq!(row(2).busy_nanos(), 400);
    // The next one of a row, whatever starts in between on others.
    let names = |key: Option<RowKey>, browser: &Browser| {
        let mut names = Vec::new();
        let mut from = Position::before(Timestamp(0));
        while let Some(picked) = browser.seek(key, from, Direction::Forward) {
            names.push((trace.event_name(&picked.event).to_owned(), picked.key));
            from = picked.position;
        }
        names
    };
    let inner: Vec<String> = names(Some(key(1)), &browser)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(inner, ["forward", "backward", "forward", "backward"]);
    // A part of the trace has the same rows, and names are in theirs.
    let picture = browser.picture(TimeSpan::new(Timestamp(1_250), Timestamp(1_350)), 10);
    let inner = picture.overview.row(key(2)).unwrap();
    assert!(picture.overview.utilization(inner) > 0.9);
    let how = (Nesting::ByDepth, None);
    let read = Overview::with_nesting(&trace, &Query::default(), window(1_250, 1_350), 10, how);
    let events: Vec<u64> = read.rows.iter().map(|row| row.events).collect();
    assert_eq!(events, [1, 1, 2]);
    let together = Overview::new(&trace, &Query::default(), window(1_250, 1_350), 10);
    assert_eq!((together.rows.len(), together.rows[0].events), (1, 4));
    let layers: Vec<RowKey> = picture
        .named
        .iter()
        .filter(|named| named.start.0 >= 1_200)
        .map(|named| named.key)
        .collect();
    assert_eq!(layers, [key(2), key(2)]);
    // A search finds them in their rows, too.
    assert_eq!(browser.search(NamePattern::new("layer").unwrap()), 4);
    assert!(
        names(None, &browser)
            .iter()
            .all(|(name, row)| name == "layer" && *row == key(2))
    );
    let picture = browser.picture(TimeSpan::new(Timestamp(0), Timestamp(2_000)), 10);
    let matches = picture.matches.unwrap();
    assert_eq!(matches.rows.len(), 1);
    assert_eq!(matches.rows[0].key, key(2));
}

/// Issue 29: ranges that overlap and do not nest climbed to the last level, and a part of the trace had other levels.
#[test]
fn ranges_that_overlap_have_the_same_level_in_every_part() {
    let options = WriterOptions {
        rows_per_block: 16,
        ..WriterOptions::default()
    };
    let mut made = Made::with(Writer::new(Vec::new(), options).unwrap());
    // Two of these are open at most.
    let mut spans: Vec<(u64, u64)> = (1..400).map(|at| (at * 10_000, at * 10_000 + 15_000)).collect();
    // Those within one of them, and one that outlives many.
    spans.extend((1..400).map(|at| (at * 10_000 + 1_000, at * 10_000 + 2_000)));
    spans.push((1_005_000, 3_000_000));
    spans.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    for (at, times) in spans.iter().enumerate() {
        made.range(if at % 3 == 0 { "third" } else { "other" }, *times);
    }
    let trace = made.finish();
    let level = |key: RowKey| match key {
        RowKey::Thread { depth, .. } => depth,
        other => panic!("{other:?}"),
    };
    let mut browser = Browser::new(&trace, &Query::default(), None).unwrap();
    assert_eq!(browser.rows().len(), 4);
    // By hand: the first level whose last range has ended.
    let mut ends = [0; 4];
    let expected: std::collections::BTreeMap<(u64, u64), u8> = spans
        .iter()
        .map(|(start, end)| {
            let free = ends.iter().position(|until| until <= start).unwrap();
            ends[free] = *end;
            ((*start, *end), free as u8)
        })
        .collect();
    let walked = |browser: &Browser| {
        let mut count = 0;
        let mut from = Position::before(Timestamp(0));
        while let Some(picked) = browser.seek(None, from, Direction::Forward) {
            let times = (picked.event.start.0, picked.event.end.0);
            assert_eq!(level(picked.key), expected[&times], "{times:?}");
            from = picked.position;
            count += 1;
        }
        count
    };
    assert_eq!(walked(&browser), spans.len());
    let only_some = Query {
        name: Some(NamePattern::new("third").unwrap()),
        ..Query::default()
    };
    let some = Browser::new(&trace, &only_some, None).unwrap();
    for from in (0..4_000_000).step_by(8_765) {
        let part = window(from, from + 9_000);
        for browser in [&browser, &some] {
            let picture = browser.picture(part, 4_000);
            let mut events = [0; 4];
            for named in &picture.named {
                let depth = level(named.key);
                assert_eq!(
                    depth,
                    expected[&(named.start.0, named.end.0)],
                    "{named:?} from {from}"
                );
                events[usize::from(depth)] += 1;
            }
            for row in &picture.overview.rows {
                let depth = level(row.key);
                assert_eq!(
                    row.events,
                    events[usize::from(depth)],
                    "level {depth} from {from}"
                );
            }
        }
    }
    assert_eq!(
        browser.search(NamePattern::new("third").unwrap()),
        spans.len().div_ceil(3) as u64
    );
    assert_eq!(walked(&browser), spans.len().div_ceil(3));
}
