//! Who made each call is in the trace. The program, the binary and the library are real; the driver is the fake one.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use support::rows::{assert_whole, calls, joined_kernels, rows};
use support::stacks::{end, functions, names};
use support::stage::{Place, run, stage};
use tracesmith_format::StackId;
use tracesmith_format::tables::{FrameKind, MemoryOperation, StackEnd};
use tracesmith_trace::Trace;

/// The first of these functions and all behind it, up to `main`.
fn from(names: &[String], first: &str) -> Vec<String> {
    let start = names.iter().position(|name| name == first);
    let end = names.iter().position(|name| name == "main");
    let (Some(start), Some(end)) = (start, end) else {
        panic!("{names:?}");
    };
    names[start..=end].to_vec()
}

/// The functions of the launcher that a call came through.
fn through(trace: &Trace, stack: StackId) -> Vec<String> {
    assert!(stack.is_some());
    let own = functions(trace, stack);
    let own = own.into_iter().filter(|function| function.image == "launcher");
    own.map(|function| function.name)
        .filter(|name| name != "_start")
        .collect()
}

#[test]
fn fifty_paths_are_those_that_the_program_took() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    if !stage.path("paths").exists() {
        return tracesmith_skip::without("cc", "c++");
    }
    let plugins = ["paths_plugin.so", "paths_bare.so"].map(|name| stage.path(name).display().to_string());
    let (run, trace) = place.profiled("--stacks native", &format!("paths {}", plugins.join(" ")));
    assert_whole(&trace);
    let kernels = joined_kernels(&trace);
    let by_path: BTreeMap<u32, StackId> = kernels
        .iter()
        .map(|kernel| (kernel.shape.grid_x, kernel.stack))
        .collect();
    assert_eq!(by_path.len(), 50);
    let mut all = BTreeSet::new();
    for line in run.stdout.lines() {
        let (number, expected) = line.split_once(' ').unwrap();
        let stack = by_path[&number.parse().unwrap()];
        let found = from(&names(&trace, stack), "leaf");
        assert_eq!(found.join(","), expected, "path {number}");
        assert_eq!(end(&trace, stack), StackEnd::ROOT);
        all.insert(found);
    }
    assert_eq!(all.len(), 50, "they are all different");
    // Lines are those of the source: a call that a frame stands in is on the line of its function's body.
    let leaf = functions(&trace, by_path[&1]);
    let leaf = leaf
        .iter()
        .find(|function| function.name.starts_with("leaf"))
        .unwrap();
    let source = include_str!("../../fake-cuda/targets/paths.cpp");
    let expected = source
        .lines()
        .position(|line| line.contains("launch(noop, (unsigned)path"));
    assert_eq!(
        (leaf.file.as_str(), leaf.line as usize),
        ("paths.cpp", expected.unwrap() + 1)
    );
}

#[test]
fn copies_sets_allocations_and_waits_have_stacks() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, trace) = place.profiled("--stacks native", "launcher copies 5");
    assert_whole(&trace);
    for copy in rows(&trace.copies) {
        assert!(through(&trace, copy.stack).ends_with(&["mode_copies".into(), "main".into()]));
    }
    assert_eq!(rows(&trace.copies).len(), 15);
    assert_eq!(rows(&trace.sets).len(), 5);
    for set in rows(&trace.sets) {
        assert!(through(&trace, set.stack).ends_with(&["mode_copies".into(), "main".into()]));
    }
    let (_, trace) = place.profiled("--stacks native", "launcher memory");
    assert_whole(&trace);
    let allocations = rows(&trace.allocations);
    let made: Vec<_> = allocations
        .iter()
        .filter(|row| row.shape.operation == MemoryOperation::ALLOCATE && row.correlation.is_some())
        .collect();
    assert_eq!(made.len(), 4);
    for row in made {
        assert!(through(&trace, row.stack).ends_with(&["mode_memory".into(), "main".into()]));
    }
    for sync in rows(&trace.syncs).iter().filter(|sync| sync.end > sync.start) {
        assert!(through(&trace, sync.stack).ends_with(&["mode_memory".into(), "main".into()]));
    }
}

#[test]
fn kernels_of_a_graph_have_the_stack_that_captured_them_and_that_of_the_launch_beside() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("--stacks native", "launcher graph 3 4");
    assert_whole(&trace);
    let kernels = joined_kernels(&trace);
    assert_eq!(kernels.len(), 12);
    let calls = calls(&trace);
    for kernel in &kernels {
        let captured = through(&trace, kernel.stack);
        assert!(captured.contains(&"launch_noops".to_owned()), "{captured:?}");
        let call = &calls[&(kernel.place.process, kernel.correlation.0)];
        assert_eq!(trace.string(call.shape.name), "cuGraphLaunch");
        let launched = through(&trace, call.stack);
        assert_eq!(launched, ["mode_graph", "main"]);
    }
}

#[test]
fn whole_graphs_have_the_stack_of_their_launch() {
    let Some(stage) = stage() else { return };
    let (_, trace) = Place::new(stage).profiled("--stacks native --graphs whole", "launcher graph 3 4");
    let launches = rows(&trace.graph_launches);
    assert_eq!(launches.len(), 4);
    for launch in launches {
        assert_eq!(through(&trace, launch.stack), ["mode_graph", "main"]);
    }
}

#[test]
fn every_launch_of_many_threads_has_a_stack_and_few_bytes() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let (_, trace) = place.profiled("--stacks native", "launcher threads 4 2500");
    assert_whole(&trace);
    let kernels = joined_kernels(&trace);
    assert_eq!(kernels.len(), 10_000);
    for kernel in &kernels {
        assert!(kernel.stack.is_some());
    }
    let distinct: BTreeSet<StackId> = kernels.iter().map(|kernel| kernel.stack).collect();
    assert_eq!(distinct.len(), 1, "each thread takes the same path");
    let names = names(&trace, *distinct.first().unwrap());
    assert!(names.contains(&"thread_main".to_owned()), "{names:?}");
    let with = place.path("t.sbt").metadata().unwrap().len();
    let without = place.profiled("", "launcher threads 4 2500");
    drop(without);
    let without = place.path("t.sbt").metadata().unwrap().len();
    let bytes = with.saturating_sub(without) as f64 / 10_000.0;
    assert!(
        bytes < 4.0,
        "{bytes} bytes a launch, the images and names among them"
    );
}

#[test]
fn stacks_belong_to_the_levels_from_standard_on() {
    let Some(stage) = stage() else { return };
    let place = Place::newest(stage);
    for (options, frames) in [
        ("", "native,python"),
        ("--level full", "native,python"),
        ("-t kernels,api --stacks native", "native"),
        ("--level light", "none"),
        ("-t kernels,api", "none"),
        ("--stacks none", "none"),
        ("--level full --stacks none", "none"),
    ] {
        let (_, trace) = place.profiled(options, "launcher launch 10");
        assert_whole(&trace);
        assert_eq!(trace.metadata["capture.stacks"], frames, "{options}");
        let with_stack = rows(&trace.kernels)
            .iter()
            .filter(|kernel| kernel.stack.is_some())
            .count();
        assert_eq!(with_stack, if frames == "none" { 0 } else { 10 }, "{options}");
    }
}

#[test]
fn none_and_some_frames_cannot_be_asked_for_at_once() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let mut profile = place.tracesmith("profile -o t.sbt --stacks none,native --");
    let failed = run(profile.arg("true"));
    assert_eq!(failed.code, Some(2));
    assert!(
        failed.stderr.contains("--stacks none cannot be combined"),
        "{}",
        failed.stderr
    );
}

#[test]
fn what_has_no_symbols_is_listed() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let stripped = place.path("stripped");
    let status = std::process::Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(stage.path("launcher"))
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return tracesmith_skip::without("cc", "strip");
    }
    let mut profile = place.tracesmith("profile -o t.sbt --stacks native --");
    let run = run(profile.arg(&stripped).args(["launch", "3"]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("stripped") && run.stderr.contains("tracesmith symbolize"),
        "{}",
        run.stderr
    );
    let trace = place.trace("t.sbt");
    let stack = functions(&trace, joined_kernels(&trace)[0].stack);
    let nameless = stack.iter().filter(|function| function.image == "stripped");
    assert!(nameless.clone().count() >= 2, "{stack:?}");
    assert!(
        nameless
            .clone()
            .all(|function| function.name.is_empty() && function.kind == FrameKind::NATIVE)
    );
}
