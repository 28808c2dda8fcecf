//! Windows: in running programs, by time, by the program's own calls, by ranges; and after them nothing is left.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::Run;
use support::rows::{assert_whole, health, joined_kernels, rows};
use support::stage::{Place, Talk, ended, kill, run, stage, start, until};
use tracesmith_fake_cuda::Options;
use tracesmith_format::tables::{HealthCause, ProcessEnd};
use tracesmith_trace::Trace;

/// Everything that a kernel refers to is described, though it was there before the window.
fn assert_described(trace: &Trace) {
    let device = &trace.devices[0];
    assert!(device.multiprocessors > 0 && device.memory.0 > 0, "{device:?}");
    for kernel in rows(&trace.kernels) {
        assert_eq!(kernel.place.device, device.id);
        assert!(
            trace
                .contexts
                .iter()
                .any(|context| context.context == kernel.place.context)
        );
    }
}

#[test]
fn windows_in_a_running_program_hold_what_ran_in_them() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // Before, in, between, in and after two windows.
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkkgkkkgkkkkgkkkkk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    for (kernels, at) in [(20, "at 30"), (40, "at 100")] {
        let window = place.start_window(&mut place.record(pid, "--force"), pid);
        armed.say();
        armed.hear(at);
        let run = place.close_window(window);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = place.trace("t.sbt");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), kernels);
        assert_described(&trace);
        assert_eq!(trace.processes[0].end, ProcessEnd::RUNNING);
        armed.say();
        if kernels == 20 {
            armed.hear("at 60");
        }
    }
    let run = armed.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("launched 150 "), "{}", run.stdout);
}

/// Nodes that were seen in one window may be gone before the next.
#[test]
fn a_copy_of_a_graph_may_end_between_windows() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ibgygYkgeg"));
    armed.hear("at 0");
    let pid = armed.child().id();
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    armed.hear("at 0");
    assert_eq!(place.close_window(window).code, Some(0));
    assert_eq!(
        place.trace("t.sbt").graph_edges.rows(),
        0,
        "nothing was made ready"
    );
    armed.say();
    armed.hear("at 10");
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    armed.hear("at 20");
    assert_eq!(place.close_window(window).code, Some(0));
    armed.say();
    let run = armed.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    let nodes: Vec<u64> = rows(&trace.kernels)
        .iter()
        .map(|kernel| kernel.graph_node.0)
        .collect();
    let edges: Vec<(u64, u64)> = rows(&trace.graph_edges)
        .iter()
        .map(|edge| (edge.before.0, edge.node.0))
        .collect();
    let chain: Vec<(u64, u64)> = nodes.windows(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!((nodes.len(), edges), (10, chain));
}

/// Until CUPTI is let go: a second behind a window, because a thread may be on its way to tell us of a call.
fn let_go() {
    thread::sleep(Duration::from_secs(3));
}

/// CUPTI tells the program's threads that there is a client, then allocates what they look into when they make a graph.
#[test]
fn a_first_window_opens_while_graphs_are_made_ready() {
    let Some(stage) = stage() else { return };
    for program in ["slow_pages", "slow_pages_linked"] {
        let place = Place::new(stage);
        let mut armed = Talk::start(&mut place.armed("", program));
        armed.hear("ready");
        let pid = armed.child().id();
        for _ in 0..2 {
            let window = place.start_window(&mut place.record(pid, "--force"), pid);
            let run = place.close_window(window);
            assert_eq!(run.code, Some(0), "{program}: {}", run.stderr);
            let_go();
        }
        armed.say();
        let run = armed.end();
        assert_eq!(run.code, Some(0), "{program}: {}", run.stderr);
        // The second window has the memory of the first, which threads may still have looked into.
        assert!(run.stdout.contains("kept 2 of "), "{program}: {}", run.stdout);
    }
}

/// A libcupti that cannot be helped: programs die of a first window, unless its client has been there before their threads
/// were.
#[test]
fn a_first_window_is_no_danger_to_a_process_that_is_ready() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let path = place.other_cupti("-DSLOW_TABLES");
    for (options, code) in [
        ("--ready", 0),
        ("--ready --no-preload", 0),
        ("", -Signal::ABORT.as_raw()),
    ] {
        let mut armed = Talk::start(place.armed(options, "slow_pages").env("LD_LIBRARY_PATH", &path));
        armed.hear("ready");
        let pid = armed.child().id();
        let window = run(&mut place.record(pid, "--force -d 0.3"));
        if code == 0 {
            assert_eq!(window.code, Some(0), "{options}: {}", window.stderr);
            armed.say();
        }
        let run = armed.end();
        assert_eq!(run.code, Some(code), "{options}: {}", run.stderr);
    }
    // A program that is started by `profile` is to be recorded in any case.
    let mut profiled = Talk::start(
        place
            .profile("--delay 300ms", "slow_pages")
            .env("LD_LIBRARY_PATH", &path),
    );
    profiled.hear("ready");
    thread::sleep(Duration::from_secs(1));
    profiled.say();
    let run = profiled.end();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

/// CUPTI never forgets a call whose callback is switched off before it ends, and takes all later ones for parts of it.
#[test]
fn windows_that_close_while_the_program_waits_leave_nothing_behind() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 40_000_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let mut armed = Talk::start(&mut place.armed("--no-preload", "guest igkgkgkgkgkgkgv"));
    armed.hear("at 0");
    let pid = armed.child().id();
    for round in 1..6 {
        let window = place.start_window(&mut place.record(pid, "--force"), pid);
        armed.say();
        // The kernels take 400 ms, and are waited for.
        thread::sleep(Duration::from_millis(100));
        let run = place.close_window(window);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        armed.hear(&format!("at {round}0"));
    }
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    armed.hear("at 60");
    assert_eq!(place.close_window(window).code, Some(0));
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    let joined = joined_kernels(&trace);
    let calls: BTreeSet<_> = joined.iter().map(|kernel| kernel.correlation.0).collect();
    assert_eq!((joined.len(), calls.len()), (10, 10), "{calls:?}");
    let waits = rows(&trace.syncs);
    assert_eq!(waits.len(), 1, "{waits:?}");
    let_go();
    armed.say();
    armed.hear("subscribed 0");
    assert_eq!(armed.end().code, Some(0));
}

#[test]
fn a_window_of_a_while_ends_by_itself() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let begun = Instant::now();
    let run = run(&mut place.record(armed.id(), "-d 0.4"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let trace = place.trace("t.sbt");
    assert_described(&trace);
    // One that was being launched when the window opened or closed may lack its call or its times.
    let kernels = rows(&trace.kernels);
    let complete = kernels.iter().filter(|kernel| kernel.end.is_some());
    let times: Vec<(u64, u64)> = complete.map(|kernel| (kernel.start.0, kernel.end.0)).collect();
    let first = times.iter().map(|(start, _)| *start).min().unwrap();
    let last = times.iter().map(|(_, end)| *end).max().unwrap();
    assert!(
        (200_000_000..1_500_000_000).contains(&(last - first)),
        "{}",
        last - first
    );
    kill(armed);
}

/// The program waits for its kernels most of the time, so most windows end within a wait. Its call is recorded when it
/// returns, if it returns soon.
#[test]
fn a_call_in_progress_at_the_end_of_a_window_is_recorded() {
    let Some(stage) = stage() else { return };
    let options = Options {
        kernel_nanos: 50_000,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let mut ended_with_wait = 0;
    // On a busy machine the program may be held up for longer than the end of a window waits.
    for _ in 0..12 {
        let run = run(&mut place.record(armed.id(), "-d 0.1 --force"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = place.trace("t.sbt");
        let calls = rows(&trace.api_calls);
        // It may also have got no core during the whole window.
        let last = calls.iter().max_by_key(|call| call.start.0);
        let is_wait = |name| trace.string(name) == "cuCtxSynchronize";
        ended_with_wait += usize::from(last.is_some_and(|call| is_wait(call.shape.name)));
    }
    assert!(ended_with_wait >= 4, "{ended_with_wait} of 12 windows");
    kill(armed);
}

#[test]
fn after_a_window_cupti_is_let_go() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("--no-preload", "guest ikvgkvgkkvk"));
    armed.hear("subscribed 0");
    armed.hear("at 10");
    let pid = armed.child().id();
    let window = place.start_window(&mut place.record(pid, ""), pid);
    armed.say();
    armed.hear("subscribed 39");
    armed.hear("at 20");
    assert_eq!(place.close_window(window).code, Some(0));
    let_go();
    armed.say();
    armed.hear("subscribed 0");
    assert_eq!(armed.end().code, Some(0));
    assert_eq!(place.trace("t.sbt").kernels.rows(), 10);
}

#[test]
fn cupti_is_let_go_while_threads_take_turns() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("--no-preload", "launcher relay"));
    armed.hear("turn 0 subscribed 0");
    let pid = armed.child().id();
    for _ in 0..3 {
        let run = run(&mut place.record(pid, "-d 0.2 --force"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(place.trace("t.sbt").kernels.rows() > 300);
        armed.hear_at_last("subscribed 39");
        armed.hear_at_last("subscribed 0");
    }
    armed.kill();
}

/// CUPTI takes a while to come up. What the user asked for is a while of recording.
#[test]
fn a_window_lasts_from_when_it_is_open() {
    let Some(stage) = stage() else { return };
    let options = Options {
        slow_flush_millis: 600,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    thread::sleep(Duration::from_millis(300));
    let run = run(&mut place.record(armed.id(), "-d 0.3"));
    kill(armed);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    let starts = rows(&trace.kernels).into_iter().map(|kernel| kernel.start.0);
    let (first, last) = starts.fold((u64::MAX, 0), |(first, last), start| {
        (first.min(start), last.max(start))
    });
    let lasted = last.saturating_sub(first);
    assert!(lasted > 200_000_000, "{lasted}");
}

/// A process that has ended and was not asked for its code has left its socket behind.
#[test]
fn a_process_that_has_ended_is_named() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = start(&mut place.armed("", "launcher sleep 60"));
    place.wait_until_armed(&armed);
    armed.kill().unwrap();
    let stat = format!("/proc/{}/stat", armed.id());
    until(|| fs::read_to_string(&stat).unwrap().contains(") Z "));
    let refused = run(&mut place.record(armed.id(), "-d 0.1"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let words = format!("process {} cannot be recorded", armed.id());
    assert!(refused.stderr.contains(&words), "{}", refused.stderr);
    armed.wait().unwrap();
}

/// The fake ends the process when CUPTI is taken out of it while another thread is within a call.
#[test]
fn windows_in_a_crowd_of_threads_do_no_harm() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "launcher crowd 6"));
    armed.hear("at work");
    let pid = armed.child().id();
    for _ in 0..3 {
        let run = run(&mut place.record(pid, "-d 0.2 --force"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let kernels = place.trace("t.sbt").kernels.rows();
        assert!(kernels > 100, "{kernels}: {}", run.stderr);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(armed.is_running(), "a window ended the program");
    armed.kill();
}

/// Threads are held up anywhere while a window closes, also between CUPTI's noting a call and our being told of it.
#[test]
fn kernels_of_many_windows_have_correlations_of_their_own() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "launcher crowd 4"));
    armed.hear("at work");
    let pid = armed.child().id();
    let windows: Vec<_> = (0..24)
        .map(|number| {
            let name = format!("{number}.sbt");
            let level = ["standard", "light"][number % 2];
            let line = format!("record --pid {pid} -d 0.05 --level {level} -o {name}");
            (name, run(&mut place.tracesmith(&line)))
        })
        .collect();
    armed.kill();
    let mut seen = 0;
    for (name, run) in windows {
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let trace = place.trace(&name);
        let kernels = rows(&trace.kernels);
        let correlations: BTreeSet<u64> = kernels.iter().map(|kernel| kernel.correlation.0).collect();
        assert_eq!(correlations.len(), kernels.len(), "{name}");
        seen += kernels.len();
        assert!(
            health(&trace, HealthCause::UNKNOWN_RECORD).is_empty(),
            "{:?}",
            trace.health()
        );
    }
    assert!(seen > 1000, "{seen} kernels to look at");
}

#[test]
fn programs_that_start_meanwhile_are_recorded_too() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut first = Talk::start(&mut place.armed("", "guest ikgkk"));
    first.hear("at 10");
    let pid = first.child().id();
    let recorder = place.start_window(&mut place.tracesmith("record -o t.sbt"), pid);
    first.say();
    // New programs are looked for ten times a second.
    let second = run(&mut place.armed("", "guest izzzzzzzzzzzzzzzzzzzzkkkkkkk"));
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert_eq!(first.end().code, Some(0));
    let run = place.close_window(recorder);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    assert_eq!(trace.processes.len(), 2);
    assert_eq!(joined_kernels(&trace).len(), 20 + 70);
    assert!(
        trace
            .processes
            .iter()
            .all(|process| process.end == ProcessEnd::EXITED)
    );
    assert!(trace.counters.rows() > 0, "the machine's counters");
}

#[test]
fn a_process_has_one_collector_and_tells_the_next_at_once() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let recorder = place.start_window(&mut place.record(armed.id(), ""), armed.id());
    let begun = Instant::now();
    let refused = run(&mut place.tracesmith(&format!("record --pid {} -d 20 -o u.sbt", armed.id())));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(
        refused.stderr.contains("recorded already"),
        "{:?} {}",
        refused.code,
        refused.stderr
    );
    let run = place.close_window(recorder);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(place.trace("t.sbt").kernels.rows() > 0);
    kill(armed);
}

#[test]
fn a_recorder_that_is_killed_leaves_the_program_free_for_the_next() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let killed = place.start_window(&mut place.record(armed.id(), ""), armed.id());
    kill(killed);
    thread::sleep(Duration::from_millis(300));
    let run = run(&mut place.record(armed.id(), "-d 0.3 --force"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(place.trace("t.sbt").kernels.rows() > 0);
    kill(armed);
}

#[test]
fn a_delay_and_a_duration_cut_a_piece_out() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // More than a second of work, ten kernels each twentieth of it.
    let target = format!("guest i{}", "kz".repeat(60));
    let (run, trace) = place.profiled("--delay 300ms --duration 300ms", &target);
    assert!(run.stdout.starts_with("launched 600 "), "{}", run.stdout);
    let kernels = trace.kernels.rows();
    assert!((50..400).contains(&kernels), "{kernels}");
    let process = &trace.processes[0];
    let calls = rows(&trace.api_calls);
    let (block, _) = trace.api_calls.columns().next().unwrap();
    let on_line = |time| trace.clock_map.convert(block.header.clock, time).time.0;
    let first = on_line(calls.iter().map(|call| call.start).min().unwrap());
    let last = on_line(calls.iter().map(|call| call.end).max().unwrap());
    assert!(first - process.started.0 >= 250_000_000, "{first} {process:?}");
    assert!(
        last < process.ended.0 && last - first < 600_000_000,
        "{first} {last}"
    );
    assert!(health(&trace, HealthCause::PROCESS_DIED).is_empty());
}

#[test]
fn the_programs_own_calls_open_and_close_a_window() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, trace) = place.profiled("--capture-range cuda-profiler-api", "launcher profiler");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 20);
    assert_described(&trace);
    // Twice, and through the runtime.
    let (_, trace) = place.profiled("--capture-range cuda-profiler-api", "guest ikpkqkkpkkqk");
    assert_whole(&trace);
    assert_eq!(joined_kernels(&trace).len(), 30);
    let (_, trace) = place.profiled("--capture-range cuda-profiler-api", "launcher runtime");
    assert_eq!((trace.copies.rows(), trace.sets.rows()), (1, 1));
    assert_eq!(trace.allocations.rows(), 0, "before and behind it");
}

#[test]
fn ranges_open_and_close_a_window() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // n: ten kernels in a range "step"; d: the same in the domain "guest"; k: ten without.
    for (range, plan, kernels) in [
        ("nvtx:step", "iknkkdk", 20),
        ("nvtx:step@guest", "iknkkdk", 10),
        ("nvtx:step@nobody", "iknkkdk", 0),
        ("nvtx:other", "iknkkdk", 0),
        ("nvtx:step --steps 1..3", "innknnn", 30),
        ("nvtx:step --steps 0..1", "iknknk", 10),
        ("nvtx:step@guest --steps 1..2", "idndnd", 10),
    ] {
        let (_, trace) = place.profiled(&format!("--capture-range {range}"), &format!("guest {plan}"));
        assert_eq!(trace.kernels.rows(), kernels, "{range} {plan}");
        let markers = rows(&trace.markers);
        assert!(
            markers.len() as u64 >= kernels.div_ceil(20),
            "{range}: the range itself too"
        );
        assert!(trace.metadata["capture.range"].starts_with("nvtx:"));
    }
}

#[test]
fn a_window_in_a_program_that_dies_within_it_says_so() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkzzzzzzzzzzzzzzz!"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let recorder = place.start_window(&mut place.record(pid, ""), pid);
    armed.say();
    assert_eq!(armed.end().code, Some(-9));
    // Nobody is left to record: it ends by itself.
    let run = ended(recorder);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(trace.kernels.rows(), 10);
    assert_eq!(health(&trace, HealthCause::PROCESS_DIED).len(), 1);
}

#[test]
fn a_process_of_an_older_version_is_reported() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/old_process.py");
    let old = std::process::Command::new("python3")
        .arg(script)
        .arg(place.runtime())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut old) = old else {
        return tracesmith_skip::without("python", "python3 cannot be started");
    };
    let mut pid = String::new();
    BufReader::new(old.stdout.take().unwrap())
        .read_line(&mut pid)
        .unwrap();
    let pid = pid.trim();
    let recorded = run(&mut place.tracesmith(&format!("record --pid {pid} -d 1 -o t.sbt")));
    let dumped = run(&mut place.tracesmith(&format!("record --pid {pid} --dump")));
    old.kill().unwrap();
    old.wait().unwrap();
    let words = "another version of TraceSmith (protocol 1, this one uses 2)";
    assert!(recorded.stderr.contains(words), "{recorded:?}");
    assert!(dumped.stderr.contains("protocol version 1"), "{dumped:?}");
}

/// Until a recorder has its file open.
fn wait_for_file(recorder: &Child, path: &Path) {
    let folder = format!("/proc/{}/fd", recorder.id());
    let is_open = |entry: DirEntry| fs::read_link(entry.path()).is_ok_and(|link| link == path);
    until(|| fs::read_dir(&folder).is_ok_and(|entries| entries.flatten().any(is_open)));
}

#[test]
fn a_forced_recording_that_records_no_process_keeps_the_earlier_trace() {
    const EARLIER: &str = "an earlier trace";
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let path = place.path("t.sbt");
    fs::write(&path, EARLIER).unwrap();
    let assert_kept = |run: &Run, words: &str| {
        assert_eq!(run.code, Some(2), "{words}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{}", run.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), EARLIER, "{words}");
    };

    let nobody = run(&mut place.tracesmith("record -o t.sbt --force -d 100ms"));
    assert_kept(&nobody, "no process was recorded");

    let armed = start(&mut place.armed("", "launcher forever"));
    place.wait_until_armed(&armed);
    let pid = armed.id();
    let ahead = start(&mut place.record(pid, "--force --delay 60s"));
    wait_for_file(&ahead, &path);
    assert_kept(&place.close_window(ahead), "ended before its window was open");

    let mut other = place.tracesmith(&format!("record --pid {pid} -o other.sbt"));
    let other = place.start_window(&mut other, pid);
    let busy = run(&mut place.record(pid, "--force -d 60s"));
    assert_kept(&busy, "cannot record: ");
    assert_eq!(place.close_window(other).code, Some(0));
    kill(armed);

    let variables = run(&mut place.tracesmith("--format json env"));
    let variables: serde_json::Value = serde_json::from_str(&variables.stdout).unwrap();
    let library = variables["CUDA_INJECTION64_PATH"].as_str().unwrap();
    let mut program = Talk::start(place.target("guest isokIgckuk").env("GUEST_LATE", library));
    program.hear("at 10");
    place.wait_until_armed(program.child());
    let pid = program.child().id();
    let conflict = run(&mut place.record(pid, "--force -d 60s"));
    assert_kept(&conflict, "another profiler");
    assert_eq!(program.answer_all().code, Some(0));
}
