//! Threads, children, successors and ranks: every process of a program is in its trace.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use support::rows::{assert_whole, calls, health, joined_kernels, rows};
use support::stage::{Place, run, stage, until};
use tracesmith_fake_cuda::Options;
use tracesmith_format::tables::{HealthCause, Process, ProcessEnd};
use tracesmith_trace::Trace;

/// Kernels by process, in the order of the trace's numbers.
fn kernels_by_process(trace: &Trace) -> Vec<usize> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for kernel in joined_kernels(trace) {
        *counts.entry(kernel.place.process.0).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn threads_and_their_streams_are_told_apart() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("", "launcher threads 8 250");
    assert_whole(&trace);
    let calls = calls(&trace);
    let mut by_stream: BTreeMap<u64, usize> = BTreeMap::new();
    let mut threads = BTreeSet::new();
    for kernel in joined_kernels(&trace) {
        *by_stream.entry(kernel.place.stream.0).or_default() += 1;
        let call = &calls[&(kernel.place.process, kernel.correlation.0)];
        threads.insert((call.caller.thread.0, kernel.place.stream.0));
    }
    assert_eq!(by_stream.values().copied().collect::<Vec<_>>(), [250; 8]);
    assert_eq!(threads.len(), 8, "each thread launched into a stream of its own");
    let known: BTreeSet<u64> = trace.threads.iter().map(|thread| thread.thread.0).collect();
    assert!(
        threads.iter().all(|(thread, _)| known.contains(thread)),
        "{known:?}"
    );
}

#[test]
fn children_are_recorded_with_their_parent() {
    let Some(stage) = stage() else { return };
    let (run, trace) = Place::new(stage).profiled("", "launcher processes 4 100");
    assert!(
        run.stdout.ends_with("processes 4 launched 400 failed 0\n"),
        "{}",
        run.stdout
    );
    assert_whole(&trace);
    assert_eq!(kernels_by_process(&trace), [100; 4]);
    let pids: BTreeSet<u32> = trace.processes.iter().map(|process| process.pid).collect();
    let parents: BTreeSet<u32> = trace.processes.iter().map(|process| process.parent_pid).collect();
    assert_eq!((pids.len(), parents.len()), (4, 1), "four children of one parent");
    for process in &trace.processes {
        assert!(trace.string(process.command).ends_with("launch 100"));
        assert_eq!((process.end, process.end_code), (ProcessEnd::EXITED, 0));
        assert!(process.started.is_some() && process.started <= process.ended);
    }
    assert_eq!(trace.devices.len(), 1, "all used the same device");
}

#[test]
fn a_successor_is_a_process_of_its_own() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // A shell that ends by becoming the second program, whose number is the shell's own.
    let launcher = stage.path("launcher");
    let script = format!("{0} launch 5; exec {0} launch 7", launcher.display());
    let run = run(place.tracesmith("profile -o t.sbt -- sh -c").arg(script));
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "launched 5\nlaunched 7\n"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(kernels_by_process(&trace), [5, 7]);
    assert_eq!(trace.processes[0].parent_pid, trace.processes[1].pid);
}

/// Memory for 64 rings of threads is there: as many threads as that may live at once, and any number in turn.
#[test]
fn threads_in_turn_share_rings_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, trace) = place.profiled("", &format!("guest i{}", "T".repeat(200)));
    assert_whole(&trace);
    let kernels = joined_kernels(&trace);
    let callers: BTreeSet<u64> = rows(&trace.api_calls)
        .iter()
        .filter(|call| trace.string(call.shape.name) == "cuLaunchKernel")
        .map(|call| call.caller.thread.0)
        .collect();
    assert_eq!((kernels.len(), trace.markers.rows()), (200, 200));
    assert!(callers.len() > 1, "{callers:?}");
}

#[test]
fn a_child_that_initialises_cuda_has_its_own_thread_and_its_parents_names_issue_26() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (run, trace) = place.profiled("", "guest RmFid");
    let pid: u32 = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("child "))
        .unwrap()
        .parse()
        .unwrap();
    let child = trace.processes.iter().find(|process| process.pid == pid).unwrap();
    let calls = rows(&trace.api_calls);
    let threads: BTreeSet<(u32, u64)> = calls
        .iter()
        .map(|call| (call.caller.process.0, call.caller.thread.0))
        .collect();
    assert_eq!(threads, BTreeSet::from([(child.id.0, u64::from(pid))]));
    let markers = rows(&trace.markers);
    let of_child: Vec<_> = markers
        .iter()
        .filter(|marker| marker.caller.process == child.id)
        .collect();
    assert_eq!(of_child.len(), 1, "{markers:?}");
    assert_eq!(of_child[0].caller.thread.0, u64::from(pid));
    assert_eq!(trace.string(of_child[0].shape.domain), "guest");
    assert_eq!(joined_kernels(&trace).len(), 10);
}

#[test]
fn a_program_that_becomes_another_leaves_what_it_did() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let run = run(&mut place.profile("", "guest ikx"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, "launched 3\n");
    let trace = place.trace("t.sbt");
    let ends: Vec<_> = trace.processes.iter().map(|process| process.end).collect();
    assert_eq!(
        ends,
        [ProcessEnd::REPLACED, ProcessEnd::EXITED],
        "{:?}",
        trace.health()
    );
    let kernels = rows(&trace.kernels);
    let second = kernels
        .iter()
        .filter(|kernel| kernel.place.process == trace.processes[1].id);
    assert_eq!(second.count(), 3);
    assert_eq!(trace.processes[0].pid, trace.processes[1].pid);
}

const PYTHON: &str = r#"
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
def check(result):
    assert result == 0, result
check(cuda.cuInit(0))
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
ptx = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry noop()\n{\nret;\n}\n"
check(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"noop"))
for _ in range(50):
    check(cuda.cuLaunchKernel(function, 2, 3, 1, 4, 1, 1, 0, None, None, None))
check(cuda.cuCtxSynchronize())
print("launched 50", os.environ.get("RANK", "-"))
"#;

#[test]
fn python_is_a_program_like_any_other() {
    let Some(stage) = stage() else { return };
    if Command::new("python3").arg("--version").output().is_err() {
        return tracesmith_skip::without("python", "");
    }
    let place = Place::new(stage);
    let run = run(place.tracesmith("profile -o t.sbt -- python3 -c").arg(PYTHON));
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "launched 50 -\n"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    let kernels = joined_kernels(&trace);
    assert_eq!(kernels.len(), 50);
    let shape = &kernels[0].shape;
    assert_eq!((shape.grid_x, shape.grid_y, shape.block_x), (2, 3, 4));
    assert!(trace.string(trace.processes[0].name).starts_with("python3"));
}

#[test]
fn ranks_are_those_that_a_launcher_gave() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let ranks = |variables: &[(&str, &str)]| {
        let run = run(place
            .profile("", "launcher launch 3")
            .envs(variables.iter().copied()));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = place.trace("t.sbt");
        let process = &trace.processes[0];
        (process.rank.get(), process.local_rank.get(), process.world_size)
    };
    assert_eq!(ranks(&[]), (None, None, 0));
    let torchrun = [("RANK", "5"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8")];
    assert_eq!(ranks(&torchrun), (Some(5), Some(1), 8));
    let open_mpi = [
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
    ];
    assert_eq!(ranks(&open_mpi), (Some(0), Some(0), 2));
    let slurm = [
        ("SLURM_PROCID", "3"),
        ("SLURM_LOCALID", "2"),
        ("SLURM_NTASKS", "4"),
    ];
    assert_eq!(ranks(&slurm), (Some(3), Some(2), 4));
}

/// Open MPI's own launcher, recorded with its workers, and one that records each of its workers.
#[test]
fn mpirun_gives_ranks() {
    let Some(stage) = stage() else { return };
    if Command::new("mpirun").arg("--version").output().is_err() {
        return tracesmith_skip::without("mpirun", "");
    }
    let place = Place::new(stage);
    let launcher = stage.path("launcher").display().to_string();
    let workers = ["--oversubscribe", "-np", "3"];
    // It is loath to start anything for root.
    let as_root = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1"));
    let ranks = |trace: &Trace| -> BTreeSet<_> {
        let rank = |process: &Process| (process.rank.get(), process.world_size);
        trace.processes.iter().map(rank).collect()
    };
    let profiled = run(place
        .tracesmith("profile -o t.sbt -- mpirun")
        .args(workers)
        .args([&launcher, "launch", "5"])
        .envs(as_root));
    assert_eq!(profiled.code, Some(0), "{}", profiled.stderr);
    assert_eq!(profiled.stdout, "launched 5\n".repeat(3));
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(kernels_by_process(&trace), [5, 5, 5]);
    assert_eq!(ranks(&trace), (0..3).map(|rank| (Some(rank), 3)).collect());
    let script = format!(
        "{} profile -q -o rank-$OMPI_COMM_WORLD_RANK.sbt -- {launcher} launch 5",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    let each = run(place
        .command("mpirun")
        .args(workers)
        .args(["sh", "-c", &script])
        .envs(as_root));
    assert_eq!(each.code, Some(0), "{}", each.stderr);
    for rank in 0..3 {
        let trace = place.trace(&format!("rank-{rank}.sbt"));
        assert_whole(&trace);
        assert_eq!(ranks(&trace), BTreeSet::from([(Some(rank), 3)]));
    }
}

#[test]
fn each_rank_of_a_job_has_its_device() {
    let Some(stage) = stage() else { return };
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let launcher = stage.path("launcher");
    let script = format!(
        "for rank in 0 1 2; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=3 {} peer & done; wait",
        launcher.display()
    );
    let run = run(place.tracesmith("profile -o t.sbt -- sh -c").arg(script));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, "devices 2 peer copies 2 same 1\n".repeat(3));
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    let ranks: BTreeSet<_> = trace.processes.iter().map(|process| process.rank.get()).collect();
    assert_eq!(ranks, BTreeSet::from([Some(0), Some(1), Some(2)]));
    assert_eq!(trace.devices.len(), 2, "the same two devices for all");
    assert_eq!(trace.copies.rows(), 3 * 4);
}

#[test]
fn children_that_outlive_the_program_are_waited_for_if_asked() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let guest = stage.path("guest");
    // The shell ends as soon as the program has come, which then works for a while.
    let run_with = |options: &str, pause: &str| {
        let script = format!(
            ": > left.txt; (sleep {pause}; echo go) | {} igkzkzkzk > left.txt & \
             until grep -q at left.txt; do sleep 0.01; done; echo left",
            guest.display()
        );
        let line = format!("profile -o t.sbt --force {options} -- sh -c");
        let run = run(place.tracesmith(&line).arg(&script));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "left\n"),
            "{}",
            run.stderr
        );
        place.trace("t.sbt")
    };
    let trace = run_with("--wait all", "0.2");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 40);
    assert_eq!(trace.processes[0].end, ProcessEnd::EXITED);
    let left = std::fs::read_to_string(place.path("left.txt")).unwrap();
    assert!(left.starts_with("at 0\nlaunched 40 "), "{left}");
    // Otherwise the recording ends with the program, and the one that is left goes on.
    let trace = run_with("", "2");
    assert_eq!(trace.kernels.rows(), 0);
    assert_eq!(trace.processes[0].end, ProcessEnd::RUNNING);
    let is_done = || {
        std::fs::read_to_string(place.path("left.txt"))
            .unwrap()
            .contains("launched 40 ")
    };
    until(is_done);
}

/// What shows that a process uses CUDA is here the fake driver, by the real one's name, and any file by the name of its device.
#[test]
fn a_process_that_does_not_load_our_library_is_not_passed_over_in_silence() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    std::fs::write(place.path("nvidia-uvm"), "").unwrap();
    // A second name of the same file: the loader takes the two for one.
    let driver = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let fake = std::fs::canonicalize(stage.path("libcuda.so.1")).unwrap();
    std::fs::hard_link(fake, driver.path().join("libcuda.so.1")).unwrap();
    let libraries = std::env::join_paths([driver.path(), stage.folder()]).unwrap();
    let recorded = |program: &str, seconds: u32| {
        let launcher = stage.path("launcher");
        let script = format!(
            "{program} {} sleep {seconds} 9< nvidia-uvm; true",
            launcher.display()
        );
        let mut profile = place.tracesmith("profile -o t.sbt --force -- sh -c");
        let run = run(profile.arg(script).env("LD_LIBRARY_PATH", &libraries));
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "launched 1\n"),
            "{}",
            run.stderr
        );
        (run.stderr, place.trace("t.sbt"))
    };
    let (said, trace) = recorded("env -u CUDA_INJECTION64_PATH", 2);
    assert_eq!(said.matches("warning:").count(), 1, "{said}");
    let missing = health(&trace, HealthCause::UNAVAILABLE);
    assert_eq!(missing.len(), 1, "{missing:?}");
    let words = "(launcher, started by sh) used CUDA without the TraceSmith library";
    assert!(missing[0].detail.contains(words), "{missing:?}");
    let (said, trace) = recorded("exec", 2);
    assert!(!said.contains("warning:"), "{said}");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 1);
}
