//! Logs made up byte by byte, sane ones and others.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use proptest::prelude::*;

use super::calls::nanoseconds;
use super::records::{Break, Record};
use super::*;
use crate::fuzz::import_any;
use tracesmith_format::Timestamp;
use tracesmith_format::tables::{CallExit, HostCallKind};
use tracesmith_trace::Trace;

/// The records of a log, and where it is damaged.
pub(super) fn records_of(bytes: &[u8]) -> (Vec<Record>, Vec<Break>) {
    let header = Header::parse(bytes).unwrap();
    let mut found = Vec::new();
    let breaks = match header.kind {
        LogKind::Basic => {
            let mut records = BasicRecords::new(&bytes[RECORD_BYTES..], &header);
            while let Some(record) = records.next().unwrap() {
                found.push(record);
            }
            records.broken().cloned().into_iter().collect()
        }
        LogKind::FlightRecorder => {
            FlightLog::new(bytes, &header)
                .for_each(|record| {
                    found.push(record);
                    Ok::<(), Error>(())
                })
                .unwrap()
                .first
        }
    };
    (found, breaks)
}

fn header(version: u16, kind: u16, frequency: u64) -> Vec<u8> {
    let mut bytes = [version.to_le_bytes(), kind.to_le_bytes()].concat();
    // The unused bits of the flags are left as clang 22 leaves them.
    bytes.extend(0xaaaa_aaabu32.to_le_bytes());
    bytes.extend(frequency.to_le_bytes());
    bytes.resize(32, 0);
    bytes
}

fn basic(kind: u8, function: i32, counter: u64, thread: u32) -> Vec<u8> {
    let mut bytes = vec![0, 0, 3, kind];
    bytes.extend(function.to_le_bytes());
    bytes.extend(counter.to_le_bytes());
    bytes.extend(thread.to_le_bytes());
    bytes.extend(77u32.to_le_bytes());
    bytes.resize(32, 0xaa);
    bytes
}

fn argument(function: i32, thread: u32, value: u64) -> Vec<u8> {
    let mut bytes = vec![1, 0, 0, 0];
    bytes.extend(function.to_le_bytes());
    bytes.extend(thread.to_le_bytes());
    bytes.extend(77u32.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes.resize(32, 0);
    bytes
}

fn metadata(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![fdr::introducer(kind)];
    bytes.extend(body);
    bytes.resize(bytes.len().max(16), 0xaa);
    bytes
}

fn function(kind: u32, id: u32, delta: u32) -> Vec<u8> {
    [(id << 4 | kind << 1).to_le_bytes(), delta.to_le_bytes()].concat()
}

fn buffer(version: u16, thread: u32, begun: u64, events: &[u8]) -> Vec<u8> {
    let mut records = metadata(0, &thread.to_le_bytes());
    records.extend(metadata(
        4,
        &[&begun.to_le_bytes()[..], &5u32.to_le_bytes()].concat(),
    ));
    if version >= 3 {
        records.extend(metadata(9, &77u32.to_le_bytes()));
    }
    let cpu = [&2u16.to_le_bytes()[..], &(begun * 1000).to_le_bytes()].concat();
    records.extend(metadata(2, &cpu));
    records.extend(events);
    if version == 1 {
        records.extend(metadata(1, &[]));
        return records;
    }
    let mut bytes = metadata(7, &(records.len() as u64).to_le_bytes());
    bytes.extend(records);
    bytes
}

type Row<'t> = (&'t str, u64, u64, u32, CallExit, u64);

fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let mut found = Vec::new();
    for (_, calls) in trace.host_calls.columns() {
        for row in 0..calls.start.len() {
            let shape = calls.shape.get(row);
            found.push((
                trace.string(shape.name),
                calls.start[row].0,
                calls.end[row].0,
                calls.depth[row],
                shape.exit,
                calls.argument[row],
            ));
        }
    }
    found
}

#[test]
fn calls_are_put_together_from_enters_and_exits() {
    let log = [
        header(3, 0, 2_000_000_000),
        basic(1, 9, 10, 5), // unmatched
        basic(0, 1, 100, 5),
        basic(3, 2, 110, 5),
        argument(2, 5, 42),
        basic(0, 7, 112, 6), // never left
        basic(0, 3, 120, 5), // left unseen
        basic(2, 2, 130, 5),
        basic(1, 1, 201, 5),
    ]
    .concat();
    assert!(sniff(&log));
    let trace = crate::open_bytes(log).unwrap();
    assert_eq!(
        rows(&trace),
        [
            ("function 3", 60, 0, 2, CallExit::OPEN, 0),
            ("function 2", 55, 65, 1, CallExit::TAIL, 42),
            ("function 1", 50, 100, 0, CallExit::RETURN, 0),
            ("function 7", 56, 0, 0, CallExit::OPEN, 0),
        ]
    );
    assert_eq!(trace.metadata["xray.cycle_frequency"], "2000000000");
    assert_eq!(trace.metadata["xray.constant_counter"], "true");
    let items = trace.health().recorded;
    assert!(
        items
            .iter()
            .any(|item| item.detail.contains("exits of calls") && item.count == 1)
    );
}

#[test]
fn buffers_are_read_in_the_order_of_time_in_every_version() {
    for version in 1..=5u16 {
        let first = [
            function(0, 1, 5),
            function(3, 2, 5),
            metadata(6, &42u64.to_le_bytes()),
        ]
        .concat();
        let wrap = metadata(3, &9_000u64.to_le_bytes());
        let second = [function(1, 2, 1), wrap, function(1, 1, 1)].concat();
        let mut log = header(version, 1, 1_000_000_000);
        let (late, early) = (buffer(version, 5, 2, &second), buffer(version, 5, 1, &first));
        if version == 1 {
            // Buffers of a fixed size, the rest of each as it was in memory.
            log[16..24].copy_from_slice(&256u64.to_le_bytes());
            for mut buffer in [late, early] {
                buffer.resize(256, 0x55);
                log.extend(buffer);
            }
        } else {
            log.extend([late, early].concat());
        }
        assert!(sniff(&log), "version {version}");
        let trace = crate::open_bytes(log).unwrap();
        assert_eq!(
            rows(&trace),
            [
                ("function 2", 1010, 2001, 1, CallExit::RETURN, 42),
                ("function 1", 1005, 9001, 0, CallExit::RETURN, 0),
            ],
            "version {version}"
        );
        let pid = trace.processes[0].pid;
        assert_eq!(pid, [0, 5, 77][usize::from(version).min(3) - 1]);
    }
}

#[test]
fn events_keep_their_data_in_every_version() {
    for (version, kind) in [(3, 5), (4, 5), (5, 5), (5, 8)] {
        let mut body = 5u32.to_le_bytes().to_vec();
        if version >= 5 {
            body.extend(7u32.to_le_bytes());
            body.extend(9u16.to_le_bytes());
        } else {
            body.extend(1007u64.to_le_bytes());
            body.extend(1u16.to_le_bytes());
        }
        let mut event = metadata(kind, &body);
        event.extend(b"hello");
        let log = [header(version, 1, 1_000_000_000), buffer(version, 5, 1, &event)].concat();
        let trace = crate::open_bytes(log).unwrap();
        let (_, calls) = trace.host_calls.columns().next().unwrap();
        assert_eq!(trace.string(calls.detail[0]), "hello");
        assert_eq!(
            (calls.start[0].0, calls.end[0].0),
            (1007, 1007),
            "version {version}"
        );
        assert_eq!(calls.shape.get(0).kind, HostCallKind::CUSTOM);
        let name = if kind == 8 {
            "typed event 9"
        } else {
            "custom event"
        };
        assert_eq!(trace.string(calls.shape.get(0).name), name);
    }
}

#[test]
fn cut_logs_give_what_is_left_and_say_so() {
    let events: Vec<u8> = (0..100).flat_map(|n| function(n % 2, 1, 1)).collect();
    let flight = [header(5, 1, 1_000_000_000), buffer(5, 5, 1, &events)].concat();
    let calls: Vec<u8> = (0..100).flat_map(|n| basic((n % 2) as u8, 1, n + 1, 5)).collect();
    let plain = [header(3, 0, 1_000_000_000), calls].concat();
    for log in [flight, plain] {
        let whole = crate::open_bytes(log.clone()).unwrap();
        assert_eq!((whole.host_calls.rows(), whole.health().is_good()), (50, true));
        let cut = crate::open_bytes(log[..log.len() - 411].to_vec()).unwrap();
        assert!(cut.host_calls.rows() < 50 && cut.host_calls.rows() > 10);
        assert!(!cut.health().is_good());
        for length in 0..log.len() {
            import_any("xray", &log[..length]);
        }
    }
}

#[test]
fn damage_ends_the_log_with_a_word() {
    for bad in [basic(9, 1, 20, 5), argument(1, 6, 1), vec![7; 32]] {
        let log = [
            header(3, 0, 1_000_000_000),
            basic(0, 1, 10, 5),
            bad,
            basic(1, 1, 30, 5),
        ]
        .concat();
        let trace = {
            import_any("xray", &log);
            records_of(&log)
        };
        assert_eq!((trace.0.len(), trace.1.len()), (1, 1));
        assert_eq!(trace.1[0].position, 64);
    }
}

#[test]
fn other_files_are_no_logs() {
    let sane = [header(3, 0, 1_000_000_000), basic(0, 1, 10, 5)].concat();
    assert!(sniff(&sane));
    for (version, kind, frequency) in [
        (0, 0, 1_000_000_000),
        (4, 0, 1_000_000_000),
        (6, 1, 1_000_000_000),
        (3, 2, 1_000_000_000),
        (3, 0, 0),
        (3, 0, u64::MAX),
    ] {
        let log = [header(version, kind, frequency), basic(0, 1, 10, 5)].concat();
        assert!(!sniff(&log), "{version} {kind} {frequency}");
    }
    assert!(!sniff(&header(3, 0, 1_000_000_000)), "a header alone");
    assert!(!sniff(&[header(3, 0, 1_000_000_000), vec![b'x'; 32]].concat()));
    assert!(!sniff(&[header(5, 1, 1_000_000_000), function(0, 1, 1)].concat()));
}

#[test]
fn times_are_exact_and_never_wrap() {
    assert_eq!(nanoseconds(u64::MAX, 1_000_000_000), Some(Timestamp(u64::MAX)));
    assert_eq!(nanoseconds(u64::MAX, 999_999_999), None);
    assert_eq!(nanoseconds(3, 2_000_000_000), Some(Timestamp(1)));
    assert_eq!(nanoseconds(7, 0), Some(Timestamp(7)));
}

proptest! {
    #[test]
    fn nested_calls_come_back_as_they_were(depths in proptest::collection::vec(0..6usize, 1..60)) {
        // A walk over call depths: each step leaves what is deeper and enters one function named after its depth.
        let mut log = header(3, 0, 1_000_000_000);
        let (mut open, mut time, mut expected) = (Vec::new(), 0, Vec::new());
        let mut leave = |open: &mut Vec<u64>, to: usize, time: &mut u64, log: &mut Vec<u8>| {
            while open.len() > to {
                *time += 1;
                let start = open.pop().unwrap();
                log.extend(basic(1, open.len() as i32 + 1, *time, 5));
                expected.push((start, *time, open.len() as u32));
            }
        };
        for depth in depths {
            let to = depth.min(open.len());
            leave(&mut open, to, &mut time, &mut log);
            time += 1;
            log.extend(basic(0, open.len() as i32 + 1, time, 5));
            open.push(time);
        }
        leave(&mut open, 0, &mut time, &mut log);
        let trace = crate::open_bytes(log).unwrap();
        let found: Vec<_> = rows(&trace).into_iter().map(|(_, start, end, depth, _, _)| (start, end, depth)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_behind_a_header_are_harmless(version in 1..=5u16, kind in 0..=1u16, body in proptest::collection::vec(any::<u8>(), 0..400)) {
        import_any("xray", &[header(version, kind, 1_000_000_000), body].concat());
    }
}
