//! How recordings and processes end: killed, replaced, on a full disk, without
//! a collector.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::exit,
    reason = "in a test a panic is the report"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::{
    env, fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use support::{
    destination, kernels, launch, noted, only_end, open, profile_task, rows, script::PROGRESS, target::until,
};
use tracesmith_collect::{Capture, Destination, End, Existing, Launch, profile};
use tracesmith_format::tables::{HealthCause, ProcessEnd};
use tracesmith_trace::Trace;

/// Starts the collector as a process of its own, to be killed.
#[test]
fn collector_process() {
    let Some(out) = env::var_os("TRACESMITH_TEST_OUT") else {
        return;
    };
    let task = env::var("TRACESMITH_TEST_COLLECTS").unwrap();
    let (end, _) = profile(launch(&task), Capture::default(), destination(out.as_ref())).unwrap();
    println!("{end}");
}

fn start_collector(task: &str, out: &std::path::Path, variables: &[(&str, &str)]) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "ends::collector_process",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("TRACESMITH_TEST_OUT", out)
        .env("TRACESMITH_TEST_COLLECTS", task)
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// With the program's environment and a file in which it states its progress.
fn launch_with_progress(task: &str, progress: &std::path::Path) -> Launch {
    let mut launch = launch(task);
    let variable = format!("{PROGRESS}={}", progress.display());
    launch.command.insert(1, variable.into());
    launch
}

#[test]
fn a_killed_target_loses_nothing_that_it_had_published() {
    let folder = tempfile::tempdir().unwrap();
    let kills = env::var("TRACESMITH_KILLS").map_or(100, |kills| kills.parse().unwrap());
    let mut published_in_all = 0;
    for kill in 0..kills {
        let path = folder.path().join(format!("{kill}.sbt"));
        let progress = folder.path().join(format!("{kill}.progress"));
        let launch = launch_with_progress("forever", &progress);
        let killer = {
            let progress = progress.clone();
            thread::spawn(move || {
                // At random moments: half of them after the first record, half
                // from before the first connection on.
                let least = if kill % 2 == 0 { 4 } else { 0 };
                until(|| fs::read(&progress).is_ok_and(|stated| stated.len() >= least));
                let random = (kill as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                thread::sleep(Duration::from_micros(random % 12_000));
                let target = target_of(&progress);
                kill_process(target, Signal::KILL).unwrap();
            })
        };
        let (end, report) = profile(launch, Capture::default(), destination(&path)).unwrap();
        killer.join().unwrap();
        assert_eq!(end, End::Killed(9));
        assert!(report.failure.is_none());
        let trace = open(&path);
        let numbers: Vec<u64> = kernels(&trace)
            .iter()
            .map(|kernel| kernel.correlation.0)
            .collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "kill {kill}");
        let stated = fs::read(&progress).unwrap();
        let published = stated.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        assert!(
            numbers.len() >= published as usize,
            "kill {kill}: {} of {published}",
            numbers.len()
        );
        published_in_all += published;
        if report.processes > 0 {
            assert_eq!(only_end(&trace), (ProcessEnd::KILLED, 9), "kill {kill}");
        }
        if published > 0 {
            let died = noted(&trace, HealthCause::PROCESS_DIED);
            assert!(died.is_some(), "kill {kill}: {:?}", trace.health());
        }
    }
    assert!(published_in_all > 0);
}

/// The process that holds the progress file open for writing.
fn target_of(progress: &std::path::Path) -> Pid {
    let wanted = progress.canonicalize().unwrap();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let Ok(descriptors) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        for descriptor in descriptors.flatten() {
            if fs::read_link(descriptor.path()).is_ok_and(|path| path == wanted) {
                return Pid::from_raw(pid).unwrap();
            }
        }
    }
    panic!("nobody writes {}", progress.display());
}

#[test]
fn a_process_that_becomes_another_program_is_two_processes() {
    let outcome = profile_task("exec", Capture::default());
    assert_eq!(outcome.end, End::Exited(3));
    let trace = outcome.trace();
    assert_eq!(trace.processes.len(), 2);
    assert_eq!(trace.processes[0].pid, trace.processes[1].pid);
    assert_eq!(trace.processes[0].end, ProcessEnd::REPLACED);
    assert_eq!(
        (trace.processes[1].end, trace.processes[1].end_code),
        (ProcessEnd::EXITED, 3)
    );
    assert_eq!(kernels(&trace).len(), 150);
    let health = trace.health();
    let died = health
        .recorded
        .iter()
        .find(|item| item.cause == HealthCause::PROCESS_DIED)
        .unwrap();
    assert_eq!(died.detail, "replaced by another program (exec)");
}

#[test]
fn a_process_that_becomes_a_program_without_us_was_replaced() {
    let outcome = profile_task("exec-other", Capture::default());
    assert_eq!(outcome.end, End::Exited(4));
    let trace = outcome.trace();
    assert_eq!(only_end(&trace), (ProcessEnd::REPLACED, 0));
    assert_eq!(kernels(&trace).len(), 1);
}

#[test]
fn children_that_do_not_record_change_nothing() {
    let outcome = profile_task("fork", Capture::default());
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.report.is_whole(), "{:?}", outcome.report.losses);
    assert_eq!(kernels(&outcome.trace()).len(), 100);
}

#[test]
fn a_full_disk_does_not_disturb_the_target() {
    let full = Destination {
        path: "/dev/full".into(),
        existing: Existing::Replace,
    };
    let (end, report) = profile(launch("whole:20000"), Capture::default(), full).unwrap();
    assert_eq!(end, End::Exited(3), "the program ended as it always does");
    let failure = report.failure.unwrap();
    let cause = std::error::Error::source(&failure)
        .and_then(std::error::Error::source)
        .unwrap();
    assert!(cause.to_string().contains("No space left"), "{cause}");
    assert!(report.files.is_empty());
}

#[test]
fn a_killed_collector_leaves_a_readable_file_and_its_target_unharmed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("cut.sbt");
    let progress = folder.path().join("progress");
    let mut collector = start_collector("forever", &out, &[(PROGRESS, progress.to_str().unwrap())]);
    until(|| fs::read(&progress).is_ok_and(|stated| stated.len() == 4));
    thread::sleep(Duration::from_millis(2200));
    collector.kill().unwrap();
    collector.wait().unwrap();
    let target = target_of(&progress);

    let stated = || u32::from_le_bytes(fs::read(&progress).unwrap().try_into().unwrap());
    let before = stated();
    thread::sleep(Duration::from_millis(500));
    assert!(stated() > before, "it goes on, after one wait for room at most");
    kill_process(target, Signal::KILL).unwrap();

    let trace = Trace::open(&out).unwrap();
    let numbers: Vec<u64> = rows(&trace.kernels)
        .iter()
        .map(|kernel| kernel.correlation.0)
        .collect();
    assert!(!numbers.is_empty());
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
    assert_eq!(trace.processes[0].end, ProcessEnd::RUNNING);
    assert!(!trace.health().is_good(), "the end is missing");
}

#[test]
fn the_flight_recorder_keeps_the_last_part_and_what_it_refers_to() {
    let capture = Capture {
        flight_recorder: Some(1 << 20),
        ..Capture::default()
    };
    let outcome = profile_task("flight:50000", capture);
    assert_eq!(outcome.end, End::Killed(6));
    let trace = outcome.trace();
    let kernels = kernels(&trace);
    assert!((1000..10_000).contains(&kernels.len()), "{}", kernels.len());
    assert!(
        kernels
            .windows(2)
            .all(|pair| pair[0].correlation.0 + 1 == pair[1].correlation.0)
    );
    assert_eq!(kernels.last().unwrap().correlation.0, 49_999);
    let first = &kernels[0];
    assert_eq!(trace.string(first.shape.demangled), support::target::DEMANGLED);
    assert_eq!(
        trace.string(trace.device(first.place.device).unwrap().name),
        "NVIDIA H200"
    );
    assert!(trace.health().unlinked_clocks.is_empty());
    assert_eq!(only_end(&trace), (ProcessEnd::KILLED, 6));
    let overwritten = noted(&trace, HealthCause::OVERWRITTEN).unwrap();
    assert_eq!(overwritten + kernels.len() as u64, 50_000);
}

#[test]
fn a_target_can_ask_for_a_dump_and_goes_on() {
    let capture = Capture {
        flight_recorder: Some(1 << 20),
        ..Capture::default()
    };
    let outcome = profile_task("flight-asks:1000", capture);
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.report.files.len(), 2);
    let first = outcome.trace();
    assert_eq!(kernels(&first).len(), 1000);
    assert_eq!(only_end(&first), (ProcessEnd::RUNNING, 0));
    let second = open(&outcome.folder.path().join("trace-2.sbt"));
    let kernels = kernels(&second);
    assert_eq!(kernels.len(), 1, "what came since");
    assert_eq!(second.string(kernels[0].shape.name), "defined later");
    assert_eq!(only_end(&second), (ProcessEnd::EXITED, 0));
    assert!(outcome.report.is_whole(), "{:?}", outcome.report.losses);
}

/// Issue 26: the answer went to the target that had moved to the place of the one that asked.
#[test]
fn the_answer_to_a_dump_goes_to_the_one_that_asked() {
    let capture = Capture {
        flight_recorder: Some(1 << 20),
        ..Capture::default()
    };
    let outcome = profile_task("flight-beside-others", capture);
    assert_eq!(outcome.end, End::Exited(0));
    let dump = support::open(&outcome.report.files[0].0);
    assert_eq!(dump.processes.len(), 3, "the one that ended is in it");
}
