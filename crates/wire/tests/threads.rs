//! Both ends in threads of one process, under each policy and both kinds of
//! sleep. Runs under Miri with fewer records.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod numbered;

use std::{thread, time::Duration};

use tracesmith_wire::{
    BatchSize, Capacity, Config, Consumer, Policy, Producer, Pushed, Waited, frame::frame_bytes, ring,
};

const RECORDS: u64 = if cfg!(miri) { 60 } else { 200_000 };
const CAPACITY_BYTES: u64 = 2048;

fn new_ring(policy: Policy) -> (Producer, Consumer) {
    let capacity = Capacity::exactly(CAPACITY_BYTES).unwrap();
    ring::in_process(Config { capacity, policy })
}

/// Pushes all records, every third time as a batch of several, and returns how
/// many found no room.
fn push_all(mut producer: Producer) -> u64 {
    let (mut number, mut dropped) = (0, 0);
    let mut payload = Vec::new();
    while number < RECORDS {
        let count = if number % 3 == 0 { 1 + number % 4 } else { 0 };
        if count == 0 {
            numbered::write(number, &mut payload);
            if producer.push(numbered::tag(number), &payload) == Pushed::Dropped {
                dropped += 1;
            }
            number += 1;
            continue;
        }
        let mut size = BatchSize::EMPTY;
        for number in number..number + count {
            numbered::write(number, &mut payload);
            size = size.and(payload.len());
        }
        match producer.reserve(size) {
            None => dropped += count,
            Some(mut batch) => {
                for number in number..number + count {
                    numbered::write(number, &mut payload);
                    assert_eq!(batch.push(numbered::tag(number), &payload), Pushed::Written);
                }
                batch.commit();
            }
        }
        number += count;
    }
    dropped
}

/// Reads until the producer closes, sleeping when there is nothing, and
/// returns the numbers read, which must rise.
fn read_all(consumer: &mut Consumer) -> Vec<u64> {
    let mut numbers = Vec::new();
    while consumer.wait(Duration::MAX) == Waited::Ready {
        for record in consumer.read().unwrap() {
            let number = numbered::check(record.unwrap());
            assert!(numbers.last().is_none_or(|last| *last < number));
            numbers.push(number);
        }
    }
    numbers
}

#[test]
fn a_blocking_producer_loses_nothing() {
    let (producer, mut consumer) = new_ring(Policy::Block { limit: Duration::MAX });
    let pushing = thread::spawn(|| push_all(producer));
    let numbers = read_all(&mut consumer);
    assert_eq!(pushing.join().unwrap(), 0);
    // The last batch may go a little beyond.
    assert!(numbers.len() as u64 >= RECORDS);
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(consumer.losses().dropped_records, 0);
}

#[test]
fn what_is_read_and_what_is_dropped_is_everything() {
    let (producer, mut consumer) = new_ring(Policy::DropNewest);
    let pushing = thread::spawn(|| push_all(producer));
    let read = read_all(&mut consumer).len() as u64;
    let dropped = pushing.join().unwrap();
    assert_eq!(consumer.losses().dropped_records, dropped);
    assert!((RECORDS..RECORDS + 4).contains(&(read + dropped)));
}

#[test]
fn a_flight_recorder_read_while_it_runs_never_shows_a_torn_record() {
    let (producer, mut consumer) = new_ring(Policy::OverwriteOldest);
    let pushing = thread::spawn(|| push_all(producer));
    let numbers = read_all(&mut consumer);
    assert_eq!(pushing.join().unwrap(), 0);
    assert!(numbers.last().is_some_and(|last| *last >= RECORDS - 1));
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
        assert_eq!(consumer.wait(Duration::MAX), Waited::Ready);
        records += consumer.read().unwrap().count();
    }
    assert_eq!(pushing.join().unwrap(), Pushed::Written);
}

#[test]
fn a_sleeping_consumer_is_woken_by_a_record_and_by_the_goodbye() {
    let (mut producer, mut consumer) = new_ring(Policy::DropNewest);
    let waiting = thread::spawn(move || {
        let first = consumer.wait(Duration::MAX);
        assert_eq!(consumer.read().unwrap().count(), 1);
        (first, consumer.wait(Duration::MAX))
    });
    thread::sleep(Duration::from_millis(20));
    assert_eq!(producer.push(numbered::tag(0), b"good morning"), Pushed::Written);
    thread::sleep(Duration::from_millis(20));
    drop(producer);
    assert_eq!(waiting.join().unwrap(), (Waited::Ready, Waited::Closed));
}
