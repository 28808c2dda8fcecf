//! The fake held against the real library: `tests/real/` has what a spy was told on an H200, and here it is told the same.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]

use crate::stage;

use stage::stage;
use tracesmith_fake_cuda::Options;

/// Runs a program under the spy and compares with what the real library said.
fn compare(fixture: &str, line: &str, wishes: &[(&str, &str)]) {
    let Some(stage) = stage() else { return };
    let spy = stage.path("spy.so");
    let mut wishes = wishes.to_vec();
    if fixture == "markers" {
        wishes.push(("NVTX_INJECTION64_PATH", spy.to_str().unwrap()));
    }
    let lines = stage.spy(line, &Options::default(), &wishes);
    let ours: Vec<String> = lines.iter().filter_map(|line| normalised(line)).collect();
    let path = format!("{}/tests/real/{fixture}.txt", env!("CARGO_MANIFEST_DIR"));
    let real = std::fs::read_to_string(path).unwrap();
    let real: Vec<&str> = real.lines().collect();
    assert_eq!(ours, real, "{fixture}");
}

/// A line without what differs from run to run: times, places in buffers, what is left over from something else.
fn normalised(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "record" if words[1] == "17" => None,
        "record" if words[1] == "8" => Some("record 8 device".to_owned()),
        "record" => {
            let is_time = |word: &str| word.len() == 19 && word.bytes().all(|byte| byte.is_ascii_digit());
            let rest = words[4..]
                .iter()
                .map(|word| if is_time(word) { "T" } else { word });
            let rest: Vec<&str> = rest.collect();
            Some(format!("record {} {}", words[1], rest.join(" ")))
        }
        "complete" | "second" => Some(words[..5].join(" ")),
        _ => Some(line.to_owned()),
    }
}

#[test]
fn kernels_alone() {
    compare("kernels", "launcher launch 3", &[("SPY_KINDS", "10")]);
}

#[test]
fn calls_and_kernels() {
    compare("calls", "launcher launch 3", &[("SPY_KINDS", "10,4")]);
}

#[test]
fn memory_of_all_kinds() {
    compare("memory", "launcher memory", &[("SPY_KINDS", "1,2,4,49,50,38")]);
}

#[test]
fn memory_that_is_mapped() {
    compare("virtual", "launcher virtual", &[("SPY_KINDS", "49,4")]);
}

#[test]
fn copies_and_sets() {
    compare("copies", "launcher copies 1", &[("SPY_KINDS", "1,2,4")]);
}

#[test]
fn graphs_as_a_whole() {
    compare("graph_trace", "launcher graph 3 2", &[("SPY_KINDS", "51,4")]);
}

#[test]
fn graphs_by_node() {
    let wishes = [("SPY_KINDS", "10,4"), ("SPY_CALLBACKS", "3:*,1:307,1:514")];
    compare("graph", "launcher graph 2 1", &wishes);
}

#[test]
fn external_ids() {
    let wishes = [("SPY_KINDS", "10,4,39"), ("SPY_EXTERNAL", "1")];
    compare("external", "launcher launch 1", &wishes);
}

#[test]
fn calls_left_out() {
    let wishes = [("SPY_KINDS", "10,4"), ("SPY_FILTER", "307")];
    compare("filter", "launcher launch 2", &wishes);
}

#[test]
fn buffers_registered_twice() {
    let wishes = [("SPY_KINDS", "10"), ("SPY_TWICE", "1")];
    compare("twice", "launcher launch 2", &wishes);
}

#[test]
fn all_callbacks() {
    let wishes = [("SPY_KINDS", "10,4"), ("SPY_CALLBACKS", "1:*,3:*,4:*")];
    compare("callbacks", "launcher launch 1", &wishes);
}

#[test]
fn modules_come_and_go() {
    compare("modules", "launcher modules", &[("SPY_CALLBACKS", "3:*")]);
}

#[test]
fn markers_of_nvtx() {
    compare("markers", "launcher nvtx", &[("SPY_KINDS", "12,13")]);
}

#[test]
fn latencies() {
    let wishes = [("SPY_KINDS", "10"), ("SPY_LATENCY", "1")];
    compare("latency", "launcher launch 2", &wishes);
}
