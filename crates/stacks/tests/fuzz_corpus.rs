//! The inputs of the fuzz programs, those that once found a fault among them, on every run of the tests.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fs;
use std::path::Path;

use tracesmith_stacks::fuzz;

fn inputs(program: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(program);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn walks_over_recorded_and_spoiled_stacks_end() {
    let inputs = inputs("stacks_walk");
    assert!(inputs.len() >= 5);
    let deepest = inputs
        .iter()
        .filter_map(|input| fuzz::walk(input))
        .map(|walk| walk.depth)
        .max();
    assert!(deepest > Some(0), "some of them lead somewhere");
}

/// Every byte of a recorded stack and its tables, changed in several ways.
#[test]
fn a_byte_that_is_wrong_anywhere_does_no_harm() {
    for input in inputs("stacks_walk") {
        for at in 0..input.len() {
            for change in [1, 0x80, 0xff] {
                let mut spoiled = input.clone();
                spoiled[at] ^= change;
                fuzz::walk(&spoiled);
            }
        }
    }
}

#[test]
fn line_tables_of_any_bytes_are_read_to_their_end() {
    for input in inputs("stacks_lines") {
        for length in 0..=input.len() {
            fuzz::lines(&input[..length]);
        }
    }
}
