//! The ring of `tracesmith-wire` against rtrb, a wait-free queue for two threads
//! of one process, in the same run.
//!
//! rtrb moves values of one type within one process; ours moves framed records
//! of any length through memory that another process may hold, copies them out
//! before it looks at them and checks every frame. What that costs is the ratio
//! printed here, from runs of both in turn.
//! `cargo bench -p tracesmith-bench --bench ring`
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use std::{
    hint,
    num::NonZeroU16,
    sync::atomic::{Ordering, fence},
    thread,
    time::{Duration, Instant},
};

use tracesmith_wire::{Capacity, Config, Consumer, Kind, Policy, Producer, Pushed, Tag, ring};

const RECORD_BYTES: usize = 64;
const DISTINCT: usize = 64;
const RUNS: usize = 31;
const TAG: Tag = Tag {
    kind: Kind::new(NonZeroU16::MIN),
    flags: 0,
};
/// Both queues hold about as many records.
const SLOTS: usize = 1 << 14;
const CAPACITY_BYTES: u64 = SLOTS as u64 * 64;

type Item = [u64; RECORD_BYTES / 8];

fn main() {
    println!("nanoseconds for each record of 64 bytes; ratio: ours over rtrb's");
    println!("{:28} {:^23}  {:^23}", "", "median of runs", "best run");
    println!(
        "{:28} {:>7} {:>7} {:>7}  {:>7} {:>7} {:>7}  ratio asked for",
        "", "ours", "rtrb", "ratio", "ours", "rtrb", "ratio"
    );
    report("push, one thread", "2", || (push_ours(100), push_rtrb(100)));
    report("push and pop, one thread", "2", || {
        (single_ours(1_000_000), single_rtrb(1_000_000))
    });
    report("one by one, two threads", "none", || {
        (paired_ours(500_000), paired_rtrb(500_000))
    });
    report("one at a time, then a fence", "1", || {
        (seldom_ours(20_000), seldom_rtrb(20_000))
    });
}

/// Runs both sides in turn and prints what they took. Where other programs run
/// beside it, the best runs are those that were disturbed least.
fn report(name: &str, asked: &str, mut run: impl FnMut() -> (f64, f64)) {
    // The first run pays for page faults and cold caches.
    run();
    let (ours, theirs): (Vec<f64>, Vec<f64>) = (0..RUNS).map(|_| run()).unzip();
    let (ours, theirs) = (Times::new(ours), Times::new(theirs));
    println!(
        "{name:28} {:>7.2} {:>7.2} {:>7.2}  {:>7.2} {:>7.2} {:>7.2}  {asked}",
        ours.median,
        theirs.median,
        ours.median / theirs.median,
        ours.best,
        theirs.best,
        ours.best / theirs.best,
    );
}

/// What several runs took.
struct Times {
    median: f64,
    best: f64,
}

impl Times {
    fn new(mut nanos: Vec<f64>) -> Self {
        nanos.sort_by(f64::total_cmp);
        Self {
            median: nanos[nanos.len() / 2],
            best: nanos[0],
        }
    }
}

fn nanos_each(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

fn our_ring() -> (Producer, Consumer) {
    let capacity = Capacity::at_least(CAPACITY_BYTES);
    ring::in_process(Config {
        capacity,
        policy: Policy::DropNewest,
    })
}

/// The records that are sent, over and over: they lie in memory, as a caller's
/// do. `black_box` keeps the compiler from building them in the queue's slots.
fn items() -> Vec<Item> {
    hint::black_box(
        (0..DISTINCT as u64)
            .map(|number| [number; RECORD_BYTES / 8])
            .collect(),
    )
}

/// The same records as bytes, which is what a caller of ours has.
fn payloads() -> Vec<[u8; RECORD_BYTES]> {
    let bytes = |item: Item| {
        let mut bytes = [0; RECORD_BYTES];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(item) {
            *to = word.to_le_bytes();
        }
        bytes
    };
    hint::black_box(items().into_iter().map(bytes).collect())
}

/// What both consumers do with a record: look at its first and its last word.
fn look(sum: u64, payload: &[u8]) -> u64 {
    let first = payload
        .first_chunk::<8>()
        .map_or(0, |word| u64::from_le_bytes(*word));
    let last = payload
        .last_chunk::<8>()
        .map_or(0, |word| u64::from_le_bytes(*word));
    sum.wrapping_add(first ^ last)
}

fn paired_ours(count: usize) -> f64 {
    let (mut producer, mut consumer) = our_ring();
    let payloads = payloads();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            for payload in payloads.iter().cycle().take(count) {
                while producer.push(TAG, payload) == Pushed::Dropped {
                    hint::spin_loop();
                }
            }
        });
        drain_ours(&mut consumer, count);
    });
    nanos_each(start.elapsed(), count)
}

/// As a program launches kernels: a record every few microseconds, which another
/// thread reads in its own time, and then something that waits until all is
/// written, as locks do. What reading the clock takes is in it.
fn seldom(count: usize, mut push: impl FnMut(usize)) -> f64 {
    let mut elapsed = Duration::ZERO;
    for number in 0..count {
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_micros(3) {
            hint::spin_loop();
        }
        let start = Instant::now();
        push(number);
        fence(Ordering::SeqCst);
        elapsed += start.elapsed();
    }
    nanos_each(elapsed, count)
}

/// What reads it: once in a millisecond.
fn read_at_leisure(mut read: impl FnMut() -> usize, count: usize) {
    let mut received = 0;
    while received < count {
        received += read();
        thread::sleep(Duration::from_millis(1));
    }
}

fn seldom_ours(count: usize) -> f64 {
    let (mut producer, mut consumer) = our_ring();
    let payloads = payloads();
    thread::scope(|scope| {
        let taken = scope.spawn(move || {
            seldom(count, |number| {
                let _ = producer.push(TAG, &payloads[number % DISTINCT]);
            })
        });
        let mut sum = 0;
        read_at_leisure(
            || {
                let mut received = 0;
                for record in consumer.read().expect("our producer is honest") {
                    sum = look(sum, record.expect("our producer is honest").payload);
                    received += 1;
                }
                received
            },
            count,
        );
        hint::black_box(sum);
        taken.join().expect("it does not panic")
    })
}

fn seldom_rtrb(count: usize) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Item>::new(SLOTS);
    let items = items();
    thread::scope(|scope| {
        let taken = scope.spawn(move || {
            seldom(count, |number| {
                let _ = producer.push(items[number % DISTINCT]);
            })
        });
        let mut sum = 0u64;
        read_at_leisure(
            || {
                let mut received = 0;
                while let Ok(item) = consumer.pop() {
                    sum = sum.wrapping_add(item[0] ^ item[RECORD_BYTES / 8 - 1]);
                    received += 1;
                }
                received
            },
            count,
        );
        hint::black_box(sum);
        taken.join().expect("it does not panic")
    })
}

fn drain_ours(consumer: &mut Consumer, count: usize) {
    let (mut received, mut sum) = (0, 0);
    while received < count {
        for record in consumer.read().expect("our producer is honest") {
            sum = look(sum, record.expect("our producer is honest").payload);
            received += 1;
        }
    }
    hint::black_box(sum);
}

fn push_ours(rounds: usize) -> f64 {
    let payloads = payloads();
    let (mut producer, mut consumer) = our_ring();
    let each = SLOTS / 2;
    let mut elapsed = Duration::ZERO;
    for _ in 0..rounds {
        let start = Instant::now();
        for payload in payloads.iter().cycle().take(each) {
            let _ = producer.push(TAG, payload);
        }
        elapsed += start.elapsed();
        drain_ours(&mut consumer, each);
    }
    nanos_each(elapsed, rounds * each)
}

fn single_ours(count: usize) -> f64 {
    let payloads = payloads();
    let (mut producer, mut consumer) = our_ring();
    let mut sum = 0;
    let start = Instant::now();
    for payload in payloads.iter().cycle().take(count) {
        let _ = producer.push(TAG, payload);
        for record in consumer.read().expect("our producer is honest") {
            sum = look(sum, record.expect("our producer is honest").payload);
        }
    }
    hint::black_box(sum);
    nanos_each(start.elapsed(), count)
}

fn paired_rtrb(count: usize) -> f64 {
    let items = items();
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Item>::new(SLOTS);
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            for item in items.iter().cycle().take(count) {
                while producer.push(*item).is_err() {
                    hint::spin_loop();
                }
            }
        });
        let (mut received, mut sum) = (0, 0_u64);
        while received < count {
            if let Ok(item) = consumer.pop() {
                sum = sum.wrapping_add(item[0] ^ item[RECORD_BYTES / 8 - 1]);
                received += 1;
            }
        }
        hint::black_box(sum);
    });
    nanos_each(start.elapsed(), count)
}

fn drain_rtrb(consumer: &mut rtrb::Consumer<Item>, count: usize) {
    let (mut received, mut sum) = (0, 0_u64);
    while received < count {
        let ready = consumer.slots().min(DISTINCT);
        if ready == 0 {
            hint::spin_loop();
            continue;
        }
        let Ok(chunk) = consumer.read_chunk(ready) else {
            continue;
        };
        let (first, second) = chunk.as_slices();
        for item in first.iter().chain(second) {
            sum = sum.wrapping_add(item[0] ^ item[RECORD_BYTES / 8 - 1]);
        }
        chunk.commit_all();
        received += ready;
    }
    hint::black_box(sum);
}

fn push_rtrb(rounds: usize) -> f64 {
    let items = items();
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Item>::new(SLOTS);
    let each = SLOTS / 2;
    let mut elapsed = Duration::ZERO;
    for _ in 0..rounds {
        let start = Instant::now();
        for item in items.iter().cycle().take(each) {
            let _ = producer.push(*item);
        }
        elapsed += start.elapsed();
        drain_rtrb(&mut consumer, each);
    }
    nanos_each(elapsed, rounds * each)
}

fn single_rtrb(count: usize) -> f64 {
    let items = items();
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Item>::new(SLOTS);
    let mut sum = 0_u64;
    let start = Instant::now();
    for item in items.iter().cycle().take(count) {
        let _ = producer.push(*item);
        if let Ok(item) = consumer.pop() {
            sum = sum.wrapping_add(item[0] ^ item[RECORD_BYTES / 8 - 1]);
        }
    }
    hint::black_box(sum);
    nanos_each(start.elapsed(), count)
}
