//! Perfetto files with packets of several machines: each machine has its own clocks (issue 26, item 24).

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use tracesmith_format::{ClockId, Timestamp};
use tracesmith_trace::{EventKind, Query, Trace};

const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;
const SECOND: u64 = 1_000_000_000;
/// When the machine that recorded was at 100 s since its start, by the wall clock.
const WALL: u64 = 1_700_000_000 * SECOND;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn message(field: u64, parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    [varint(field << 3 | 2), varint(content.len() as u64), content].concat()
}

fn packet(machine: u64, parts: &[Vec<u8>]) -> Vec<u8> {
    let sequence = number(10, 1);
    let machine = if machine == 0 {
        Vec::new()
    } else {
        number(98, machine)
    };
    message(1, &[parts.concat(), sequence, machine])
}

fn clocks(readings: &[(u64, u64)]) -> Vec<Vec<u8>> {
    let clock = |(id, time): &(u64, u64)| message(1, &[number(1, *id), number(2, *time)]);
    readings.iter().map(clock).collect()
}

/// A slice of a second on a track of its own, by the clock since the machine's start.
fn slice(machine: u64, name: &str, at: u64) -> Vec<u8> {
    let track = 70 + machine;
    let text = |field, text: &str| message(field, &[text.as_bytes().to_vec()]);
    [
        packet(machine, &[message(60, &[number(1, track), text(2, name)])]),
        packet(
            machine,
            &[
                number(8, at),
                message(11, &[number(9, 1), number(11, track), text(23, name)]),
            ],
        ),
        packet(
            machine,
            &[
                number(8, at + SECOND),
                message(11, &[number(9, 2), number(11, track)]),
            ],
        ),
    ]
    .concat()
}

/// The machine that recorded started 100 s before machine 7. Both record a slice at the same moment.
fn two_machines(sync: &[Vec<u8>], wall_clocks: bool) -> Vec<u8> {
    let snapshot = |machine, boottime: u64| {
        let mut readings = vec![(BOOTTIME, boottime), (3, boottime)];
        if wall_clocks {
            readings.push((REALTIME, WALL));
        }
        packet(machine, &[message(6, &clocks(&readings))])
    };
    [
        snapshot(0, 200 * SECOND),
        snapshot(7, 100 * SECOND),
        sync.concat(),
        slice(0, "here", 210 * SECOND),
        slice(7, "there", 110 * SECOND),
    ]
    .concat()
}

fn starts(bytes: Vec<u8>) -> (Trace, Vec<(String, u64)>) {
    let trace = tracesmith_interop::open_bytes(bytes).unwrap();
    let query = Query {
        kinds: Some(vec![EventKind::Marker, EventKind::HostCall]),
        ..Query::default()
    };
    let events: Vec<_> = trace
        .events(&query)
        .map(|event| (trace.event_name(&event).to_owned(), event.start.0))
        .collect();
    (trace, events)
}

/// The clocks since the start of each machine, in the order of the machines.
fn boottime(trace: &Trace) -> Vec<ClockId> {
    let mut boot: Vec<_> = trace
        .clocks
        .iter()
        .filter(|clock| trace.string(clock.name).contains("boottime"))
        .collect();
    boot.sort_by_key(|clock| clock.host);
    boot.iter().map(|clock| clock.id).collect()
}

#[test]
fn machines_without_anything_in_common_keep_their_own_clocks() {
    let (trace, _) = starts(two_machines(&[], false));
    let boot: Vec<_> = trace
        .clocks
        .iter()
        .filter(|clock| trace.string(clock.name).contains("boottime"))
        .collect();
    assert_eq!(boot.len(), 2, "one for each machine");
    assert_ne!(boot[0].host, boot[1].host);
    assert!(!trace.clock_map.is_linked(boot[1].id), "nothing joins them");
}

#[test]
fn machines_are_joined_by_their_wall_clocks() {
    let (trace, events) = starts(two_machines(&[], true));
    assert_eq!(
        events,
        [
            ("here".to_owned(), 210 * SECOND),
            ("there".to_owned(), 210 * SECOND)
        ]
    );
    let health = format!("{:?}", trace.health());
    assert!(health.contains("joined by their wall clocks"), "{health}");
}

/// Readings that are repeated say nothing new, yet those of another machine do.
#[test]
fn machines_that_show_the_same_times_are_each_linked_to_their_wall_clocks() {
    let snapshot = |machine| {
        let readings = [(BOOTTIME, 200 * SECOND), (REALTIME, WALL)];
        packet(machine, &[message(6, &clocks(&readings))])
    };
    let (trace, events) = starts(
        [
            snapshot(0),
            snapshot(7),
            slice(0, "here", 210 * SECOND),
            slice(7, "there", 210 * SECOND),
        ]
        .concat(),
    );
    assert_eq!(events.len(), 2);
    let boot = boottime(&trace);
    assert_eq!(boot.len(), 2);
    assert!(boot.iter().all(|clock| trace.clock_map.is_linked(*clock)));
}

#[test]
fn machines_are_joined_by_the_readings_that_they_exchanged() {
    // The wall clocks are the same, but machine 7 turns out to be 3 s ahead of what they say.
    let round = |client: u64, host: u64| {
        message(
            1,
            &[
                message(2, &clocks(&[(BOOTTIME, client)])),
                message(3, &clocks(&[(BOOTTIME, host)])),
            ],
        )
    };
    let sync = packet(
        7,
        &[message(
            107,
            &[
                round(103 * SECOND, 200 * SECOND),
                round(104 * SECOND + 2_000, 201 * SECOND),
            ],
        )],
    );
    let (trace, events) = starts(two_machines(&[sync], true));
    assert_eq!(
        events,
        [
            ("there".to_owned(), 207 * SECOND - 1_000),
            ("here".to_owned(), 210 * SECOND)
        ]
    );
    let health = format!("{:?}", trace.health());
    assert!(!health.contains("wall clocks"), "{health}");
    // The rounds are 2 us apart.
    let there = boottime(&trace)[1];
    let at = trace.clock_map.convert(there, Timestamp(110 * SECOND));
    assert_eq!((at.time.0, at.uncertainty), (207 * SECOND - 1_000, 1_000));
}
