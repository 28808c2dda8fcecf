//! One ring, both ends in one thread: what each operation promises.
//!
//! Runs under Miri, so no shared memory here.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::{num::NonZeroU16, time::Duration};

use tracesmith_wire::{
    Capacity, Config, Consumer, Kind, Policy, Producer, Pushed, Tag, frame::frame_bytes, ring,
};

const TAG: Tag = Tag {
    kind: Kind::new(NonZeroU16::MIN),
    flags: 0x8001,
};

fn new_ring(capacity_bytes: u64, policy: Policy) -> (Producer, Consumer) {
    let capacity = Capacity::exactly(capacity_bytes).unwrap();
    ring::in_process(Config { capacity, policy })
}

fn push(producer: &mut Producer, payload: &[u8]) {
    assert_eq!(producer.push(TAG, payload), Pushed::Written);
}

fn read_all(consumer: &mut Consumer) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    consumer
        .drain(|record| payloads.push(record.payload.to_vec()))
        .unwrap();
    payloads
}

#[test]
fn records_arrive_in_order_with_their_tags() {
    let (mut producer, mut consumer) = new_ring(1024, Policy::DropNewest);
    let payloads = [&b""[..], b"a", b"12345678", b"123456789", &[7; 100]];
    for payload in payloads {
        push(&mut producer, payload);
    }
    let mut expected = payloads.iter();
    for record in consumer.read().unwrap() {
        let record = record.unwrap();
        assert_eq!(record.tag, TAG);
        assert_eq!(record.payload, *expected.next().unwrap());
    }
    assert_eq!(expected.next(), None);
    assert!(consumer.read().unwrap().next().is_none());
}

#[test]
fn a_drain_after_many_rounds_hands_over_all_that_stands() {
    // More than one read takes, several times around; Miri is slow.
    let capacity_bytes = 1 << 15;
    let count = if cfg!(miri) { 4_500 } else { 100_000u64 };
    let (mut producer, mut consumer) = new_ring(capacity_bytes, Policy::OverwriteOldest);
    for number in 0..count {
        push(&mut producer, &number.to_le_bytes());
    }
    let numbers: Vec<_> = read_all(&mut consumer);
    let standing = capacity_bytes / frame_bytes(8);
    let expected = (count - standing..count).map(|number| number.to_le_bytes().to_vec());
    assert!(numbers.into_iter().eq(expected));
}

#[test]
fn records_of_every_length_wrap_around_the_end() {
    let (mut producer, mut consumer) = new_ring(64, Policy::DropNewest);
    for round in 0..200_usize {
        let payload: Vec<u8> = (0..round % 57).map(|byte| (byte + round) as u8).collect();
        push(&mut producer, &payload);
        assert_eq!(read_all(&mut consumer), [payload]);
    }
}

#[test]
fn a_full_ring_drops_the_newest_and_counts_it() {
    let (mut producer, mut consumer) = new_ring(64, Policy::DropNewest);
    for number in 0..4 {
        push(&mut producer, &[number; 8]);
    }
    assert_eq!(producer.push(TAG, b"too much"), Pushed::Dropped);
    assert_eq!(producer.push(TAG, b""), Pushed::Dropped);
    let losses = consumer.losses();
    assert_eq!(losses, producer.losses());
    assert_eq!((losses.dropped_records, losses.dropped_bytes), (2, 24));
    assert_eq!(read_all(&mut consumer), [[0; 8], [1; 8], [2; 8], [3; 8]]);
    push(&mut producer, b"room again");
    assert_eq!(consumer.losses().dropped_records, 2);
}

#[test]
fn a_record_larger_than_the_ring_is_dropped_under_every_policy() {
    let limit = Duration::MAX;
    for policy in [
        Policy::DropNewest,
        Policy::Block { limit },
        Policy::OverwriteOldest,
    ] {
        let (mut producer, mut consumer) = new_ring(64, policy);
        assert_eq!(producer.push(TAG, &[1; 57]), Pushed::Dropped);
        push(&mut producer, &[2; 56]);
        assert_eq!(read_all(&mut consumer), [[2; 56]]);
        assert_eq!(consumer.losses().dropped_records, 1);
        assert_eq!(consumer.losses().dropped_bytes, frame_bytes(57));
    }
}

#[test]
fn a_flight_recorder_keeps_the_last_records_and_counts_the_others() {
    let (mut producer, mut consumer) = new_ring(64, Policy::OverwriteOldest);
    for number in 0..10 {
        push(&mut producer, &[number; 8]);
    }
    assert_eq!(read_all(&mut consumer), [[6; 8], [7; 8], [8; 8], [9; 8]]);
    let losses = consumer.losses();
    assert_eq!(losses, producer.losses());
    assert_eq!((losses.overwritten_records, losses.overwritten_bytes), (6, 96));
    assert_eq!(losses.dropped_records, 0);
    assert_eq!(consumer.overtaken_bytes(), 96);
}

#[test]
fn a_second_dump_goes_on_where_the_first_ended() {
    let (mut producer, mut consumer) = new_ring(64, Policy::OverwriteOldest);
    push(&mut producer, &[1; 8]);
    assert_eq!(read_all(&mut consumer), [[1; 8]]);
    assert!(read_all(&mut consumer).is_empty());
    push(&mut producer, &[2; 8]);
    assert_eq!(read_all(&mut consumer), [[2; 8]]);
    for number in 3..9 {
        push(&mut producer, &[number; 8]);
    }
    assert_eq!(read_all(&mut consumer), [[5; 8], [6; 8], [7; 8], [8; 8]]);
    assert_eq!(consumer.overtaken_bytes(), 32);
}

#[test]
fn a_flight_recorder_drops_as_many_old_records_as_a_large_one_needs() {
    let (mut producer, mut consumer) = new_ring(64, Policy::OverwriteOldest);
    for number in 0..4 {
        push(&mut producer, &[number; 8]);
    }
    push(&mut producer, &[9; 20]);
    assert_eq!(read_all(&mut consumer), [vec![2; 8], vec![3; 8], vec![9; 20]]);
    push(&mut producer, &[4; 24]);
    push(&mut producer, &[5; 24]);
    assert_eq!(read_all(&mut consumer), [[4; 24], [5; 24]]);
}

#[test]
fn records_that_were_left_are_in_the_next_read() {
    let (mut producer, mut consumer) = new_ring(128, Policy::DropNewest);
    for number in 0..3 {
        push(&mut producer, &[number; 8]);
    }
    assert_eq!(consumer.read().unwrap().next().unwrap().unwrap().payload, [0; 8]);
    push(&mut producer, &[3; 8]);
    assert_eq!(read_all(&mut consumer), [[1; 8], [2; 8], [3; 8]]);
}

#[test]
fn a_record_larger_than_the_read_buffer_arrives_whole() {
    let (mut producer, mut consumer) = new_ring(1 << 16, Policy::DropNewest);
    let large: Vec<u8> = (0..40_000).map(|byte| byte as u8).collect();
    push(&mut producer, b"before");
    push(&mut producer, &large);
    push(&mut producer, b"after");
    assert_eq!(read_all(&mut consumer), [&b"before"[..], &large, b"after"]);
}

#[test]
fn the_consumer_knows_when_nothing_will_follow() {
    let (mut producer, mut consumer) = new_ring(64, Policy::DropNewest);
    assert!(!consumer.is_closed());
    push(&mut producer, b"last");
    drop(producer);
    assert!(!consumer.is_closed(), "a record is unread");
    assert_eq!(read_all(&mut consumer), [b"last"]);
    assert!(consumer.is_closed());
}

#[test]
fn the_producer_knows_when_nobody_reads() {
    let (producer, consumer) = new_ring(64, Policy::DropNewest);
    assert!(!producer.is_abandoned());
    drop(consumer);
    assert!(producer.is_abandoned());
}

#[test]
fn a_blocked_push_is_dropped_when_its_time_is_up() {
    let limit = Duration::from_millis(20);
    let (mut producer, mut consumer) = new_ring(32, Policy::Block { limit });
    push(&mut producer, &[1; 24]);
    let start = std::time::Instant::now();
    assert_eq!(producer.push(TAG, &[2; 24]), Pushed::Dropped);
    assert!(start.elapsed() >= limit);
    assert_eq!(consumer.losses().dropped_records, 1);
    assert_eq!(read_all(&mut consumer), [[1; 24]]);
    push(&mut producer, &[3; 24]);
}

#[test]
fn a_consumer_that_stands_still_is_waited_for_once() {
    let limit = Duration::from_millis(200);
    let (mut producer, consumer) = new_ring(32, Policy::Block { limit });
    push(&mut producer, &[1; 24]);
    assert_eq!(producer.push(TAG, &[2; 24]), Pushed::Dropped);
    let start = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(producer.push(TAG, &[2; 24]), Pushed::Dropped);
    }
    assert!(start.elapsed() < limit);
    assert_eq!(consumer.losses().dropped_records, 101);
}

#[test]
fn a_blocked_push_gives_up_when_the_consumer_has_gone() {
    let (mut producer, consumer) = new_ring(32, Policy::Block { limit: Duration::MAX });
    push(&mut producer, &[1; 24]);
    drop(consumer);
    assert_eq!(producer.push(TAG, &[2; 24]), Pushed::Dropped);
}
