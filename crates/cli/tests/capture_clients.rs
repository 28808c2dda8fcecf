//! A profiler of the program's own and ours: both get all that they asked for, whoever comes first.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Stdio;

use support::Run;
use support::rows::{assert_whole, health, joined_kernels, rows};
use support::stage::{Place, Talk, kill, run, stage, start};
use tracesmith_fake_cuda::{CuptiVersion, Options};
use tracesmith_format::tables::HealthCause;

/// What a profiler in a program does: see `guest.c`. Plans without halts have no number.
fn plans() -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let lines = include_str!("../../fake-cuda/targets/guest_plans.txt").lines();
    let plans = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    plans.map(|line| {
        let mut words = line.split_whitespace();
        let plan = words.next().unwrap();
        let kernels = words.next().and_then(|word| word.parse().ok());
        assert_eq!(kernels.is_some(), plan.contains('g'), "{line}");
        (plan, kernels)
    })
}

/// Those that the program goes through at one go.
fn plans_without_halts() -> impl Iterator<Item = &'static str> {
    plans().filter_map(|(plan, kernels)| kernels.is_none().then_some(plan))
}

/// The same program alone.
fn alone(place: &Place, target: &str) -> Run {
    let run = run(&mut place.target(target));
    assert_eq!(run.code, Some(0), "{target}: {}", run.stderr);
    run
}

/// A number of a guest's last line.
fn number_after(run: &Run, word: &str) -> usize {
    let mut words = run.stdout.lines().last().unwrap().split(' ');
    words.find(|other| *other == word);
    words.next().unwrap().parse().unwrap()
}

/// Kernels that a guest launched, as it says.
fn launched(run: &Run) -> usize {
    number_after(run, "launched")
}

#[test]
fn a_program_with_a_profiler_does_not_notice_us_nor_we_it() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for plan in plans_without_halts() {
        let target = format!("guest {plan}");
        let expected = alone(&place, &target);
        let (run, trace) = place.profiled("", &target);
        assert_eq!(run.stdout, expected.stdout, "{plan}");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), launched(&run), "{plan}");
    }
}

#[test]
fn linked_and_loaded_clients_are_served_with_and_without_preloading() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for target in [
        "launcher client",
        "linked_client 2 10",
        "guest iklokck",
        "guest ikltokckokck",
    ] {
        let expected = alone(&place, target);
        for options in ["", "--no-preload"] {
            let (run, trace) = place.profiled(options, target);
            assert_eq!(run.stdout, expected.stdout, "{target} {options}");
            assert_whole(&trace);
            assert_eq!(joined_kernels(&trace).len(), launched(&run), "{target} {options}");
        }
    }
}

#[test]
fn every_version_of_cupti_can_be_shared() {
    let Some(stage) = stage() else { return };
    for cupti_version in CuptiVersion::ALL {
        let options = Options {
            cupti_version,
            ..Options::default()
        };
        let place = Place::with(stage, options);
        let expected = alone(&place, "guest iktsokcukokck");
        let (run, trace) = place.profiled("", "guest iktsokcukokck");
        assert_eq!(run.stdout, expected.stdout, "{cupti_version:?}");
        assert_whole(&trace);
        assert_eq!(joined_kernels(&trace).len(), 50, "{cupti_version:?}");
    }
}

#[test]
fn what_they_want_and_we_do_not_is_theirs_alone() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let expected = alone(&place, "guest ikokck");
    // Calls are wanted by them only, and so are those that only ask.
    for options in ["-t kernels", "-t copies", "-t nvtx", "-t api"] {
        let (run, trace) = place.profiled(options, "guest ikokck");
        assert_eq!(run.stdout, expected.stdout, "{options}");
        assert_whole(&trace);
        let kernels = if options == "-t kernels" { 30 } else { 0 };
        assert_eq!(trace.kernels.rows(), kernels, "{options}");
        let calls = rows(&trace.api_calls);
        assert_eq!(calls.is_empty(), options != "-t api", "{options}");
        assert!(
            calls
                .iter()
                .all(|call| trace.string(call.shape.name) != "cuCtxSetCurrent")
        );
    }
}

#[test]
fn records_that_are_dropped_are_dropped_for_both() {
    let Some(stage) = stage() else { return };
    let options = Options {
        drop_every: 7,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let (run, trace) = place.profiled("", "launcher client");
    let dropped: u64 = run.stdout.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(dropped > 0, "{}", run.stdout);
    assert!(!trace.health().is_good());
}

/// A window around some of the sessions of a running program.
/// What a program says that goes through a plan, with a window of ours between its two halts; and how many kernels the
/// window has.
fn around_a_window(place: &Place, arming: &str, window: &str, line: &str) -> (Run, u64) {
    let mut armed = Talk::start(&mut place.armed(arming, line));
    armed.hear("at ");
    place.wait_until_armed(armed.child());
    let mut recorder = place.record(armed.child().id(), window);
    recorder.stderr(Stdio::piped());
    let recorder = place.start_window(&mut recorder, armed.child().id());
    armed.say();
    armed.hear("at ");
    let record = place.close_window(recorder);
    assert_eq!(record.code, Some(0), "{line}: {}", record.stderr);
    armed.say();
    let run = armed.end();
    let trace = place.trace("t.sbt");
    assert_whole(&trace);
    std::fs::remove_file(place.path("t.sbt")).unwrap();
    (run, trace.kernels.rows())
}

#[test]
fn windows_before_inside_and_after_their_sessions_disturb_nobody() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // g: where the test opens and closes its window.
    for (plan, recorded) in plans() {
        let Some(recorded) = recorded else { continue };
        for options in ["", "--no-preload"] {
            let plan = if options.is_empty() {
                plan.to_owned()
            } else {
                plan.replacen('i', "il", 1)
            };
            let line = format!("guest {plan}");
            let mut expected = place.target(&line);
            let expected = Talk::start(&mut expected).answer_all();
            let (run, kernels) = around_a_window(&place, options, "", &line);
            assert_eq!(run.stdout, expected.stdout, "{plan} {options}: {}", run.stderr);
            assert_eq!(kernels, recorded, "{plan} {options}");
        }
    }
}

/// CUPTI has one switch for such times: it stays on while they want it.
#[test]
fn times_that_they_asked_for_outlast_our_window() {
    let Some(stage) = stage() else { return };
    let place = Place::newest(stage);
    for plan in ["ikLokgkgkck", "iokgkLkgkck", "ikokgkgkck"] {
        let line = format!("guest {plan}");
        let mut expected = place.target(&line);
        let expected = Talk::start(&mut expected).answer_all();
        let (run, _) = around_a_window(&place, "", "--level full", &line);
        // Ours has them meanwhile, where they did not ask: nothing is taken away by it.
        let queued = |run: &Run| number_after(run, "queued");
        match plan.contains('L') {
            true => assert!(
                queued(&run) >= queued(&expected) && queued(&expected) > 0,
                "{}",
                run.stdout
            ),
            false => assert_eq!((queued(&expected), queued(&run)), (0, 10), "{}", run.stdout),
        }
    }
}

/// A CUPTI whose interface for several clients does not go together with ours: who uses it gets all of it, and the trace
/// says what is missing.
#[test]
fn a_client_that_cannot_share_gets_cupti_and_the_trace_says_so() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let path = place.other_cupti("-DSEVERAL_CLIENTS");
    let expected = run(place.target("guest ikSkuk").env("LD_LIBRARY_PATH", &path));
    assert!(
        expected.stdout.contains("callbacks 20 ") && expected.stdout.contains("failed 0"),
        "{}",
        expected.stdout
    );
    for options in ["", "--no-preload"] {
        let run = run(place
            .profile(options, "guest ikSkuk")
            .env("LD_LIBRARY_PATH", &path));
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{options}: {}",
            run.stderr
        );
        let trace = place.trace("t.sbt");
        let conflicts = health(&trace, HealthCause::CONFLICT);
        assert_eq!(conflicts.len(), 1, "{options}: {:?}", trace.health());
        assert!(conflicts[0].detail.contains("cuptiSubscribe_v2"), "{conflicts:?}");
        // What came before is there.
        assert_eq!(joined_kernels(&trace).len(), 10, "{options}");
    }
    for options in ["", "--ready", "--ready --no-preload"] {
        let run = run(place.armed(options, "guest ikSkuk").env("LD_LIBRARY_PATH", &path));
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{options}: {}",
            run.stderr
        );
    }
}

/// What another tool is told of a program that the driver loads it into, by the kinds of its records.
fn told_to_another_tool(place: &Place, command: &mut std::process::Command) -> (Run, Vec<String>) {
    let report = place.path("spy.txt");
    let run = run(command.env("SPY_OUT", &report).env("SPY_KINDS", "8,10"));
    let lines = std::fs::read_to_string(report).unwrap();
    let records = lines.lines().filter(|line| line.starts_with("record "));
    let kinds = records.filter_map(|line| line.split(' ').nth(1));
    (run, kinds.map(str::to_owned).collect())
}

/// As Nsight Systems does it in a shell that is armed: the driver loads its library instead of ours, and ours is preloaded.
#[test]
fn another_tool_has_its_process_for_itself() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (spy, launcher) = (stage.path("spy.so"), stage.path("launcher"));
    let tool = format!("CUDA_INJECTION64_PATH={}", spy.display());
    let (run, expected) = told_to_another_tool(
        &place,
        place
            .target("launcher launch 3")
            .env("CUDA_INJECTION64_PATH", &spy),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(expected.iter().filter(|kind| *kind == "10").count(), 3);
    let mut profile = place.tracesmith("profile -o t.sbt --force -- env");
    let (run, told) = told_to_another_tool(&place, profile.arg(&tool).arg(&launcher).args(["launch", "3"]));
    assert_eq!((run.code, &told), (Some(0), &expected), "{}", run.stderr);
    assert!(run.stderr.contains(&tool.replace('=', " is ")), "{}", run.stderr);
    let trace = place.trace("t.sbt");
    let conflicts = health(&trace, HealthCause::CONFLICT);
    // Once.
    let said = trace.health().recorded;
    assert!(conflicts.len() == 1 && said.len() == 1, "{said:?}");
    assert!(
        conflicts[0].detail.contains("CUDA_INJECTION64_PATH"),
        "{conflicts:?}"
    );
    for options in ["", "--ready"] {
        let mut shell = place.armed_under(&tool, options, "launcher launch 3");
        let (run, told) = told_to_another_tool(&place, &mut shell);
        assert_eq!(
            (run.code, &told),
            (Some(0), &expected),
            "{options}: {}",
            run.stderr
        );
        let armed = start(&mut place.armed_under(&tool, options, "launcher forever"));
        place.wait_until_armed(&armed);
        let window = support::stage::run(&mut place.record(armed.id(), "-d 0.1 --force"));
        assert!(
            window.stderr.contains("another tool has this process"),
            "{}",
            window.stderr
        );
        kill(armed);
    }
}

/// As Nsight Systems does it around `tracesmith profile`: whoever is asked last has the program, and says so.
#[test]
fn a_tool_that_we_take_the_place_of_is_named() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let others = stage.path("spy.so");
    let mut profile = place.profile("", "launcher launch 3");
    let run = run(profile.env("CUDA_INJECTION64_PATH", &others));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let words = format!("warning: CUDA_INJECTION64_PATH was {}", others.display());
    assert!(run.stderr.contains(&words), "{}", run.stderr);
    assert_eq!(joined_kernels(&place.trace("t.sbt")).len(), 3);
    let script = format!(
        "eval \"$('{0}' env)\"; '{0}' profile -o t.sbt --force -- '{1}' launch 3",
        env!("CARGO_BIN_EXE_tracesmith"),
        stage.path("launcher").display()
    );
    let armed = support::stage::run(place.command("sh").args(["-c", &script]));
    assert!(!armed.stderr.contains("warning"), "{}", armed.stderr);
    assert_eq!(joined_kernels(&place.trace("t.sbt")).len(), 3);
}

/// It does not start where the driver would load a library that is not its own, and ends programs that have one. What it
/// is called tells us: here others have its name. (No shell, where variables are taken away: bash does that its own way.)
#[test]
fn nsight_compute_does_not_find_our_library() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let copy = |program: &str, folder: &str| {
        let tool = place.path(folder).join("ncu");
        std::fs::create_dir(place.path(folder)).unwrap();
        std::fs::copy(program, &tool).unwrap();
        tool.to_str().unwrap().to_owned()
    };
    let tool = copy("/usr/bin/env", "env");
    for (program, found) in [("/usr/bin/env", false), (&tool, true)] {
        let words = "echo \"<$CUDA_INJECTION64_PATH>\"";
        let mut profile = place.tracesmith("profile -o t.sbt --force --");
        let under = run(profile.args([program, "sh", "-c", words]));
        let script = format!(
            "eval \"$('{}' env)\"; '{program}' sh -c '{words}'",
            env!("CARGO_BIN_EXE_tracesmith")
        );
        let armed = run(place.command("sh").args(["-c", &script]));
        for run in [under, armed] {
            let is_empty = run.stdout == "<>\n";
            assert_eq!(
                (run.code, is_empty),
                (Some(0), found),
                "{program}: {}",
                run.stderr
            );
        }
    }
    let script = format!(
        "'{}' profile -o t.sbt --force -- '{}' launch 3; exit $?",
        env!("CARGO_BIN_EXE_tracesmith"),
        stage.path("launcher").display()
    );
    let around = run(place.command(copy("/bin/sh", "sh")).args(["-c", &script]));
    assert_eq!(around.code, Some(0), "{}", around.stderr);
    assert!(around.stdout.contains("launched 3"), "{}", around.stdout);
    let warnings = around.stderr.matches("warning:").count();
    assert_eq!(warnings, 1, "{}", around.stderr);
    let trace = place.trace("t.sbt");
    assert_eq!(trace.kernels.rows(), 0);
    let conflicts = health(&trace, HealthCause::CONFLICT);
    assert!(conflicts[0].detail.contains("Nsight Compute"), "{conflicts:?}");
}

/// What a process has read, by calls of the system.
fn reads(pid: u32) -> u64 {
    let lines = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let count = lines.lines().find_map(|line| line.strip_prefix("syscr: "));
    count.unwrap().parse().unwrap()
}

#[test]
fn a_profiler_in_a_process_of_another_tool_works_as_it_does_alone() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let line = "guest ikokcgokokokokokcg";
    // It asks for nothing, so that the program may have CUPTI.
    let tool = stage.path("spy.so");
    let measured = |command: &mut std::process::Command| {
        let mut talk = Talk::start(command);
        talk.hear("at ");
        let before = reads(talk.child().id());
        talk.say();
        talk.hear("at ");
        let read = reads(talk.child().id()) - before;
        talk.say();
        (talk.end(), read)
    };
    let (expected, read_alone) = measured(place.target(line).env("CUDA_INJECTION64_PATH", &tool));
    assert!(expected.stdout.contains("kernels 60 "), "{}", expected.stdout);
    for options in ["", "--ready"] {
        let tool = format!("CUDA_INJECTION64_PATH={}", tool.display());
        let (run, read) = measured(&mut place.armed_under(&tool, options, line));
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{options}: {}",
            run.stderr
        );
        // It has taken some hundred records from CUPTI meanwhile.
        assert!(read < read_alone + 20, "{options}: {read} and {read_alone}");
    }
}

#[test]
fn armed_and_never_recorded_is_as_if_we_were_not_there() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for plan in plans_without_halts() {
        let target = format!("guest {plan}");
        let expected = alone(&place, &target);
        for options in ["", "--ready", "--ready --no-preload"] {
            let run = run(&mut place.armed(options, &target));
            assert_eq!(
                (run.code, &run.stdout),
                (Some(0), &expected.stdout),
                "{plan}, {options}: {}",
                run.stderr
            );
        }
    }
}
