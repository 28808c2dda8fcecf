//! Programs and collectors in namespaces of their own, as containers have them.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use support::rows::rows;
use support::stacks::functions;
use support::stage::{Place, kill, run, stage, start, until};
use tracesmith_trace::Trace;

const UNSHARE: [&str; 6] = [
    "--pid",
    "--mount",
    "--net",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Whether namespaces can be made here; says so where not.
fn can_unshare() -> bool {
    let made = Command::new("unshare").args(UNSHARE).arg("true").output();
    let is_made = made.as_ref().is_ok_and(|made| made.status.success());
    if !is_made {
        tracesmith_skip::without("namespaces", format!("unshare: {made:?}"));
    }
    is_made
}

/// A shell script in namespaces of its own.
fn contained(place: &Place, script: &str) -> Command {
    let mut command = place.command("unshare");
    command.args(UNSHARE).args(["sh", "-ec", script]);
    command
}

/// Makes a program of the stage that only the container has, in a folder that is empty outside.
fn copied(place: &Place, program: &str) -> String {
    let folder = place.path("inside");
    fs::create_dir_all(&folder).unwrap();
    let stage = stage().unwrap();
    format!(
        "mount -t tmpfs none {folder}; cp {program} {folder}/contained; ",
        folder = folder.display(),
        program = stage.path(program).display()
    )
}

/// An armed program in a container, and its number outside.
fn armed(place: &Place, before: &str) -> (Child, u32) {
    let script = format!(
        "{before}{copied}eval \"$({tracesmith} env)\"; exec {inside}/contained forever",
        copied = copied(place, "launcher"),
        tracesmith = env!("CARGO_BIN_EXE_tracesmith"),
        inside = place.path("inside").display(),
    );
    let outer = start(&mut contained(place, &script));
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    // The program has taken the shell's place.
    let pid = || {
        let children = fs::read_to_string(&children).unwrap_or_default();
        let pid: u32 = children.split_whitespace().next()?.parse().ok()?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "contained").then_some(pid)
    };
    until(|| pid().is_some());
    let pid = pid().unwrap();
    (outer, pid)
}

fn sockets(place: &Place) -> usize {
    let entries = fs::read_dir(place.runtime()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".sock")).count()
}

fn assert_named(trace: &Trace) {
    let kernels = rows(&trace.kernels);
    // One that was being launched when the window opened has neither a call nor a stack.
    let kernel = kernels.iter().find(|kernel| kernel.stack.is_some()).unwrap();
    let own: Vec<String> = functions(trace, kernel.stack)
        .into_iter()
        .filter(|function| function.image == "contained")
        .map(|function| function.name)
        .collect();
    assert!(own.iter().any(|name| name == "main"), "{own:?}");
}

#[test]
fn programs_in_containers_that_share_a_directory_are_recorded_one_by_one() {
    let Some(_stage) = stage() else { return };
    if !can_unshare() {
        return;
    }
    let place = Place::new(stage().unwrap());
    let (first, first_pid) = armed(&place, "");
    until(|| sockets(&place) == 1);
    let (second, second_pid) = armed(&place, "");
    until(|| sockets(&place) == 2);
    // Neither is taken for what a dead process left, by the list of processes or that of sockets.
    let listed = run(&mut place.tracesmith("doctor"));
    assert_eq!(sockets(&place), 2, "{}", listed.stdout);

    for pid in [first_pid, second_pid] {
        let recorded = run(&mut place.record(pid, "--force -d 300ms --stacks native"));
        assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
        let trace = place.trace("t.sbt");
        assert_eq!(trace.processes.len(), 1);
        assert_eq!(trace.processes[0].pid, pid);
        let command = trace.string(trace.processes[0].command);
        assert!(command.contains("/inside/contained"), "{command}");
        assert_eq!(trace.metadata[&format!("process.{pid}.own_pid")], "1");
        assert_named(&trace);
        let threads = trace.threads.iter().map(|thread| trace.string(thread.name));
        assert!(threads.into_iter().any(|name| name == "contained"));
    }
    let both = run(&mut place.tracesmith("record -o t.sbt --force -d 500ms"));
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    let mut pids: Vec<u32> = place
        .trace("t.sbt")
        .processes
        .iter()
        .map(|process| process.pid)
        .collect();
    pids.sort_unstable();
    let mut wanted = [first_pid, second_pid];
    wanted.sort_unstable();
    assert_eq!(pids, wanted);
    for child in [first, second] {
        kill(child);
    }
}

/// A number that no process has out here.
fn free_number() -> u32 {
    let largest: u32 = fs::read_to_string("/proc/sys/kernel/pid_max")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let mut numbers = (1..largest).rev().skip(50);
    numbers
        .find(|number| !Path::new(&format!("/proc/{number}")).exists())
        .unwrap()
}

#[test]
fn a_socket_of_a_container_is_not_what_a_dead_process_left() {
    let Some(_stage) = stage() else { return };
    if !can_unshare() {
        return;
    }
    let place = Place::new(stage().unwrap());
    let number = free_number();
    let script = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid; eval \"$({} env)\"; {} forever",
        number - 4,
        env!("CARGO_BIN_EXE_tracesmith"),
        stage().unwrap().path("launcher").display()
    );
    let outer = start(&mut contained(&place, &script));
    until(|| sockets(&place) == 1);
    run(&mut place.tracesmith("doctor"));
    assert_eq!(sockets(&place), 1, "it was removed");
    let recorded = run(&mut place.tracesmith("record -o t.sbt -d 300ms"));
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    assert!(place.trace("t.sbt").kernels.rows() > 0);
    assert_eq!(sockets(&place), 1);
    kill(outer);
}

#[test]
fn a_program_that_ended_with_its_container_has_names() {
    let Some(_stage) = stage() else { return };
    if !can_unshare() {
        return;
    }
    let place = Place::new(stage().unwrap());
    let script = format!(
        "{}{}/contained launch 20; true",
        copied(&place, "launcher"),
        place.path("inside").display()
    );
    let mut profile = place.tracesmith("profile -o t.sbt --stacks native -- unshare");
    let profiled = run(profile.args(UNSHARE).args(["sh", "-ec", &script]));
    assert_eq!(profiled.code, Some(0), "{}{}", profiled.stdout, profiled.stderr);
    assert!(fs::read_dir(place.path("inside")).unwrap().next().is_none());
    assert_named(&place.trace("t.sbt"));
}

#[test]
fn a_collector_in_a_container_does_not_take_another_process_for_the_target() {
    let Some(stage) = stage() else { return };
    if !can_unshare() {
        return;
    }
    let place = Place::new(stage);
    let target = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&target);
    let pid = target.id();
    // A process of the container has the number that the target has outside.
    let script = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid; sleep 60 & test $! = {pid}; {} record -o t.sbt -d 300ms",
        pid - 1,
        env!("CARGO_BIN_EXE_tracesmith"),
    );
    let recorded = run(&mut contained(&place, &script));
    assert_eq!(recorded.code, Some(0), "{}{}", recorded.stdout, recorded.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(trace.processes.len(), 1);
    let process = &trace.processes[0];
    assert_eq!(process.pid, pid, "as it says itself");
    assert_eq!(trace.string(process.name), "", "that would be of another process");
    assert!(trace.kernels.rows() > 0);
    kill(target);
}

#[test]
fn a_collector_listens_in_the_directory_that_is_named() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let shared = place.folder().join("shared");
    let mut profile = place.tracesmith("profile -o t.sbt -- sh -c");
    profile.env("TRACESMITH_RUNTIME_DIR", &shared);
    let run = run(profile.arg("echo $TRACESMITH_COLLECTOR"));
    assert!(
        run.stdout.starts_with(shared.to_str().unwrap()),
        "{}{}",
        run.stdout,
        run.stderr
    );
}
