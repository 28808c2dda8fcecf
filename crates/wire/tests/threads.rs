//! Both ends in threads of one process, under each policy. Runs under Miri with fewer records.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod numbered;

use std::{thread, time::Duration};

use tracesmith_wire::{Capacity, Config, Consumer, Policy, Producer, Pushed, frame::frame_bytes, ring};

const RECORDS: u64 = if cfg!(miri) { 60 } else { 200_000 };
const CAPACITY_BYTES: u64 = 2048;

fn new_ring(policy: Policy) -> (Producer, Consumer) {
    let capacity = Capacity::exactly(CAPACITY_BYTES).unwrap();
    ring::in_process(Config { capacity, policy })
}

/// Pushes all records, and returns how many found no room.
fn push_all(mut producer: Producer) -> u64 {
    let mut payload = Vec::new();
    let mut dropped = 0;
    for number in 0..RECORDS {
        numbered::write(number, &mut payload);
        if producer.push(numbered::tag(number), &payload) == Pushed::Dropped {
            dropped += 1;
        }
    }
    dropped
}

/// Reads until the producer closes, and returns the numbers read, which must rise.
fn read_all(consumer: &mut Consumer) -> Vec<u64> {
    let mut numbers: Vec<u64> = Vec::new();
    while !consumer.is_closed() {
        for record in consumer.read().unwrap() {
            let number = numbered::check(record.unwrap());
            assert!(numbers.last().is_none_or(|last| *last < number));
            numbers.push(number);
        }
        thread::yield_now();
    }
    numbers
}

#[test]
fn a_blocking_producer_loses_nothing() {
    let (producer, mut consumer) = new_ring(Policy::Block { limit: Duration::MAX });
    let pushing = thread::spawn(|| push_all(producer));
    let numbers = read_all(&mut consumer);
    assert_eq!(pushing.join().unwrap(), 0);
    assert!(numbers.iter().copied().eq(0..RECORDS));
    assert_eq!(consumer.losses().dropped_records, 0);
}

#[test]
fn what_is_read_and_what_is_dropped_is_everything() {
    let (producer, mut consumer) = new_ring(Policy::DropNewest);
    let pushing = thread::spawn(|| push_all(producer));
    let read = read_all(&mut consumer).len() as u64;
    let dropped = pushing.join().unwrap();
    assert_eq!(consumer.losses().dropped_records, dropped);
    assert_eq!(read + dropped, RECORDS);
}

#[test]
fn a_flight_recorder_read_while_it_runs_never_shows_a_torn_record() {
    let (producer, mut consumer) = new_ring(Policy::OverwriteOldest);
    let pushing = thread::spawn(|| push_all(producer));
    let numbers = read_all(&mut consumer);
    assert_eq!(pushing.join().unwrap(), 0);
    assert!(numbers.last().is_some_and(|last| *last == RECORDS - 1));
    let losses = consumer.losses();
    assert!(consumer.overtaken_bytes() <= losses.overwritten_bytes);
    let mut payload = Vec::new();
    let all: u64 = (0..=*numbers.last().unwrap())
        .map(|number| {
            numbered::write(number, &mut payload);
            frame_bytes(payload.len())
        })
        .sum();
    let read: u64 = numbers
        .iter()
        .map(|number| {
            numbered::write(*number, &mut payload);
            frame_bytes(payload.len())
        })
        .sum();
    assert_eq!(
        read + consumer.overtaken_bytes(),
        all,
        "every byte is read or stated"
    );
}

#[test]
fn a_sleeping_producer_is_woken_by_room() {
    let (mut producer, mut consumer) = new_ring(Policy::Block { limit: Duration::MAX });
    let tag = numbered::tag(0);
    let full = vec![1; CAPACITY_BYTES as usize - 8];
    assert_eq!(producer.push(tag, &full), Pushed::Written);
    let pushing = thread::spawn(move || producer.push(tag, b"after a sleep"));
    thread::sleep(Duration::from_millis(20));
    let mut records = 0;
    while records < 2 {
        thread::yield_now();
        records += consumer.read().unwrap().count();
    }
    assert_eq!(pushing.join().unwrap(), Pushed::Written);
}
