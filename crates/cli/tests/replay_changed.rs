//! Recorded work with other kernels in it, and numbers that need not be the same to the last bit.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use serde_json::Value;
use support::replay::{WINDOW, planned, replayed};
use support::stage::{Place, run, stage};

/// Two kernels with the parameters of saxpy: the same, and one that is three units in the last place off. And one with
/// other parameters.
const OTHERS: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
ld.param.u32 %r5, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p1, %r4, %r5;
@%p1 bra done;
mul.wide.u32 %rd3, %r4, 4;
ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
fma.rn.f32 %f2, %f1, %f3, %f2;
st.global.f32 [%rd1], %f2;
done:
ret;
}
.visible .entry saxpy_near(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
ld.param.u32 %r5, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p1, %r4, %r5;
@%p1 bra done;
mul.wide.u32 %rd3, %r4, 4;
ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
fma.rn.f32 %f2, %f1, %f3, %f2;
mov.b32 %r6, %f2; add.u32 %r6, %r6, 3; mov.b32 %f2, %r6;
st.global.f32 [%rd1], %f2;
done:
ret;
}
.visible .entry fill(.param .u64 target, .param .u32 value, .param .u32 n)
{
ret;
}
";

/// A recorded window of some numbers, and other kernels beside it.
fn recorded(place: &Place) {
    place.profiled(WINDOW, "launcher window 5000 2");
    std::fs::write(place.path("others.ptx"), OTHERS).unwrap();
}

#[test]
fn a_kernel_that_does_the_same_is_the_same() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    recorded(&place);
    let (code, answer) = replayed(&place, "--replace saxpy=others.ptx --repeat 3");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("same")),
        "{answer}"
    );
    let replaced = answer["replaced"].as_array().unwrap();
    assert_eq!(replaced.len(), 1, "{answer}");
    assert_eq!(replaced[0]["name"], "saxpy");
    assert_eq!(replaced[0]["outcome"]["verdict"], "same");
    assert!(
        replaced[0]["old_ns"].is_u64() && replaced[0]["new_ns"].is_u64(),
        "{answer}"
    );
}

#[test]
fn a_kernel_that_does_something_else_differs() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    recorded(&place);
    let (code, answer) = replayed(&place, "--replace saxpy=others.ptx:saxpy_near");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(1), &Value::from("differs")),
        "{answer}"
    );
    assert_eq!(answer["replaced"][0]["outcome"]["verdict"], "differs");
    // The sums of y, and what was copied from them to x.
    assert_eq!(
        answer["runs"][0]["differences"].as_array().unwrap().len(),
        3,
        "{answer}"
    );
    let text = run(&mut place.tracesmith("replay t.sbt --replace saxpy=others.ptx:saxpy_near"));
    assert!(text.stdout.contains("new / old"), "{}", text.stdout);
}

#[test]
fn numbers_may_be_as_far_apart_as_is_said() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    recorded(&place);
    let near = "--replace saxpy=others.ptx:saxpy_near --kernel saxpy";
    let (code, answer) = replayed(&place, &format!("{near} --tolerance f32=1e-5"));
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(
        (&answer["verdict"], &answer["against"]),
        (&Value::from("within tolerance"), &Value::from("replay"))
    );
    let within = &answer["runs"][0]["within"][0];
    assert_eq!(
        (&within["elements"], &within["type"]),
        (&Value::from(5000), &Value::from("f32")),
        "{answer}"
    );
    let largest = within["largest"].as_f64().unwrap();
    // Three units in the last place of a number below 256.
    assert!(
        largest > 0.0 && largest <= 3.0 * f64::from(f32::EPSILON) * 128.0,
        "{answer}"
    );
    // As halves they are far apart, and so they are with less room.
    for tolerance in ["f16=1e-5", "f32=1e-9", "--type f32 1e-9:0"] {
        let (given, kind) = match tolerance.strip_prefix("--type f32 ") {
            Some(rest) => (rest, "--type f32"),
            None => (tolerance, ""),
        };
        let (code, answer) = replayed(&place, &format!("{near} --tolerance {given} {kind}"));
        assert_eq!(
            (code, &answer["verdict"]),
            (Some(1), &Value::from("differs")),
            "{tolerance}"
        );
    }
    let text = run(&mut place.tracesmith(&format!("replay t.sbt {near} --tolerance 1e-5 --type f32")));
    assert!(
        text.stdout.starts_with("run 1: within tolerance"),
        "{}{}",
        text.stdout,
        text.stderr
    );
    let untyped = run(&mut place.tracesmith("replay t.sbt --tolerance 1e-5"));
    assert_eq!(untyped.code, Some(2));
    assert!(
        untyped.stderr.contains("a tolerance needs a type"),
        "{}",
        untyped.stderr
    );
}

#[test]
fn what_cannot_take_a_kernels_place_is_said() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    recorded(&place);
    for (replace, words) in [
        ("saxpy=missing.ptx", "reading missing.ptx"),
        (
            "saxpy=others.ptx:nothing",
            "has no kernel \"nothing\"; it has saxpy, saxpy_near, fill",
        ),
        (
            "nothing=others.ptx",
            "cannot replace \"nothing\": the recording has no kernel whose name contains it",
        ),
        (
            "saxpy=others.ptx:fill",
            "the parameters of fill differ from those of saxpy: 3 of 8 + 4 + 4 bytes instead of 4 of 8 + 8 + 4 + 4 bytes",
        ),
        ("accumulate=others.ptx", "has no kernel \"accumulate\""),
    ] {
        let failed = run(&mut place.tracesmith(&format!("replay t.sbt --replace {replace}")));
        assert_eq!(failed.code, Some(2), "{replace}: {}", failed.stdout);
        assert!(failed.stderr.contains(words), "{replace}: {}", failed.stderr);
    }
    let other = run(&mut place.tracesmith("replay t.sbt --replace saxpy=others.ptx --kernel fill"));
    assert!(
        other
            .stderr
            .contains("--kernel fill selects no launch of \"saxpy\""),
        "{}",
        other.stderr
    );
}

/// A kernel with the parameters of `fill` that writes nothing.
const NOTHING: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry noop(.param .u64 target, .param .u32 value, .param .u32 n)
{
ret;
}
";

/// A recorded window with memory that is allocated and freed in it.
fn recorded_temporary() -> Option<Place> {
    let place = Place::new(stage()?);
    place.profiled(WINDOW, "launcher temporary 1000");
    std::fs::write(place.path("nothing.ptx"), NOTHING).unwrap();
    Some(place)
}

/// Issue 26: memory that is freed within the window was never compared.
#[test]
fn a_launch_that_leaves_memory_unwritten_differs_also_when_that_memory_is_freed() {
    let Some(place) = recorded_temporary() else { return };
    for kernel in ["fill#1", "fill#2"] {
        let options = format!("--kernel {kernel} --replace fill=nothing.ptx:noop");
        let (code, answer) = replayed(&place, &options);
        assert_eq!(
            (code, &answer["verdict"]),
            (Some(1), &Value::from("differs")),
            "{kernel}: {answer}"
        );
        assert_eq!(answer["runs"][0]["verdict"], "differs", "{kernel}: {answer}");
        assert_eq!(
            answer["replaced"][0]["outcome"]["verdict"], "differs",
            "{kernel}: {answer}"
        );
    }
}

/// Issue 26: nobody reads what the second launch writes, and it is gone at the end of the window.
#[test]
fn a_whole_window_differs_when_memory_differed_before_it_was_freed() {
    let Some(place) = recorded_temporary() else { return };
    let plan = r#"{"replace": [{"kernel": "fill", "nth": 2, "file": "nothing.ptx", "symbol": "noop"}]}"#;
    std::fs::write(place.path("plan.json"), plan).unwrap();
    let (code, answer) = replayed(&place, "--plan plan.json");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(1), &Value::from("differs")),
        "{answer}"
    );
    let run = &answer["runs"][0];
    assert_eq!(run["verdict"], "differs", "{answer}");
    // It is named, with the call that left it so.
    let fills: Vec<Value> = planned(&place)
        .into_iter()
        .filter(|command| command["function"] == "fill")
        .collect();
    assert_eq!(run["differences"][0]["after"], fills[1]["number"], "{answer}");
    assert_eq!(run["differences"][0]["bytes"], 4000, "{answer}");
}

/// Issue 26: memory that the window allocates held what an earlier run, here the one to compare with, had left in it.
#[test]
fn a_run_inherits_nothing_from_the_one_before() {
    let Some(place) = recorded_temporary() else { return };
    let calls = planned(&place);
    let add = calls
        .iter()
        .find(|call| call["function"] == "vector_add")
        .unwrap();
    let until = add["number"].as_u64().unwrap() + 1;
    let options = format!("--ops 1..{until} --replace fill=nothing.ptx:noop --repeat 2");
    let (code, answer) = replayed(&place, &options);
    assert_eq!(code, Some(1), "{answer}");
    for run in answer["runs"].as_array().unwrap() {
        assert_eq!(run["verdict"], "differs", "{answer}");
    }
}

#[test]
fn memory_that_is_freed_in_the_window_replays_the_same() {
    let Some(place) = recorded_temporary() else { return };
    for options in ["--repeat 3", "--kernel vector_add", "--ops 2..6", "--mode serial"] {
        let (code, answer) = replayed(&place, options);
        assert_eq!(
            (code, &answer["verdict"]),
            (Some(0), &Value::from("same")),
            "{options}: {answer}"
        );
    }
    let (code, answer) = replayed(&place, "--check determinism --repeat 4");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(0), &Value::from("repeats")),
        "{answer}"
    );
}

/// The recorded kernel writes nothing either, so that nothing differs says nothing.
#[test]
fn a_launch_that_changes_nothing_is_unproven_and_not_the_same() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "windows twins");
    std::fs::write(place.path("nothing.ptx"), NOTHING).unwrap();
    let plan = r#"{"replace": [{"kernel": "fill", "nth": 2, "file": "nothing.ptx", "symbol": "noop"}]}"#;
    std::fs::write(place.path("plan.json"), plan).unwrap();
    let (code, answer) = replayed(&place, "--plan plan.json");
    assert_eq!(
        (code, &answer["verdict"]),
        (Some(1), &Value::from("unproven")),
        "{answer}"
    );
    let outcome = &answer["replaced"][0]["outcome"];
    assert_eq!(outcome["verdict"], "unproven", "{answer}");
    assert!(
        outcome["reason"].as_str().unwrap().contains("changed no memory"),
        "{answer}"
    );
    let text = run(&mut place.tracesmith("replay t.sbt --plan plan.json"));
    assert_eq!(text.code, Some(1), "{}", text.stderr);
    assert!(text.stdout.contains("unproven"), "{}", text.stdout);
    assert!(text.stderr.contains("cannot be checked"), "{}", text.stderr);
}
