//! Target and collector over a real socket, with peers that are late, gone,
//! foreign or talk nonsense.
#![cfg(all(not(loom), not(miri)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::exit,
    clippy::print_stdout,
    reason = "in a test a panic is the report, and one that cannot run says so"
)]

use std::{
    fs,
    num::NonZeroU16,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, bind, connect as connect_raw, listen,
    recv, send, socket,
};
use tracesmith_wire::{
    Capacity, Config, Error, Kind, Policy, Pushed, Tag,
    control::armed,
    handshake::{Granted, Life, Listener, Purpose, connect, connect_control},
};

const LIMIT: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(50);
/// The kernel counts the limits of sockets in ticks, of which the first has begun already.
const TICK: Duration = Duration::from_millis(10);
const TAG: Tag = Tag {
    kind: Kind::new(NonZeroU16::MIN),
    flags: 0,
};

fn dropping(capacity: Capacity) -> Config {
    Config {
        capacity,
        policy: Policy::DropNewest,
    }
}

fn raw_socket() -> OwnedFd {
    socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap()
}

/// A connection that says nothing by itself.
fn raw_connection(path: &Path) -> OwnedFd {
    let connection = raw_socket();
    connect_raw(&connection, &SocketAddrUnix::new(path).unwrap()).unwrap();
    connection
}

/// A collector that answers every hello with these bytes.
fn false_collector(directory: &Path, answer: Vec<u8>) -> PathBuf {
    let path = directory.join("false.sock");
    let listener = raw_socket();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&listener, 1).unwrap();
    thread::spawn(move || {
        let connection = rustix::net::accept(&listener).unwrap();
        let mut hello = [0; 64];
        recv(&connection, &mut hello, RecvFlags::empty()).unwrap();
        if !answer.is_empty() {
            send(&connection, &answer, SendFlags::NOSIGNAL).unwrap();
        }
    });
    path
}

#[test]
fn a_target_gets_the_ring_that_the_collector_grants() {
    let listener = Listener::in_runtime_directory().unwrap();
    let path = listener.path().to_owned();
    let target = thread::spawn(move || {
        let mut producer = connect(&path, Purpose::Activity, Capacity::at_least(1 << 16), LIMIT).unwrap();
        assert_eq!(producer.push(TAG, b"hello"), Pushed::Written);
    });
    let connection = listener.accept(LIMIT).unwrap();
    let hello = *connection.hello();
    assert_eq!(hello.process_id, std::process::id());
    assert_ne!(hello.thread_id, hello.process_id);
    assert_eq!(hello.capacity.bytes(), 1 << 16);
    // The collector has the last word on the size.
    let config = dropping(Capacity::at_least(4096));
    let Granted { mut consumer, peer } = connection.grant(config, LIMIT).unwrap();
    target.join().unwrap();
    let mut payloads = Vec::new();
    consumer
        .drain(|record| payloads.push(record.payload.to_vec()))
        .unwrap();
    assert_eq!(payloads, [b"hello"]);
    assert!(consumer.is_closed());
    assert_eq!(peer.process_id(), Some(std::process::id()));
    assert_eq!(peer.life(), Life::Running);
    assert!(peer.process().is_some());
}

#[test]
fn a_refusal_arrives_with_its_reason() {
    let listener = Listener::in_runtime_directory().unwrap();
    let path = listener.path().to_owned();
    let target = thread::spawn(move || {
        connect(&path, Purpose::Activity, Capacity::MIN, LIMIT)
            .err()
            .unwrap()
    });
    listener
        .accept(LIMIT)
        .unwrap()
        .refuse("too many rings", LIMIT)
        .unwrap();
    assert_eq!(
        target.join().unwrap().to_string(),
        "the collector refused: too many rings"
    );
}

#[test]
fn a_collector_that_goes_away_is_a_refusal() {
    let listener = Listener::in_runtime_directory().unwrap();
    let path = listener.path().to_owned();
    let target = thread::spawn(move || {
        connect(&path, Purpose::Activity, Capacity::MIN, LIMIT)
            .err()
            .unwrap()
    });
    drop(listener.accept(LIMIT).unwrap());
    let error = target.join().unwrap();
    assert!(
        matches!(error, Error::Refused { .. } | Error::System { .. }),
        "{error}"
    );
}

#[test]
fn a_collector_that_does_not_answer_costs_the_limit_and_no_more() {
    let listener = Listener::in_runtime_directory().unwrap();
    let start = Instant::now();
    let error = connect(listener.path(), Purpose::Activity, Capacity::MIN, SHORT)
        .err()
        .unwrap();
    assert!(matches!(error, Error::TimedOut { what: "answer" }), "{error}");
    let took = start.elapsed();
    assert!(took + TICK >= SHORT && took < LIMIT, "{took:?}");
}

#[test]
fn a_collector_whose_queue_is_full_costs_the_limit_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.sock");
    let address = SocketAddrUnix::new(&path).unwrap();
    let listener = raw_socket();
    bind(&listener, &address).unwrap();
    listen(&listener, 0).unwrap();
    let _first = raw_connection(&path);
    let error = connect(&path, Purpose::Activity, Capacity::MIN, SHORT)
        .err()
        .unwrap();
    assert!(matches!(error, Error::TimedOut { what: "connection" }), "{error}");
}

#[test]
fn a_target_that_says_nothing_costs_the_limit_and_no_more() {
    let listener = Listener::in_runtime_directory().unwrap();
    let error = listener.accept(SHORT).err().unwrap();
    assert!(matches!(error, Error::TimedOut { what: "target" }), "{error}");
    let _silent = raw_connection(listener.path());
    let error = listener.accept(SHORT).err().unwrap();
    assert!(matches!(error, Error::TimedOut { what: "hello" }), "{error}");
}

#[test]
fn the_collector_outlives_targets_that_talk_nonsense() {
    let listener = Listener::in_runtime_directory().unwrap();
    for nonsense in [
        vec![],
        vec![1],
        vec![0xff; 64],
        b"TSHELLO\0\x02\0\0\0".to_vec(),
        vec![3; 5000],
    ] {
        let connection = raw_connection(listener.path());
        if !nonsense.is_empty() {
            send(&connection, &nonsense, SendFlags::NOSIGNAL).unwrap();
        }
        drop(connection);
        let error = listener.accept(LIMIT).err().unwrap();
        assert!(
            matches!(error, Error::Malformed { .. } | Error::System { .. }),
            "{error}"
        );
    }
    let path = listener.path().to_owned();
    let target = thread::spawn(move || connect(&path, Purpose::Activity, Capacity::MIN, LIMIT).map(drop));
    assert!(
        listener
            .accept(LIMIT)
            .unwrap()
            .grant(dropping(Capacity::MIN), LIMIT)
            .is_ok()
    );
    target.join().unwrap().unwrap();
}

#[test]
fn a_target_of_another_version_is_told_so() {
    let listener = Listener::in_runtime_directory().unwrap();
    let connection = raw_connection(listener.path());
    let mut hello = [0; 64];
    hello[..8].copy_from_slice(b"TSHELLO\0");
    // Of the version before.
    hello[8] = 1;
    send(&connection, &hello, SendFlags::empty()).unwrap();
    let error = listener.accept(LIMIT).err().unwrap();
    assert!(
        matches!(
            error,
            Error::Version {
                what: "protocol",
                ours: 2,
                theirs: 1
            }
        ),
        "{error}"
    );
    let mut answer = [0; 256];
    let (length, _) = recv(&connection, &mut answer[..], RecvFlags::empty()).unwrap();
    assert_eq!(length, 256);
    let expected = b"the other side uses protocol version 1, and this build uses 2";
    assert_eq!(&answer[48..48 + expected.len()], expected);
}

#[test]
fn the_target_survives_collectors_that_talk_nonsense() {
    let granted_without_memory = {
        let mut answer = vec![0; 256];
        answer[..8].copy_from_slice(b"TSANSWER");
        (answer[8], answer[16], answer[24]) = (2, 1, 32);
        answer
    };
    let other_version = {
        let mut answer = granted_without_memory.clone();
        answer[8] = 7;
        answer
    };
    for answer in [
        vec![],
        vec![9],
        vec![0; 256],
        vec![1; 4000],
        granted_without_memory,
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = false_collector(directory.path(), answer);
        let error = connect(&path, Purpose::Activity, Capacity::MIN, LIMIT)
            .err()
            .unwrap();
        assert!(
            matches!(error, Error::Malformed { .. } | Error::Refused { .. }),
            "{error}"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let path = false_collector(directory.path(), other_version);
    let error = connect(&path, Purpose::Activity, Capacity::MIN, LIMIT)
        .err()
        .unwrap();
    assert!(matches!(error, Error::Version { theirs: 7, .. }), "{error}");
}

#[test]
fn a_control_connection_reports_why_it_was_refused() {
    let refusal = |version: u8, reason: &str| {
        let mut answer = vec![0; 256];
        answer[..8].copy_from_slice(b"TSANSWER");
        (answer[8], answer[12], answer[40]) = (version, 1, reason.len() as u8);
        answer[48..48 + reason.len()].copy_from_slice(reason.as_bytes());
        answer
    };
    let answered = |answer: Vec<u8>| {
        let directory = tempfile::tempdir().unwrap();
        let control = connect_control(&false_collector(directory.path(), answer), LIMIT).unwrap();
        control.receive(LIMIT).err().unwrap()
    };
    let error = answered(refusal(1, "of the version before"));
    assert!(
        matches!(
            error,
            Error::Version {
                ours: 2,
                theirs: 1,
                ..
            }
        ),
        "{error}"
    );
    let error = answered(refusal(2, "busy"));
    assert!(
        matches!(&error, Error::Refused { reason } if reason == "busy"),
        "{error}"
    );
}

#[test]
fn nobody_listens_where_nobody_listens() {
    let error = connect(
        Path::new("/nowhere/collector.sock"),
        Purpose::Activity,
        Capacity::MIN,
        LIMIT,
    )
    .err()
    .unwrap();
    assert!(matches!(error, Error::System { .. }), "{error}");
    let long = "x".repeat(200);
    let error = connect(Path::new(&long), Purpose::Activity, Capacity::MIN, LIMIT)
        .err()
        .unwrap();
    assert!(matches!(error, Error::RuntimeDirectory { .. }), "{error}");
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [0o755, 0o710, 0o701] {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let error = Listener::bind(directory.path()).err().unwrap();
        assert!(matches!(error, Error::RuntimeDirectory { .. }), "{error}");
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let listener = Listener::bind(directory.path()).unwrap();
    assert!(
        Listener::bind(directory.path()).is_err(),
        "one collector for one socket"
    );
    let path = listener.path().to_owned();
    assert!(path.exists());
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn the_runtime_directory_is_closed_to_others_and_removed() {
    let listener = Listener::in_runtime_directory().unwrap();
    let directory = listener.path().parent().unwrap().to_owned();
    assert_eq!(
        fs::metadata(&directory).unwrap().permissions().mode() & 0o777,
        0o700
    );
    drop(listener);
    assert!(!directory.exists());
}

#[test]
fn a_socket_that_a_killed_process_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // As a process leaves it that is killed: bound, and nobody listens.
    let left = folder.path().join("4194305.sock");
    bind(raw_socket(), &SocketAddrUnix::new(&left).unwrap()).unwrap();
    let own = armed::listen_in(folder.path(), std::process::id()).unwrap();
    let path = folder.path().join(format!("{}.sock", std::process::id()));
    assert_eq!(own.path(), path);
    assert_eq!(armed::waiting_in(folder.path()), [(std::process::id(), path)]);
    assert!(!left.exists());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(armed::waiting_in(folder.path()), [], "others can enter it");
}

/// Issue 26: processes of two pid namespaces that share a directory can have the same number.
#[test]
fn processes_with_the_same_number_keep_their_sockets() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // A number that is no process here.
    let first = armed::listen_in(folder.path(), 4_194_305).unwrap();
    let second = armed::listen_in(folder.path(), 4_194_305).unwrap();
    assert_ne!(first.path(), second.path());
    // Both are this process, by the number that it has here, and neither is taken for one that was left.
    let found = armed::waiting_in(folder.path());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|(process, _)| *process == std::process::id()));
    for listener in [&first, &second] {
        let control = connect_control(listener.path(), LIMIT).unwrap();
        assert_eq!(control.peer().process_id(), Some(std::process::id()));
        // Those who only looked who listens come first.
        while listener.accept(LIMIT).is_err() {}
    }
    let path = first.path().to_owned();
    drop(first);
    let third = armed::listen_in(folder.path(), 4_194_305).unwrap();
    assert_eq!(third.path(), path, "a name that is free is taken again");
    drop((second, third));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Says what the test binary does when it starts itself again.
const ROLE: &str = "TRACESMITH_TEST_ROLE";

/// Issue 26: a process that ended may have left its number to another.
#[test]
fn a_process_with_the_number_of_one_that_is_gone_is_not_taken_for_it() {
    let inside = "a_number_is_given_out_again";
    let output = Command::new("unshare")
        .args(["--pid", "--mount", "--fork", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args([inside, "--exact", "--nocapture"])
        .env(ROLE, "collector")
        .output();
    let (status, words) = match output {
        Ok(output) => (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ),
        Err(error) => (None, format!("unshare failed: {error}")),
    };
    if words.contains("unshare failed") || words.contains("cannot set the next number") {
        return tracesmith_skip::without("namespaces", words);
    }
    assert_eq!(status, Some(0), "{words}");
}

/// Within a pid namespace of its own, where nobody else starts processes.
#[test]
fn a_number_is_given_out_again() {
    match std::env::var(ROLE).as_deref() {
        Ok("collector") => {}
        Ok(path) => {
            // The target: it connects and is gone.
            connect_control(Path::new(path), LIMIT).unwrap();
            std::process::exit(0);
        }
        Err(_) => return,
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let listener = Listener::bind(folder.path()).unwrap();
    let mut target = Command::new(std::env::current_exe().unwrap())
        .args(["a_number_is_given_out_again", "--exact"])
        .env(ROLE, listener.path())
        .spawn()
        .unwrap();
    let number = target.id();
    assert!(target.wait().unwrap().success());
    fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).expect("cannot set the next number");
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    assert_eq!(other.id(), number, "the number is another process's now");
    let connection = listener.accept(LIMIT).unwrap();
    assert_eq!(connection.hello().process_id, number);
    assert_ne!(connection.peer().life(), Life::Running, "that is the other one");
    other.kill().unwrap();
    other.wait().unwrap();
}
