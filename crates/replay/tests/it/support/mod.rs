//! A process that finds the fake driver, and recordings to run in it.

pub mod window;

use std::any::type_name;
use std::process::Command;

use tracesmith_fake_cuda::{Options, install};
use tracesmith_replay::{Plan, Recording, Replay, Verdict};

use window::Window;

/// Set in the process that finds the fake driver.
const INSIDE: &str = "TRACESMITH_REPLAY_TEST_INSIDE";

/// Runs the body of a test in a process that finds the fake driver. The driver is opened by name and reads its options
/// from the environment once, so each test starts its own executable again. It also has the addresses for itself.
pub fn under_fake<F: FnOnce()>(variables: &[(&str, &str)], body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let folder = tempfile::tempdir().unwrap();
    install(folder.path()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test_of::<F>(), "--nocapture"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .env_remove("CUDA_VISIBLE_DEVICES")
        .envs(Options::default().variables())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The test that a closure is written in, as the test runner names it.
fn test_of<F>() -> &'static str {
    let name = type_name::<F>();
    let (_, path) = name.split_once("::").unwrap();
    path.trim_end_matches("::{{closure}}")
}

/// Prepares a recording that nothing blocks, at its own addresses.
pub fn replayed<T>(window: &Window, body: impl FnOnce(&mut Replay<'_>) -> T) -> T {
    let mut recording = window.open();
    let plan = planned(&mut recording);
    let mut replay = Replay::prepare(&mut recording, &plan, 0).unwrap();
    body(&mut replay)
}

/// The plan of a recording that nothing blocks.
pub fn planned(recording: &mut Recording) -> Plan {
    let plan = Plan::of(recording).unwrap();
    assert_eq!(plan.obstacles, []);
    plan
}

/// The verdict of one run of the whole window.
pub fn verdict(window: &Window) -> Verdict {
    replayed(window, |replay| replay.run().unwrap().verdict)
}

/// Asserts that every byte is as it was recorded, and how many were compared.
#[track_caller]
pub fn assert_same(verdict: &Verdict, count: usize, size: u64) {
    let same = Verdict::Same {
        buffers: count,
        bytes: size,
    };
    assert_eq!(*verdict, same);
}

/// The only difference of a verdict.
#[track_caller]
pub fn difference(verdict: &Verdict) -> &tracesmith_replay::Difference {
    match verdict {
        Verdict::Differs { differences, .. } if differences.len() == 1 => &differences[0],
        other => panic!("{other:?}"),
    }
}

/// Words as bytes.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Numbers as bytes.
pub fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
