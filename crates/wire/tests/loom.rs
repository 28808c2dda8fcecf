//! The protocol under loom: every interleaving and every value that the memory
//! model lets a load return, over the code that ships.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tracesmith-wire --release --test loom`
//!
//! A model that cannot fail says nothing. Each of these weakenings was tried
//! and is reported by the model named behind it:
//!
//! - `Cursor::publish` stores the tail relaxed:
//!   `a_record_that_is_visible_is_whole`.
//! - `Consumer::take` stores the head relaxed, or `Cursor::look_for_room`
//!   loads it relaxed: `room_is_reused_only_after_it_was_read`.
//! - No release fence in `Cursor::overwrite`, or no acquire fence in
//!   `Consumer::snapshot`: `a_dump_during_overwriting_shows_no_torn_record`.
//! - `Consumer::snapshot` loads the oldest before the tail:
//!   `a_dump_overtaken_by_a_whole_ring_finds_its_place_again`.
//! - No full fence in `SleepWord::announce`, or none before the wake in
//!   `Consumer::take`: `a_producer_asleep_for_room_is_always_woken`.
//! - The goodbye is stored relaxed, or `Consumer::is_closed` loads the tail before
//!   it: `nothing_lies_behind_the_goodbye`.
#![cfg(loom)]

use std::{num::NonZeroU16, time::Duration};

use loom::thread;
use tracesmith_wire::{Capacity, Config, Consumer, Kind, Policy, Producer, Pushed, Tag, model, ring};

const TAG: Tag = Tag {
    kind: Kind::new(NonZeroU16::MIN),
    flags: 0,
};
const FOR_EVER: Policy = Policy::Block { limit: Duration::MAX };

/// Room for two records of one word.
fn small_ring(policy: Policy) -> (Producer, Consumer) {
    ring::in_process(Config {
        capacity: Capacity::MIN,
        policy,
    })
}

fn push(producer: &mut Producer, number: u64) -> Pushed {
    producer.push(TAG, &number.to_ne_bytes())
}

fn read(consumer: &mut Consumer) -> Vec<u64> {
    let word = |payload: &[u8]| u64::from_ne_bytes(payload.try_into().expect("one word"));
    let records = consumer.read().expect("an honest producer");
    records
        .map(|record| word(record.expect("a whole record").payload))
        .collect()
}

#[test]
fn a_record_that_is_visible_is_whole() {
    loom::model(|| {
        let (mut producer, mut consumer) = small_ring(Policy::DropNewest);
        let writer = thread::spawn(move || {
            assert_eq!(push(&mut producer, 1), Pushed::Written);
            assert_eq!(push(&mut producer, 2), Pushed::Written);
        });
        let mut seen = read(&mut consumer);
        seen.append(&mut read(&mut consumer));
        assert!([1, 2].starts_with(&seen));
        writer.join().expect("the writer does not panic");
        seen.append(&mut read(&mut consumer));
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn room_is_reused_only_after_it_was_read() {
    loom::model(|| {
        let (mut producer, mut consumer) = small_ring(Policy::DropNewest);
        let writer = thread::spawn(move || {
            let written = |number: &u64| push(&mut producer, *number) == Pushed::Written;
            let written: Vec<u64> = (1..=4).filter(written).collect();
            (written, producer.losses())
        });
        let mut seen = read(&mut consumer);
        seen.append(&mut read(&mut consumer));
        let (written, losses) = writer.join().expect("the writer does not panic");
        seen.append(&mut read(&mut consumer));
        assert_eq!(seen, written);
        assert_eq!(consumer.losses(), losses);
        assert_eq!(losses.dropped_records, 4 - written.len() as u64);
        assert_eq!(losses.dropped_bytes, losses.dropped_records * 16);
    });
}

#[test]
fn a_dump_during_overwriting_shows_no_torn_record() {
    loom::model(|| {
        let (mut producer, mut consumer) = small_ring(Policy::OverwriteOldest);
        // Both halves of a record say its number, so that a torn one shows.
        let push = |producer: &mut Producer, number: u64| {
            let tag = Tag {
                flags: number as u16,
                ..TAG
            };
            assert_eq!(producer.push(tag, &number.to_ne_bytes()), Pushed::Written);
        };
        push(&mut producer, 1);
        push(&mut producer, 2);
        let writer = thread::spawn(move || {
            push(&mut producer, 3);
            push(&mut producer, 4);
        });
        let mut last = 0;
        for record in consumer.read().expect("an honest producer") {
            let record = record.expect("a whole record");
            let number = u64::from(record.tag.flags);
            assert_eq!(record.payload, number.to_ne_bytes());
            assert!(number > last, "{number} after {last}");
            last = number;
        }
        writer.join().expect("the writer does not panic");
        // Now that nothing moves, the newest must be there unless it was read.
        let rest = read(&mut consumer);
        assert_eq!(rest.last().copied().unwrap_or(last), 4);
        let losses = consumer.losses();
        assert_eq!((losses.overwritten_records, losses.overwritten_bytes), (2, 32));
    });
}

#[test]
fn a_dump_overtaken_by_a_whole_ring_finds_its_place_again() {
    let mut builder = loom::model::Builder::new();
    // Without a bound this one takes hours.
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (mut producer, mut consumer) = small_ring(Policy::OverwriteOldest);
        let writer = thread::spawn(move || {
            // No two of these fit, so the oldest moves up to the tail.
            for number in [1_u64, 2] {
                let record = [number, number].map(u64::to_ne_bytes);
                assert_eq!(producer.push(TAG, record.as_flattened()), Pushed::Written);
            }
        });
        for _ in 0..2 {
            for record in consumer.read().expect("an honest producer") {
                let (words, _) = record.expect("a whole record").payload.as_chunks::<8>();
                assert_eq!(words[0], words[1]);
            }
        }
        writer.join().expect("the writer does not panic");
    });
}

#[test]
fn a_producer_asleep_for_room_is_always_woken() {
    model::never_end_sleep_by_time();
    loom::model(|| {
        let (mut producer, mut consumer) = small_ring(FOR_EVER);
        assert_eq!(push(&mut producer, 1), Pushed::Written);
        assert_eq!(push(&mut producer, 2), Pushed::Written);
        let writer = thread::spawn(move || {
            assert_eq!(push(&mut producer, 3), Pushed::Written);
        });
        assert_eq!(read(&mut consumer)[..2], [1, 2]);
        writer.join().expect("the writer does not panic");
    });
}

#[test]
fn a_producer_asleep_for_room_is_woken_when_the_consumer_goes() {
    model::never_end_sleep_by_time();
    loom::model(|| {
        let (mut producer, consumer) = small_ring(FOR_EVER);
        assert_eq!(push(&mut producer, 1), Pushed::Written);
        assert_eq!(push(&mut producer, 2), Pushed::Written);
        let writer = thread::spawn(move || {
            assert_eq!(push(&mut producer, 3), Pushed::Dropped);
            assert_eq!(producer.losses().dropped_records, 1);
        });
        drop(consumer);
        writer.join().expect("the writer does not panic");
    });
}

#[test]
fn nothing_lies_behind_the_goodbye() {
    loom::model(|| {
        let (mut producer, mut consumer) = small_ring(Policy::DropNewest);
        let writer = thread::spawn(move || {
            assert_eq!(push(&mut producer, 1), Pushed::Written);
        });
        if consumer.is_closed() {
            panic!("closed with a record unread");
        }
        let early = read(&mut consumer);
        if consumer.is_closed() {
            assert_eq!(early, [1]);
        }
        writer.join().expect("the writer does not panic");
    });
}
