//! Traces as a whole: opened, asked, cut and merged, against what plain loops over the same rows say.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use proptest::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::*;
use tracesmith_trace::{
    Event, EventKind, HostLink, NamePattern, Query, Selection, SortKey, TimeRange, Trace, cut, merge, repair,
};

/// A kernel as a test thinks of it.
#[derive(Clone, Debug)]
struct Row {
    start: u64,
    length: u64,
    name: usize,
    stream: u64,
    process: u32,
}

const NAMES: [&str; 4] = ["gemm", "softmax", "flash_fwd", ""];

fn row() -> impl Strategy<Value = Row> {
    let start = prop_oneof![8 => 1_000..50_000u64, 1 => Just(0), 1 => Just(u64::MAX - 10_000)];
    (start, 0..3_000u64, 0..4usize, 0..3u64, 1..3u32).prop_map(|(start, length, name, stream, process)| Row {
        start,
        length,
        name,
        stream,
        process,
    })
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(row(), 0..200)
}

fn written(rows: &[Row], rows_per_block: u32) -> Vec<u8> {
    let mut writer = Writer::new(
        Vec::new(),
        WriterOptions {
            rows_per_block,
            ..Default::default()
        },
    )
    .unwrap();
    for process in 1..3 {
        writer
            .define(&Process {
                id: ProcessId(process),
                pid: 100 + process,
                ..Default::default()
            })
            .unwrap();
    }
    writer
        .define(&Clock {
            id: ClockId(1),
            kind: ClockKind::MONOTONIC,
            ..Default::default()
        })
        .unwrap();
    for row in rows {
        let name = writer.string(NAMES[row.name]).unwrap();
        let frame = writer
            .frame(Frame {
                line: row.stream as u32,
                ..Default::default()
            })
            .unwrap();
        let kernel = Kernel {
            start: Timestamp(row.start),
            end: Timestamp(row.start + row.length),
            stack: writer.stack_of([frame]).unwrap(),
            place: Place {
                process: ProcessId(row.process),
                stream: StreamId(row.stream),
                ..Default::default()
            },
            shape: KernelShape {
                name,
                ..Default::default()
            },
            ..Default::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    writer.finish().unwrap()
}

/// What is left of an event when the trace's own ids are resolved.
fn resolved(trace: &Trace, event: &Event) -> (u64, u64, String, u64, u32, u32) {
    let line = trace.stack(event.stack).frames[0].frame.line;
    let pid = trace.process(event.process).unwrap().pid;
    (
        event.start.0,
        event.end.0,
        trace.event_name(event).to_owned(),
        event.stream.unwrap().0,
        pid,
        line,
    )
}

fn all(trace: &Trace) -> Vec<(u64, u64, String, u64, u32, u32)> {
    let mut events: Vec<_> = trace
        .events(&Query::default())
        .map(|event| resolved(trace, &event))
        .collect();
    events.sort();
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn queries_find_what_a_plain_loop_finds(
        rows in rows(),
        per_block in 1..60u32,
        from in prop::option::of(0..60_000u64),
        to in prop::option::of(0..60_000u64),
        stream in prop::option::of(0..3u64),
        name in prop::option::of(0..4usize),
    ) {
        let trace = Trace::from_bytes(written(&rows, per_block)).unwrap();
        let query = Query {
            from: from.map(Timestamp),
            to: to.map(Timestamp),
            streams: stream.map(|stream| vec![StreamId(stream)]),
            name: name.map(|name| NamePattern::exact(NAMES[name])),
            ..Query::default()
        };
        let mut expected: Vec<_> = rows
            .iter()
            .filter(|row| (from.is_none() && to.is_none()) || row.start != 0)
            .filter(|row| from.is_none_or(|from| row.start + row.length >= from))
            .filter(|row| to.is_none_or(|to| row.start < to))
            .filter(|row| stream.is_none_or(|stream| row.stream == stream))
            .filter(|row| name.is_none_or(|name| row.name == name))
            .map(|row| (row.start, row.length))
            .collect();
        let found: Vec<_> = trace.events(&query).map(|event| (event.start.0, event.end.0 - event.start.0)).collect();
        let known: Vec<_> = found.iter().map(|(start, _)| *start).filter(|start| *start != 0).collect();
        prop_assert!(known.is_sorted(), "events come in the order of their start");
        let mut sorted = found;
        sorted.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
    }

    #[test]
    fn the_longest_events_are_the_longest(rows in rows(), per_block in 1..60u32, limit in 1..20usize) {
        let trace = Trace::from_bytes(written(&rows, per_block)).unwrap();
        let mut found = Vec::new();
        let total = trace.for_each_event_sorted(&Query::default(), SortKey::Duration, limit, |f| {
            found.push(f.event.duration());
            std::ops::ControlFlow::Continue(())
        });
        let mut expected: Vec<u64> = rows.iter().map(|row| if row.start == 0 { 0 } else { row.length }).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(limit);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(total, rows.len() as u64);
    }

    #[test]
    fn parts_of_a_trace_merge_to_the_whole(rows in rows(), split in 0..200usize, per_block in 1..60u32) {
        let (first, second) = rows.split_at(split.min(rows.len()));
        let traces = [written(first, per_block), written(second, per_block)].map(|b| Trace::from_bytes(b).unwrap());
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let report = merge(&traces, HostLink::default(), &mut writer, &mut |_| {}).unwrap();
        prop_assert_eq!(report.rows, rows.len() as u64);
        let merged = Trace::from_bytes(writer.finish().unwrap()).unwrap();
        prop_assert!(merged.health().is_good());
        prop_assert_eq!(merged.processes.len(), 2);
        prop_assert_eq!(all(&merged), all(&Trace::from_bytes(written(&rows, per_block)).unwrap()));
    }

    #[test]
    fn a_cut_is_what_a_query_of_its_range_finds(rows in rows(), per_block in 1..60u32, from in 0..60_000u64, length in 1..60_000u64) {
        let trace = Trace::from_bytes(written(&rows, per_block)).unwrap();
        let (from, to) = (Some(Timestamp(from)), Some(Timestamp(from + length)));
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let report = cut(&trace, TimeRange { from, to }, &Selection::default(), &mut writer, &mut |_| {}).unwrap();
        let part = Trace::from_bytes(writer.finish().unwrap()).unwrap();
        let query = Query { from, to, ..Query::default() };
        let mut expected: Vec<_> = trace.events(&query).map(|event| resolved(&trace, &event)).collect();
        expected.sort();
        prop_assert_eq!(report.rows + report.rows_outside, rows.len() as u64);
        prop_assert_eq!(all(&part), expected);
    }
}

fn some_rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|i| Row {
            start: 1_000 + i * 10,
            length: 5,
            name: 0,
            stream: i % 3,
            process: 1,
        })
        .collect()
}

#[test]
fn a_damaged_block_is_left_out_and_stated() {
    let mut bytes = written(&some_rows(100), 10);
    let reader = Reader::open(Memory(&bytes[..])).unwrap();
    let block = *reader
        .blocks()
        .iter()
        .filter(|b| b.header.kind == Kernel::KIND)
        .nth(3)
        .unwrap();
    bytes[block.offset as usize + 80] ^= 4;
    let trace = Trace::from_bytes(bytes).unwrap();
    assert_eq!(trace.kernels.rows(), 100, "the index still lists all");
    assert!(trace.health().is_good(), "nothing was read yet");
    trace.load();
    let rows: usize = trace.kernels.columns().map(|(_, columns)| columns.len()).sum();
    assert_eq!(rows, 90);
    assert_eq!(trace.events(&Query::default()).count(), 90);
    let health = trace.health();
    assert_eq!(health.damage.len(), 1, "said once, however often it was met");
    assert_eq!(health.damage[0].offset, block.offset);
}

#[test]
fn a_trace_can_be_opened_while_it_is_written() {
    let path = std::env::temp_dir().join(format!("tracesmith-growing-{}.sbt", std::process::id()));
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = Writer::new(file, WriterOptions::default()).unwrap();
    let push = |writer: &mut Writer<std::fs::File>, time| {
        writer
            .push(
                ClockId(1),
                &Marker {
                    start: Timestamp(time),
                    end: Timestamp(time),
                    ..Default::default()
                },
            )
            .unwrap();
    };
    push(&mut writer, 10);
    writer.flush().unwrap();
    let early = Trace::open(&path).unwrap();
    push(&mut writer, 20);
    writer.flush().unwrap();
    let later = Trace::open(&path).unwrap();
    assert_eq!((early.markers.rows(), later.markers.rows()), (1, 2));
    assert_eq!(later.health().damage.len(), 1, "it is not finished, and says so");
    writer.seal().unwrap();
    let finished = Trace::open(&path).unwrap();
    assert_eq!(finished.markers.rows(), 2);
    assert!(finished.health().is_good());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_is_defined_again_replaces_what_was_known() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let process = Process {
        id: ProcessId(1),
        pid: 7,
        ..Default::default()
    };
    writer.define(&process).unwrap();
    writer.flush().unwrap();
    writer
        .define(&Process {
            end: ProcessEnd::KILLED,
            end_code: 9,
            ..process
        })
        .unwrap();
    writer.metadata("state", "running").unwrap();
    writer.metadata("state", "done").unwrap();
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(
        (trace.processes[0].end, trace.processes[0].end_code),
        (ProcessEnd::KILLED, 9)
    );
    assert_eq!(trace.metadata["state"], "done");
}

#[test]
fn clocks_that_nothing_links_are_named() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let name = writer.string("gpu").unwrap();
    writer
        .define(&Clock {
            id: ClockId(1),
            kind: ClockKind::MONOTONIC,
            ..Default::default()
        })
        .unwrap();
    writer
        .define(&Clock {
            id: ClockId(2),
            kind: ClockKind::DEVICE,
            name,
            ..Default::default()
        })
        .unwrap();
    for clock in [1, 2] {
        let marker = Marker {
            start: Timestamp(5),
            end: Timestamp(6),
            ..Default::default()
        };
        writer.push(ClockId(clock), &marker).unwrap();
    }
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    assert_eq!(trace.health().unlinked_clocks, ["gpu"]);
}

#[test]
fn hosts_with_the_same_name_but_another_boot_stay_apart() {
    let trace_of = |boot: &str| {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let (name, boot_id) = (writer.string("node").unwrap(), writer.string(boot).unwrap());
        writer
            .define(&Host {
                id: HostId(1),
                name,
                boot_id,
                ..Default::default()
            })
            .unwrap();
        let clock = Clock {
            id: ClockId(1),
            kind: ClockKind::MONOTONIC,
            host: HostId(1),
            ..Default::default()
        };
        writer.define(&clock).unwrap();
        writer
            .push(
                ClockId(1),
                &Marker {
                    start: Timestamp(5),
                    end: Timestamp(6),
                    ..Default::default()
                },
            )
            .unwrap();
        Trace::from_bytes(writer.finish().unwrap()).unwrap()
    };
    let merged = |boots: [&str; 2]| {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        merge(
            &boots.map(trace_of),
            HostLink::default(),
            &mut writer,
            &mut |_| {},
        )
        .unwrap();
        Trace::from_bytes(writer.finish().unwrap()).unwrap()
    };
    assert_eq!(merged(["a", "a"]).clocks.len(), 1);
    let apart = merged(["a", "b"]);
    assert_eq!((apart.hosts.len(), apart.clocks.len()), (2, 2));
    assert_eq!(apart.health().unlinked_clocks.len(), 1);
}

#[test]
fn a_repaired_trace_states_its_loss_once_more_only_if_more_is_lost() {
    let bytes = written(&some_rows(100), 10);
    let save = |bytes: &[u8]| {
        let trace = Trace::from_bytes(bytes.to_vec()).unwrap();
        let mut writer = Writer::without_schema(Vec::new(), WriterOptions::default()).unwrap();
        let report = repair(&trace, &mut writer, &mut |_| {}).unwrap();
        (writer.finish().unwrap(), report)
    };
    let (saved, report) = save(&bytes[..bytes.len() - 700]);
    assert!(!report.damage.is_empty() && report.rows > 50);
    let (again, second) = save(&saved);
    assert_eq!((second.damage.len(), second.rows), (0, report.rows));
    let health = |bytes: Vec<u8>| Trace::from_bytes(bytes).unwrap().health().recorded;
    assert_eq!(health(again), health(saved));
}

#[test]
fn tables_of_a_later_version_are_counted_when_they_cannot_be_carried() {
    let bytes = written(&some_rows(10), 10);
    let reader = Reader::open(Memory(bytes)).unwrap();
    let mut writer = Writer::without_schema(Vec::new(), WriterOptions::default()).unwrap();
    let mut decoder = reader.decoder();
    for block in reader.blocks() {
        let mut block = *block;
        let payload = decoder.payload(&block).unwrap();
        if block.header.kind == Kernel::KIND {
            block.header.kind = BlockKind(500);
        }
        writer.copy_block(&block, payload).unwrap();
    }
    let newer = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let report = cut(
        &newer,
        TimeRange::default(),
        &Selection::default(),
        &mut writer,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(report.rows_not_carried, 10);
    let health = Trace::from_bytes(writer.finish().unwrap()).unwrap().health();
    assert!(
        health
            .recorded
            .iter()
            .any(|item| item.cause == HealthCause::NOT_CARRIED && item.count == 10)
    );
    assert_eq!(EventKind::of_table(BlockKind(500)), None);
}

/// Issue 26: blocks of a known kind fell through without a count.
#[test]
fn no_table_falls_through_a_rewrite() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let frame = writer.frame(Frame::default()).unwrap();
    let stack = writer.stack_of([frame]).unwrap();
    macro_rules! one_row_each {
        ($($field:ident: $row:ident,)*) => {
            $(writer.define(&$row::default()).unwrap();)*
        };
    }
    for_each_table!(one_row_each);
    writer.metadata("key", "value").unwrap();
    // Frames and stacks come over as far as something refers to them.
    writer
        .define(&ApiCall {
            start: Timestamp(1),
            stack,
            ..Default::default()
        })
        .unwrap();
    writer
        .define(&Symbol {
            frame,
            ..Default::default()
        })
        .unwrap();
    let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let report = merge(&[trace], HostLink::default(), &mut writer, &mut |_| {}).unwrap();
    assert_eq!(report.rows_not_carried, 0);
    let merged = Trace::from_bytes(writer.finish().unwrap()).unwrap();
    let has = |kind: &BlockKind| merged.blocks().iter().any(|block| block.header.kind == *kind);
    let missing: Vec<&BlockKind> = BlockKind::ALL
        .iter()
        .filter(|kind| !has(kind) && ![BlockKind::INDEX, BlockKind::END].contains(kind))
        .collect();
    assert_eq!(missing, [&BlockKind(0); 0]);
}

/// A marker at a moment of a host's own clock, and the pairs that place it. `ahead` is how far its monotonic clock is ahead
/// of the true time, `error` what its time of day can be off, which it is by `off`.
fn of_host(name: &str, moment: u64, ahead: u64, (error, off): (u64, u64), ptp: bool) -> Trace {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let text = writer.string(name).unwrap();
    let host = Host {
        id: HostId(1),
        name: text,
        boot_id: text,
        ..Default::default()
    };
    writer.define(&host).unwrap();
    let kinds = [
        (1, ClockKind::MONOTONIC),
        (2, ClockKind::REALTIME),
        (3, ClockKind::UTC),
        (4, ClockKind::PTP),
    ];
    for (id, kind) in kinds {
        let host = if kind == ClockKind::UTC {
            HostId::NONE
        } else {
            HostId(1)
        };
        let clock = Clock {
            id: ClockId(id),
            kind,
            host,
            ..Default::default()
        };
        writer.define(&clock).unwrap();
    }
    let mut pair = |first, a, second, b, uncertainty| {
        let pair = ClockPair {
            first: ClockId(first),
            second: ClockId(second),
            first_time: Timestamp(a),
            second_time: Timestamp(b),
            uncertainty,
        };
        writer.define(&pair).unwrap();
    };
    for at in [moment - 1_000_000, moment + 1_000_000] {
        pair(1, at + ahead, 2, at + off, 100);
        pair(2, at + off, 3, at + off, error);
        if ptp {
            pair(1, at + ahead, 4, at + 37_000_000_000, 40);
        }
    }
    let marker = Marker {
        start: Timestamp(moment + ahead),
        end: Timestamp(moment + ahead + 5),
        ..Default::default()
    };
    writer.push(ClockId(1), &marker).unwrap();
    Trace::from_bytes(writer.finish().unwrap()).unwrap()
}

/// Issue 26: ranks on several hosts could not be placed on one timeline.
#[test]
fn hosts_come_to_one_timeline_by_the_time_of_day_or_by_ptp() {
    let moment = 1_000_000_000_000;
    let merged = |ptp: [bool; 2], link| {
        let traces = [
            of_host("a", moment, 77_000, (3_000, 0), ptp[0]),
            of_host("b", moment, 990_000_000, (2_000, 1_500), ptp[1]),
        ];
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let report = merge(&traces, link, &mut writer, &mut |_| {}).unwrap();
        let trace = Trace::from_bytes(writer.finish().unwrap()).unwrap();
        assert!(trace.health().unlinked_clocks.is_empty());
        let starts: Vec<u64> = trace
            .blocks()
            .iter()
            .filter(|block| block.header.kind == Marker::KIND)
            .map(|block| {
                let time = Timestamp(block.header.first_time);
                trace.clock_map.convert(block.header.clock, time).time.0
            })
            .collect();
        assert_eq!(report.hosts.len(), 1, "{report:?}");
        assert_eq!(report.hosts[0].name, "b");
        (starts[0].abs_diff(starts[1]), report.hosts[0].uncertainty)
    };
    // As far off as b's time of day is, which is within what is reported.
    let by_time_of_day = (1_500, Some(3_000 + 2_000 + 100 + 100));
    assert_eq!(merged([true, true], HostLink::Utc), by_time_of_day);
    assert_eq!(merged([true, true], HostLink::Ptp), (0, Some(40 + 40)));
    assert_eq!(merged([true, false], HostLink::Ptp), by_time_of_day);
}

#[test]
fn a_host_that_nothing_links_is_reported() {
    let alone = |name: &str| {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        let name = writer.string(name).unwrap();
        let host = Host {
            id: HostId(1),
            name,
            ..Default::default()
        };
        writer.define(&host).unwrap();
        let clock = Clock {
            id: ClockId(1),
            kind: ClockKind::MONOTONIC,
            host: HostId(1),
            ..Default::default()
        };
        writer.define(&clock).unwrap();
        let marker = Marker {
            start: Timestamp(5),
            ..Default::default()
        };
        writer.push(ClockId(1), &marker).unwrap();
        Trace::from_bytes(writer.finish().unwrap()).unwrap()
    };
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let traces = [alone("a"), alone("b")];
    let report = merge(&traces, HostLink::Utc, &mut writer, &mut |_| {}).unwrap();
    assert_eq!(report.hosts.len(), 1);
    assert_eq!((&*report.hosts[0].name, report.hosts[0].uncertainty), ("b", None));
}
