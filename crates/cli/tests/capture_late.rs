//! Our library is loaded into a process that has used CUPTI before: the profiler and TraceSmith both get all their records.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Stdio;

use support::Run;
use support::rows::{assert_whole, health, joined_kernels};
use support::stage::{Place, Talk, run, stage};
use tracesmith_fake_cuda::{CuptiVersion, Options};
use tracesmith_format::tables::HealthCause;

/// Where the library is, as `tracesmith env` says.
fn library(place: &Place) -> String {
    let answer = run(&mut place.tracesmith("--format json env"));
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let variables: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    variables["CUDA_INJECTION64_PATH"].as_str().unwrap().to_owned()
}

/// A window of a running program.
struct Window {
    record: Run,
    /// How many kernels the trace has, each with its call.
    kernels: usize,
    /// Why GPU work is missing.
    conflicts: Vec<String>,
}

/// Runs a program that halts where a window begins and where it ends, again and again.
fn with_windows(place: &Place, line: &str, windows: usize) -> (Run, Vec<Window>) {
    let library = library(place);
    let mut program = Talk::start(
        place
            .target(&line.replace("LIBRARY", &library))
            .env("GUEST_LATE", &library),
    );
    let mut recorded = Vec::new();
    for _ in 0..windows {
        program.hear("at ");
        place.wait_until_armed(program.child());
        let pid = program.child().id();
        // A recording that is refused leaves an earlier trace as it was.
        let _ = std::fs::remove_file(place.path("t.sbt"));
        let mut recorder = place.record(pid, "");
        let recorder = place.start_window(recorder.stderr(Stdio::piped()), pid);
        program.say();
        program.hear("at ");
        let record = place.close_window(recorder);
        program.say();
        let trace = place.trace("t.sbt");
        let conflicts = health(&trace, HealthCause::CONFLICT);
        if conflicts.is_empty() {
            assert_whole(&trace);
        }
        recorded.push(Window {
            record,
            kernels: joined_kernels(&trace).len(),
            conflicts: conflicts.iter().map(|row| row.detail.to_string()).collect(),
        });
    }
    (program.end(), recorded)
}

/// The same program, where our library is never loaded.
fn alone(place: &Place, line: &str) -> Run {
    let without = line.replace('I', "");
    Talk::start(&mut place.target(&without)).answer_all()
}

fn assert_shared(place: &Place, line: &str, expected_kernels: &[usize]) {
    let expected = alone(place, line);
    assert_eq!(expected.code, Some(0), "{line}: {}", expected.stderr);
    let (run, windows) = with_windows(place, line, expected_kernels.len());
    assert_eq!(
        (run.code, &run.stdout),
        (Some(0), &expected.stdout),
        "{line}: {}",
        run.stderr
    );
    for (window, expected) in windows.iter().zip(expected_kernels) {
        assert_eq!(window.record.code, Some(0), "{line}: {}", window.record.stderr);
        assert_eq!(window.conflicts, [""; 0], "{line}");
        assert_eq!(window.kernels, *expected, "{line}");
    }
}

/// Plans of `guest.c`: I is where our library is loaded, and each pair of g is a window.
#[test]
fn a_profiler_that_is_idle_hands_cupti_over_and_gets_all_it_asks_for() {
    let Some(stage) = stage() else { return };
    for cupti_version in [CuptiVersion::V12_4, CuptiVersion::V13_0] {
        let options = Options {
            cupti_version,
            ..Options::default()
        };
        let place = Place::with(stage, options);
        for (plan, kernels) in [
            // It has had a session: a window, and a session after it.
            ("ikokckIgkgkokck", vec![10]),
            // With a subscription that it keeps, as torch.profiler does.
            ("isokckIgkgkokckuk", vec![10]),
            // A session in the window.
            ("isokcIgkokckgkuk", vec![30]),
            // One that begins in the window and ends after it.
            ("isokcIgkokgkckuk", vec![20]),
            // One that begins before the second window and ends in it.
            ("isokcIgkgkokgkckgkuk", vec![10, 20]),
            // One between being loaded and the window, when CUPTI is still its own.
            ("isokckIkokckgkgkokckuk", vec![10]),
            // With a clock of its own.
            ("istokckIgkgktokck", vec![10]),
            ("istokckIgktokckgktokcku", vec![30]),
            // It has never had one.
            ("ikIgkokckgkokck", vec![30]),
            // It ends its session before the window, and fetches the records in it. It has begun it after we were loaded.
            ("isIokjgJkgkokckuk", vec![10]),
            // It leaves and comes back.
            ("isokcIgkgkuksokcku", vec![10]),
        ] {
            assert_shared(&place, &format!("guest {plan}"), &kernels);
        }
    }
}

#[test]
fn words_that_the_loader_has_sealed_are_redirected_as_well() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for program in ["linked_client", "sealed_client"] {
        // Before, in and after a session.
        assert_shared_halting(&place, program);
    }
}

fn assert_shared_halting(place: &Place, program: &str) {
    let expected = run(&mut place.target(&format!("{program} 3 10")));
    let (run, windows) = with_windows(place, &format!("{program} 4 10 LIBRARY"), 2);
    assert_eq!(run.code, Some(0), "{program}: {}", run.stderr);
    assert!(
        expected.stdout.contains("client kernels 30 foreign 0"),
        "{}",
        expected.stdout
    );
    assert!(
        run.stdout.contains("client kernels 40 foreign 0"),
        "{program}: {}",
        run.stdout
    );
    for window in windows {
        assert_eq!(window.conflicts, [""; 0], "{program}");
        assert_eq!(window.kernels, 20, "{program}: {}", window.record.stderr);
    }
}

/// Its data are to be whole.
#[test]
fn a_session_that_is_running_keeps_cupti_and_the_trace_says_so() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for plan in [
        // Begun before our library came.
        "isokIgkgkckuk",
        // After it.
        "isokckIkokgkgkckuk",
        // External correlations are on, as in torch.profiler, and stay so.
        "isEokIgkPgkPckuk",
        "isEIgPkgPkuk",
    ] {
        let line = format!("guest {plan}");
        let expected = alone(&place, &line);
        let (run, windows) = with_windows(&place, &line, 1);
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{plan}: {}",
            run.stderr
        );
        let window = &windows[0];
        assert_eq!(window.kernels, 0, "{plan}");
        assert_eq!(window.conflicts.len(), 1, "{plan}: {:?}", window.conflicts);
        assert!(
            window.conflicts[0].contains("was recording"),
            "{plan}: {:?}",
            window.conflicts
        );
    }
    // The next window after its end is whole.
    let (run, windows) = with_windows(&place, "guest isokIgkgkckgkgkokckuk", 2);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("foreign 0"), "{}", run.stdout);
    let kernels: Vec<usize> = windows.iter().map(|window| window.kernels).collect();
    assert_eq!(kernels, [0, 10], "{:?}", windows[1].conflicts);
}

/// Runs a plan with one window where it cannot be read which kinds are enabled, and nobody is linked against CUPTI.
/// Returns the kinds that are enabled at the end, and the window's kernels and conflicts.
fn with_hidden_kinds(plan: &str) -> Option<(u64, usize, Vec<String>)> {
    let place = Place::new(stage()?);
    let libraries = place.other_cupti("-DHIDDEN_KINDS");
    let library = library(&place);
    let mut program = Talk::start(
        place
            .target(&format!("unlinked_guest {plan}"))
            .env("GUEST_LATE", &library)
            .env("LD_LIBRARY_PATH", &libraries),
    );
    program.hear("at ");
    place.wait_until_armed(program.child());
    let pid = program.child().id();
    let recorder = place.start_window(&mut place.record(pid, ""), pid);
    program.say();
    program.hear("at ");
    let record = place.close_window(recorder);
    assert_eq!(record.code, Some(0), "{}", record.stderr);
    program.say();
    let run = program.end();
    let mut lines = run.stdout.lines();
    let kinds = lines.find_map(|line| line.strip_prefix("kinds ")).unwrap();
    let trace = place.trace("t.sbt");
    let conflicts = health(&trace, HealthCause::CONFLICT);
    Some((
        kinds.parse().unwrap(),
        joined_kernels(&trace).len(),
        conflicts.iter().map(|row| row.detail.to_string()).collect(),
    ))
}

#[test]
fn a_search_for_enabled_kinds_without_a_result_leaves_none_enabled() {
    let Some(found) = with_hidden_kinds("iIgkgK") else {
        return;
    };
    assert_eq!(found, (0, 10, Vec::new()));
}

/// The search ends before it would enable external correlations. A client that looked functions up has them.
#[test]
fn a_search_for_enabled_kinds_without_a_result_disables_no_kind_of_a_client() {
    let Some(found) = with_hidden_kinds("ilEIgkgK") else {
        return;
    };
    assert_eq!(found, (1 << 39, 10, Vec::new()));
}

/// A client that has subscribed may have enabled any kind.
#[test]
fn a_search_for_enabled_kinds_disables_nothing_where_another_client_has_subscribed() {
    let Some((kinds, kernels, conflicts)) = with_hidden_kinds("ilsEIgkgKu") else {
        return;
    };
    const NAME: u64 = 1 << 11;
    assert_eq!((kinds, kernels), (NAME | 1 << 39, 0));
    assert!(
        conflicts[0].contains("another profiler holds CUPTI"),
        "{conflicts:?}"
    );
}

/// A profiler that links CUPTI and also looks functions up calls them where we do not stand between.
#[test]
fn a_client_that_also_looked_functions_up_keeps_cupti() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for plan in ["isokclIgkgkokckuk", "iokclIgkgkokck"] {
        let line = format!("guest {plan}");
        let expected = alone(&place, &line);
        let (run, windows) = with_windows(&place, &line, 1);
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{plan}: {}",
            run.stderr
        );
        let window = &windows[0];
        assert_eq!((window.kernels, window.conflicts.len()), (0, 1), "{plan}");
        assert!(
            window.conflicts[0].contains("has looked up functions"),
            "{plan}: {:?}",
            window.conflicts
        );
    }
}

/// Nobody has read how it keeps subscriptions.
#[test]
fn an_unknown_version_of_cupti_is_left_to_a_client_that_has_subscribed() {
    let Some(stage) = stage() else { return };
    let options = Options {
        cupti_version: CuptiVersion::V13_4,
        ..Options::default()
    };
    let place = Place::with(stage, options);
    let line = "guest isokckIgkgkokckuk";
    let expected = alone(&place, line);
    let (run, windows) = with_windows(&place, line, 1);
    assert_eq!(
        (run.code, &run.stdout),
        (Some(0), &expected.stdout),
        "{}",
        run.stderr
    );
    let window = &windows[0];
    assert_eq!((window.kernels, window.conflicts.len()), (0, 1));
    assert!(
        window.conflicts[0].contains("version 130401"),
        "{:?}",
        window.conflicts
    );
}

/// It calls CUPTI where we do not stand between.
#[test]
fn a_client_that_looked_functions_up_keeps_cupti_while_it_has_subscribed_or_records() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    for (plan, words) in [
        ("ilsokckIgkgkokckuk", "another profiler holds CUPTI"),
        ("ilokIgkgkckokck", "was recording"),
    ] {
        let line = format!("unlinked_guest {plan}");
        let expected = alone(&place, &line);
        let (run, windows) = with_windows(&place, &line, 1);
        assert_eq!(
            (run.code, &run.stdout),
            (Some(0), &expected.stdout),
            "{plan}: {}",
            run.stderr
        );
        let window = &windows[0];
        assert_eq!(
            (window.kernels, window.conflicts.len()),
            (0, 1),
            "{plan}: {:?}",
            window.conflicts
        );
        assert!(
            window.conflicts[0].contains(words),
            "{plan}: {:?}",
            window.conflicts
        );
    }
}
