//! Any sequence of operations against a queue that is plainly right. Runs under
//! Miri with fewer cases.
#![cfg(not(loom))]

use std::{collections::VecDeque, num::NonZeroU16};

use proptest::prelude::*;
use tracesmith_wire::{
    Capacity, Config, Kind, Losses, Policy, Pushed, Tag,
    frame::{Parsed, frame_bytes, parse},
    ring,
};

const CAPACITY_BYTES: u64 = 128;

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    Read { records: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let payload = || prop::collection::vec(any::<u8>(), 0..70);
    let step = prop_oneof![
        4 => payload().prop_map(Step::Push),
        3 => (0..6_usize).prop_map(|records| Step::Read { records }),
    ];
    prop::collection::vec(step, 0..if cfg!(miri) { 20 } else { 200 })
}

fn tag(payload: &[u8]) -> Tag {
    let kind = NonZeroU16::new(payload.len() as u16 + 1).expect("above zero");
    Tag {
        kind: Kind::new(kind),
        flags: payload.first().copied().map_or(9, u16::from),
    }
}

/// A ring as one would explain it: records between positions.
#[derive(Default)]
struct Model {
    policy: Policy,
    /// What was pushed and the caller has not been handed.
    unread: VecDeque<Entry>,
    /// Overwriting: what stands in the ring.
    standing: VecDeque<Entry>,
    /// Where the oldest that stands begins, what is copied out, what is pushed.
    oldest: u64,
    head: u64,
    tail: u64,
    losses: Losses,
}

#[derive(Clone)]
struct Entry {
    start: u64,
    end: u64,
    payload: Vec<u8>,
}

impl Model {
    /// Whether so many records of so many bytes in all find room.
    fn make_room(&mut self, records: usize, wanted: u64) -> bool {
        let fits = match self.policy {
            Policy::OverwriteOldest => wanted <= CAPACITY_BYTES,
            _ => self.tail - self.head + wanted <= CAPACITY_BYTES,
        };
        if !fits {
            self.losses.dropped_records += records as u64;
            self.losses.dropped_bytes += wanted;
            return false;
        }
        while self.policy == Policy::OverwriteOldest && self.tail - self.oldest + wanted > CAPACITY_BYTES {
            let gone = self.standing.pop_front().expect("an empty ring has room");
            self.oldest = gone.end;
            self.losses.overwritten_records += 1;
            self.losses.overwritten_bytes = gone.end;
        }
        true
    }

    fn push(&mut self, payload: Vec<u8>) {
        let (start, end) = (self.tail, self.tail + frame_bytes(payload.len()));
        let entry = Entry { start, end, payload };
        self.standing.push_back(entry.clone());
        self.unread.push_back(entry);
        self.tail = end;
    }

    /// Copies out what the consumer's buffer, as large as the ring, has space
    /// for, and returns how many whole records that makes.
    fn read(&mut self) -> usize {
        if self.oldest > self.head {
            let (head, oldest) = (self.head, self.oldest);
            self.unread
                .retain(|entry| entry.end <= head || entry.start >= oldest);
            self.head = oldest;
        }
        let copied = self.unread.iter().filter(|entry| entry.start < self.head);
        let buffered: u64 = copied.map(|entry| entry.end.min(self.head) - entry.start).sum();
        self.head += (CAPACITY_BYTES - buffered).min(self.tail - self.head);
        self.unread
            .iter()
            .take_while(|entry| entry.end <= self.head)
            .count()
    }
}

fn run(policy: Policy, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let capacity = Capacity::exactly(CAPACITY_BYTES).expect("a power of two");
    let (mut producer, mut consumer) = ring::in_process(Config { capacity, policy });
    let mut model = Model {
        policy,
        ..Model::default()
    };
    for step in steps {
        match step {
            Step::Push(payload) => {
                let written = model.make_room(1, frame_bytes(payload.len()));
                let pushed = producer.push(tag(&payload), &payload);
                prop_assert_eq!(pushed == Pushed::Written, written);
                if written {
                    model.push(payload);
                }
            }
            Step::Read { records } => {
                let whole = model.read();
                let mut read = consumer.read().expect("an honest producer");
                for _ in 0..whole.min(records) {
                    let record = read.next().expect("a whole record");
                    let record = record.expect("an honest producer");
                    let expected = model.unread.pop_front().expect("counted above").payload;
                    prop_assert_eq!(record.payload, &expected[..]);
                    prop_assert_eq!(record.tag, tag(&expected));
                }
                if records >= whole {
                    prop_assert!(read.next().is_none());
                }
            }
        }
        prop_assert_eq!(consumer.losses(), model.losses);
        prop_assert_eq!(producer.losses(), model.losses);
    }
    Ok(())
}

fn config() -> ProptestConfig {
    // No file of past failures: Miri has no file system.
    ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_ring_that_drops_is_a_queue(steps in steps()) {
        run(Policy::DropNewest, steps)?;
    }

    #[test]
    fn a_ring_that_overwrites_is_a_queue_that_forgets(steps in steps()) {
        run(Policy::OverwriteOldest, steps)?;
    }

    #[test]
    fn any_bytes_are_a_record_a_piece_of_one_or_a_fault(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        capacity in 0..200_u64,
    ) {
        match parse(&bytes, capacity) {
            Ok(Parsed::Record { record, frame_bytes }) => {
                prop_assert!(record.payload.len() + 8 <= frame_bytes);
                prop_assert!(frame_bytes <= bytes.len());
                prop_assert!(frame_bytes as u64 <= capacity);
            }
            Ok(Parsed::Partial { frame_bytes: Some(whole) }) => prop_assert!(whole > bytes.len()),
            Ok(Parsed::Partial { frame_bytes: None }) => prop_assert!(bytes.len() < 8),
            Err(_) => {}
        }
    }
}
