//! A ring in shared memory, with a producer that does not keep to the rules and
//! memory that is not what it claims to be.
#![cfg(all(not(loom), not(miri)))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::{
    fs::File,
    num::NonZeroU16,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use tracesmith_wire::{
    Capacity, Config, Consumer, Error, Kind, LAYOUT_VERSION, Policy, Producer, Pushed, Tag,
};

const TAG: Tag = Tag {
    kind: Kind::new(NonZeroU16::MIN),
    flags: 0,
};
const CAPACITY: Capacity = Capacity::MIN;
const DROPPING: Config = Config {
    capacity: CAPACITY,
    policy: Policy::DropNewest,
};
const HEADER_BYTES: u64 = 4096;

fn write(memory: &OwnedFd, at: u64, bytes: &[u8]) {
    let file = File::from(memory.try_clone().unwrap());
    file.write_all_at(bytes, at).unwrap();
}

fn config(policy: Policy, bytes: u64) -> Config {
    Config {
        capacity: Capacity::exactly(bytes).unwrap(),
        policy,
    }
}

#[test]
fn records_cross_between_two_mappings() {
    let limit = Duration::from_secs(1);
    for policy in [
        Policy::DropNewest,
        Policy::Block { limit },
        Policy::OverwriteOldest,
    ] {
        let config = config(policy, 4096);
        let (mut consumer, memory) = Consumer::create(config).unwrap();
        assert_eq!(consumer.producer_process(), None);
        let mut producer = Producer::attach(&memory, config).unwrap();
        drop(memory);
        assert_eq!(consumer.producer_process(), Some(std::process::id()));
        for number in 0..100_u8 {
            assert_eq!(producer.push(TAG, &[number; 100]), Pushed::Written);
            let mut payloads = Vec::new();
            consumer
                .drain(|record| payloads.push(record.payload.to_vec()))
                .unwrap();
            assert_eq!(payloads, [[number; 100]]);
        }
        drop(producer);
        assert!(consumer.is_closed());
    }
}

#[test]
fn a_ring_has_one_producer() {
    let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
    let first = Producer::attach(&memory, DROPPING).unwrap();
    assert!(matches!(
        Producer::attach(&memory, DROPPING),
        Err(Error::AlreadyAttached)
    ));
    drop(first);
    assert!(matches!(
        Producer::attach(&memory, DROPPING),
        Err(Error::AlreadyAttached)
    ));
}

#[test]
fn memory_that_is_not_as_announced_is_refused() {
    let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
    for other in [
        config(Policy::DropNewest, 64),
        config(Policy::OverwriteOldest, 32),
    ] {
        assert!(matches!(
            Producer::attach(&memory, other),
            Err(Error::NotAsAnnounced { .. })
        ));
    }
}

#[test]
fn another_version_of_the_layout_is_a_clear_error() {
    let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
    write(&memory, 8, &(LAYOUT_VERSION + 1).to_le_bytes());
    let error = Producer::attach(&memory, DROPPING).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the other side uses layout version 2, and this build uses 1"
    );
}

#[test]
fn memory_that_is_no_ring_is_refused() {
    let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
    write(&memory, 0, b"what???!");
    assert!(matches!(
        Producer::attach(&memory, DROPPING),
        Err(Error::NotARing { .. })
    ));
}

#[test]
fn memory_that_could_be_cut_is_refused() {
    let bytes = HEADER_BYTES + CAPACITY.bytes();
    let memory = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, bytes).unwrap();
    assert!(matches!(
        Producer::attach(&memory, DROPPING),
        Err(Error::NotAsAnnounced { .. })
    ));
    fcntl_add_seals(&memory, SealFlags::GROW | SealFlags::SEAL).unwrap();
    assert!(matches!(
        Producer::attach(&memory, DROPPING),
        Err(Error::NotAsAnnounced { .. })
    ));
}

#[test]
fn the_memory_of_a_ring_cannot_be_cut() {
    let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
    assert!(ftruncate(&memory, 0).is_err());
    assert!(ftruncate(&memory, 1 << 20).is_err());
}

#[test]
fn a_file_that_is_no_memory_is_refused() {
    let file = tempfile::tempfile().unwrap();
    assert!(matches!(
        Producer::attach(&file, DROPPING),
        Err(Error::System { .. })
    ));
}

#[test]
fn a_tail_from_nowhere_is_an_error_that_stays() {
    for tail in [4, 40, 1 << 40, u64::MAX, u64::MAX - 7] {
        let (mut consumer, memory) = Consumer::create(DROPPING).unwrap();
        write(&memory, 128, &tail.to_le_bytes());
        for _ in 0..2 {
            assert!(matches!(consumer.read(), Err(Error::Corrupt { position: 0, .. })));
        }
        assert!(!consumer.is_closed());
        assert_eq!(consumer.losses().dropped_records, 0);
    }
}

#[test]
fn records_before_a_broken_one_are_kept() {
    let (mut consumer, memory) = Consumer::create(DROPPING).unwrap();
    let mut producer = Producer::attach(&memory, DROPPING).unwrap();
    assert_eq!(producer.push(TAG, b"good"), Pushed::Written);
    assert_eq!(producer.push(TAG, b"bad"), Pushed::Written);
    write(&memory, HEADER_BYTES + 16, &1000_u32.to_le_bytes());
    let mut records = consumer.read().unwrap();
    assert_eq!(records.next().unwrap().unwrap().payload, b"good");
    assert!(matches!(
        records.next(),
        Some(Err(Error::Corrupt { position: 16, .. }))
    ));
    assert!(records.next().is_none());
    assert!(matches!(
        consumer.read(),
        Err(Error::Corrupt { position: 16, .. })
    ));
}

#[test]
fn a_head_from_nowhere_makes_no_room() {
    for head in [8, 1 << 40, u64::MAX] {
        let (_consumer, memory) = Consumer::create(DROPPING).unwrap();
        let mut producer = Producer::attach(&memory, DROPPING).unwrap();
        write(&memory, 384, &head.to_le_bytes());
        let written = (0..10)
            .filter(|_| producer.push(TAG, &[1; 24]) == Pushed::Written)
            .count();
        // A head that looks right is believed: it frees room, no more.
        assert!(written <= 2, "{written} records with the head at {head}");
    }
}

#[test]
fn a_scribbled_flight_recorder_goes_on_writing() {
    let config = config(Policy::OverwriteOldest, 64);
    let (_consumer, memory) = Consumer::create(config).unwrap();
    let mut producer = Producer::attach(&memory, config).unwrap();
    for round in 0..20_u8 {
        write(&memory, HEADER_BYTES, &[round.wrapping_mul(97); 64]);
        assert_eq!(producer.push(TAG, &[round; 20]), Pushed::Written);
    }
}

#[test]
#[allow(unsafe_code, reason = "only between fork and exec can a fork be tested")]
fn in_the_child_of_a_fork_a_producer_does_nothing() {
    use std::{io, os::unix::process::CommandExt, process::Command};

    let (mut consumer, memory) = Consumer::create(config(Policy::DropNewest, 64)).unwrap();
    let producer = Producer::attach(&memory, config(Policy::DropNewest, 64)).unwrap();
    let producer = Arc::new(Mutex::new(Some(producer)));
    let childs = Arc::clone(&producer);
    let mut command = Command::new("/bin/true");
    let in_child = move || {
        let Ok(mut guard) = childs.try_lock() else {
            return Err(io::ErrorKind::Other.into());
        };
        let Some(mut producer) = guard.take() else {
            return Err(io::ErrorKind::Other.into());
        };
        let dropped = (0..10).all(|_| producer.push(TAG, b"child") == Pushed::Dropped);
        drop(producer);
        if dropped {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    };
    // SAFETY: the closure touches only memory of its own, allocates nothing and
    // takes one lock that no other thread holds.
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().unwrap().success());

    assert!(!consumer.is_closed(), "the child's goodbye is not the parent's");
    assert_eq!(consumer.losses().dropped_records, 0);
    let mut guard = producer.lock().unwrap();
    assert_eq!(guard.as_mut().unwrap().push(TAG, b"parent"), Pushed::Written);
    let mut payloads = Vec::new();
    consumer
        .drain(|record| payloads.push(record.payload.to_vec()))
        .unwrap();
    assert_eq!(payloads, [b"parent"]);
}

/// Any words where the producer writes, any bytes in the data area, any policy:
/// the consumer reads something or says that it cannot, and always returns.
fn garbage() -> impl Strategy<Value = (Policy, Vec<(u64, u64)>, Vec<u8>)> {
    let policy = prop_oneof![Just(Policy::DropNewest), Just(Policy::OverwriteOldest)];
    // Positions near each other are what a consumer could take for real.
    let position = prop_oneof![0..40_u64, (0..20_u64).prop_map(|word| word * 8), any::<u64>()];
    let word = prop_oneof![
        Just(128_u64),
        Just(136),
        Just(256),
        Just(384),
        Just(512),
        Just(772)
    ];
    let words = prop::collection::vec((word, position), 0..6);
    let plausible = prop_oneof![3 => 0..3_u8, 1 => any::<u8>()];
    (policy, words, prop::collection::vec(plausible, 64))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_in_shared_memory_is_an_error_and_nothing_worse(
        rounds in prop::collection::vec(garbage(), 1..5),
    ) {
        let (mut consumer, memory) = Consumer::create(config(rounds[0].0, 64)).unwrap();
        for (_, words, data) in rounds {
            for (at, value) in words {
                write(&memory, at, &value.to_le_bytes());
            }
            write(&memory, HEADER_BYTES, &data);
            let mut bytes = 0;
            if consumer.drain(|record| bytes += record.payload.len() + 8).is_ok() {
                prop_assert!(bytes <= 128);
            }
            consumer.is_closed();
            consumer.losses();
        }
    }
}
