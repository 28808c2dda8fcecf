//! Collector and target as two real processes: in the ordinary course of
//! things, asleep on either side, and with the target killed at any moment.
//!
//! This test binary starts itself again as the target: `target_process` is no
//! test of its own but what the others start. `TRACESMITH_KILLS` sets how often
//! each of the killing tests kills, 1000 times unless told otherwise.
#![cfg(all(not(loom), not(miri)))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod numbered;

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tracesmith_wire::{
    Capacity, Config, Consumer, Error, Policy, Producer,
    handshake::{Granted, Life, Listener, Purpose, connect},
};

const LIMIT: Duration = Duration::from_secs(20);
const SOCKET: &str = "TRACESMITH_TEST_SOCKET";
const TASK: &str = "TRACESMITH_TEST_TASK";
const WHOLE_TASK: u64 = 20_000;

/// What the target does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Pushes until it is killed.
    UntilKilled,
    /// Pushes a fixed number of records and ends.
    Promptly,
    /// As that, but sleeps now and then, so that the collector must.
    Slowly,
}

const TASKS: [Task; 3] = [Task::UntilKilled, Task::Promptly, Task::Slowly];

fn start_target(listener: &Listener, task: Task) -> Child {
    let program = env::current_exe().unwrap();
    Command::new(program)
        .args(["target_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(SOCKET, listener.path())
        .env(TASK, format!("{task:?}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn target_process() {
    let Some(path) = env::var_os(SOCKET).map(PathBuf::from) else {
        return;
    };
    let task = env::var(TASK).unwrap();
    let task = TASKS
        .into_iter()
        .find(|known| format!("{known:?}") == task)
        .unwrap();
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    let producer = connect(&path, Purpose::Activity, Capacity::at_least(1 << 14), LIMIT).unwrap();
    assert_eq!(descriptors(), before, "no descriptor of ours stays in the target");
    push_numbers(producer, task);
}

/// Pushes numbered records.
fn push_numbers(mut producer: Producer, task: Task) {
    let mut payload = Vec::new();
    let mut number = 0;
    while task == Task::UntilKilled || number < WHOLE_TASK {
        numbered::write(number, &mut payload);
        if task == Task::Slowly && number % 1000 < 3 {
            thread::sleep(Duration::from_millis(15));
        }
        let _ = producer.push(numbered::tag(number), &payload);
        number += 1;
    }
}

/// Reads what there is and appends the numbers, which must rise.
fn read_numbers(consumer: &mut Consumer, numbers: &mut Vec<u64>) {
    consumer
        .drain(|record| {
            let number = numbered::check(record);
            assert!(numbers.last().is_none_or(|last| *last < number));
            numbers.push(number);
        })
        .unwrap();
}

fn run_to_its_end(policy: Policy, task: Task) -> (Vec<u64>, Consumer) {
    let listener = Listener::in_runtime_directory().unwrap();
    let mut child = start_target(&listener, task);
    let connection = listener.accept(LIMIT).unwrap();
    assert_eq!(connection.hello().process_id, child.id());
    let capacity = Capacity::at_least(1 << 13);
    let Granted { mut consumer, peer } = connection.grant(Config { capacity, policy }, LIMIT).unwrap();
    let mut numbers = Vec::new();
    while !consumer.is_closed() {
        read_numbers(&mut consumer, &mut numbers);
        if task == Task::Promptly && numbers.len() % 5 == 0 {
            // Now and then the producer must wait for us.
            thread::sleep(Duration::from_micros(500));
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(peer.life(), Life::Ended);
    assert_eq!(consumer.producer_process(), Some(child.id()));
    assert!(consumer.is_closed());
    (numbers, consumer)
}

#[test]
fn a_target_that_waits_for_its_collector_loses_nothing() {
    let limit = LIMIT;
    for task in [Task::Promptly, Task::Slowly] {
        let (numbers, consumer) = run_to_its_end(Policy::Block { limit }, task);
        assert!(numbers.len() as u64 >= WHOLE_TASK);
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        assert_eq!(consumer.losses().dropped_records, 0);
    }
}

#[test]
fn a_target_that_does_not_wait_counts_what_it_loses() {
    let (numbers, consumer) = run_to_its_end(Policy::DropNewest, Task::Promptly);
    let dropped = consumer.losses().dropped_records;
    // An abandoned batch that found no room was counted, too.
    assert!(numbers.len() as u64 + dropped >= WHOLE_TASK);
}

#[test]
fn a_target_killed_while_it_drops_leaves_whole_records() {
    for_each_kill(Policy::DropNewest, |numbers, consumer| {
        let pushed = numbers.last().map_or(0, |last| last + 1);
        let missing = pushed - numbers.len() as u64;
        let dropped = consumer.losses().dropped_records;
        assert!(missing <= dropped, "{missing} missing, {dropped} counted");
    });
}

#[test]
fn a_target_killed_while_it_waits_leaves_whole_records() {
    for_each_kill(Policy::Block { limit: LIMIT }, |numbers, consumer| {
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        assert_eq!(consumer.losses().dropped_records, 0);
    });
}

#[test]
fn a_target_killed_while_it_overwrites_leaves_whole_records() {
    for_each_kill(Policy::OverwriteOldest, |numbers, consumer| {
        let losses = consumer.losses();
        assert_eq!(losses.dropped_records, 0);
        assert!(consumer.overtaken_bytes() <= losses.overwritten_bytes);
        let Some(last) = numbers.last() else { return };
        let missing = last + 1 - numbers.len() as u64;
        assert!(missing <= losses.overwritten_records);
    });
}

/// Starts targets and kills each at a random moment after it has its ring. Half
/// of them are read from while they run. `check` gets the numbers read.
fn for_each_kill(policy: Policy, check: impl Fn(&[u64], &Consumer)) {
    let listener = Listener::in_runtime_directory().unwrap();
    let config = Config {
        capacity: Capacity::at_least(1 << 13),
        policy,
    };
    let mut records = 0;
    for kill in 0..kills() {
        let mut child = start_target(&listener, Task::UntilKilled);
        let granted = listener.accept(LIMIT).unwrap().grant(config, LIMIT).unwrap();
        let Granted { mut consumer, peer } = granted;
        let mut numbers = Vec::new();
        let deadline = Instant::now() + moment(kill);
        while Instant::now() < deadline {
            if kill % 2 == 0 {
                read_numbers(&mut consumer, &mut numbers);
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(peer.life(), Life::Ended);
        read_numbers(&mut consumer, &mut numbers);
        assert!(!consumer.is_closed(), "the killed say no goodbye");
        assert!(consumer.read().unwrap().next().is_none());
        check(&numbers, &consumer);
        records += numbers.len();
    }
    assert!(records > 0, "no target lived long enough to push");
}

#[test]
fn a_target_killed_during_the_handshake_costs_the_collector_nothing() {
    let listener = Listener::in_runtime_directory().unwrap();
    let capacity = Capacity::MIN;
    for kill in 0..kills() / 10 {
        let mut child = start_target(&listener, Task::UntilKilled);
        thread::sleep(moment(kill) * 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let start = Instant::now();
        match listener.accept(Duration::from_millis(5)) {
            Ok(connection) => {
                let granted = connection.grant(
                    Config {
                        capacity,
                        policy: Policy::DropNewest,
                    },
                    LIMIT,
                );
                assert!(!matches!(granted, Err(Error::TimedOut { .. })));
            }
            Err(error) => {
                let expected = matches!(
                    error,
                    Error::TimedOut { .. } | Error::Malformed { .. } | Error::System { .. }
                );
                assert!(expected, "{error}");
            }
        }
        assert!(start.elapsed() < LIMIT);
    }
}

/// How long kill number `kill` lets its target run: up to a millisecond, most
/// of them short.
fn moment(kill: u64) -> Duration {
    let random = kill.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let share = random as f64 / f64::from(u32::MAX);
    Duration::from_nanos((share * share * 1e6) as u64)
}

fn kills() -> u64 {
    env::var("TRACESMITH_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(1000)
}
